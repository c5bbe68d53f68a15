"""Thresholds of scores that texts held out choose."""

from __future__ import annotations

import numpy as np

from gramvec.jobs.classify.targets import Targets
from gramvec.text.arrays import Doubles, Floats, Int64s

LOST = 0.01  # of the right answers, those that may fall below the threshold
# The aim: with it the worst mean over splits of four sets' training texts is 0.5 %, and 1.6 % with LOST itself.
AIM = LOST / 2
LOST_OF_A_LABEL = 0.05  # of a label's right answers


def weighted_quantile(values: Doubles | Floats, weights: Doubles, share: float) -> float:
    """Return the value below which at most `share` of the weight lies."""
    order = np.argsort(values, kind="stable")
    sums = np.cumsum(weights[order])
    place = int(np.searchsorted(sums, share * sums[-1], side="right"))
    return float(values[order[min(place, len(order) - 1)]])


def threshold_that_keeps(scores: Floats, weights: Doubles) -> float:
    """Return a threshold below which fewer than LOST of new right answers will fall, by their scores on texts held out.

    The least of m scores has a share of 1 / (m + 1) of all below it. So the quantile is one that a sample of that size
    exceeds seldom, and with too few scores for that the least one less what an exponential tail of their spread adds.

    Args:
        scores: float32[k] of right answers.
        weights: float64[k]; 1 / j for each of j near copies.
    """
    if not len(scores):
        return 0.0
    m = float(weights.sum())
    share = AIM - (AIM / m) ** 0.5
    if share > 0:
        return weighted_quantile(scores, weights, share)
    odds = np.log(np.clip(scores.astype(np.float64), 1e-9, 1 - 1e-7))
    odds -= np.log1p(-np.clip(scores.astype(np.float64), 1e-9, 1 - 1e-7))
    mean = float((odds * weights).sum()) / m
    spread = (float(((odds - mean) ** 2 * weights).sum()) / m) ** 0.5
    lowest = float(odds.min()) - spread * max(np.log(1 / AIM / (m + 1)), 0.0)
    return float(min(1 / (1 + np.exp(-lowest)), scores.min()))


def own_thresholds(threshold: float, scores: Floats, labels: Int64s) -> dict[int, float]:
    """Return lower thresholds of labels of which `threshold` would lose more than LOST_OF_A_LABEL.

    Args:
        threshold: of all labels.
        scores: float32[k] of right answers on texts held out.
        labels: of each of them.
    """
    found = {}
    for label in np.unique(labels[scores < threshold]).tolist():
        own = np.sort(scores[labels == label])
        bound = float(own[int(LOST_OF_A_LABEL * len(own))])
        if bound < threshold:
            found[label] = bound
    return found


def best_threshold(scores: Floats, true: Targets) -> float:
    """Return the threshold with the best F1 of pairs of a text and a label.

    Args:
        scores: float32[n, labels].
        true: of the n texts.
    """
    right = np.zeros(scores.shape, np.bool_)
    right[true.text, true.label] = True
    order = np.argsort(-scores, axis=None, kind="stable")
    ranked = scores.ravel()[order]
    both = np.cumsum(right.ravel()[order])
    f1 = 2 * both / (np.arange(1, len(order) + 1) + len(true.text))
    last = np.append(ranked[1:] < ranked[:-1], True)
    best = int(np.argmax(np.where(last, f1, 0)))
    # Halfway to the next score, so that neither is at the edge.
    return float((ranked[best] + (ranked[best + 1] if best + 1 < len(ranked) else 0)) / 2)
