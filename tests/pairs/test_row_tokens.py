"""Tokens of texts: each number, date and legal form by its value, worked by hand in several languages."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gramvec.jobs.pairs.numbers import Style
from gramvec.jobs.pairs.tokens import DIGITS, LETTERS, MARKS, SYMBOLS, ZEROS, fold_text, spell_column, tokens_of
from gramvec.jobs.pairs.words import find_tokens


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        # Numbers have their point, sign and fraction; zeros that say nothing are gone; a unit is a token of its own.
        ("2.5 mg", "2.5 mg"), ("2.50mg", "2.5 mg"), ("25 mg", "25 mg"), ("4.7k", "4.7 k"), ("0.25", "0.25"),
        (".25", "0.25"), ("-20 C", "-20 c"), ("−20 C", "-20 c"), ("20 C", "20 c"), ("1/2 in", "0.5 in"),
        ("½ in", "0.5 in"),
        ("1 1/2 cups", "1.5 cups"), ("1½ cups", "1.5 cups"), ("1234.50", "1234.5"), ("1,234.50", "1234.5"),
        ("1.234,50", "1234.5"), ("1,000", "1000"), ("5.00", "5"), ("1.234.567", "1234567"), ("12,5 mm", "12.5 mm"),
        ("No 7", "no 7"), ("No.7", "no 7"), ("No 7.5", "no 7.5"), ("v2.0", "v 2"), ("007", "007"), ("$5.00", "5"),
        ("٣.٥", "3.5"),
        # What only looks like it.
        ("sd-1100", "sd 1100"), ("10 -20", "10 20"), ("5 - 3", "5 3"), ("3-7 Elm St", "3 7 elm st"), ("1.2.3", "1 2 3"),
        ("192.168.1.10", "192 168 1 10"), ("12/14 Main St", "12 14 main st"), ("1,2,3", "1 2 3"),
        ("3, 3 Love Lane", "3 3 love lane"),
        ("10x20", "10 x 20"), ("SD1100IS", "sd 1100 is"), ("10:30", "10 30"), ("312-555-0142", "312 555 0142"),
        ("+34976 77 98 38", "34976 77 98 38"),
        # Dates of digits.
        ("1980-02-01", "19800201"), ("01.02.1980", "19800201"), ("1/2/1980 x", "19800201 x"),
        ("31.02.1980", "31 02 1980"),
        # A letter behind a house number is its own.
        ("14A", "14a"), ("Flat 14c", "flat 14c"), ("12A-14B", "12a 14b"), ("2nd", "2 nd"), ("5m", "5 m"),
        ("100W", "100 w"),
        # Signs behind letters.
        ("A+", "a+"), ("A-", "a-"), ("AB- or A", "ab- or a"), ("C++ and C#", "c++ and c#"), ("a-b", "a b"),
        ("C-class", "c class"),
        # Legal forms.
        ("S.C. Dacia S.R.L.", "sc dacia srl"), ("Dacia SRL", "dacia srl"), ("株式会社メルカリ", "株式会社 メルカリ"),
        ("メルカリ株式会社", "メルカリ 株式会社"), ("北京字节有限公司", "北京字节 有限公司"),
        ("Orlen Sp. z o.o.", "orlen spzoo"),
        ("Maersk A/S", "maersk as"), ("Škoda s. r. o.", "skoda sro"), ("J.R.R. Tolkien", "j r r tolkien"),
        ("U.S.A.", "u s a"),
        # Symbols alone.
        ("%", "%"), ("-", "-"), ("+ +", "+ +"), ("", ""), ("(!)", "(!)"),
    ],
)  # fmt: skip
def test_tokens_by_hand(text: str, tokens: str) -> None:
    assert " ".join(find_tokens(fold_text(text), Style())) == tokens


def test_a_column_decides_how_its_numbers_are_written() -> None:
    assert spell_column(["1.234", "12,50"]) == ["1234", "12.5"]
    assert spell_column(["1.234", "12.50"]) == ["1.234", "12.5"]
    assert spell_column(["-20 c", "20 c", "2.5mg", "2.50 mg"]) == ["-20 c", "20 c", "2.5 mg", "2.5 mg"]
    assert spell_column(["01/02/2020", "12/25/2020"]) == ["20200102", "20201225"]
    tokens = tokens_of([[["1.234", "12,50"]], [["1234", "12.5"]]])
    values = [tokens.vocabulary.values[table.tokens].tolist() for table in tokens.tables]
    assert values[0] == values[1]


def test_kinds_and_values_of_tokens() -> None:
    texts = ["acme incorporated", "acme inc", "smith junior", "smith jr ii", "007 7 at -7 or 7.5 14a 000 c++ a- %", "%"]
    known = tokens_of([[texts]]).vocabulary
    names = ["".join(map(chr, known.characters[a:b])) for a, b in zip(known.starts[:-1], known.starts[1:], strict=True)]
    kinds = dict(zip(names, known.kinds.tolist(), strict=True))
    assert {name: kinds[name] for name in ("acme", "jr", "ii", "7", "-7", "7.5", "14a", "000", "c++", "a-", "%")} == {
        "acme": LETTERS, "jr": MARKS, "ii": MARKS, "7": DIGITS, "-7": DIGITS, "7.5": DIGITS, "14a": DIGITS,
        "000": ZEROS, "c++": MARKS, "a-": MARKS, "%": SYMBOLS,
    }  # fmt: skip
    values = {name: names[value] for name, value in zip(names, known.values.tolist(), strict=True)}
    assert (values["incorporated"], values["junior"], values["007"], values["7"]) == ("inc", "jr", "7", "7")


def test_a_legal_form_weighs_as_a_common_word() -> None:
    known = tokens_of([[["dacia srl", "dacia"]]]).vocabulary
    names = ["".join(map(chr, known.characters[a:b])) for a, b in zip(known.starts[:-1], known.starts[1:], strict=True)]
    weights = dict(zip(names, known.weights.tolist(), strict=True))
    assert weights["srl"] < weights["dacia"]


texts = st.text(max_size=60) | st.text("0123456789.,/- ax+#'", max_size=40)


@given(texts, st.booleans())
def test_any_text_has_tokens_of_its_characters(text: str, comma: bool) -> None:
    folded = fold_text(text)
    tokens = find_tokens(folded, Style(comma=comma))
    assert all(tokens) and not any(" " in token for token in tokens)
    assert bool(tokens) == bool(folded.split())
    # A fraction has six decimal places; else nothing becomes longer.
    assert sum(map(len, tokens)) <= 8 * len(folded) + 8
    assert tokens_of([[[folded]]]).tables[0].bounds.tolist() == [0, len(tokens)]


@pytest.mark.parametrize("part", ["1", "1.", "1/", "-1 ", "1,234,", "a.", "a. ", "s.r.l. ", "1 1/2", "株", "- "])
def test_long_texts_have_their_tokens_in_linear_time(part: str) -> None:
    # A pattern that goes back and forth would take hours.
    assert find_tokens(part * (200_000 // len(part)), Style())
