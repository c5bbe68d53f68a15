"""Candidates: the pairs of rows that are worth a look, by two weightings of their n-grams.

Weighted by idf, most of what two texts share counts; by idf squared, the rare that they share. A right answer is among
a row's nearest by one of both far more often than by either.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from gramvec.jobs.matching.fields import nearest_rows, split
from gramvec.jobs.matching.nearest import Matches, nearest, select_pairs
from gramvec.lexical.hashing import COLUMNS
from gramvec.lexical.sparse import uniform
from gramvec.lexical.sparse_vectors import SparseVectors
from gramvec.progress import NO_PROGRESS, Progress
from gramvec.text.arrays import Floats, Int64s

ORDERS = (2, 3, 4)
POWERS = (1.0, 2.0)
# Candidates of each left row; of each right row; of each row of one table.
DEPTH, DEPTH_BACK, DEPTH_ONE = 10, 3, 12


# Of more texts the rarest n-grams of each row are looked at, and it is measured what that finds: of so many rows, the
# share of the pairs of at least this cosine.
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
    progress: Progress = NO_PROGRESS,
) -> CandidatePairs:
    """Return pairs of rows that may be one.

    Args:
        texts: those of two tables, or of one, whose different texts are compared with each other, the lower row left.
        blocks: a key for each text; only texts of the same key are compared.
        threads: of the sparse product.
        progress: as in `match_fields`.
    """
    every = [text for some in texts for text in some]
    width = max(len(texts[-1]), 1)
    found: list[Matches] = []
    progress.start("reading n-grams", len(every))
    plain, squared = weighted_ngrams(every, progress)
    sides = (plain, plain) if len(texts) == 1 else split(plain, len(texts[0]))
    for vectors in (plain, squared):
        if len(texts) == 1:
            both = (blocks[0], blocks[0]) if blocks else None
            near = nearest_rows((vectors, vectors), both, DEPTH_ONE + 1, 0.0, threads=threads, progress=progress)
            low, high = np.minimum(near.left, near.right), np.maximum(near.left, near.right)
            found.append(select_pairs(Matches(low, high, near.scores), low != high))
            continue
        left_ngrams, right_ngrams = split(vectors, len(texts[0]))
        there_by, back_by = ((blocks[0], blocks[1]), (blocks[1], blocks[0])) if blocks else (None, None)
        found.append(
            nearest_rows((left_ngrams, right_ngrams), there_by, DEPTH, 0.0, threads=threads, progress=progress)
        )
        back = nearest_rows((right_ngrams, left_ngrams), back_by, DEPTH_BACK, 0.0, threads=threads)
        found.append(Matches(back.right, back.left, back.scores))
    keys = np.concatenate([pairs.left * width + pairs.right for pairs in found])
    different, first = np.unique(keys, return_index=True)
    left, right = np.divmod(different, width)
    cosines = np.concatenate([pairs.scores for pairs in found])[first]
    # Where another weighting found it first, its cosine is not known yet.
    unknown = first >= sum(len(pairs.left) for pairs in found[: len(found) // 2])
    cosines[unknown] = sides[0].dots(left[unknown], sides[1], right[unknown])
    if len(every) <= EXACT_TEXTS or blocks:
        return CandidatePairs(left, right, cosines)
    sampled = _sample_pairs(plain if len(texts) == 1 else sides[0], sides[1], width, one=len(texts) == 1)
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


def weighted_ngrams(texts: Sequence[str], progress: Progress = NO_PROGRESS) -> list[SparseVectors]:
    """Return the n-grams of texts, weighted by each of POWERS of their idf, as vectors of length 1.

    An n-gram that a text has c times counts (1 + ln c) idf^p, with idf = ln((1 + n) / (1 + df)) + 1.
    """
    counted = uniform(ORDERS).embed(texts, normalize=False, progress=progress)
    # Counts of 2^24 columns, so as narrow as the number of texts allows.
    held = np.zeros(COLUMNS, np.uint16 if len(texts) < 1 << 16 else np.int32)
    for part in counted.row_blocks():
        np.add.at(held, counted.indices[counted.entries(part)], 1)
    idf = np.log((1 + len(texts)) / (1 + np.arange(int(held.max(initial=0)) + 1))) + 1
    row = np.repeat(np.arange(len(texts), dtype=np.int32), np.diff(counted.indptr))
    number = held[counted.indices]
    logs = 1 + np.log(counted.values)
    made = []
    for power in POWERS:
        values = (logs * (idf**power).astype(np.float32)[number]).astype(np.float32)
        lengths = np.sqrt(np.bincount(row, values.astype(np.float64) ** 2, minlength=len(texts)))
        values /= lengths.astype(np.float32)[row]
        made.append(SparseVectors(counted.indptr, counted.indices, values, COLUMNS))
    return made
