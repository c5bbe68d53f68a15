"""Cosines of rows by several vectors at once, and their lead over the next best row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gramvec.jobs.matching.nearest import Matches, RowIds, places
from gramvec.lexical.hashing import COLUMNS
from gramvec.lexical.sparse_vectors import SparseVectors, ranges


class TwoNearest(NamedTuple):
    """The two nearest rows of each row of a table.

    Attributes:
        others: int64[n, 2], rows of the other table; -1 for none.
        cosines: float64[n, 2]; 0 for none.
    """

    others: RowIds
    cosines: NDArray[np.float64]


def beside(parts: Sequence[SparseVectors], weights: Sequence[float]) -> SparseVectors:
    """Return one vector of length 1 for each row, whose product is the weighted mean of its parts' products.

    A row without entries in a part shares that part's weight among the others.
    """
    if len(parts) == 1:
        return parts[0]
    lengths = np.stack([np.diff(part.indptr) for part in parts], axis=1)
    total = (lengths > 0) @ np.array(weights)
    total[total == 0] = 1  # a row without entries
    starts = np.append(0, np.cumsum(lengths))
    indices = np.empty(starts[-1], np.int32)
    values = np.empty(starts[-1], np.float32)
    for number, (part, weight) in enumerate(zip(parts, weights, strict=True)):
        start, scale = starts[:-1].reshape(lengths.shape)[:, number], np.sqrt(weight / total)
        for rows in part.row_blocks():
            entries, long = part.entries(rows), lengths[rows, number]
            at = ranges(start[rows], long)
            indices[at] = part.indices[entries] + np.int32(number * COLUMNS)
            values[at] = part.values[entries] * np.repeat(scale[rows], long)
    indptr = np.append(0, np.cumsum(lengths.sum(axis=1)))
    return SparseVectors(indptr, indices, values, len(parts) * COLUMNS)


def two_nearest(found: Matches, rows: int) -> TwoNearest:
    """Return the two nearest of each of `rows` rows from matches by row and descending cosine."""
    others, cosines = np.full((rows, 2), -1, np.int64), np.zeros((rows, 2))
    rank = places(found.left)
    first = rank < 2
    others[found.left[first], rank[first]] = found.right[first]
    cosines[found.left[first], rank[first]] = found.scores[first]
    return TwoNearest(others, cosines)


def leads(best: TwoNearest, rows: RowIds, partners: RowIds, cosines: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the cosine of each pair less that of the row's best other partner, float64[p]."""
    other_cosines = np.where(best.others[rows, 0] == partners, best.cosines[rows, 1], best.cosines[rows, 0])
    lead: NDArray[np.float64] = cosines - other_cosines
    return lead
