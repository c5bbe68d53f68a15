"""Verdicts on texts held out: the difference of two models' scores with an interval.

The interval is the paired bootstrap's (Efron 1979): groups of held-out examples are drawn again with replacement, and
both models are scored on the same draw.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gramvec_training.shared import Doubles, Ints

DRAWS, SEED = 2_000, 1
INTERVAL = 95  # per cent
_TOGETHER = 50  # draws at a time

# From sums float64[k, draws] over the examples of a draw to scores float64[draws], in percent.
ScoreOfSums = Callable[[Doubles], Doubles]


def judge(measure: str, values: Sequence[Doubles], groups: Ints, score: ScoreOfSums) -> dict[str, Any]:
    """Return `measure`, the scores `before` and `after`, and the interval `low` to `high` of their difference.

    `better` is whether the interval lies above 0.

    Args:
        measure: the name of the score, in words.
        values: float64[n, k] of the former model and of the new one: what each example adds to the sums.
        groups: int64[n], of the examples that are drawn together, from 0.
        score: makes scores of sums.
    """
    size = int(groups.max(initial=-1)) + 1
    sums = np.zeros((2, values[0].shape[1], size))
    for place, array in enumerate(values):
        for column in range(array.shape[1]):
            sums[place, column] = np.bincount(groups, array[:, column], size)
    whole = [float(score(array.sum(axis=1, keepdims=True))[0]) for array in sums]
    rng = np.random.default_rng(SEED)
    differences: list[Doubles] = []
    for start in range(0, DRAWS, _TOGETHER):
        draws = min(_TOGETHER, DRAWS - start)
        times = np.stack([np.bincount(rng.integers(0, size, size), minlength=size) for _ in range(draws)], axis=1)
        differences.append(score(sums[1] @ times) - score(sums[0] @ times))
    low, high = np.percentile(np.concatenate(differences), [50 - INTERVAL / 2, 50 + INTERVAL / 2]).tolist()
    return {"measure": measure, "before": whole[0], "after": whole[1], "low": low, "high": high, "better": low > 0}


def mean_of(sums: Doubles) -> Doubles:
    """Return 100 times the mean, of the sums of the examples' values and of ones."""
    means: Doubles = 100 * sums[0] / np.maximum(sums[1], 1)
    return means


def f1_of(sums: Doubles) -> Doubles:
    """Return F1 in percent, of the numbers of pairs that are right and predicted, predicted, and right."""
    f1: Doubles = 200 * sums[0] / np.maximum(sums[1] + sums[2], 1)
    return f1


def pearson_of(sums: Doubles) -> Doubles:
    """Return Pearson's r x 100, of the sums of ones, x, y, x squared, y squared and x y."""
    n, x, y, xx, yy, xy = sums
    n = np.maximum(n, 1)
    spread = np.sqrt(np.maximum(xx - x * x / n, 0) * np.maximum(yy - y * y / n, 0))
    r: Doubles = 100 * (xy - x * y / n) / np.where(spread > 0, spread, np.inf)
    return r


def count_values(values: Doubles) -> Doubles:
    """Return what `mean_of` takes, float64[n, 2], of values float64[n]."""
    return np.stack([values, np.ones(len(values))], axis=1)


def describe_verdict(verdict: dict[str, Any]) -> str:
    """Return a verdict as a line of a report."""
    difference = verdict["after"] - verdict["before"]
    judgment = "better" if verdict["better"] else "worse" if verdict["high"] < 0 else "no better for sure"
    return (
        f"{verdict['measure']}: {judgment}, {verdict['before']:.1f} before and {verdict['after']:.1f} after, "
        f"{difference:+.1f} ({INTERVAL} % interval {verdict['low']:+.1f} to {verdict['high']:+.1f})"
    )


def group_rows(sides: Sequence[Ints]) -> Ints:
    """Return the group of each row, int64[n], from 0: rows that share a number on any side, also through others.

    Args:
        sides: int64[n] each, numbers from 0.
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    n = len(sides[0])
    numbers = np.concatenate(sides)
    rows = np.tile(np.arange(n), len(sides))
    size = n + int(numbers.max(initial=-1)) + 1
    graph = coo_array((np.ones(len(rows), bool), (rows, n + numbers)), shape=(size, size))
    components = connected_components(graph, directed=False)[1][:n]
    groups: Ints = np.unique(components, return_inverse=True)[1].astype(np.int64)
    return groups
