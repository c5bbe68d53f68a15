"""Letters that are compared as one: the table, its rules, and both ways to apply it."""

from __future__ import annotations

import unicodedata

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gramvec import native
from gramvec.text import fold_rules, folding
from gramvec.text.fold_rules import fold_character, join_ranges, plain_form, table
from gramvec.text.folding import MAX_FOLDED, fold_letters, fold_texts, plain_forms, read_folds, readings, second_reading
from support.errors import refused

# Half of the characters from what folds, or what it folds beside.
ODD = (
    "aAeEßẞæŒøłđıİIſŉﬁﬃＡｂ１²½Ⅳ㍿™®´’“–―−⁄∕«»\u200b\u00ad\ufeff\ufe0f\u0301\u0308\u0306\u0345\u0338=≠"
    "ΆάᾳΣςϐиійїёќгабﬞבּשׁ״־أإآؤئىیةـَ٣ﷺﻻｶﾞガか\u3099ーｰ㌀한글\u1112\u1161\u11ab가ﾡกำำ่น้ําकि़हि"
)
TEXTS = st.text(st.one_of(st.sampled_from(ODD), st.characters(exclude_categories=["Cs"])), max_size=30)


def reference(text: str) -> str:
    """The rules once more, a character at a time, from Unicode's database and not from the table."""
    composed = unicodedata.normalize("NFC", text)
    return unicodedata.normalize("NFC", "".join(map(fold_character, composed)))


@given(TEXTS)
def test_loops_and_python_fold_as_the_rules_say(text: str) -> None:
    assert fold_letters(text) == reference(text)
    assert plain_forms(text) == "".join(map(plain_form, text))


@given(TEXTS)
def test_a_fold_is_composed_bounded_and_folds_to_itself(text: str) -> None:
    found = fold_letters(text)
    assert fold_letters(found) == found
    assert unicodedata.is_normalized("NFC", found)
    assert len(found) <= MAX_FOLDED * len(text)
    assert fold_letters(unicodedata.normalize("NFD", text)) == found
    assert fold_texts([text, "A"]) == [found, "a"]


@pytest.mark.skipif(native.loops is None, reason="the loops in C were not built")
def test_each_character_folds_alike_with_and_without_loops(monkeypatch: pytest.MonkeyPatch) -> None:
    characters = [chr(point) for point in range(0x110000)]
    fast = folding._folder("letters"), folding._folder("plain")
    for section, loop in zip(("letters", "plain"), fast, strict=True):
        found = read_folds(section)
        assert [loop(one) for one in characters] == [one.translate(found) for one in characters]
    monkeypatch.setattr(native, "loops", None)
    slow = folding._folder.__wrapped__("letters")
    assert slow("Ｃａｆé\u200b ﷺ") == fast[0]("Ｃａｆé\u200b ﷺ")


def test_the_table_does_not_depend_on_the_version_of_unicode() -> None:
    """Rules of this Python's Unicode, for the characters of the table's: so on a newer Python, too."""
    head, _, rest = fold_rules.TABLE.read_text().partition("\n[unassigned]\n")
    assert head.startswith("# Unicode 14.0.0;")
    lines = rest.partition("\n[")[0].splitlines()
    newer = tuple((int(first, 16), int(last, 16)) for first, last in (line.split("-") for line in lines))
    assert table("14.0.0", newer) == fold_rules.TABLE.read_text()
    assert join_ranges([1, 2, 3, 7]) == ((1, 3), (7, 7))
    if unicodedata.unidata_version == "14.0.0":
        assert fold_rules.unassigned_ranges() == newer


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Café Łódź Ångström", "cafe lodz angstrom"),
        ("cafe\u0301 NAI\u0308VE", "cafe naive"),
        ("Tiếng Việt, Straße, İzmir ıssız ISPARTA", "tieng viet, strasse, izmir issiz isparta"),
        ("Æsir œuvre Ørsted Đakovo hleðslu Þór ĳs ŋ", "aesir oeuvre orsted dakovo hledslu thor ijs n"),
        ("ＡＢＣ　Ｃｏｍｐａｎｙ　１２３", "abc company 123"),
        ("oﬃce ﬁle m² Ⅳ 1½ ㍿ №5", "office file m2 iv 1 1/2 株式会社 no5"),
        ("foot\u200b ball coop\u00aderation \ufeffx ❤\ufe0f", "foot ball cooperation x ❤"),
        ("Tim’s ‘a’ “b” «c» O´Brien ‹d›", "tim's 'a' \"b\" \"c\" o'brien 'd'"),
        ("2010–2015 — − ‐ 1⁄2 a∕b", "2010-2015 - - - 1/2 a/b"),
        ("Lego™ Star® ©", "lego star "),
        ("ΟΔΥΣΣΕΥΣ Οδυσσεύς ᾳ ἀρχή", "οδυσσευσ οδυσσευσ α αρχη"),
        # Ukrainian, Belarusian, Macedonian letters stay; Russian stress and yo do not; short i is read as i.
        ("Ёлка й И\u0306 за\u0301мок Київ ў ќ", "елка и и замок київ ў ќ"),
        ("שָׁלוֹם ח״כ תל־אביב", 'שלום ח"כ תל-אביב'),
        ("مُحَمَّد مـحمد أحمد إيمان آمنة مؤمن رئيس مصطفى", "محمد محمد احمد ايمان امنه مومن رييس مصطفي"),
        ("٣٤ ۳۴ ३४ ٱ ﻻ", "34 34 34 ا لا"),
        ("ﾄｳｷｮｳ ｶﾞ か\u3099 ー", "トウキョウ ガ が ー"),
        ("한국어 \u1112\u1161\u11ab", "한국어 한"),
        # Marks that make other letters stay, in one order.
        ("हिन्दी क्\u200dष ไทย น้ำ ≠ <", "हिन्दी क्ष ไทย น้ํา ≠ <"),
        # Kinds of white space stay: words are cut at them.
        ("a\tb\nc", "a\tb\nc"),
    ],
)
def test_examples(text: str, found: str) -> None:
    assert fold_letters(text) == found
    assert fold_letters(unicodedata.normalize("NFD", text)) == found


@pytest.mark.parametrize("pair", ["Москва Москвa", "раураl paypal", "0 O", "rn m", "か カ", "東 东", "ё ї", "ש ת"])
def test_letters_that_only_look_alike_stay_apart(pair: str) -> None:
    one, other = map(fold_letters, pair.split())
    assert one != other


def test_letters_that_are_spelt_out_have_a_second_reading() -> None:
    assert fold_letters("Jürgen Müller") == "jurgen muller"
    assert second_reading("Jürgen Müller, Köln am Rhein") == "juergen mueller, koeln"
    assert second_reading("Mu\u0308ller") == second_reading("MÜLLER") == "mueller"
    assert second_reading("Ørsted Århus") == "oersted aarhus"
    assert second_reading("Mueller naïve") == second_reading("") == ""
    assert readings("Jürgen Roß") == ["jurgen ross", "juergen ross"]
    assert readings("Mueller") == ["mueller"] and readings("é") == ["e"]


def test_plain_forms_keep_marks_and_case() -> None:
    assert plain_forms("Ｃａｆé　“Ｘ” oﬃce’s ｶﾞ a\u200bb –") == 'Café "X" office\'s カ\u3099 ab –'
    assert plain_forms("İı² é") == "İı² é"


def test_hostile_texts_take_linear_time() -> None:
    marks = "a" + "\u0301\u0327" * 50_000
    assert fold_letters(marks) == "a"
    assert fold_letters("\ufdfa" * 10_000) == fold_letters("\ufdfa") * 10_000
    assert fold_letters("\u093c\u094d" * 50_000) == "\u093c" * 50_000 + "\u094d" * 50_000
    assert fold_letters("\ud800A") == "\ud800a"


@pytest.mark.skipif(native.loops is None, reason="the loops in C were not built")
@pytest.mark.parametrize("entry", [3 << 24 | 9, 2 << 24 | 0x110000, 255 << 24])
def test_tables_that_do_not_fit_are_refused(entry: int) -> None:
    pages, entries = np.zeros(0x1100, np.uint16), np.zeros(256, np.uint32)
    entries[65] = entry
    with refused(ValueError, "fit"):
        native.loops.Folder(pages, entries, np.zeros(10, np.uint32))
    for arrays in ((pages[:5], entries, entries), (pages + 1, entries, entries)):
        with refused(ValueError, "fit"):
            native.loops.Folder(*(np.ascontiguousarray(array) for array in arrays))
