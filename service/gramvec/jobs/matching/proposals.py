"""Choose the questions that teach most: mostly those nearest the threshold, and some from all scores.

Of ten questions six are the nearest to the threshold, two are the surest (a wrong one among them teaches most of all)
and two come from strata of all scores, which keep the estimate of recall honest. No row is asked twice in a batch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from gramvec.jobs.review.estimate import PairScores

BATCH = 10
NEAREST, SUREST = 6, 2

Reason = Literal["near", "sure", "sample"]
PairIds = NDArray[np.int64]


def propose(
    scores: PairScores, threshold: float, asked: set[int], rows: Callable[[int], tuple[int, int]], seed: int
) -> dict[int, Reason]:
    """Return up to BATCH pairs that were not asked yet, each row at most once, in an order that the seed decides.

    Each has the reason why it is asked: its score is near the threshold, it is among the surest, or it is one of a
    sample of all scores.

    Args:
        scores: float64[n], the probabilities of all pairs, 0 to 1.
        threshold: the score from which on pairs are written.
        asked: pairs that were answered or skipped.
        rows: a function that gives the left and the right row of a pair.
        seed: the number of the batch.
    """
    random = np.random.default_rng(seed)
    chosen: dict[int, Reason] = {}
    taken: set[tuple[int, int]] = set()
    nearest = np.argsort(np.abs(scores - threshold), kind="stable")
    above = np.flatnonzero(scores >= threshold)
    surest = above[np.argsort(-scores[above] + 0.2 * random.random(len(above)), kind="stable")]
    orders: list[tuple[PairIds, int, Reason]] = [
        (nearest, NEAREST, "near"), (surest, SUREST, "sure"), (_spread(scores, random), BATCH, "sample"),
        (nearest, BATCH, "near"),
    ]  # fmt: skip
    for order, wanted, reason in orders:
        for pair in _fill([*chosen], iter(order.tolist()), min(BATCH, len(chosen) + wanted), asked, taken, rows):
            chosen.setdefault(pair, reason)
    pairs = [*chosen]
    return {pairs[at]: chosen[pairs[at]] for at in random.permutation(len(pairs)).tolist()}


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
) -> list[int]:  # fmt: skip
    """Return `chosen` with the next pairs of an order behind it, up to `size`."""
    for pair in order:
        if len(chosen) >= size:
            break
        left, right = rows(pair)
        if pair in asked or (0, left) in taken or (1, right) in taken:
            continue
        chosen.append(pair)
        taken |= {(0, left), (1, right)}
    return chosen
