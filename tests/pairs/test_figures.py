"""Figures of pairs: worked by hand, and the loops in C against Python."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gramvec
from gramvec.jobs.pairs import figures_in_python
from gramvec.jobs.pairs.columns import BY_LETTERS
from gramvec.jobs.pairs.figures import (
    NAMES,
    OF_PAIR,
    OF_RIVALS,
    column_levels,
    compare_columns,
    pair_figures,
    read_rows,
    rival_figures,
)
from gramvec.jobs.pairs.figures_in_python import edits, token_likeness
from gramvec.jobs.pairs.levels import ALIKE, CONTRADICTS, DIFFERENT, EQUAL, LEVELS, MISSING, NEARLY
from gramvec.jobs.pairs.tokens import fold_text
from gramvec.native import loops

WORDS = [
    "acme",
    "acmee",
    "inc",
    "incorporated",
    "a",
    "court",
    "ct",
    "00",
    "7",
    "007",
    "1",
    "000",
    "1000",
    "c#",
    "c++",
    "%",
    "bank",
    "bnak",
]


def of(one: str, other: str) -> dict[str, float]:
    tokens = read_rows([[[fold_text(one)]], [[fold_text(other)]]])
    row = np.zeros(1, np.int64)
    return dict(zip(NAMES, pair_figures(tokens, row, row)[0].tolist(), strict=False))


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("Acme, Inc.", "acme inc", {"equal": 1, "alike": 1, "aligned": 1, "tokens_left_over_max": 0}),
        ("Café 007", "cafe 7", {"equal": 1, "numbers_common": 1}),
        ("C++", "C#", {"equal": 0, "aligned": 0}),
        ("%", "%", {"equal": 1, "aligned": 1}),
        ("%", "-", {"equal": 0, "aligned": 0}),
        ("redbull", "Red Bull", {"alike": 1, "equal": 0}),
        ("call 312-555-0142", "call 3125550142", {"numbers_left_over_max": 0, "numbers_common": 1, "aligned": 1}),
        ("1,000", "1000", {"numbers_left_over_max": 0, "aligned": 1}),
        ("5.00", "5", {"numbers_left_over_max": 0, "aligned": 1}),
        ("LA 40", "LA 80", {"numbers_left_over_min": 1, "numbers_common": 0, "nearest_number": 0.5}),
        ("smith 5", "smith", {"numbers_left_over_min": 0, "numbers_left_over_max": 1}),
        ("new york new york", "york new", {"aligned": 1, "tokens_max": 2, "equal": 0}),
        ("jon smith", "smith john", {"softly_aligned": 1, "tokens_left_over_max": 0}),
        ("", "x", {"equal": 0, "aligned": 0, "tokens_min": 0, "tokens_max": 1}),
    ],
)
def test_figures_by_hand(one: str, other: str, expected: dict[str, float]) -> None:
    found = of(one, other)
    assert {name: found[name] for name in expected} == pytest.approx(expected)


@pytest.mark.parametrize(
    ("one", "other", "likeness"),
    [("smith", "smyth", 0.8), ("ab", "ba", 0.5), ("incorporated", "inc", 0.85), ("j", "john", 0.75),
     ("ct", "court", 0.72), ("ct", "lane", 0.0), ("brewery", "brewrey", 1 - 1 / 7)],
)  # fmt: skip
def test_likeness_of_tokens(one: str, other: str, likeness: float) -> None:
    assert token_likeness(one, other) == pytest.approx(likeness)
    assert token_likeness(other, one) == pytest.approx(likeness)


def test_edits_swap_neighbors_once() -> None:
    assert [edits("ca", "abc"), edits("abcd", "badc"), edits("", "ab"), edits("kitten", "sitting")] == [3, 2, 2, 3]


texts = st.lists(st.sampled_from(WORDS) | st.text("abc1 0é東", max_size=9), max_size=40).map(" ".join)
rows = st.integers(1, 3).flatmap(
    lambda columns: st.lists(st.lists(texts, min_size=columns, max_size=columns), min_size=1, max_size=4)
)


@pytest.mark.skipif(loops is None, reason="the loops in C are not built")
@settings(max_examples=150, deadline=None)
@given(rows, st.data())
def test_loops_and_python_have_the_same_figures(left: list[list[str]], data: st.DataObject) -> None:
    width = len(left[0])
    right = data.draw(st.lists(st.lists(texts, min_size=width, max_size=width), min_size=1, max_size=4))
    tables = [[[fold_text(row[column]) for row in table] for column in range(width)] for table in (left, right)]
    at, with_ = (one.ravel() for one in np.meshgrid(np.arange(len(left)), np.arange(len(right))))
    levels = data.draw(st.lists(st.sampled_from([*range(LEVELS), MISSING, BY_LETTERS]), min_size=width, max_size=width))
    given_levels = np.tile(np.array(levels, np.uint8), (len(at), 1))
    for rows_count in (True, False):
        found = read_rows(tables, rows_count=rows_count)
        for typed in (compare_columns(found, at, with_), given_levels):
            slow = figures_in_python.pair_figures(found.tokens, found.facts, at, with_, typed)
            np.testing.assert_array_equal(pair_figures(found, at, with_, typed), slow)
            slow_levels = figures_in_python.column_levels(found.tokens, found.facts, at, with_, typed)
            np.testing.assert_array_equal(column_levels(found, at, with_, typed), slow_levels)


@pytest.mark.skipif(loops is None, reason="the loops in C are not built")
def test_arrays_that_do_not_fit_together_are_refused() -> None:
    rows_of = read_rows([[["a b"]], [["a c"]]])
    tokens, row = rows_of.tokens, np.zeros(1, np.int64)
    for wrong in (row + 1, row - 1):
        with pytest.raises(ValueError, match="do not fit"):
            pair_figures(rows_of._replace(values=None), row, wrong)
    table = tokens.tables[0]
    for name in ("tokens", "sorted", "together"):
        broken = tokens._replace(tables=[table._replace(**{name: getattr(table, name) + 9}), tokens.tables[1]])
        with pytest.raises(ValueError, match="do not fit"):
            pair_figures(rows_of._replace(tokens=broken, values=None), row, row)
    with pytest.raises(ValueError, match="do not fit"):
        pair_figures(rows_of._replace(tokens=tokens._replace(columns=2), values=None), row, row)
    facts = rows_of.facts
    for wrong_facts in (
        facts._replace(kinds=facts.kinds[:0]), facts._replace(levels=facts.levels[:3]),
        facts._replace(cells=[facts.cells[0][:0], facts.cells[1]]),
        facts._replace(weights=[facts.weights[0], facts.weights[1][:0]]),
    ):  # fmt: skip
        with pytest.raises(ValueError, match="do not fit"):
            pair_figures(rows_of._replace(facts=wrong_facts), row, row)
    with pytest.raises(ValueError, match="do not fit"):
        pair_figures(rows_of, row, row, np.zeros((2, 1), np.uint8))


def test_rivals_by_hand() -> None:
    # One row of the left table, and five of the right: their likeness is the mean of two figures and the cosine.
    table = [["alpha beta"], ["alpha betta"], ["gamma"], ["delta"], ["epsilon"]]
    rows_of = read_rows([[["alpha beta"]], [[row[0] for row in table]]])
    left, right = np.zeros(5, np.int64), np.arange(5)
    figures = np.zeros((5, len(OF_PAIR)), np.float32)
    for place in (0, 1):
        figures[:, place] = [0.9, 0.7, 0.2, 0.2, 0.1]
    cosines = np.array([0.9, 0.7, 0.2, 0.2, 0.1], np.float32)
    places = {name: place for place, (name, _) in enumerate(OF_RIVALS)}
    found = rival_figures(rows_of, left, right, figures, cosines)
    # The right rows have fewer than five candidates, so that theirs say nothing.
    assert found[:, places["rank_min"]].tolist() == [0, 1, 2, 2, 4]
    assert found[:3, places["lead_max"]].tolist() == pytest.approx([0.2, -0.2, -0.7])
    # "alpha betta" is a way to write "alpha beta": the lead apart is that over a rival of 0.4 at least.
    assert found[:3, places["lead_apart_max"]].tolist() == pytest.approx([0.5, 0.3, -0.7])
    few = rival_figures(rows_of, left[:4], right[:4], figures[:4], cosines[:4])
    assert np.isnan(few).all()


def test_levels_of_columns_tell_by_how_often_they_are() -> None:
    names = [f"person{number} smith{number}" for number in range(100)]
    rows_of = read_rows([[names, ["ohio", "texas"] * 50, [str(number) for number in range(100)]]])
    levels = rows_of.facts.levels.reshape(3, LEVELS)
    name, state = (rows_of.facts.equal[rows_of.facts.cells[0][column]] for column in (0, 1))
    # A name that one row of 100 (and 30 that every table has beside them) has, and a state that 50 have.
    assert [name, state] == pytest.approx([np.log(0.7 * 130), np.log(0.7 * 130 / 50)], rel=1e-5)
    assert (levels[:, CONTRADICTS] <= levels[:, DIFFERENT]).all()
    assert (levels[:, NEARLY] > levels[:, DIFFERENT]).all()


def test_columns_may_stand_in_any_order_and_a_copy_changes_little() -> None:
    rng = np.random.default_rng(1)
    columns = [
        [f"anna{number} berg{number % 7}" for number in range(60)], [f"town{town}" for town in rng.integers(0, 5, 60)],
        [f"{rng.integers(10**9):09}" for _ in range(60)], [str(year) for year in rng.integers(1950, 1990, 60)],
    ]  # fmt: skip
    left, right = (one.ravel() for one in np.meshgrid(np.arange(12), np.arange(20, 40)))
    found = pair_figures(read_rows([columns]), left, right)
    turned = pair_figures(read_rows([[columns[at] for at in (2, 0, 3, 1)]]), left, right)
    places = [place for place, (name, _) in enumerate(OF_PAIR) if name.startswith(("evidence", "name", "place", "id"))]
    np.testing.assert_allclose(found[:, places], turned[:, places], rtol=1e-5)
    copied = pair_figures(read_rows([[*columns, columns[0]]]), left, right)
    evidence = [name for name, _ in OF_PAIR].index("evidence")
    np.testing.assert_allclose(copied[:, evidence], found[:, evidence], atol=0.2)


def test_values_are_compared_as_what_they_are() -> None:
    one = [["2.5 mg", "+1 217 555 0101", "1980-02-01", "n/a"]] * 3
    other = [["25 mg", "217-555-0101", "1980-01-03", "x"]] * 3
    sides = [[[fold_text(row[column]) for row in rows] for column in range(4)] for rows in (one, other)]
    row = np.zeros(1, np.int64)
    assert column_levels(read_rows(sides), row, row)[0].tolist() == [CONTRADICTS, EQUAL, CONTRADICTS, MISSING]
    assert ALIKE < NEARLY < EQUAL


def test_what_one_row_lacks_does_not_speak_against_it() -> None:
    rows_of = read_rows([[["acme inc"], ["a long description"]], [["acme inc"], [""]]])
    row = np.zeros(1, np.int64)
    found = dict(zip([name for name, _ in OF_PAIR], pair_figures(rows_of, row, row)[0].tolist(), strict=True))
    assert (found["aligned"], found["tokens_max"], found["columns_filled"], found["equal"]) == (1, 2, 0.5, 0)
    assert (found["column_mean"], found["columns_equal"], found["columns_low"]) == (1, 1, 0)


def test_without_the_loops_python_has_the_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = of("Acme, Inc.", "acme incorporated 7")
    monkeypatch.setattr("gramvec.native.loops", None)
    assert of("Acme, Inc.", "acme incorporated 7") == pytest.approx(expected, nan_ok=True)


def test_pairs_that_are_given_in_another_order_have_the_same_scores() -> None:
    numbers = Random(0)

    def draw_row() -> dict[str, str]:
        names = (numbers.choice(["ann", "bo", "cy"]) + " " + numbers.choice(["lee", "day", "fox"]), "rome", "oslo")
        return {"name": names[0], "town": numbers.choice(names[1:]), "house": f"{numbers.randint(1, 50)} main st"}

    left = [draw_row() for _ in range(400)]
    right = [{name: draw_row()[name] if numbers.random() < 0.3 else row[name] for name in row} for row in left]
    order = numbers.sample(range(400), 400)
    found = gramvec.pair_scores(left, right, on=["name", "town", "house"])
    other = gramvec.pair_scores([left[at] for at in order], [right[at] for at in order], on=["house", "name", "town"])
    assert other.tolist() == found[order].tolist()
