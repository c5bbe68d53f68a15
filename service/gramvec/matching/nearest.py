"""The nearest rows of sparse vectors of length 1, exactly, without ever holding the matrix of all cosines.

Common features take most of the time of a product and, weighed by SIF, have little of the length. So rows are parted
into rare features h and common ones c. Weights are not negative, so by Cauchy and Schwarz
h(a).h(b) <= a.b <= h(a).h(b) + |c(a)| |c(b)|. Only pairs that these bounds cannot rule out are scored, each by itself
and always in the same order of additions: the result is that of scoring all pairs, to the bit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib import import_module
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gramvec.errors import InputError
from gramvec.lexical.sparse_vectors import SparseVectors

Ids = NDArray[np.int64]
Floats = NDArray[np.float32]

# The share of all pairs that the products of rare features may be; and what a block may hold: 100 MB.
RARE_PRODUCTS = 0.1
BLOCK_PRODUCTS = 8_000_000
# More right rows that share no rare feature and could still be near: all features are multiplied instead.
MOST_WITHOUT_RARE = 2_000
# All pairs that are scored at a time: 40 MB.
SCORED_PAIRS = 1_000_000
# An entry of a pair that is scored by itself takes as long as so many products of the matrix.
ENTRY_PRODUCTS = 8
# More than sums of float32 are ever rounded by.
SLACK = 1e-4


class Matches(NamedTuple):
    """left int64[p], right int64[p]: rows; scores float32[p]: cosines. By left row, then the highest score, then right
    row.
    """

    left: Ids
    right: Ids
    scores: Floats


def scipy_sparse() -> Any:
    """scipy.sparse. Raises InputError, with what to install, where it is missing."""
    try:
        return import_module("scipy.sparse")
    except ImportError as error:
        raise InputError("matching needs SciPy, which is not installed: pip install 'gramvec[match]'") from error


def nearest(
    left: SparseVectors,
    right: SparseVectors,
    k: int,
    threshold: float,
    *,
    threads: int = 1,
    watch: Callable[[int], None] | None = None,
) -> Matches:
    """For each left row the k right rows of the highest cosine of at least `threshold`, above 0; equals by row.

    watch: called with the left rows done since the last time. Memory: 24 bytes an entry, 100 MB a thread.
    """
    if not len(left.indices) or not len(right.indices):
        if watch:
            watch(len(left))
        return none()
    bounds = _Bounds(left, right)
    size = max(1, BLOCK_PRODUCTS // len(right))
    found: list[Matches] = []

    def block(start: int) -> Matches:
        stop = min(start + size, len(left))
        rows, others = bounds.candidates(start, stop, k, threshold)
        if bounds.products(start, stop) < ENTRY_PRODUCTS * int(lengths[rows].sum() + lengths_right[others].sum()):
            return joined([_of_scores(*scored, k, threshold) for scored in bounds.scored(start, stop)])
        return best(left, right, rows, others, k, threshold)

    lengths, lengths_right = np.diff(left.indptr), np.diff(right.indptr)
    with ThreadPoolExecutor(threads, thread_name_prefix="gramvec-match") as pool:
        starts = iter(range(0, len(left), size))
        while some := list(islice(starts, 2 * threads)):
            for start, matches in zip(some, pool.map(block, some), strict=True):
                found.append(matches)
                if watch:
                    watch(min(size, len(left) - start))
    return joined(found)


def near(left: SparseVectors, right: SparseVectors, k: int, threshold: float, *, threads: int = 1) -> Matches:
    """As `nearest`, of the k right rows that share most rare features with a left row: faster, and nearly the same."""
    if not len(left.indices) or not len(right.indices):
        return none()
    bounds = _Bounds(left, right)
    size = max(1, BLOCK_PRODUCTS // len(right))

    def block(start: int) -> Matches:
        return best(left, right, *bounds.of_most_rare(start, min(start + size, len(left)), k), k, threshold)

    with ThreadPoolExecutor(threads, thread_name_prefix="gramvec-match") as pool:
        return joined(list(pool.map(block, range(0, len(left), size))))


def best(left: SparseVectors, right: SparseVectors, rows: Ids, others: Ids, k: int, threshold: float) -> Matches:
    """Of candidate pairs (each once) the k best of each left row, of a cosine of at least `threshold` and above 0."""
    return _of_scores(rows, others, left.dots(rows, right, others), k, threshold)


def _of_scores(rows: Ids, others: Ids, scores: Floats, k: int, threshold: float) -> Matches:
    kept = (scores >= np.float32(threshold)) & (scores > 0)
    rows, others, scores = rows[kept], others[kept], scores[kept]
    order = np.lexsort((others, -scores, rows))
    ranked = taken(Matches(rows, others, scores), order)
    place = np.arange(len(rows)) - np.searchsorted(ranked.left, ranked.left)
    return taken(ranked, place < k)


def taken(pairs: Matches, places: NDArray[Any]) -> Matches:
    """These of the matches, in this order."""
    return Matches(pairs.left[places], pairs.right[places], pairs.scores[places])


def joined(found: list[Matches]) -> Matches:
    """These one after the other."""
    left, right, scores = zip(none(), *found, strict=True)
    return Matches(np.concatenate(left), np.concatenate(right), np.concatenate(scores))


def none() -> Matches:
    """No match."""
    return Matches(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0, np.float32))


@dataclass
class _Side:
    """rare, whole: scipy.sparse rows of the rare and of all shared features; common: the length of the common ones."""

    rare: Any
    whole: Any
    common: Floats


class _Bounds:
    """What rules out pairs of rows of two tables."""

    def __init__(self, left: SparseVectors, right: SparseVectors) -> None:
        (columns, held), (others, held_right) = (np.unique(one.indices, return_counts=True) for one in (left, right))
        shared, at, at_right = np.intersect1d(columns, others, assume_unique=True, return_indices=True)
        products = held[at] * held_right[at_right]
        order = np.argsort(products, kind="stable")
        number = int(np.count_nonzero(np.cumsum(products[order]) <= RARE_PRODUCTS * len(left) * len(right)))
        place = np.empty(len(shared), np.int32)
        place[order] = np.arange(len(shared), dtype=np.int32)
        self.left = _side(left, shared, place, number)
        right_side = _side(right, shared, place, number)
        self.rare = right_side.rare.T.tocsr()
        self.whole = right_side.whole.T.tocsr()
        multiplied = np.append(0, np.cumsum(np.diff(self.whole.indptr)[self.left.whole.indices]))
        self._multiplied = multiplied[self.left.whole.indptr]
        self.common = right_side.common
        self.by_common = np.argsort(-self.common, kind="stable")
        self.descending = -self.common[self.by_common]

    def candidates(self, start: int, stop: int, k: int, threshold: float) -> tuple[Ids, Ids]:
        """(left rows, right rows) from start to stop: no other pair can be among the k best above the threshold."""
        product = self.left.rare[start:stop] @ self.rare
        rows, columns = [], []
        for row in range(stop - start):
            part = slice(product.indptr[row], product.indptr[row + 1])
            found = self._of_row(start + row, product.indices[part], product.data[part], k, threshold)
            rows.append(np.full(len(found), start + row, np.int64))
            columns.append(found.astype(np.int64))
        return np.concatenate(rows), np.concatenate(columns)

    def products(self, start: int, stop: int) -> int:
        """What `scored` takes, in products of two numbers."""
        return int(self._multiplied[stop] - self._multiplied[start]) + len(self.whole.data)

    def scored(self, start: int, stop: int) -> Iterator[tuple[Ids, Ids, Floats]]:
        """(left rows, right rows, cosines) of all pairs of the left rows from start to stop that share a feature.

        To the bit what `SparseVectors.dots` gives: a product of two float32 is exact in float64, and a left row's
        features, which stand in their columns' order, are added in that order.
        """
        right = self.whole.astype(np.float64)
        step = max(1, SCORED_PAIRS // len(self.common))
        for first in range(start, stop, step):
            found = self.left.whole[first : min(first + step, stop)].astype(np.float64) @ right
            rows = first + np.repeat(np.arange(len(found.indptr) - 1), np.diff(found.indptr))
            yield rows, found.indices.astype(np.int64), np.minimum(found.data, 1).astype(np.float32)

    def of_most_rare(self, start: int, stop: int, k: int) -> tuple[Ids, Ids]:
        """(left rows, right rows) from start to stop: the k of the highest products of rare features, equals by row."""
        product = self.left.rare[start:stop] @ self.rare
        rows = np.repeat(np.arange(stop - start), np.diff(product.indptr))
        order = np.lexsort((product.indices, -product.data, rows))
        place = np.arange(len(order)) - np.repeat(product.indptr[:-1], np.diff(product.indptr))
        kept = order[place < k]
        return rows[kept] + start, product.indices[kept].astype(np.int64)

    def _of_row(self, row: int, columns: NDArray[np.int32], lower: Floats, k: int, threshold: float) -> Ids:
        least = max(_kth(lower, k), threshold) - SLACK
        common = self.left.common[row]
        # Right rows whose common features alone may be enough.
        without = 0
        if common > 0:
            without = int(np.searchsorted(self.descending, -max(least, 0.0) / common, side="right"))
        elif least <= 0:
            without = len(self.common)
        if without > MOST_WITHOUT_RARE:
            whole = self.left.whole[row : row + 1] @ self.whole
            return np.asarray(whole.indices[whole.data >= max(_kth(whole.data, k), threshold) - SLACK])
        kept = columns[lower + common * self.common[columns] >= least]
        return np.union1d(kept, self.by_common[:without]) if without else kept


def _kth(values: Floats, k: int) -> float:
    """The k-th highest; 0 where there are fewer."""
    return float(np.partition(values, len(values) - k)[len(values) - k]) if len(values) >= k else 0.0


def _side(vectors: SparseVectors, shared: NDArray[np.int32], place: NDArray[np.int32], rare: int) -> _Side:
    """shared: the columns of both sides, ascending; place: of each by its products; the first `rare` are rare."""
    sparse = scipy_sparse()
    at = np.minimum(np.searchsorted(shared, vectors.indices), max(len(shared) - 1, 0))
    labels = np.where(shared[at] == vectors.indices, place[at], -1) if len(shared) else np.full(len(at), -1)
    row = np.repeat(np.arange(len(vectors)), np.diff(vectors.indptr))

    def rows(kept: NDArray[np.bool_]) -> Any:
        indptr = np.append(0, np.cumsum(np.bincount(row[kept], minlength=len(vectors))))
        return sparse.csr_array((vectors.values[kept], labels[kept], indptr), shape=(len(vectors), len(shared)))

    common = labels >= rare
    squares = np.bincount(row[common], vectors.values[common].astype(np.float64) ** 2, minlength=len(vectors))
    return _Side(rows((labels >= 0) & ~common), rows(labels >= 0), np.sqrt(squares).astype(np.float32))
