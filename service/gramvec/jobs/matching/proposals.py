"""Choose the questions that teach most: mostly those nearest the threshold, and some from all scores.

Of ten questions six are the nearest to the threshold, two are the surest (a wrong one among them teaches most of all)
and two come from strata of all scores, which keep the estimate of recall honest. No row is asked twice in a batch.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from gramvec.jobs.matching.matcher import PairLabels
from gramvec.jobs.matching.nearest import Matches, select_pairs
from gramvec.text.arrays import Doubles

BATCH = 10
NEAREST, SUREST = 6, 2

Reason = Literal["near", "sure", "sample"]
PairIds = NDArray[np.int64]


def propose(
    scores: Doubles,
    threshold: float,
    asked: set[int],
    rows: Callable[[int], tuple[int, int]],
    seed: int,
    size: int = BATCH,
) -> dict[int, Reason]:
    """Return up to `size` pairs that were not asked yet, each row at most once, in an order that the seed decides.

    Each has the reason why it is asked: its score is near the threshold, it is among the surest, or it is one of a
    sample of all scores.

    Args:
        scores: float64[n], the probabilities of all pairs, 0 to 1.
        threshold: the score from which on pairs are written.
        asked: pairs that were answered or skipped.
        rows: a function that gives the left and the right row of a pair.
        seed: the number of the batch.
        size: of the batch.
    """
    random = np.random.default_rng(seed)
    chosen: dict[int, Reason] = {}
    taken: set[tuple[int, int]] = set()
    nearest = np.argsort(np.abs(scores - threshold), kind="stable")
    above = np.flatnonzero(scores >= threshold)
    surest = above[np.argsort(-scores[above] + 0.2 * random.random(len(above)), kind="stable")]
    orders: list[tuple[PairIds, int, Reason]] = [
        (nearest, math.ceil(NEAREST * size / BATCH), "near"), (surest, math.ceil(SUREST * size / BATCH), "sure"),
        (_spread(scores, random), size, "sample"), (nearest, size, "near"),
    ]  # fmt: skip
    for order, wanted, reason in orders:
        for pair in _fill([*chosen], iter(order.tolist()), min(size, len(chosen) + wanted), asked, taken, rows):
            chosen.setdefault(pair, reason)
    pairs = [*chosen]
    return {pairs[at]: chosen[pairs[at]] for at in random.permutation(len(pairs)).tolist()}


def propose_matches(scored: Matches, threshold: float, known: PairLabels | None, limit: int) -> Matches:
    """Return the candidates that a person should label next, those that a review would ask about.

    Args:
        scored: candidates, each pair once.
        threshold: the score from which on pairs are written.
        known: labeled pairs, which are left out.
        limit: pairs to return.
    """
    asked: set[int] = set()
    if known is not None and len(known.left):
        width = 1 + int(max(scored.right.max(initial=0), known.right.max()))
        labeled = np.isin(scored.left * width + scored.right, known.left * width + known.right)
        asked = {*np.flatnonzero(labeled).tolist()}
    scores, chosen = scored.scores.astype(np.float64), list[int]()

    def rows(pair: int) -> tuple[int, int]:
        return int(scored.left[pair]), int(scored.right[pair])

    # A row is in each batch once, so that there are no more batches than a row has candidates.
    while len(chosen) < limit and (batch := propose(scores, threshold, asked, rows, len(chosen), limit - len(chosen))):
        chosen += batch
        asked |= batch.keys()
    return select_pairs(scored, np.array(chosen, np.int64))


def _spread(scores: Doubles, random: np.random.Generator) -> PairIds:
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
