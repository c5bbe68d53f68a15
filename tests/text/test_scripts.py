"""Names of sixteen scripts in the ways that people and programs write them: tests/data/scripts.

A line of a script's file is a name and its other ways; apart.tsv has pairs that are two things, and why.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.names import WAYS, matched, names_of, searched
from gramvec.lexical.letters import Collection, letter_scores
from gramvec.text.confusables import list_differences, look_alike, skeleton
from gramvec.text.folding import fold_letters
from gramvec.text.scripts import close_gaps

DATA = Path(__file__).parent.parent / "data" / "scripts"
SCRIPTS = sorted(path.stem for path in DATA.glob("*.tsv") if path.stem != "apart")
APART = [line.split("\t") for line in (DATA / "apart.tsv").read_text().splitlines()]


def names(script: str) -> list[list[str]]:
    return [line.split("\t") for line in (DATA / f"{script}.tsv").read_text().splitlines()]


def read(text: str) -> list[str]:
    """The words of a text as letters are compared, in any order."""
    return sorted(close_gaps(fold_letters(text)).split())


def test_there_are_sixteen_scripts() -> None:
    assert len(SCRIPTS) == 16
    assert all(len(names(script)) == 20 for script in SCRIPTS)


@pytest.mark.parametrize("script", SCRIPTS)
def test_all_ways_to_write_a_name_are_one(script: str) -> None:
    given = names(script)
    assert all(len(ways) >= 3 for ways in given)
    for ways in given:
        assert [read(way) for way in ways] == [read(ways[0])] * len(ways)
    assert len({tuple(read(ways[0])) for ways in given}) == 20


@pytest.mark.parametrize("script", SCRIPTS)
def test_each_way_finds_its_name_by_letters(script: str) -> None:
    given = names(script)
    texts = [ways[0] for ways in given]
    collection = Collection(texts)
    for at, ways in enumerate(given):
        for way in ways:
            assert letter_scores(way, texts, collection).argmax() == at


@pytest.mark.parametrize(("one", "other", "why"), APART)
def test_other_letters_stay_apart(one: str, other: str, why: str) -> None:
    assert read(one) != read(other), why


@pytest.mark.parametrize("at", range(9))
def test_letters_that_look_alike_meet_where_that_is_asked(at: int) -> None:
    one, other, _ = APART[at]
    assert look_alike(one, other)
    assert skeleton(one) == skeleton(other)
    assert not look_alike(one, one.upper()) or one != one.upper()


def test_where_texts_that_look_alike_differ() -> None:
    assert list_differences("Москва", "Москвa") == [(5, "а", "a")]
    assert [place for place, _, _ in list_differences("paypal", "раураl")] == [0, 1, 2, 3, 4]
    assert (
        list_differences("modern", "modem") == list_differences("Москва", "МОСКВА") == list_differences("a", "b") == []
    )
    assert not look_alike("Café", "cafe\u0301")


@pytest.mark.parametrize("language", WAYS)
def test_the_table_has_300_names_of_each_language(language: str) -> None:
    first, second = zip(*names_of(language), strict=True)
    assert len(set(first)) == len(set(second)) == 300
    assert len(set(first) & set(second)) < 30  # of capitals there are no ligatures


@pytest.mark.slow
@pytest.mark.parametrize("language", ["Hebrew", "Korean", "zero width"])
def test_commands_find_names_at_their_defaults(language: str, tmp_path: Path) -> None:
    names = names_of(language)
    assert matched(names, tmp_path) >= 295
    assert searched(names, tmp_path) >= 295
