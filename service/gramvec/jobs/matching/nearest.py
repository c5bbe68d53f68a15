"""The k nearest rows of sparse vectors of length 1, without the matrix of all cosines.

sparse_dot_topn multiplies both tables and keeps the k + 1 highest products of each row. Where a row's n-grams have more
postings than its budget, its rarest n-grams propose the candidates. All candidates are scored again with all features
in float64, so a pair has the same bytes in any table.
"""

from __future__ import annotations

from importlib import import_module
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gramvec.errors import import_extra
from gramvec.lexical.sparse_vectors import SparseVectors, ranges
from gramvec.progress import NO_PROGRESS, Progress

RowIds = NDArray[np.int64]
CosineArray = NDArray[np.float32]

# Products of two entries in all, and of a row at least. 20,000 by 20,000 names take 4 to 6 CPU seconds instead of 10,
# and at least 99.99 % of the rows keep their nearest row.
PRODUCTS = 150_000_000
ROW_PRODUCTS = 5_000
BLOCK_ROWS = 4_096
# Rows whose k-th cosine is this close to the next one are multiplied again, and ties go to the lower row.
TIE = 1e-5
TIED_PRODUCTS = 1_000_000
MAX_TIED = 1_000


class Matches(NamedTuple):
    """Pairs of rows with scores, by left row, then descending score, then right row.

    Attributes:
        left: int64[p].
        right: int64[p].
        scores: float32[p], cosines or probabilities.
    """

    left: RowIds
    right: RowIds
    scores: CosineArray


def scipy_sparse() -> Any:
    """Return scipy.sparse. Raises InputError, with what to install, if it or sparse_dot_topn is not installed."""
    import_extra("sparse_dot_topn", "match", "matching")
    return import_extra("scipy.sparse", "match", "matching")


def nearest(
    left: SparseVectors,
    right: SparseVectors,
    k: int,
    threshold: float,
    *,
    threads: int = 1,
    progress: Progress = NO_PROGRESS,
) -> Matches:
    """Return the k right rows of the highest cosines for each left row; equal cosines go to the lower row.

    The result is exact where a row has at most max(ROW_PRODUCTS, PRODUCTS / left rows) products.

    Args:
        left: n rows of length 1 without negative values.
        right: m rows over the same columns.
        k: rows for a left row at most.
        threshold: lowest cosine; cosines of 0 are left out at any threshold.
        threads: threads of the product.
        progress: advances by left rows.
    """
    if not len(left.indices) or not len(right.indices):
        progress.advance(len(left))
        return no_matches()
    (left_firsts, of_left), (right_firsts, of_right) = _distinct(left), _distinct(right)
    a = left if len(left_firsts) == len(left) else left.rows(left_firsts)
    b = right if len(right_firsts) == len(right) else right.rows(right_firsts)
    candidates = _Candidates(a, b, threads)
    counts = np.bincount(of_left, minlength=len(a))
    found = []
    for start in range(0, len(a), BLOCK_ROWS):
        stop = min(start + BLOCK_ROWS, len(a))
        found.append(best(a, b, *candidates.of(start, stop, k), k, threshold))
        progress.advance(int(counts[start:stop].sum()))
    return _expand(concatenate_matches(found), of_left, of_right, k)


def best(left: SparseVectors, right: SparseVectors, rows: RowIds, others: RowIds, k: int, threshold: float) -> Matches:
    """Return the k best of each left row among candidate pairs, each given once, of a cosine above 0."""
    return _best(rows, others, left.dots(rows, right, others), k, threshold)


def _best(rows: RowIds, others: RowIds, scores: CosineArray, k: int, threshold: float) -> Matches:
    kept = (scores >= np.float32(threshold)) & (scores > 0)
    rows, others, scores = rows[kept], others[kept], scores[kept]
    order = np.lexsort((others, -scores, rows))
    ranked = select_pairs(Matches(rows, others, scores), order)
    return select_pairs(ranked, places(ranked.left) < k)


def places(left: RowIds) -> RowIds:
    """Return the rank of each pair within its left row, from 0; `left` is ascending."""
    return np.arange(len(left)) - np.searchsorted(left, left)


def select_pairs(pairs: Matches, at: NDArray[Any]) -> Matches:
    """Return the pairs at these positions, or those of a mask, in this order."""
    return Matches(pairs.left[at], pairs.right[at], pairs.scores[at])


def concatenate_matches(found: list[Matches]) -> Matches:
    """Concatenate matches."""
    left, right, scores = zip(no_matches(), *found, strict=True)
    return Matches(np.concatenate(left), np.concatenate(right), np.concatenate(scores))


def no_matches() -> Matches:
    """Return an empty result."""
    return Matches(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0, np.float32))


class _Candidates:
    """Pairs of rows that may be the nearest, by the products of two tables."""

    def __init__(self, left: SparseVectors, right: SparseVectors, threads: int) -> None:
        self._multiply = import_module("sparse_dot_topn").sp_matmul_topn
        self._threads = threads
        # numpy's unique hashes, which takes five times as long and more memory where most columns differ.
        every = np.sort(np.concatenate([left.indices, right.indices]))
        columns = every[np.diff(every, prepend=np.int32(-1)) > 0]
        of_left, of_right = _places(left, columns), _places(right, columns)
        matrix = scipy_sparse().csr_matrix
        self._right = matrix((right.values, of_right, right.indptr), shape=(len(right), len(columns))).T.tocsr()
        postings = np.diff(self._right.indptr)[of_left].astype(np.int64)
        kept = _rarest(postings, left.indptr, max(ROW_PRODUCTS, PRODUCTS // len(left)))
        indptr = np.append(0, np.cumsum(kept))[left.indptr]
        self._left = matrix((left.values[kept], of_left[kept], indptr), shape=(len(left), len(columns)))

    def of(self, start: int, stop: int, k: int) -> tuple[RowIds, RowIds]:
        """Return (left rows, right rows): the k of the highest products for each left row from start to stop."""
        part = self._left[start:stop]
        product = self._multiply(part, self._right, top_n=k + 1, sort=True, n_threads=self._threads)
        rows = np.repeat(np.arange(stop - start), np.diff(product.indptr))
        rank = np.arange(len(rows)) - product.indptr[rows]
        after = np.flatnonzero(rank == k)
        tied = after[product.data[after - 1] - product.data[after] <= TIE]
        kept = (rank < k) & ~np.isin(rows, rows[tied])
        again, others = self._find_tied(part, rows[tied], product.data[tied - 1] - TIE)
        found = np.concatenate([rows[kept], again]), np.concatenate([product.indices[kept], others])
        return start + found[0].astype(np.int64), found[1].astype(np.int64)

    def _find_tied(self, part: Any, rows: RowIds, lowest: CosineArray) -> tuple[RowIds, RowIds]:
        """Return (rows of the part, right rows) of products of at least `lowest`, the first MAX_TIED of each row."""
        found: list[RowIds] = [np.zeros(0, np.int64)]
        others: list[RowIds] = [np.zeros(0, np.int64)]
        step = max(4, TIED_PRODUCTS // self._right.shape[1])
        for start in range(0, len(rows), step):
            block = slice(start, start + step)
            product = part[rows[block]] @ self._right
            product.sort_indices()
            at = np.repeat(np.arange(product.shape[0]), np.diff(product.indptr))
            high = product.data >= lowest[block][at]
            at, columns = at[high], product.indices[high]
            first = places(at) < MAX_TIED
            found.append(rows[block][at[first]])
            others.append(columns[first].astype(np.int64))
        return np.concatenate(found), np.concatenate(others)


def _places(vectors: SparseVectors, columns: NDArray[np.int32]) -> NDArray[np.int32]:
    """Return the place of each entry's column among all columns, ascending."""
    found = np.empty(len(vectors.indices), np.int32)
    for part in vectors.row_blocks():
        entries = vectors.entries(part)
        found[entries] = np.searchsorted(columns, vectors.indices[entries])
    return found


def _rarest(postings: RowIds, indptr: RowIds, budget: int) -> NDArray[np.bool_]:
    """Return which entries a row multiplies: by ascending postings within the budget, and always the rarest shared."""
    if int(np.add.reduceat(np.append(postings, 0), indptr[:-1]).max()) <= budget and len(postings):
        return np.ones(len(postings), np.bool_)
    lengths = np.diff(indptr)
    row = np.repeat(np.arange(len(lengths)), lengths)
    order = np.lexsort((postings, postings == 0, row))
    total = np.cumsum(postings[order])
    before = total - postings[order]
    within = total - np.repeat(np.append(before, 0)[indptr[:-1]], lengths)
    kept = np.zeros(len(postings), np.bool_)
    kept[order] = within <= budget
    kept[order[np.unique(np.repeat(indptr[:-1], lengths))]] = True
    return kept


def _distinct(vectors: SparseVectors) -> tuple[RowIds, RowIds]:
    """Return the first of each group of equal rows, ascending, and the group of each row."""
    groups: dict[tuple[bytes, bytes], int] = {}
    first: list[int] = []
    group = np.empty(len(vectors), np.int64)
    bounds = vectors.indptr.tolist()
    for row, (begin, end) in enumerate(pairwise(bounds)):
        key = vectors.indices[begin:end].tobytes(), vectors.values[begin:end].tobytes()
        group[row] = groups.setdefault(key, len(groups))
        if len(groups) > len(first):
            first.append(row)
    return np.array(first, np.int64), group


def _expand(found: Matches, of_left: RowIds, of_right: RowIds, k: int) -> Matches:
    """Return the k best pairs of each row from the pairs of groups of equal rows."""
    counts = np.bincount(of_right)
    members = np.argsort(of_right, kind="stable")
    number = np.minimum(counts[found.right], k)
    at = ranges((np.cumsum(counts) - counts)[found.right], number)
    pairs = np.repeat(found.left, number), members[at], np.repeat(found.scores, number)
    groups = _best(*pairs, k, 0.0)
    lengths = np.bincount(groups.left, minlength=int(of_left.max()) + 1)
    places_of = ranges((np.cumsum(lengths) - lengths)[of_left], lengths[of_left])
    rows = np.repeat(np.arange(len(of_left)), lengths[of_left])
    return Matches(rows, groups.right[places_of], groups.scores[places_of])
