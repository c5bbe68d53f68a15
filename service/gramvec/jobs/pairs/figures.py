"""Figures of pairs of rows, from which a pair model tells whether they are one thing.

All of them lie between 0 and about 1, or are small counts, whatever the tables are about. `loops.pair_figures` has
those of the two rows (figures_in_python.py is the same in Python); here they get the rows' rivals beside them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gramvec import native
from gramvec.jobs.pairs import figures_in_python
from gramvec.jobs.pairs.tokens import Tokens
from gramvec.text.arrays import Floats, Int64s

# Name, and whether a greater value speaks for a match (1), against it (-1), or either (0).
OF_TEXT = (
    ("aligned", 1), ("aligned_of_lighter", 1), ("equal_of_one_min", 1), ("equal_of_one_max", 1),
    ("left_over_min", -1), ("left_over_max", -1), ("heaviest_left_over_min", -1), ("heaviest_left_over_max", -1),
    ("tokens_left_over_min", -1), ("tokens_left_over_max", -1), ("softly_aligned", 0), ("tokens_min", 0),
    ("tokens_max", 0), ("numbers_common", 0), ("numbers_left_over_min", -1), ("numbers_left_over_max", -1),
    ("nearest_number", 0), ("equal", 1), ("alike", 1),
)  # fmt: skip
OF_COLUMNS = (
    ("column_mean", 1), ("column_min", 1), ("column_max", 1), ("columns_equal", 1), ("columns_filled", 0),
    ("columns_low", -1),
)  # fmt: skip
OF_RIVALS = (("rank_min", -1), ("rank_max", -1), ("lead_max", 1), ("lead_min", 1))
OF_PAIR = (*OF_TEXT, *OF_COLUMNS)
NAMES = tuple(name for name, _ in (*OF_PAIR, *OF_RIVALS))
DIRECTIONS = tuple(direction for _, direction in (*OF_PAIR, *OF_RIVALS))
# A lead is at most that over a rival of this likeness. With fewer candidates in a row a lead is no evidence.
RIVAL, FEW = 0.4, 5
ALIGNED, OF_LIGHTER, EQUAL = 0, 1, 17


def pair_figures(tokens: Tokens, left: Int64s, right: Int64s) -> Floats:
    """Return the figures of pairs of rows, float32[p, len(OF_PAIR)]; NaN where one has no value.

    Args:
        tokens: of two tables, or of one that is compared with itself.
        left: int64[p], rows of the first table.
        right: int64[p], rows of the last table.
    """
    loops: Any = native.loops  # or None
    if loops is None:
        return figures_in_python.pair_figures(tokens, left, right)
    out = np.empty((len(left), len(OF_PAIR)), np.float32)
    known, left_table, right_table = tokens.vocabulary, tokens.tables[0], tokens.tables[-1]
    loops.pair_figures(
        known[:5], known.heaviest, left_table, right_table, tokens.columns,
        np.ascontiguousarray(left), np.ascontiguousarray(right), out,
    )  # fmt: skip
    return out


def likeness(figures: Floats, cosines: Floats) -> Floats:
    """Return how alike pairs are, by which rivals are ranked, float32[p].

    Args:
        figures: float32[p, f], of `pair_figures`.
        cosines: float32[p], of the pairs' n-grams.
    """
    mean: Floats = (figures[:, ALIGNED] + figures[:, OF_LIGHTER] + cosines) / np.float32(3)
    return mean


def rival_figures(left: Int64s, right: Int64s, alike: Floats) -> Floats:
    """Return OF_RIVALS of candidate pairs, float32[p, 4].

    A pair's rank among the candidates of a row is the number of those that are more alike; its lead is what it is more
    alike than the best other one. Both rows have one: of the ranks and of the leads, the least and the greatest.
    NaN where neither row has FEW candidates.

    Args:
        left: int64[p], rows.
        right: int64[p], rows; those of one table have numbers of their own.
        alike: float32[p], see `likeness`.
    """
    sides = [_rank_and_lead(rows, alike) for rows in (left, right)]
    return _combine_sides(*zip(*sides, strict=True))


def one_table_rivals(left: Int64s, right: Int64s, alike: Floats) -> Floats:
    """Return `rival_figures` where both rows are of one table and each pair is given once."""
    both = _rank_and_lead(np.append(left, right), np.append(alike, alike))
    ranks, leads = (values.reshape(2, -1) for values in both)
    return _combine_sides(ranks, leads)


def no_rivals(pairs: int) -> Floats:
    """Return OF_RIVALS of pairs that are compared with no others, float32[pairs, 4]: NaN."""
    return np.full((pairs, len(OF_RIVALS)), np.nan, np.float32)


def _combine_sides(ranks: Sequence[Floats] | Floats, leads: Sequence[Floats] | Floats) -> Floats:
    found = [np.fmin(*ranks), np.fmax(*ranks), np.fmax(*leads), np.fmin(*leads)]
    return np.stack(found, axis=1).astype(np.float32)


def _rank_and_lead(rows: Int64s, alike: Floats) -> tuple[Floats, Floats]:
    order = np.lexsort((-alike, rows))
    row, ranked = rows[order], alike[order]
    new = np.diff(row, prepend=-1) != 0
    first = np.maximum.accumulate(np.where(new, np.arange(len(row)), 0))
    place = np.arange(len(row)) - first
    # Equals share the rank of their first.
    start = new | (np.diff(ranked, prepend=np.float32(np.inf)) != 0)
    tied = np.maximum.accumulate(np.where(start, np.arange(len(row)), 0)) - first
    following = np.append(row[1:] == row[:-1], False)
    second = np.where(following, np.append(ranked[1:], np.float32(0)), np.float32(0))
    best_other = np.where(place == 0, second, ranked[first])
    lead = ranked - np.maximum(best_other, np.float32(RIVAL))
    number = np.bincount(row)[row] if len(row) else first
    ranks, leads = np.empty(len(row), np.float32), np.empty(len(row), np.float32)
    ranks[order] = np.where(number < FEW, np.float32(np.nan), tied)
    leads[order] = np.where(number < FEW, np.float32(np.nan), lead)
    return ranks, leads
