"""Pairs of one list that mean nearly the same, by the cosines of a model's vectors."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gramvec.embed.embedder import Embedder
from gramvec.errors import InputError
from gramvec.jobs.duplicates.likely import LikelyPairs
from gramvec.jobs.matching.nearest import Matches, concatenate_matches
from gramvec.progress import NO_PROGRESS, Progress

# All pairs are compared: those of this many texts in minutes.
MAX_ROWS = 200_000
# Cosines that are in memory at a time, 64 MiB.
BLOCK_COSINES = 1 << 24
# Pairs whose vectors are multiplied together, and more than a product of matrices rounds by.
SCORED_PAIRS, SLACK = 1 << 14, 1e-4


def meaning_pairs(
    texts: Sequence[str],
    embedder: Embedder,
    threshold: float | None,
    *,
    max_pairs: int,
    progress: Progress = NO_PROGRESS,
) -> LikelyPairs:
    """Return the pairs of texts whose cosine is at least `threshold`, the lower one left.

    Args:
        texts: n texts.
        embedder: the model.
        threshold: the lowest cosine, from 0 to 1.
        max_pairs: pairs that may be found.
        progress: shows the comparison.

    Raises:
        InputError: there is no threshold, or it is not valid; there are too many texts or pairs.
    """
    lowest = check_cosine(threshold)
    if len(texts) > MAX_ROWS:
        raise InputError(
            f"{len(texts):,} different texts; by meaning every two of at most {MAX_ROWS:,} are compared: give the rows"
            " in parts, or compare by letters"
        )
    vectors = embedder.embed(texts, truncate=True)
    found: list[Matches] = []
    step = max(1, BLOCK_COSINES // max(1, len(texts)))
    number = 0
    progress.start("comparing meanings", len(texts), "texts")
    for start in range(0, len(texts), step):
        block = vectors[start : start + step]
        left, right = np.nonzero(np.triu(block @ vectors[start:].T >= lowest - SLACK, 1))
        for at in range(0, len(left), SCORED_PAIRS):
            left_rows, right_rows = left[at : at + SCORED_PAIRS] + start, right[at : at + SCORED_PAIRS] + start
            # The same bytes in any block, as a product of matrices has not.
            scores = np.minimum((vectors[left_rows] * vectors[right_rows]).sum(axis=1), np.float32(1))
            near = scores >= np.float32(lowest)
            found.append(Matches(left_rows[near], right_rows[near], scores[near]))
            number += len(found[-1].left)
            if number > max_pairs:
                raise InputError(f"more than {max_pairs:,} pairs; raise the threshold")
        progress.advance(len(block))
    pairs = concatenate_matches(found)
    return LikelyPairs(pairs, lowest, None, candidates=pairs)


def check_cosine(threshold: float | None) -> float:
    """Return the lowest cosine. Raises InputError if there is none, or it is not above 0 and at most 1."""
    if threshold is None or not 0 < threshold <= 1:
        raise InputError(
            "threshold: meanings have cosines, which promise nothing; give the lowest one, above 0 and at most 1, such"
            " as 0.8",
            field="threshold",
        )
    return threshold
