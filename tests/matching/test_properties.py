"""What holds of matches and duplicates of any tables: their rows in another order, more rows, more columns."""

from __future__ import annotations

from itertools import combinations, permutations
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gramvec
from support.rows import COLUMNS, Rows, rows, scores_of, tables

pytest.importorskip("sparse_dot_topn", reason="gramvec match needs SciPy: pip install 'gramvec[match]'")

few = settings(max_examples=8, deadline=None)
thresholds = st.sampled_from([0.0, 0.05, 0.2, 0.4, 0.7, 0.95])


def scores(left: Rows, right: Rows, **options: Any) -> dict[tuple[int, int], float]:
    return scores_of(gramvec.match(left, right, **{"on": COLUMNS, "threshold": 0.0} | options))


def duplicates(rows: Rows, **options: Any) -> dict[tuple[int, int], float]:
    return scores_of(gramvec.dedupe(rows, on=COLUMNS, **{"threshold": 0.0} | options).pairs)


def with_column(rows: Rows, **values: str) -> Rows:
    return [row | {name: row.get(value, "") for name, value in values.items()} for row in rows]


@few
@given(tables, tables, st.randoms(use_true_random=False))
def test_rows_in_another_order_have_the_same_scores(left: Rows, right: Rows, drawn: Any) -> None:
    there, back = (drawn.sample(range(len(rows)), len(rows)) for rows in (left, right))
    other = scores([left[row] for row in there], [right[row] for row in back])
    assert {(there[a], back[b]): score for (a, b), score in other.items()} == scores(left, right)
    found = duplicates([left[row] for row in there])
    assert {tuple(sorted((there[a], there[b]))): score for (a, b), score in found.items()} == duplicates(left)


def texts_of(left: Rows, right: Rows, found: Any) -> list[tuple[Any, ...]]:
    """Return the cells and the score of each pair, sorted."""
    pairs = scores_of(found).items()
    return sorted((*left[a].values(), *right[b].values(), score) for (a, b), score in pairs)


@few
@given(
    tables,
    tables,
    st.randoms(use_true_random=False),
    st.sampled_from([{"one_to_one": True}, {"top": 1}, {"top": 2}]),
)
def test_of_equal_scores_the_texts_choose_and_not_the_order_of_rows(
    left: Rows, right: Rows, drawn: Any, options: dict[str, Any]
) -> None:
    # Only case and punctuation differ in some rows, so that many scores are equal.
    left, right = (rows + [{name: cell.upper() + "." for name, cell in row.items()} for row in rows[:4]]
                   for rows in (left, right))  # fmt: skip
    there, back = (drawn.sample(rows, len(rows)) for rows in (left, right))
    for one, other in ((left, right), (left, left)):
        first, second = (there, back) if other is right else (there, there)
        found, again = (
            gramvec.match(*tables, on=COLUMNS, threshold=0.0, **options) for tables in ((one, other), (first, second))
        )
        assert texts_of(first, second, again) == texts_of(one, other, found)


@few
@given(tables, tables)
def test_a_table_that_stands_twice_has_each_score_twice(left: Rows, right: Rows) -> None:
    once, n, m = scores(left, right), len(left), len(right)
    twice = scores(left + left, right + right)
    assert twice == {(a + n * x, b + m * y): score for (a, b), score in once.items() for x in (0, 1) for y in (0, 1)}
    assert len(gramvec.dedupe(left + left, on=COLUMNS).kept) == len(gramvec.dedupe(left, on=COLUMNS).kept) + sum(
        not any(row.values()) for row in left
    )


@few
@given(tables, tables, thresholds, thresholds, st.sampled_from([{}, {"one_to_one": True}, {"top": 1}]))
def test_a_higher_threshold_takes_a_part_of_the_pairs(
    left: Rows, right: Rows, one: float, other: float, options: dict[str, Any]
) -> None:
    low, high = sorted((one, other))
    more, less = (scores(left, right, threshold=threshold, **options) for threshold in (low, high))
    assert less == {pair: score for pair, score in more.items() if score >= np.float32(high)}
    more, less = (duplicates(left, threshold=threshold) for threshold in (low, high))
    assert less == {pair: score for pair, score in more.items() if score >= np.float32(high)}


@few
@given(tables, tables, thresholds)
def test_one_to_one_and_the_best_are_a_part_of_all(left: Rows, right: Rows, threshold: float) -> None:
    every = scores(left, right, threshold=threshold)
    for options in ({"one_to_one": True}, {"top": 1}, {"top": 3}):
        assert scores(left, right, threshold=threshold, **options).items() <= every.items()


@few
@given(tables, tables, st.sampled_from(COLUMNS))
def test_copies_of_columns_and_empty_ones_change_nothing(left: Rows, right: Rows, name: str) -> None:
    more = [*COLUMNS[:2], "empty", *COLUMNS[2:], "copy"]
    other = scores_of(
        gramvec.match(
            with_column(left, copy=name, empty="none"), with_column(right, copy=name, empty="none"),
            on=more, threshold=0.0,
        )
    )  # fmt: skip
    assert other == scores(left, right)
    found = gramvec.dedupe(with_column(left, copy=name, empty="none"), on=more, threshold=0.0)
    assert scores_of(found.pairs) == duplicates(left)


@few
@given(tables)
def test_labels_that_agree_change_no_pair(left: Rows) -> None:
    found = duplicates(left, threshold=0.4)
    # A label of a row without a text is refused.
    told = [number for number, row in enumerate(left) if any(row.values())]
    others = [pair for pair in combinations(told, 2) if pair not in found]
    labels = [(*pair, True) for pair in [*found][:1]] + [(*pair, False) for pair in others[:3]]
    taught = duplicates(left, threshold=0.4, labels=labels)
    assert taught.keys() == found.keys()
    assert all(score in (found[pair], 1) for pair, score in taught.items())


@few
@given(tables, tables, st.permutations(COLUMNS), thresholds)
def test_the_order_of_columns_changes_no_score(left: Rows, right: Rows, order: list[str], threshold: float) -> None:
    for options in ({"threshold": 0.0}, {"threshold": threshold, "one_to_one": True}, {"top": 1}):
        assert scores_of(gramvec.match(left, right, on=order, **options)) == scores_of(
            gramvec.match(left, right, on=COLUMNS, **options)
        )
    assert scores_of(gramvec.dedupe(left, on=order, threshold=0.0).pairs) == duplicates(left)


@few
@given(
    st.lists(st.tuples(rows, rows), min_size=1, max_size=12),
    st.permutations(COLUMNS),
    st.randoms(use_true_random=False),
)
def test_the_order_of_rows_and_columns_changes_no_score_of_given_pairs(
    pairs: list[tuple[dict[str, str], dict[str, str]]], order: list[str], drawn: Any
) -> None:
    found = gramvec.pair_scores(*map(list, zip(*pairs, strict=True)), on=COLUMNS)
    there = drawn.sample(range(len(pairs)), len(pairs))
    other = gramvec.pair_scores(*map(list, zip(*(pairs[row] for row in there), strict=True)), on=order)
    assert other.tolist() == found[there].tolist()


def test_columns_of_the_same_texts_are_told_apart_by_what_stands_beside_them() -> None:
    left = [{"a": "ann lee", "b": "bo day", "c": "oslo"}, {"a": "bo day", "b": "ann lee", "c": "rome"}]
    right = [{"a": "ann lee", "b": "bo day", "c": "rome"}, {"a": "bo day", "b": "ann lee", "c": "oslo"}]
    every = [scores(left, right, on=list(order)) for order in permutations("abc")]
    assert all(some == every[0] for some in every)
    found = [gramvec.pair_scores(left, right, on=list(order)).tolist() for order in permutations("abc")]
    assert found == found[:1] * 6
