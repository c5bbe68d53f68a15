"""N-grams within words, and BM25 over given texts."""

from __future__ import annotations

import math
import unicodedata
from collections import Counter
from collections.abc import Sequence
from itertools import groupby

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gramvec
from gramvec import native
from gramvec.lexical import letters
from gramvec.lexical.letters import EDGE, Collection, count_ngrams, letter_scores, tokens, word_ngrams
from gramvec.text.folding import fold_letters, second_reading
from gramvec.text.scripts import UNSPACED, are_unspaced, is_unspaced


def is_spaced(character: str) -> bool:
    """True but for letters of scripts without spaces, by their names."""
    name = unicodedata.name(character, "")
    scripts = ("CJK UNIFIED", "HIRAGANA", "KATAKANA", "HANGUL", "THAI", "LAO ", "KHMER", "MYANMAR", "BOPOMOFO")
    return not name.startswith(scripts) or unicodedata.category(character)[0] not in "LM"


SPELT_OUT = {"ä": "ae", "ö": "oe", "ü": "ue", "å": "aa", "ø": "oe"}


def reference_tokens(text: str, *, first: bool = False) -> list[str]:
    """The n-grams of scikit-learn's char_wb, with another edge; of scripts without spaces those of 1, 2 and 4.

    Words that can be spelt in another way come again in that one, unless it is the first reading that is wanted.
    """
    found: list[str] = []
    plain = fold_letters(text)
    for word in unicodedata.normalize("NFC", text).split():
        spelt = "".join(SPELT_OUT.get(one, SPELT_OUT.get(one.lower(), one).capitalize()) for one in word)
        plain += " " + fold_letters(spelt) if any(one.lower() in SPELT_OUT for one in word) and not first else ""
    letters = [one for at, one in enumerate(plain) if not _is_gap(plain, at)]
    for spaced, run in groupby("".join(letters), lambda one: None if one.isspace() else not is_unspaced(one)):
        word = "".join(run)
        if spaced:
            edged = f"{EDGE}{word}{EDGE}"
            found += [edged[at : at + 4] for at in range(len(edged) - 3)] or [edged]
        elif spaced is False:
            found += [word[at : at + n] for at in range(len(word)) for n in (1, 2, 4) if at + n <= len(word)]
    return found


def _is_gap(text: str, at: int) -> bool:
    before, after = text[:at].rstrip(), text[at:].lstrip()
    return text[at].isspace() and bool(before and after) and is_unspaced(before[-1]) and is_unspaced(after[0])


def reference_scores(query: str, texts: Sequence[str]) -> list[float]:
    held = [Counter(reference_tokens(text)) for text in texts]
    mean = sum(one.total() for one in held) / len(held) or 1
    asked = Counter(reference_tokens(query))
    idf = {}
    for one in asked:
        df = sum(one in text for text in held)
        idf[one] = math.log(1 + (len(texts) - df + 0.5) / (df + 0.5))
    total = sum(count * idf[one] for one, count in asked.items())
    return [
        sum(
            count * idf[one] * text[one] * 2.2 / (text[one] + 1.2 * (0.25 + 0.75 * text.total() / mean))
            for one, count in asked.items()
        )
        / total
        for text in held
    ]


MIXED = st.one_of(st.text("abé \u200b東京大カなー・한국ไทยລາວខ្មែမြ１②、 \n\U00020000"), st.text(max_size=60))


@given(MIXED)
def test_tokens_are_ngrams_within_words_and_runs(text: str) -> None:
    assert tokens(text).split(" ") == (reference_tokens(text) or [""])
    assert word_ngrams(fold_letters(text)) == " ".join(reference_tokens(text, first=True))
    assert count_ngrams(text).total() == len(reference_tokens(text, first=True))


def test_runs_of_scripts_without_spaces_by_hand() -> None:
    assert tokens("東京大学").split(" ") == ["東", "東京", "東京大学", "京", "京大", "大", "大学", "学"]
    assert tokens("東京 大学") == tokens("東京大学")
    assert tokens("第3回 ABC大会").split(" ") == ["第", "\x1f3\x1f", "回", "\x1fabc", "abc\x1f", "大", "大会", "会"]
    assert tokens("김 민수") == tokens("김민수")
    assert set(tokens("민수").split(" ")) < set(tokens("김민수").split(" "))
    assert tokens("\u200b") == tokens("™") == ""
    assert count_ngrams("\u200b") == count_ngrams("™") == Counter()


@pytest.mark.skipif(native.loops is None, reason="the loops in C were not built")
def test_the_loops_know_the_same_ranges() -> None:
    for first, last in UNSPACED:
        for point in (first - 1, first, last, last + 1):
            assert native.loops.word_ngrams(f"ab{chr(point)}東") == word_ngrams(f"ab{chr(point)}東"), hex(point)


@pytest.mark.parametrize(
    ("query", "found"),
    [("東京", "東京大学"), ("民수", "김民수"), ("민수", "김민수"), ("ไทย", "ประเทศไทย"), ("天気", "今日の天気")],
)
def test_a_part_of_a_run_is_found_whole(query: str, found: str) -> None:
    scores = letter_scores(query, ["京都大学", found, "tokyo", "박지민", "การบ้าน", "天文気象台"])
    assert scores.argmax() == 1


def test_the_ranges_are_the_scripts_by_name() -> None:
    """Every letter and mark of them that Unicode knows here, and no digit or punctuation."""
    for point in range(0x110000):
        if is_spaced(chr(point)) and is_unspaced(chr(point)):
            assert unicodedata.category(chr(point)) in ("Cn", "So", "Nl", "Lm", "Lo", "Mn", "Mc"), hex(point)
        assert is_spaced(chr(point)) or is_unspaced(chr(point)) or fold_letters(chr(point)) != chr(point), hex(point)
    assert are_unspaced(np.array([0x4E00, 0x41, 0xE01, 0xE3A, 0xE3B])).tolist() == [True, False, True, True, False]


def test_spellings_of_one_text_have_the_same_tokens() -> None:
    assert tokens("Cafe\u0301") == tokens("caf\u00e9") == tokens("  CAF\u00c9\n")
    assert tokens("a" * 100).count(" ") == 98
    assert count_ngrams("") == count_ngrams(" \n\x1f ") == Counter()
    sklearn = pytest.importorskip("sklearn.feature_extraction.text", reason="scikit-learn is not installed")
    analyzed = sklearn.CountVectorizer(analyzer="char_wb", ngram_range=(4, 4)).build_analyzer()
    text = "Where is my parcel 6205-2Z?"
    assert sorted(analyzed(text)) == sorted(
        tokens(text).replace(EDGE, "*").replace(" ", "|").replace("*", " ").split("|")
    )


@given(st.text(max_size=30) | st.text("aüÖu\u0308 øe", max_size=8))
def test_a_text_has_the_tokens_of_its_fold_and_of_its_second_reading(text: str) -> None:
    second = second_reading(text)
    assert tokens(text) == (tokens(f"{fold_letters(text)} {second}") if second else tokens(fold_letters(text)))
    assert count_ngrams(text) == count_ngrams(fold_letters(text))


def test_either_spelling_finds_the_other() -> None:
    texts = ["Hans Möller", "Jürgen Müller", "Jörg Miller", "blue moon"]
    for query in ("müller", "Mueller", "MULLER", "Mu\u0308ller"):
        assert letter_scores(query, texts).argmax() == 1
    for query in ("müller", "Mueller", "Mu\u0308ller"):
        assert letter_scores(query, [*texts[:1], "J. Mueller", *texts[2:]]).argmax() == 1
    found = letter_scores("Müller", ["Mueller", "Muller", "Müller", "x"])
    assert found[0] == pytest.approx(found[1], rel=0.3)


def test_scores_of_nothing_and_of_another_collection() -> None:
    texts = ["lost parcel", "the parcel is late, late again", "bananas", "", "parcels parcels"]
    assert letter_scores("", texts).tolist() == [0] * 5
    assert letter_scores("x", []).tolist() == []
    assert letter_scores("parcel", texts, Collection(texts)).tolist() == letter_scores("parcel", texts).tolist()


@given(
    st.text("aab\u0434\U0001f600東京한 .", max_size=20),
    st.lists(st.text("aab\u0434\U0001f600東京한 .", max_size=40), min_size=1, max_size=6),
    st.integers(1, 50),
)
def test_scores_of_any_texts_are_bm25(query: str, texts: list[str], slab: int) -> None:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(letters, "SLAB_CHARACTERS", slab)
        found = letter_scores(query, texts)
    if query.split():
        assert found.tolist() == pytest.approx(reference_scores(query, texts))
    else:
        assert not found.any()


def test_scores_by_hand() -> None:
    """Each text has one n-gram, so that a count's part is 2.2 / 2.2; one of two texts holds it: idf is log(2)."""
    assert letter_scores("ab", ["ab", "cd"]).tolist() == pytest.approx([1, 0])
    # Of the query's n-grams "b" is in no text: idf is log(1 + 2.5 / 0.5).
    share = math.log(2) / (math.log(2) + math.log(6))
    assert letter_scores("ab b", ["ab", "cd"]).tolist() == pytest.approx([share, 0])


def test_shipped_counts_are_texts_beside_the_given(embedder: gramvec.Embedder) -> None:
    sketch = embedder.sketch
    assert sketch is not None
    the, rare = letters.shipped_shares([f"{EDGE}the", "zqxj"], sketch).tolist()  # type: ignore[union-attr]
    assert 1 >= the > 0.05 > 0.001 > rare >= 0
    texts, query = ["the cat", "zqxj", "the dog"], "the zqxj"
    # Alone, the two n-grams weigh by 2 and 1 of 3 texts; with the shipped counts "zqxj" weighs more.
    assert letter_scores(query, texts, shipped=sketch)[1] > letter_scores(query, texts)[1] + 0.05
