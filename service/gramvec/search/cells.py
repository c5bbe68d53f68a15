"""Rows that are compared with those of their neighbourhood, by products of int8 vectors, which are exact.

A pivot is one of the rows, taken at random. A row lies in the cell of its nearest pivot, and is compared with all that
lies in the cells of its nearest 4 to 64: two rows meet if either's cell is among the other's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import product
from math import ceil, sqrt
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gramvec.bulk.dedupe import Pairs
from gramvec.search.scan import kernels

Rows = NDArray[np.int64]
Table = NDArray[np.int8]
Near = NDArray[np.uint16]
Watch = Callable[[str, int, int], None]

# Cells that a row asks, and how many times larger they are than what is fastest. A million sentences want 4 for cosines
# of 0.9, 16 for those of 0.8 and 64 for those of 0.7; larger ones are for rows that are all alike.
WIDTHS = ((4, 1), (8, 1), (16, 1), (32, 1), (64, 1), (64, 2), (64, 4), (64, 8))
# Of a sample's pairs, so that of all pairs 98 % are found.
ENOUGH = 0.99
MOST_CELLS = 2**16 - 1
# A tile of products, 4 MB, stays near a core; all pairs of a task, should all be near, are 350 MB.
TILE_ROWS, STORED_ROWS, ASKING_ROWS = 512, 2_048, 8_192
ASSIGNED_ROWS = 64
CONVERTED_ROWS = 65_536
SEED = 0


class Task(NamedTuple):
    """Some comparisons: how many, of how many in all, and what makes them."""

    size: int
    total: int
    run: Callable[[], Pairs]


class Compared:
    """Some rows of a table, which are numbered from 0; places int64[n]: where they are."""

    def __init__(self, table: Table, places: Rows, threshold: float) -> None:
        self.places = places
        self.threshold = threshold
        self._table = table
        self._lengths = np.concatenate(
            [np.empty(0, np.float32), *(_lengths(table[some]) for some in cut(places, CONVERTED_ROWS))]
        )

    def __len__(self) -> int:
        return len(self.places)

    def vectors(self, which: Rows) -> Table:
        """int8[m, d]."""
        return np.take(self._table, self.places[which], axis=0)

    def packed(self, which: Rows) -> Any:
        """Vectors as the left side of `near` wants them."""
        return kernels().dots_pack(self.vectors(which))

    def near(self, some: Rows, packed: Any, others: Rows) -> tuple[Rows, Rows, NDArray[np.float32]]:
        """Of `some`, whose vectors are packed, and others the pairs that are near: both sides, and the cosines."""
        vectors, found = self.vectors(others), []
        lengths, ahead = self._lengths[some], self._lengths[others]
        dots = kernels().dots_packed
        for start in range(0, len(others), TILE_ROWS):
            part = slice(start, start + TILE_ROWS)
            tile = np.asarray(dots(vectors[part], packed))
            # Lengths are 127, nearly: what is below the shortest ones' limit need not be divided.
            least = self.threshold * float(lengths.min()) * float(ahead[part].min())
            asking, stored = np.divmod(np.flatnonzero(tile >= int(least)), len(some))
            cosines = tile[asking, stored] / (lengths[stored].astype(np.float64) * ahead[part][asking])
            kept = cosines >= self.threshold
            found.append((some[stored[kept]], others[part][asking[kept]], cosines[kept].astype(np.float32)))
        left, right, scores = (np.concatenate(arrays) for arrays in zip(*found, strict=True))
        return left, right, np.minimum(scores, np.float32(1))

    def pairs(self, one: Rows, other: Rows, scores: NDArray[np.float32]) -> Pairs:
        """The same as rows of the table, in order."""
        left, right = self.places[np.minimum(one, other)], self.places[np.maximum(one, other)]
        order = np.lexsort((right, left))
        return Pairs(left[order], right[order], scores[order])


def whole(rows: Compared) -> Iterator[Task]:
    """Tasks that compare every two rows."""
    every = np.arange(len(rows))
    total = len(rows) * (len(rows) + STORED_ROWS) // 2

    def compared(stored: Rows, asking: Rows) -> Pairs:
        one, other, scores = rows.near(stored, rows.packed(stored), asking)
        ahead = one < other
        return rows.pairs(one[ahead], other[ahead], scores[ahead])

    for stored in cut(every, STORED_ROWS):
        for asking in cut(every[int(stored[0]) :], ASKING_ROWS):
            yield Task(len(stored) * len(asking), total, partial(compared, stored, asking))


class Cells:
    """Which cells each row asks, the nearest first, which is where it lies."""

    def __init__(self, rows: Compared, partners: tuple[Rows, Rows], pool: ThreadPoolExecutor, watch: Watch) -> None:
        self._rows = rows
        self._pool = pool
        self._near = self._chosen(partners, watch)
        self._number = int(self._near.max()) + 1
        # Of each place among a row's cells, the rows by cell: an order, and where each cell begins in it.
        self._orders = [np.argsort(column, kind="stable").astype(np.int32) for column in self._near.T]
        self._starts = [
            np.concatenate([[0], np.cumsum(np.bincount(column, minlength=self._number))]) for column in self._near.T
        ]

    def tasks(self) -> Iterator[Task]:
        """Comparisons of what lies in a cell with what asks it."""
        sizes = np.stack([np.diff(starts) for starts in self._starts])
        total = int((sizes[0] * sizes.sum(axis=0)).sum())
        for cell in range(self._number):
            stored, *others = (
                order[starts[cell] : starts[cell + 1]] for order, starts in zip(self._orders, self._starts, strict=True)
            )
            asking = np.concatenate([stored, *others])
            for some, who in product(cut(stored, STORED_ROWS), cut(asking, ASKING_ROWS)):
                yield Task(len(some) * len(who), total, partial(self._compared, some, who))

    def _compared(self, stored: Rows, asking: Rows) -> Pairs:
        one, other, scores = self._rows.near(stored, self._rows.packed(stored), asking)
        # A pair that meets in both rows' cells is kept where the first of them lies.
        twice = (self._near[one] == self._near[other, :1]).any(axis=1)
        kept = (one < other) | ((one > other) & ~twice)
        return self._rows.pairs(one[kept], other[kept], scores[kept])

    def _chosen(self, partners: tuple[Rows, Rows], watch: Watch) -> Near:
        """uint16[n, k], with as few cells as will do."""
        needed, both = np.unique(np.concatenate(partners), return_inverse=True)
        left, right = both[: len(partners[0])], both[len(partners[0]) :]
        for number, times in WIDTHS:
            # As many that to find a row's cells takes about as long as to compare it with what is in them.
            size = min(ceil(sqrt(2 * number * len(self._rows)) / times), MOST_CELLS, len(self._rows))
            pivots = np.sort(np.random.default_rng(SEED).choice(len(self._rows), size, replace=False))
            packed = self._rows.packed(pivots)
            of_sample = self._nearest(needed, packed, min(number, size), lambda what, done, total: None)
            one, other = of_sample[left], of_sample[right]
            met = (one == other[:, :1]).any(axis=1) | (other == one[:, :1]).any(axis=1)
            if met.sum() >= ENOUGH * len(met):
                break
        return self._nearest(np.arange(len(self._rows)), packed, min(number, size), watch)

    def _nearest(self, which: Rows, packed: Any, number: int, watch: Watch) -> Near:
        near = np.empty((len(which), number), np.uint16)
        dots = kernels().dots_packed

        def assign(start: int) -> int:
            some = self._rows.vectors(which[start : start + ASKING_ROWS])
            for at in range(0, len(some), ASSIGNED_ROWS):
                products = np.asarray(dots(some[at : at + ASSIGNED_ROWS], packed))
                every = np.arange(len(products))
                for place in range(number):
                    best = products.argmax(axis=1)
                    near[start + at + every, place] = best
                    products[every, best] = np.iinfo(np.int32).min
            return len(some)

        for done in self._pool.map(assign, range(0, len(which), ASKING_ROWS)):
            watch("finding cells", done, len(which))
        return near


def cut(rows: NDArray[Any], size: int) -> Iterator[NDArray[Any]]:
    """Runs of at most `size`."""
    for start in range(0, len(rows), size):
        yield rows[start : start + size]


def _lengths(vectors: Table) -> NDArray[np.float32]:
    wide = vectors.astype(np.float32)
    found: NDArray[np.float32] = np.sqrt(np.einsum("ij,ij->i", wide, wide))
    return found
