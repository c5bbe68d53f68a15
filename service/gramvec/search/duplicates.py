"""Near-duplicates among millions of rows: those are compared that lie in neighbouring cells, the rest is not.

How many cells a row asks is chosen so that of the pairs of a sample 99 % meet, and which share of all pairs is found is
measured on another sample: a thousand rows, which are compared with all.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import NamedTuple

import numpy as np

from gramvec.bulk.dedupe import Pairs
from gramvec.search.cells import ASKING_ROWS, SEED, Cells, Compared, Rows, Table, Task, Watch, cut, whole
from gramvec.search.scan import kernels

# So many rows are compared each with each: half a minute of a core.
COMPARED_ROWS = 131_072
CONVERTED_ROWS = 65_536
HASHED_ROWS = 8_192
SAMPLE = 1_000
# Of a row of the sample by which cells are chosen: some rows have thousands.
MOST_PARTNERS = 256

Take = Callable[[Pairs], None]


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
    Raises InputError without numkong.
    """
    kernels()
    rows = Compared(table, _without_equal_ones(table, take), threshold)
    drawn = np.random.default_rng(SEED).choice(len(rows), min(2 * SAMPLE, len(rows)), replace=False)
    told = np.sort(drawn[:SAMPLE])
    met = _Met(rows.places[told], len(table), take)
    with ThreadPoolExecutor(threads, thread_name_prefix="gramvec-dedupe") as pool:
        if len(rows) <= COMPARED_ROWS:
            for pairs in _done(pool, threads, whole(rows), watch):
                met.take(pairs)
            return Recall(len(told), met.count, met.count)
        true, partners = _pairs_of(rows, told, np.sort(drawn[SAMPLE:]), pool, watch)
        for pairs in _done(pool, threads, Cells(rows, partners, pool, watch).tasks(), watch):
            met.take(pairs)
    return Recall(len(told), true, met.count)


class _Met:
    """Hands pairs on, and counts those of the sample."""

    def __init__(self, sample: Rows, number: int, take: Take) -> None:
        self.count = 0
        self._sampled = np.zeros(number, np.bool_)
        self._sampled[sample] = True
        self._take = take

    def take(self, pairs: Pairs) -> None:
        if len(pairs.left):
            self.count += sum(int(self._sampled[side].sum()) for side in (pairs.left, pairs.right))
            self._take(pairs)


def _done(pool: ThreadPoolExecutor, threads: int, tasks: Iterator[Task], watch: Watch) -> Iterator[Pairs]:
    """What the tasks give, in their order; few are begun before they are wanted."""
    waiting: deque[tuple[Task, Future[Pairs]]] = deque()

    def first() -> Pairs:
        task, future = waiting.popleft()
        found = future.result()
        watch("comparing", task.size, task.total)
        return found

    try:
        for task in tasks:
            waiting.append((task, pool.submit(task.run)))
            if len(waiting) > 2 * threads:
                yield first()
        while waiting:
            yield first()
    finally:
        for _, future in waiting:
            future.cancel()


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


def _pairs_of(
    rows: Compared, told: Rows, tried: Rows, pool: ThreadPoolExecutor, watch: Watch
) -> tuple[int, tuple[Rows, Rows]]:
    """How many pairs the first sample has with all rows (one of two of its rows counts twice); some of the second's."""
    both = np.concatenate([told, tried])
    packed = rows.packed(both)

    def compared(others: Rows) -> tuple[int, int, Rows, Rows]:
        one, other, _ = rows.near(both, packed, others)
        one, other = one[one != other], other[one != other]
        of_told = np.isin(one, told)
        one, other = one[~of_told], other[~of_told]
        order = np.argsort(one, kind="stable")
        before = np.arange(len(order)) - np.searchsorted(one[order], one[order])
        kept = order[before < MOST_PARTNERS]
        return len(others), int(of_told.sum()), one[kept], other[kept]

    count, found = 0, []
    every = np.arange(len(rows))
    for done, counted, one, other in pool.map(compared, cut(every, ASKING_ROWS)):
        watch("comparing a sample", done, len(rows))
        count += counted
        found.append((one, other))
    left, right = (np.concatenate(arrays) for arrays in zip(*found, strict=True))
    return count, (left, right)
