"""Pairs with empty cells, and the fuller ones by which they are bounded: by hand, by loops, and in both commands."""

from __future__ import annotations

from math import log2
from random import Random

import numpy as np
import pytest

import gramvec
from gramvec.jobs.pairs.figures import RowTables, read_rows
from gramvec.jobs.pairs.fuller_pairs import find_fuller_pairs
from gramvec.jobs.pairs.model import SURE
from gramvec.text.arrays import Floats, Int64s

Rows = list[list[str]]
NAMES = ("acme", "beacon", "gamma", "norland", "omega", "pilgrim", "kappa", "sunrise", "vertigo", "zephyr")
TRADES = ("foods", "hotels", "tools", "books", "motors", "toys", "shoes", "wines", "tiles", "pumps")
TOWNS = ("rome", "oslo", "kiel", "bath")


def read(*tables: Rows) -> RowTables:
    return read_rows([[list(column) for column in zip(*rows, strict=True)] for rows in tables])


def make_companies(number: int) -> Rows:
    """Return companies of other names in four towns, in turn."""
    return [[f"{NAMES[row % 10]} {TRADES[row // 10]}", TOWNS[row % 4]] for row in range(number)]


def test_by_hand():
    left = [["", "rome"], ["acme", "rome"], ["beta", "rome"], ["", "oslo"]]
    right = [["acme", "rome"], ["gamma", "rome"], ["delta", ""]]
    every = [(row, other) for row in range(4) for other in range(3)]
    one, other = (np.array(rows) for rows in zip(*every, strict=True))
    scores = np.full(12, 0.75, np.float32)
    scores[[3, 4, 6, 7]] = 1, 0.25, 0, 0.5
    # Rome is equal in six pairs. Names are known of four of them, and each of their rows has two or three: of each Rome
    # of the right stand three, so a pair counts a third.
    expected = scores.copy()
    expected[[0, 1]] = (1 + (1 + 0.25 + 0 + 0.5) / 3) / (1 + 4 / 3)
    found = find_fuller_pairs(read(left, right).facts, one, other).bound(scores)
    assert found.tolist() == expected.tolist() and found.dtype == np.float32


def bound_slowly(rows: RowTables, left: Int64s, right: Int64s, repeated: Int64s, scores: Floats) -> Floats:
    columns = len(rows.facts.kinds)
    pairs = [*zip(left.tolist(), right.tolist(), strict=True), *((row, row) for row in repeated.tolist())]
    filled, equal = [], []
    for row, other in pairs:
        one = rows.facts.cells[0][row * columns : (row + 1) * columns].tolist()
        two = rows.facts.cells[-1][other * columns : (other + 1) * columns].tolist()
        filled.append({at for at in range(columns) if one[at] >= 0 and two[at] >= 0})
        equal.append({at for at in filled[-1] if one[at] == two[at]})
    bounded = [*scores.astype(float).tolist(), *([SURE] * len(repeated))]
    for these in sorted({frozenset(one) for one in filled}, key=len, reverse=True):
        every = [at for at in range(len(pairs)) if these <= equal[at]]
        number = {at: max(sum(pairs[it][side] == pairs[at][side] for it in every) for side in (0, 1)) for at in every}
        fuller = [at for at in every if these != filled[at]]
        before = list(bounded)
        for at in every if these and fuller else []:
            common = int(log2(number[at]))
            if filled[at] == these:
                as_common = [it for it in fuller if int(log2(number[it])) == common]
                up_to = [it for it in fuller if int(log2(number[it])) <= common]
                for some in (as_common, up_to):
                    right = 1 + sum(before[it] / number[it] for it in some)
                    bounded[at] = min(bounded[at], right / (1 + sum(1 / number[it] for it in some)))
    return np.array(bounded[: len(scores)], np.float32)


@pytest.mark.parametrize("columns", [2, 3, 5])
@pytest.mark.parametrize("same", [False, True])
def test_as_by_loops(columns: int, same: bool) -> None:
    drawn = Random(columns)
    tables = [
        [[drawn.choice(("", "rome", "oslo")) for _ in range(columns)] for _ in range(12)]
        for _ in range(1 if same else 2)
    ]
    rows = read(*tables)
    left, right = np.array([(a, b) for a in range(12) for b in range(12) if a < b or not same]).T
    repeated = np.array([3, 8] if same else [], np.int64)
    scores = np.random.default_rng(columns).random(len(left)).astype(np.float32)
    found = find_fuller_pairs(rows.facts, left, right, repeated if same else None).bound(scores)
    np.testing.assert_allclose(found, bound_slowly(rows, left, right, repeated, scores), rtol=1e-6)
    assert (found < scores).any()


def test_where_no_cell_is_empty_or_only_one_column_there_is_nothing_to_bound():
    scores = np.array([0.9, 0.1], np.float32)
    for rows in ([["a", "b"], ["a", "c"]], [["a"], [""]]):
        fuller = find_fuller_pairs(read(rows, rows).facts, np.array([0, 1]), np.array([1, 0]))
        assert not fuller.sets and fuller.bound(scores).tolist() == scores.tolist()


def name_cells(rows: Rows, *columns: str) -> list[dict[str, str]]:
    return [dict(zip(columns, row, strict=True)) for row in rows]


def match(left: Rows, right: Rows, *columns: str) -> list[tuple[int, int]]:
    found = gramvec.match(name_cells(left, *columns), name_cells(right, *columns), on=columns)
    return sorted(zip(found.left.tolist(), found.right.tolist(), strict=True))


def test_a_town_alone_is_no_match():
    companies, columns = make_companies(80), ("name", "town")
    left, right = [*companies[:60], *(["", TOWNS[row % 4]] for row in range(8))], companies[40:]
    assert match(left, right, *columns) == [(40 + row, row) for row in range(20)]
    (told,) = gramvec.explain_pairs(name_cells(left, *columns), name_cells(right, *columns), [(60, 0)], on=columns)
    assert "empty cells: of pairs with fewer, equal in the same columns," in told.tell(against=True)


def test_a_town_alone_is_no_copy_of_a_company():
    companies, columns = make_companies(80), ("name", "town")
    slips = [[name.replace("a", "aa"), town] for name, town in companies[:5]]
    rows = [*companies, *(["", town] for town in TOWNS), *slips]
    pairs = gramvec.dedupe(name_cells(rows, *columns), on=columns).pairs
    found = set(zip(pairs.left.tolist(), pairs.right.tolist(), strict=True))
    assert found and found <= {(row, 84 + row) for row in range(5)}


def test_a_phone_alone_is_one():
    """What is equal in nothing but what one thing alone has is as sure as the fuller pairs are."""
    people = [[f"{NAMES[row % 10]} {TRADES[row // 10]}", f"030 55{row:03d}1"] for row in range(80)]
    right = [["" if row % 10 == 0 else name, phone] for row, (name, phone) in enumerate(people)]
    assert match(people, right, "name", "phone") == [(row, row) for row in range(80)]
