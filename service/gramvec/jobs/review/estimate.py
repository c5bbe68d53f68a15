"""Estimate precision and recall from some answers, though the questions were not drawn evenly.

Scores are cut into strata. In each the share of matches has a Beta distribution: its prior is the mean score of the
stratum, worth PRIOR_ANSWERS answers, and each answer is one observation. Inside a stratum questions are taken as if
they were drawn evenly, so an estimate is as good as the order of the scores there. Draws from the distributions give
the intervals.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

STRATA = np.array([0.0, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.97, 1.0])
PRIOR_ANSWERS = 4.0
# What has a score below FAR is mostly of the first strata, where few are asked about and a small share is many pairs.
FAR, FAR_ANSWERS = 0.1, 10
DRAWS = 2_000
INTERVAL = (0.05, 0.95)

PairScores = NDArray[np.float64]


class EstimatedShare(NamedTuple):
    """An estimated share, with the interval that holds nine in ten draws; all 0 to 1."""

    value: float
    lower: float
    upper: float


class Quality(NamedTuple):
    """Estimated precision and recall of the pairs from a threshold on; recall among the candidates."""

    precision: EstimatedShare
    recall: EstimatedShare


def estimate_quality(
    scores: PairScores, asked: NDArray[np.int64], match: NDArray[np.bool_], threshold: float
) -> Quality:
    """Estimate precision and recall from answers. The same arguments give the same estimate.

    Args:
        scores: float64[n], the probabilities of all pairs, 0 to 1.
        asked: int64[a], the pairs that were answered.
        match: bool[a], their answers.
        threshold: what is written has at least this score.
    """
    edges = np.unique(np.append(STRATA, threshold))
    strata = np.clip(np.searchsorted(edges, scores, side="right") - 1, 0, len(edges) - 2)
    size = np.bincount(strata, minlength=len(edges) - 1).astype(np.float64)
    prior = np.bincount(strata, weights=scores, minlength=len(size)) / np.maximum(size, 1)
    yes = np.bincount(strata[asked], weights=match, minlength=len(size))
    no = np.bincount(strata[asked], weights=~match, minlength=len(size))
    filled = size > 0
    above = (edges[:-1] >= threshold)[filled]
    a = (np.clip(prior, 1e-3, 1 - 1e-3) * PRIOR_ANSWERS + yes)[filled]
    b = ((1 - np.clip(prior, 1e-3, 1 - 1e-3)) * PRIOR_ANSWERS + no)[filled]
    # What was answered is known; the rest of the stratum is drawn.
    rest, known = (size - yes - no)[filled], yes[filled]
    shares = np.random.default_rng(0).beta(a, b, size=(DRAWS, len(a)))
    matches = known + rest * shares
    written = size[filled][above].sum()
    right = matches[:, above].sum(axis=1)
    everything = matches.sum(axis=1)
    mean = known + rest * a / (a + b)
    precision = right / written if written else np.ones(DRAWS)
    recall = right / np.maximum(everything, 1e-9)
    return Quality(
        _share(mean[above].sum() / written if written else 1.0, precision),
        _share(mean[above].sum() / max(mean.sum(), 1e-9), recall),
    )


def knows_far(scores: PairScores, asked: NDArray[np.int64], threshold: float) -> bool:
    """Return True if FAR_ANSWERS pairs with scores below FAR were answered, or all of them.

    Before that, recall is what the scores say of pairs that nobody has looked at.
    """
    far = scores < min(FAR, threshold)
    return int(far[asked].sum()) >= min(FAR_ANSWERS, int(far.sum()))


def _share(value: float, draws: PairScores) -> EstimatedShare:
    lower, upper = np.quantile(draws, INTERVAL)
    return EstimatedShare(min(float(value), 1.0), min(float(lower), 1.0), min(float(upper), 1.0))
