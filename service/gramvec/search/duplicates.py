"""Near-duplicates among millions of rows: rows meet in the cells of pivots that both are near to, and are scored there.

A pivot is one of the rows, taken at random; each row is in the cells of its three or five nearest pivots. Two rows of
cosine 0.9 are nearly always in one cell together; how nearly is measured each time, by comparing a thousand rows with
all.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from math import ceil, sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gramvec.bulk import Pairs, cosines, leading_axes, one_blas_thread, pairs_within, turned
from gramvec.embedding import Vectors

Rows = NDArray[np.int64]
Table = NDArray[np.int8]

# Of each row, by threshold. Of 300,000 sentences' pairs of cosine 0.9, 2, 3 and 4 cells find 92.8, 98.6 and 99.7 %; of
# those of 0.8, 84.3, 94.8 and 97.4 %. Time grows with the number.
CELLS_A_ROW, CELLS_OF_WIDE_ONES, WIDE = 3, 5, 0.9
# So many rows are compared each with each: half a minute of a core.
COMPARED_ROWS = 131_072
ASSIGNED_ROWS = 256
CONVERTED_ROWS = 65_536
HASHED_ROWS = 8_192
AXES_SAMPLE = 20_000
RECALL_SAMPLE = 1_000
SEED = 0

Take = Callable[[Pairs], None]
Watch = Callable[[str, int, int], None]


class Recall(NamedTuple):
    """Of the pairs that a sample of `rows` rows has with all others, how many were found."""

    rows: int
    pairs: int
    found: int


def near_rows(
    table: Table,
    threshold: float,
    take: Take,
    *,
    threads: int = 1,
    watch: Watch = lambda what, done, total: None,
) -> Recall:
    """Pairs of rows of int8[n, d] whose cosine is at least `threshold`, each once, given to `take` in some order.

    take: called with runs of pairs, left < right, from the calling thread alone. Equal rows are joined to the first of
    them, with score 1, and to no other; a row of zeros is in no pair. watch: what is done, how much more, of how much.
    Up to 131,072 different rows all pairs are compared. Memory: some 60 bytes a row beside the table.
    Raises InputError without threadpoolctl.
    """
    different = _without_equal_ones(table, take)
    sample = _sample(different)
    met = _Met(sample, take)
    with one_blas_thread(), ThreadPoolExecutor(threads, thread_name_prefix="gramvec-dedupe") as pool:
        axes = leading_axes(_units(table, different[:: max(1, len(different) // AXES_SAMPLE)]))
        for pairs in _Search(table, threshold, axes, pool, threads, watch).pairs(different):
            met.take(pairs)
        if len(different) <= COMPARED_ROWS:
            return Recall(len(sample), met.count, met.count)
        true = _pairs_of(table, sample, different, threshold, axes, pool)
    return Recall(len(sample), true, met.count)


class _Met:
    """Hands pairs on, and counts those of the sample."""

    def __init__(self, sample: Rows, take: Take) -> None:
        self.count = 0
        self._sample = sample
        self._take = take

    def take(self, pairs: Pairs) -> None:
        if len(pairs.left):
            self.count += sum(int(np.isin(side, self._sample).sum()) for side in (pairs.left, pairs.right))
            self._take(pairs)


class _Search:
    def __init__(
        self, table: Table, threshold: float, axes: Vectors, pool: ThreadPoolExecutor, threads: int, watch: Watch
    ) -> None:
        self._table = table
        self._threshold = threshold
        self._axes = axes
        self._pool = pool
        self._threads = threads
        self._watch = watch
        self._cells_a_row = CELLS_A_ROW if threshold >= WIDE else CELLS_OF_WIDE_ONES

    def pairs(self, rows: Rows) -> Iterator[Pairs]:
        """The near pairs of these rows, each once."""
        if len(rows) <= COMPARED_ROWS:
            yield self._compared(rows)
            return
        cells = self._cells(rows)
        flat = cells.ravel()
        order = np.argsort(flat, kind="stable")
        starts = np.searchsorted(flat[order], np.arange(int(flat[order[-1]]) + 2))
        members = (order // self._cells_a_row).astype(np.int32 if len(rows) < 2**31 else np.int64)
        del order, flat
        sizes = np.diff(starts)
        total = int((sizes * (sizes - 1) // 2).sum())
        waiting: deque[tuple[int, int, Future[Pairs]]] = deque()
        try:
            for cell, (start, size) in enumerate(zip(starts.tolist(), sizes.tolist(), strict=False)):
                here = members[start : start + size]
                if COMPARED_ROWS < size < len(rows) * 0.9:
                    for found in self.pairs(rows[here]):
                        yield _of_this_cell(found, rows, cells, cell)
                    continue
                waiting.append((cell, size, self._pool.submit(self._compared, rows[here])))
                if len(waiting) > 2 * self._threads:
                    yield self._done(waiting, rows, cells, total)
            while waiting:
                yield self._done(waiting, rows, cells, total)
        finally:
            for _, _, future in waiting:
                future.cancel()

    def _done(
        self, waiting: deque[tuple[int, int, Future[Pairs]]], rows: Rows, cells: NDArray[np.int32], total: int
    ) -> Pairs:
        cell, size, future = waiting.popleft()
        found = future.result()
        self._watch("comparing", size * (size - 1) // 2, total)
        return _of_this_cell(found, rows, cells, cell)

    def _compared(self, rows: Rows) -> Pairs:
        found = pairs_within(_units(self._table, rows), self._threshold, self._axes)
        return Pairs(rows[found.left], rows[found.right], found.scores)

    def _cells(self, rows: Rows) -> NDArray[np.int32]:
        """int32[n, 3 or 5]: the cells of each row, ascending."""
        # As many that to find a row's cells takes about as long as to compare it with what is in them.
        number = ceil(self._cells_a_row * sqrt(len(rows) / 2))
        pivots = np.random.default_rng(SEED).choice(rows, number, replace=False)
        ahead = np.ascontiguousarray((_units(self._table, np.sort(pivots)) @ self._axes).T)
        cells = np.empty((len(rows), self._cells_a_row), np.int32)

        def assign(start: int) -> int:
            stop = min(start + CONVERTED_ROWS, len(rows))
            some = _units(self._table, rows[start:stop]) @ self._axes
            for at in range(0, len(some), ASSIGNED_ROWS):
                near = some[at : at + ASSIGNED_ROWS] @ ahead
                every = np.arange(len(near))
                for place in range(self._cells_a_row):
                    best = near.argmax(axis=1)
                    cells[start + at : start + at + len(near), place] = best
                    near[every, best] = -2
            return stop - start

        for done in self._pool.map(assign, range(0, len(rows), CONVERTED_ROWS)):
            self._watch("finding cells", done, len(rows))
        cells.sort(axis=1)
        return cells


def _of_this_cell(found: Pairs, rows: Rows, cells: NDArray[np.int32], cell: int) -> Pairs:
    """Those that meet in no earlier cell, so that each pair is found once."""
    left, right = (cells[np.searchsorted(rows, side)] for side in (found.left, found.right))
    same = (left[:, :, None] == right[:, None, :]).any(axis=2)
    kept = np.where(same, left, np.iinfo(np.int32).max).min(axis=1, initial=np.iinfo(np.int32).max) == cell
    return Pairs(found.left[kept], found.right[kept], found.scores[kept])


def _units(table: Table, rows: Rows) -> Vectors:
    """float32[m, d]: these rows at length 1."""
    wide = table[rows].astype(np.float32)
    lengths = np.sqrt(np.einsum("ij,ij->i", wide, wide))
    wide /= np.where(lengths == 0, np.float32(1), lengths)[:, None]
    return wide


def _without_equal_ones(table: Table, take: Take) -> Rows:
    """The first of all equal rows, without those of zeros; the others are given to `take`, each with its first."""
    keys = np.empty(len(table), np.uint64)
    odd = np.random.default_rng(SEED).integers(0, 2**63, table.shape[1], np.uint64) * np.uint64(2) + np.uint64(1)
    for start in range(0, len(table), HASHED_ROWS):
        part = table[start : start + HASHED_ROWS].view(np.uint8).astype(np.uint64)
        some = (part * odd).sum(axis=1, dtype=np.uint64) | np.uint64(1)
        keys[start : start + HASHED_ROWS] = np.where(part.any(axis=1), some, np.uint64(0))
    order = np.argsort(keys, kind="stable")
    ordered = keys[order]
    first = np.ones(len(order), np.bool_)
    first[1:] = ordered[1:] != ordered[:-1]
    leader = order[np.maximum.accumulate(np.where(first, np.arange(len(order)), 0))]
    others = np.flatnonzero(~first & (ordered != 0))
    # Of rows with one key that differ after all, each stays by itself.
    for start in range(0, len(others), CONVERTED_ROWS):
        some = others[start : start + CONVERTED_ROWS]
        left, right = leader[some], order[some]
        equal = (table[left] == table[right]).all(axis=1)
        first[some[~equal]] = True
        if equal.any():
            take(Pairs(left[equal], right[equal], np.ones(int(equal.sum()), np.float32)))
    return np.sort(order[first & (ordered != 0)])


def _sample(rows: Rows) -> Rows:
    return np.sort(np.random.default_rng(SEED).choice(rows, min(RECALL_SAMPLE, len(rows)), replace=False))


def _pairs_of(table: Table, sample: Rows, rows: Rows, threshold: float, axes: Vectors, pool: ThreadPoolExecutor) -> int:
    """How many pairs the rows of the sample have with all rows; one of two rows of the sample counts twice."""
    units = _units(table, sample)
    ahead = turned(units, axes)

    def count(start: int) -> int:
        others = rows[start : start + CONVERTED_ROWS]
        theirs = _units(table, others)
        left, right = np.nonzero(ahead @ turned(theirs, axes).T >= threshold)
        kept = cosines(units, left, theirs, right) >= np.float32(threshold)
        return int((kept & (sample[left] != others[right])).sum())

    return sum(pool.map(count, range(0, len(rows), CONVERTED_ROWS)))
