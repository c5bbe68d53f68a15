"""Figures of pairs: worked by hand, and the loops in C against Python."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gramvec.jobs.pairs import figures_in_python
from gramvec.jobs.pairs.figures import NAMES, OF_PAIR, one_table_rivals, pair_figures, rival_figures
from gramvec.jobs.pairs.figures_in_python import edits, token_likeness
from gramvec.jobs.pairs.tokens import fold_text, tokens_of
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
    tokens = tokens_of([[[fold_text(one)]], [[fold_text(other)]]])
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
    tokens = tokens_of(tables)
    at, with_ = (one.ravel() for one in np.meshgrid(np.arange(len(left)), np.arange(len(right))))
    np.testing.assert_array_equal(pair_figures(tokens, at, with_), figures_in_python.pair_figures(tokens, at, with_))


@pytest.mark.skipif(loops is None, reason="the loops in C are not built")
def test_arrays_that_do_not_fit_together_are_refused() -> None:
    tokens = tokens_of([[["a b"]], [["a c"]]])
    row = np.zeros(1, np.int64)
    for wrong in (row + 1, row - 1):
        with pytest.raises(ValueError, match="do not fit"):
            pair_figures(tokens, row, wrong)
    table = tokens.tables[0]
    for name in ("tokens", "sorted", "together"):
        broken = tokens._replace(tables=[table._replace(**{name: getattr(table, name) + 9}), tokens.tables[1]])
        with pytest.raises(ValueError, match="do not fit"):
            pair_figures(broken, row, row)
    with pytest.raises(ValueError, match="do not fit"):
        pair_figures(tokens._replace(columns=2), row, row)


def test_rivals_by_hand() -> None:
    left, right = np.array([0, 0, 0, 0, 0, 1]), np.array([0, 1, 2, 3, 4, 0])
    alike = np.array([0.9, 0.7, 0.2, 0.2, 0.1, 0.95], np.float32)
    found = rival_figures(left, right, alike)
    # Row 0's best is 0.2 ahead of its other; no other row has five candidates, so that its ranks and leads say nothing.
    assert found[:3].tolist() == [
        pytest.approx([0, 0, 0.2, 0.2]), pytest.approx([1, 1, -0.2, -0.2]), pytest.approx([2, 2, -0.7, -0.7])
    ]  # fmt: skip
    assert found[3, 0] == 2 and found[4, 0] == 4 and np.isnan(found[5]).all()
    np.testing.assert_array_equal(one_table_rivals(left, right + 2, alike), found)
    # Far ahead is ahead of a rival of 0.4.
    assert rival_figures(left[:5], right[:5], np.array([0.9, *[0.1] * 4], np.float32))[0, 2] == pytest.approx(0.5)


def test_what_one_row_lacks_does_not_speak_against_it() -> None:
    tokens = tokens_of([[["acme inc"], ["a long description"]], [["acme inc"], [""]]])
    row = np.zeros(1, np.int64)
    found = dict(zip([name for name, _ in OF_PAIR], pair_figures(tokens, row, row)[0].tolist(), strict=True))
    assert (found["aligned"], found["tokens_max"], found["columns_filled"], found["equal"]) == (1, 2, 0.5, 0)
    assert (found["column_mean"], found["columns_equal"], found["columns_low"]) == (1, 1, 0)


def test_without_the_loops_python_has_the_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = of("Acme, Inc.", "acme incorporated 7")
    monkeypatch.setattr("gramvec.native.loops", None)
    assert of("Acme, Inc.", "acme incorporated 7") == pytest.approx(expected, nan_ok=True)
