"""Choose the questions that teach most: mostly those nearest the threshold, and some from all scores.

Of ten questions six are the nearest to the threshold, two are the surest (a wrong one among them teaches most of all)
and two come from strata of all scores, which keep the estimate of recall honest. No row is asked twice in a batch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from gramvec.jobs.review.estimate import PairScores

BATCH = 10
NEAREST, SUREST = 6, 2

PairIds = NDArray[np.int64]


def propose(
    scores: PairScores, threshold: float, asked: set[int], rows: Callable[[int], tuple[int, int]], seed: int
) -> list[int]:
    """Return up to BATCH pairs that were not asked yet, each row at most once, in an order that the seed decides.

    Args:
        scores: float64[n], the probabilities of all pairs, 0 to 1.
        threshold: the score from which on pairs are written.
        asked: pairs that were answered or skipped.
        rows: a function that gives the left and the right row of a pair.
        seed: the number of the batch.
    """
    random = np.random.default_rng(seed)
    chosen: list[int] = []
    taken: set[tuple[int, int]] = set()
    nearest = np.argsort(np.abs(scores - threshold), kind="stable")
    above = np.flatnonzero(scores >= threshold)
    surest = above[np.argsort(-scores[above] + 0.2 * random.random(len(above)), kind="stable")]
    for order, wanted in ((nearest, NEAREST), (surest, SUREST), (_spread(scores, random), BATCH), (nearest, BATCH)):
        _fill(chosen, iter(order.tolist()), min(BATCH, len(chosen) + wanted), asked, taken, rows)
    return [chosen[at] for at in random.permutation(len(chosen))]


def _spread(scores: PairScores, random: np.random.Generator) -> PairIds:
    """Order pairs so that each tenth of the scores has the same chance to be asked next."""
    tenth = np.clip((scores * 10).astype(np.int64), 0, 9)
    sizes = np.bincount(tenth, minlength=10)
    # Weighted sampling without replacement: the key of a pair of weight w is log(u) / w.
    keys = np.log(1 - random.random(len(scores))) * sizes[tenth]
    return np.argsort(-keys, kind="stable")


def _fill(
    chosen: list[int], order: Iterator[int], size: int, asked: set[int], taken: set[tuple[int, int]],
    rows: Callable[[int], tuple[int, int]],
) -> None:  # fmt: skip
    for pair in order:
        if len(chosen) >= size:
            return
        left, right = rows(pair)
        if pair in asked or (0, left) in taken or (1, right) in taken:
            continue
        chosen.append(pair)
        taken |= {(0, left), (1, right)}
