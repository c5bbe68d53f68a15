"""Sparse vectors: compressed rows, as scipy.sparse has them, without SciPy."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gramvec.errors import InputError, import_extra

# Pairs or rows that are read together, and their entries: some 15 MB.
BLOCK, BLOCK_ENTRIES = 4096, 250_000


@dataclass(frozen=True)
class SparseVectors:
    """n sparse rows (CSR): row i has values[indptr[i]:indptr[i + 1]] in the columns indices[indptr[i]:indptr[i + 1]].

    indptr: int64[n + 1]. indices: int32[m], below `columns`, ascending within a row. values: float32[m].
    """

    indptr: NDArray[np.int64]
    indices: NDArray[np.int32]
    values: NDArray[np.float32]
    columns: int

    def __len__(self) -> int:
        return len(self.indptr) - 1

    def __iter__(self) -> Iterator[dict[int, float]]:
        """Yield each row as column -> value."""
        for begin, end in zip(self.indptr[:-1].tolist(), self.indptr[1:].tolist(), strict=True):
            yield dict(zip(self.indices[begin:end].tolist(), self.values[begin:end].tolist(), strict=True))

    def to_scipy(self) -> Any:
        """Return scipy.sparse.csr_array (n, columns) over the same memory. Raises InputError without SciPy."""
        sparse = import_extra("scipy.sparse", "match", "to_scipy")
        return sparse.csr_array((self.values, self.indices, self.indptr), shape=(len(self), self.columns))

    def rows(self, places: NDArray[np.int64]) -> SparseVectors:
        """Return the given rows, in the given order."""
        lengths = self.indptr[places + 1] - self.indptr[places]
        at = ranges(self.indptr[places], lengths)
        return SparseVectors(np.append(0, np.cumsum(lengths)), self.indices[at], self.values[at], self.columns)

    def row_blocks(self) -> Iterator[slice]:
        """Yield all rows in blocks of at most BLOCK_ENTRIES entries, or of one row."""
        start = 0
        while start < len(self):
            end = int(np.searchsorted(self.indptr, self.indptr[start] + BLOCK_ENTRIES, side="right")) - 1
            yield slice(start, start := min(max(end, start + 1), len(self)))

    def entries(self, rows: slice) -> slice:
        """Return the entries of a block of rows."""
        return slice(int(self.indptr[rows.start]), int(self.indptr[rows.stop]))

    def dots(self, left: NDArray[np.int64], other: SparseVectors, right: NDArray[np.int64]) -> NDArray[np.float32]:
        """Return the product of each row left[i] of this with the row right[i] of the other, float32[p].

        Products are added in float64 in the columns' order, so a pair has the same bytes in any batch. For vectors of
        length 1 it is their cosine, at most 1. Raises InputError if the two have other columns.
        """
        if self.columns != other.columns:
            raise InputError(f"vectors of {self.columns:,} and of {other.columns:,} columns have no product")
        scores = np.zeros(len(left), np.float32)
        entries = np.cumsum(np.diff(self.indptr)[left] + np.diff(other.indptr)[right])
        start = 0
        while start < len(left):
            before = entries[start - 1] if start else 0
            end = int(np.searchsorted(entries, before + BLOCK_ENTRIES, side="right"))
            part = slice(start, start := min(max(end, start + 1), start + BLOCK))
            a, b = self._keys(left[part]), other._keys(right[part])
            at = np.minimum(np.searchsorted(b[0], a[0]), max(len(b[0]) - 1, 0))
            if not len(a[0]) or not len(b[0]):
                continue
            same = b[0][at] == a[0]
            products = a[1][same].astype(np.float64) * b[1][at[same]]
            pairs = a[0][same] // self.columns
            sums = np.bincount(pairs, products, minlength=len(left[part]))
            scores[part] = np.minimum(sums, 1)
        return scores

    def _keys(self, rows: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """Return (place in `rows` times columns plus the column, ascending) and the value of all entries of rows."""
        lengths = self.indptr[rows + 1] - self.indptr[rows]
        places = ranges(self.indptr[rows], lengths)
        return np.repeat(np.arange(len(rows)) * self.columns, lengths) + self.indices[places], self.values[places]


def ranges(starts: NDArray[np.int64], lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return start, start + 1, ... for each range, one after the other, int64."""
    before = np.cumsum(lengths) - lengths
    return np.repeat(starts - before, lengths) + np.arange(int(lengths.sum()))
