"""The k nearest rows of sparse vectors of length 1, without the matrix of all cosines.

sparse_dot_topn multiplies both tables and keeps the k + 1 highest products of each row. Where a row's n-grams have more
postings than its budget, its rarest n-grams propose the candidates. All candidates are scored again with all features
in float64, so a pair has the same bytes in any table.
"""

from __future__ import annotations

from hashlib import blake2b
from importlib import import_module
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gramvec.errors import import_extra
from gramvec.jobs.common.engines import HERE, Engine
from gramvec.lexical.sparse_vectors import SparseVectors, ranges
from gramvec.progress import NO_PROGRESS, Progress

RowIds = NDArray[np.int64]
CosineArray = NDArray[np.float32]

# Products of two entries in all, and of a row at least. 20,000 by 20,000 names take 4 to 6 CPU seconds instead of 10,
# and at least 99.99 % of the rows keep their nearest row.
PRODUCTS = 150_000_000
ROW_PRODUCTS = 5_000
BLOCK_ROWS, TRANSPOSED_ROWS = 4_096, 16_384
# Rows whose k-th cosine is this close to the next one are multiplied again, and ties go to the lower row.
TIE = 1e-5
TIED_PRODUCTS = 1_000_000
MAX_TIED = 1_000


class Matches(NamedTuple):
    """Pairs of rows, or of texts, with scores.

    Those of two tables are by left row, then descending score, then right row. Duplicates of one table are by left,
    then right row, the lower one left.

    Attributes:
        left: int64[p]; -1 for a row that is written without a partner.
        right: int64[p], likewise; its score is NaN.
        scores: float32[p], cosines or probabilities.
    """

    left: RowIds
    right: RowIds
    scores: CosineArray


NO_MATCHES = Matches(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0, np.float32))


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
    return NearestSearch(left, right).find(k, threshold, threads=threads, progress=progress)


class RightRows(NamedTuple):
    """What a block of left rows is compared with.

    Attributes:
        index: matrix of SciPy, (columns, m) in rows: the values of different right rows, in columns that left rows
            multiply.
        places: int32[columns of the vectors], the place of each column among those of the index; -1 for none.
        vectors: all right rows.
        rows: int64[m], the right row that each of the index is.
        k: rows for a left row at most.
        threshold: lowest cosine.
        threads: threads of the product.
    """

    index: Any
    places: NDArray[np.int32]
    vectors: SparseVectors
    rows: RowIds
    k: int
    threshold: float
    threads: int


class LeftBlock(NamedTuple):
    """A block of left rows, and which of their entries are multiplied, as the bits of bytes."""

    vectors: SparseVectors
    kept: NDArray[np.uint8]


class NearestSearch:
    """Search for the nearest right rows of each left row: the right rows by their columns. Arguments as of `nearest`.

    Beside both tables, memory is that of the right entries that are multiplied.
    """

    def __init__(self, left: SparseVectors, right: SparseVectors) -> None:
        self._left, self._right = left, right
        self._is_empty = not len(left.indices) or not len(right.indices)
        if self._is_empty:
            return
        if left.columns > len(left.indices) + len(right.indices):
            left, right = self._left, self._right = _with_own_columns(left, right)
        (self._left_firsts, self._of_left), (self._right_firsts, self._of_right) = _distinct(left), _distinct(right)
        postings = np.zeros(right.columns, np.int32)
        for part in _parts(len(self._right_firsts)):
            np.add.at(postings, right.rows(self._right_firsts[part]).indices, 1)
        budget = max(ROW_PRODUCTS, PRODUCTS // len(self._left_firsts))
        used = np.zeros(right.columns, np.bool_)
        self._kept = []
        for part in _parts(len(self._left_firsts)):
            vectors = left.rows(self._left_firsts[part])
            kept = _rarest(postings[vectors.indices].astype(np.int64), vectors.indptr, budget)
            used[vectors.indices[kept]] = True
            self._kept.append(np.packbits(kept))
        # An entry that no right row has multiplies nothing.
        used &= postings > 0
        self._places = np.where(used, np.cumsum(used) - 1, -1).astype(np.int32)
        self._index = _transpose(right, self._right_firsts, self._places, postings[used])

    def find(
        self,
        k: int,
        threshold: float,
        *,
        threads: int = 1,
        engine: Engine = HERE,
        progress: Progress = NO_PROGRESS,
    ) -> Matches:
        """Return as of `nearest`."""
        if self._is_empty:
            progress.advance(len(self._left))
            return NO_MATCHES
        shared = RightRows(self._index, self._places, self._right, self._right_firsts, k, threshold, threads)
        blocks = (
            LeftBlock(self._left.rows(self._left_firsts[part]), kept)
            for part, kept in zip(_parts(len(self._left_firsts)), self._kept, strict=True)
        )
        counts = np.bincount(self._of_left, minlength=len(self._left_firsts))
        found = []
        for part, pairs in zip(
            _parts(len(self._left_firsts)), engine.map(_find_nearest, engine.share(shared), blocks), strict=True
        ):
            found.append(pairs._replace(left=pairs.left + part.start))
            progress.advance(int(counts[part].sum()))
        return _expand(concatenate_matches(found), self._of_left, self._of_right, k)


def _with_own_columns(left: SparseVectors, right: SparseVectors) -> tuple[SparseVectors, SparseVectors]:
    """Return rows over the columns that they have, so that a number for each column takes no more than they do."""
    # numpy's unique hashes, which takes five times as long and more memory where most columns differ.
    every = np.sort(np.concatenate([left.indices, right.indices]))
    columns = every[np.diff(every, prepend=np.int32(-1)) > 0]
    sides = [np.searchsorted(columns, side.indices).astype(np.int32) for side in (left, right)]
    one, other = (
        SparseVectors(side.indptr, indices, side.values, len(columns))
        for side, indices in zip((left, right), sides, strict=True)
    )
    return one, other


def _parts(rows: int) -> list[slice]:
    return [slice(start, min(start + BLOCK_ROWS, rows)) for start in range(0, rows, BLOCK_ROWS)]


def _find_nearest(right: RightRows, block: LeftBlock) -> Matches:
    """Return the nearest of the right rows for each row of a block, as places among its rows and theirs."""
    rows, others = _find_candidates(right, block)
    scores = block.vectors.dots(rows, right.vectors, right.rows[others])
    return _best(rows, others, scores, right.k, right.threshold)


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
    left, right, scores = zip(NO_MATCHES, *found, strict=True)
    return Matches(np.concatenate(left), np.concatenate(right), np.concatenate(scores))


def _find_candidates(right: RightRows, block: LeftBlock) -> tuple[RowIds, RowIds]:
    """Return (rows of the block, rows of the index): the k of the highest products for each row of the block."""
    vectors, k, index = block.vectors, right.k, right.index
    kept_bits = np.unpackbits(block.kept, count=len(vectors.indices))
    part = _multiplied(vectors, kept_bits.astype(np.bool_), right.places)
    if not index.data.flags.writeable:
        index = index.copy()  # sparse_dot_topn refuses what Ray's processes share
    product = import_module("sparse_dot_topn").sp_matmul_topn(
        part, index, top_n=k + 1, sort=True, n_threads=right.threads
    )
    rows = np.repeat(np.arange(len(vectors)), np.diff(product.indptr))
    rank = np.arange(len(rows)) - product.indptr[rows]
    after = np.flatnonzero(rank == k)
    tied = after[product.data[after - 1] - product.data[after] <= TIE]
    kept = (rank < k) & ~np.isin(rows, rows[tied])
    again, others = _find_tied(part, index, rows[tied], product.data[tied - 1] - TIE)
    found = np.concatenate([rows[kept], again]), np.concatenate([product.indices[kept], others])
    return found[0].astype(np.int64), found[1].astype(np.int64)


def _find_tied(part: Any, index: Any, rows: RowIds, lowest: CosineArray) -> tuple[RowIds, RowIds]:
    """Return (rows of the part, rows of the index) of products of at least `lowest`, the first MAX_TIED of each row."""
    found: list[RowIds] = [np.zeros(0, np.int64)]
    others: list[RowIds] = [np.zeros(0, np.int64)]
    step = max(4, TIED_PRODUCTS // index.shape[1])
    for start in range(0, len(rows), step):
        block = slice(start, start + step)
        product = part[rows[block]] @ index
        product.sort_indices()
        at = np.repeat(np.arange(product.shape[0]), np.diff(product.indptr))
        high = product.data >= lowest[block][at]
        at, columns = at[high], product.indices[high]
        first = places(at) < MAX_TIED
        found.append(rows[block][at[first]])
        others.append(columns[first].astype(np.int64))
    return np.concatenate(found), np.concatenate(others)


def _multiplied(vectors: SparseVectors, kept: NDArray[np.bool_] | bool, places: NDArray[np.int32]) -> Any:
    """Return the kept entries of rows as a matrix of SciPy, in columns that are `places`."""
    at = places[vectors.indices]
    kept = kept & (at >= 0)
    indptr = np.append(0, np.cumsum(kept))[vectors.indptr]
    shape = len(vectors), int(places.max(initial=-1)) + 1
    return scipy_sparse().csr_matrix((vectors.values[kept], at[kept], indptr), shape=shape)


def _transpose(right: SparseVectors, rows: RowIds, places: NDArray[np.int32], postings: NDArray[np.int32]) -> Any:
    """Return rows as a matrix of SciPy, (columns, rows), in columns that are `places`.

    It is filled by blocks of rows, so that no second one of its size is in memory.

    Args:
        right: the rows, and more.
        rows: int64[m], which of them, in ascending order.
        places: of the columns; -1 for those that are left out.
        postings: int32[columns], the entries of each place.
    """
    starts = np.append(0, np.cumsum(postings, dtype=np.int64))
    indices, values = np.empty(starts[-1], np.int32), np.empty(starts[-1], np.float32)
    filled = starts[:-1].copy()
    for start in range(0, len(rows), TRANSPOSED_ROWS):
        block = _multiplied(right.rows(rows[start : start + TRANSPOSED_ROWS]), True, places).T.tocsr()
        lengths = np.diff(block.indptr)
        at = ranges(filled, lengths)
        indices[at], values[at] = block.indices + start, block.data
        filled += lengths
    return scipy_sparse().csr_matrix((values, indices, starts), shape=(len(postings), len(rows)))


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
    groups: dict[bytes, int] = {}
    first: list[int] = []
    group = np.empty(len(vectors), np.int64)
    bounds = vectors.indptr.tolist()
    for row, (begin, end) in enumerate(pairwise(bounds)):
        key = blake2b(vectors.indices[begin:end].tobytes(), digest_size=16)
        key.update(vectors.values[begin:end].tobytes())
        group[row] = groups.setdefault(key.digest(), len(groups))
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
