"""Bound what pairs of rows with empty cells may claim, by pairs in which more is known.

A row of nothing but *Rome* has all that it has in common with each of twenty companies of Rome. How much an equal town
says there, the other pairs tell that are equal in it and have names, too: one in twenty of these is one thing.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gramvec.jobs.pairs.columns import ColumnFacts
from gramvec.jobs.pairs.model import SURE
from gramvec.text.arrays import Array, Doubles, Int64s, UInt64s

# Pairs whose filled columns are looked up together; the sets of filled columns that are bounded, those of the most
# pairs; and the fuller pairs that bound one: of more some are taken, at regular distances.
BLOCK_PAIRS, MOST_SETS, MOST_FULLER = 1 << 16, 64, 1 << 16
# Right pairs that fuller ones count beside.
PRIOR_RIGHT = 1.0


class _FilledSet(NamedTuple):
    """Pairs with the same columns that both rows fill, and the fuller ones that are equal in these.

    A pair is as common as its rows have pairs that are equal in these columns: the logarithm of how many the row has
    that has more of them, to the base 2, rounded down.

    Attributes:
        pairs: int64[n], places.
        common: int64[n], how common they are.
        fuller: int64[m], places.
        fuller_common: int64[m].
        weights: float64[m]: one over that number of pairs.
    """

    pairs: Int64s
    common: Int64s
    fuller: Int64s
    fuller_common: Int64s
    weights: Doubles


class FullerPairs(NamedTuple):
    """What pairs with empty cells are bounded by.

    Attributes:
        sets: of the pairs, and of rows that stand several times behind them; those of the most columns first.
        repeated: how many rows stand several times.
    """

    sets: list[_FilledSet]
    repeated: int = 0

    def bound(self, scores: Array) -> Array:
        """Return probabilities no higher than of fuller pairs that are equal in the same columns, and as common there.

        Args:
            scores: float[p], probabilities of all pairs.
        """
        bounded: Doubles = np.append(scores.astype(np.float64), np.full(self.repeated, SURE))
        for pairs, common, fuller, fuller_common, weights in self.sets:
            number = 1 + max(int(common.max()), int(fuller_common.max()))
            right = np.bincount(fuller_common, weights * bounded[fuller], number).astype(np.float64)
            every = np.bincount(fuller_common, weights, number).astype(np.float64)
            # What is commoner says less, so the fuller pairs that are less common bound a pair, too.
            most = np.minimum(_mean(right, every), _mean(right.cumsum(), every.cumsum()))
            bounded[pairs] = np.minimum(bounded[pairs], most[common])
        return bounded[: len(scores)].astype(scores.dtype)


def _mean(right: Doubles, every: Doubles) -> Doubles:
    mean: Doubles = (PRIOR_RIGHT + right) / (PRIOR_RIGHT + every)
    return mean


def find_fuller_pairs(facts: ColumnFacts, left: Int64s, right: Int64s, repeated: Int64s | None = None) -> FullerPairs:
    """Return what pairs with empty cells are bounded by.

    Args:
        facts: of the columns.
        left: int64[p], rows of the first table.
        right: int64[p], rows of the last table.
        repeated: int64[r], rows of one table that stand there several times; None for none.
    """
    columns = len(facts.kinds)
    if repeated is not None:
        left, right = np.append(left, repeated), np.append(right, repeated)
    if columns == 1 or all((cells >= 0).all() for cells in (facts.cells[0], facts.cells[-1])):
        return FullerPairs([])
    filled, equal = _code_pairs(facts, left, right)
    codes, number = np.unique(filled[equal == filled], return_counts=True)
    sets = []
    for place in np.argsort(-number, kind="stable")[:MOST_SETS].tolist():
        code = codes[place]
        # Nothing that both rows fill has nothing in common, and nothing is fuller than all columns.
        if not code:
            continue
        every = np.flatnonzero((equal & code) == code)
        is_fuller = filled[every] != code
        if is_fuller.any():
            number_of = np.maximum(*(np.bincount(rows)[rows] for rows in (left[every], right[every])))
            common = np.frexp(number_of)[1].astype(np.int64) - 1
            fuller = np.flatnonzero(is_fuller)
            fuller = fuller[:: -(-len(fuller) // MOST_FULLER)]
            bounded = np.flatnonzero(~is_fuller)
            made = _FilledSet(every[bounded], common[bounded], every[fuller], common[fuller], 1 / number_of[fuller])
            sets.append((int(code).bit_count(), made))
    return FullerPairs(
        [one for _, one in sorted(sets, key=lambda counted: -counted[0])], 0 if repeated is None else len(repeated)
    )


def _code_pairs(facts: ColumnFacts, left: Int64s, right: Int64s) -> tuple[UInt64s, UInt64s]:
    """Return the columns that both rows of each pair fill, and those that are equal, a bit each, uint64[p] twice."""
    columns = len(facts.kinds)
    ones, others = (cells.reshape(-1, columns) for cells in (facts.cells[0], facts.cells[-1]))
    # 16 are compared at most.
    bits = np.uint64(1) << np.arange(columns, dtype=np.uint64)
    filled, equal = np.empty(len(left), np.uint64), np.empty(len(left), np.uint64)
    for start in range(0, len(left), BLOCK_PAIRS):
        part = slice(start, start + BLOCK_PAIRS)
        one, other = ones[left[part]], others[right[part]]
        both = (one >= 0) & (other >= 0)
        filled[part] = (both * bits).sum(axis=1, dtype=np.uint64)
        equal[part] = ((both & (one == other)) * bits).sum(axis=1, dtype=np.uint64)
    return filled, equal
