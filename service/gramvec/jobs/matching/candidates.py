"""Candidates: the pairs of rows that are worth a look, by two weightings of their n-grams.

Weighted by idf, most of what two texts share counts; by idf squared, the rare that they share. A right answer is among
a row's nearest by one of both far more often than by either.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gramvec.jobs.common.engines import HERE, Engine
from gramvec.jobs.matching.fields import nearest_rows, split
from gramvec.jobs.matching.nearest import Matches, NearestSearch, nearest, select_pairs
from gramvec.lexical.hashing import COLUMNS
from gramvec.lexical.sparse import count_blocks
from gramvec.lexical.sparse_vectors import SparseVectors
from gramvec.progress import NO_PROGRESS, Progress
from gramvec.text.arrays import Floats, Int32s, Int64s

ORDERS = (2, 3, 4)
# Powers of the idf.
PLAIN, SQUARED = 1.0, 2.0
# Candidates of each left row; of each right row; of each row of one table.
DEPTH, DEPTH_BACK, DEPTH_ONE = 10, 3, 12


# Of more texts it is measured what the rarest n-grams of each row find: of so many rows, the share of the pairs of at
# least this cosine.
EXACT_TEXTS, SAMPLE, SAMPLED_COSINE = 100_000, 2_000, 0.5


class CandidatePairs(NamedTuple):
    """Pairs of rows, each once, by left, then right.

    Attributes:
        left: int64[p].
        right: int64[p].
        cosines: float32[p], weighted by idf.
        sampled: pairs that some rows have with all others; 0 where every pair was looked at.
        sampled_found: those of them that are here.
    """

    left: Int64s
    right: Int64s
    cosines: Floats
    sampled: int = 0
    sampled_found: int = 0


def of(
    texts: Sequence[Sequence[str]],
    blocks: Sequence[Sequence[str]] | None = None,
    *,
    threads: int = 1,
    engine: Engine = HERE,
    progress: Progress = NO_PROGRESS,
) -> CandidatePairs:
    """Return pairs of rows that may be one.

    Args:
        texts: those of two tables, or of one, whose different texts are compared with each other, the lower row left.
        blocks: a key for each text; only texts of the same key are compared.
        threads: of the sparse product.
        engine: searches for blocks of rows; texts with keys are compared here.
        progress: as in `match_fields`.
    """
    every = [text for some in texts for text in some]
    one, width = len(texts) == 1, max(len(texts[-1]), 1)
    progress.start("reading n-grams", len(every))
    ngrams = count_ngrams(every, progress)
    # There, and back of two tables.
    ways, rows = ((0, 0, DEPTH_ONE + 1),) if one else ((0, 1, DEPTH), (1, 0, DEPTH_BACK)), len(every)
    progress.start("indexing n-grams", 2 * rows)

    def find(vectors: SparseVectors, *, is_first: bool) -> list[Matches]:
        """Return the pairs of each way."""
        sides = (vectors, vectors) if one else split(vectors, len(texts[0]))
        of_ways: list[Matches] = []
        for side, other, depth in ways:
            if blocks:
                both = blocks[side], blocks[other]
                near = nearest_rows((sides[side], sides[other]), both, depth, 0.0, threads=threads, progress=progress)
            else:
                search = NearestSearch(sides[side], sides[other])
                if is_first and not of_ways:
                    progress.start("matching", 2 * rows)
                near = search.find(depth, 0.0, threads=threads, engine=engine, progress=progress)
                del search
            if one:
                low, high = np.minimum(near.left, near.right), np.maximum(near.left, near.right)
                near = select_pairs(Matches(low, high, near.scores), low != high)
            of_ways.append(near if side <= other else Matches(near.right, near.left, near.scores))
        return of_ways

    by_rare = find(ngrams.weighted(SQUARED), is_first=True)
    # Its vectors give the cosines of all, so it is the last, and then the counts take no memory any more.
    vectors = ngrams.weighted(PLAIN)
    del ngrams
    candidates = [*find(vectors, is_first=False), *by_rare]
    sides = (vectors, vectors) if one else split(vectors, len(texts[0]))
    keys = np.concatenate([pairs.left * width + pairs.right for pairs in candidates])
    different, first = np.unique(keys, return_index=True)
    left, right = np.divmod(different, width)
    cosines = np.concatenate([pairs.scores for pairs in candidates])[first]
    # Where another weighting found it first, its cosine is not known yet.
    unknown = first >= sum(len(pairs.left) for pairs in candidates[: len(ways)])
    cosines[unknown] = sides[0].dots(left[unknown], sides[1], right[unknown])
    if len(every) <= EXACT_TEXTS or blocks:
        return CandidatePairs(left, right, cosines)
    sampled = _sample_pairs(sides[0], sides[1], width, one=one)
    return CandidatePairs(left, right, cosines, len(sampled), int(np.isin(sampled, different).sum()))


def _sample_pairs(left: SparseVectors, right: SparseVectors, width: int, *, one: bool) -> Int64s:
    """Return left * width + right of the pairs that some rows have with all, of a cosine of SAMPLED_COSINE or more."""
    rows = np.unique(np.linspace(0, len(left) - 1, min(SAMPLE, len(left))).astype(np.int64))
    near = nearest(left.rows(rows), right, DEPTH_ONE + 1 if one else DEPTH, SAMPLED_COSINE)
    a, b = rows[near.left], near.right
    if one:
        a, b = np.minimum(a, b)[a != b], np.maximum(a, b)[a != b]
    keys: Int64s = np.unique(a * width + b)
    return keys


class TextNgrams(NamedTuple):
    """How often each text has its n-grams, as the rows of `SparseVectors`.

    Attributes:
        indptr: int64[n + 1].
        indices: int32[m], columns of n-grams, of which each is in a text.
        counts: uint16[m].
        held: of each column the texts that have it.
    """

    indptr: Int64s
    indices: Int32s
    counts: NDArray[np.uint16]
    held: NDArray[Any]

    def weighted(self, power: float) -> SparseVectors:
        """Return the n-grams weighted by a power of their idf, as vectors of length 1.

        An n-gram that a text has c times counts (1 + ln c) idf^p, with idf = ln((1 + n) / (1 + df)) + 1.
        """
        made = SparseVectors(self.indptr, self.indices, np.empty(len(self.indices), np.float32), len(self.held))
        idf = np.log((1 + len(made)) / (1 + np.arange(int(self.held.max(initial=0)) + 1))) + 1
        weights = (idf**power).astype(np.float32)
        logs = 1 + np.log(np.maximum(np.arange(int(self.counts.max(initial=0)) + 1, dtype=np.float32), 1))
        for part in made.row_blocks():
            entries, rows = made.entries(part), part.stop - part.start
            values = logs[self.counts[entries]] * weights[self.held[self.indices[entries]]]
            row = np.repeat(np.arange(rows), np.diff(self.indptr[part.start : part.stop + 1]))
            lengths = np.sqrt(np.bincount(row, values.astype(np.float64) ** 2, minlength=rows))
            made.values[entries] = values / lengths.astype(np.float32)[row]
        return made


def count_ngrams(texts: Sequence[str], progress: Progress = NO_PROGRESS) -> TextNgrams:
    """Return the n-grams of texts of ORDERS. `progress` advances by texts."""
    # Counts of 2^24 columns, so as narrow as the number of texts allows.
    held = np.zeros(COLUMNS, np.uint16 if len(texts) < 1 << 16 else np.int32)
    most = np.iinfo(np.uint16).max
    lengths: list[Int64s] = [np.zeros(1, np.int64)]
    blocks: list[tuple[Int32s, NDArray[np.uint16]]] = []
    for indptr, columns, number in count_blocks(texts, ORDERS, progress=progress):
        np.add.at(held, columns, 1)
        lengths.append(np.diff(indptr))
        blocks.append((columns, np.minimum(number, most).astype(np.uint16)))
    starts = np.cumsum(np.concatenate(lengths))
    there = np.flatnonzero(held).astype(np.int32)
    indices, counts = np.empty(starts[-1], np.int32), np.empty(starts[-1], np.uint16)
    end = len(indices)
    # From the end, so that the memory of each block is given back before the next is copied.
    while blocks:
        columns, repeats = blocks.pop()
        part = slice(end - len(columns), end)
        indices[part], counts[part] = np.searchsorted(there, columns), repeats
        end = part.start
    return TextNgrams(starts, indices, counts, held[there])
