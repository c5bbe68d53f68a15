"""Linear support vector machines of many labels over the same sparse rows.

Of each label it minimizes ||w||^2 / 2 + C sum max(0, 1 - y w.x)^2, where w has the intercept as one more number, whose
value is 1 in every row: what scikit-learn's LinearSVC minimizes. Its dual is solved a row at a time (Hsieh and others
2008), for 16 labels together: each row is read once for all of them, in C where it is built.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gramvec.jobs.classify.targets import Targets
from gramvec.native import loops
from gramvec.text.arrays import Floats

LANES = 16
MAX_PASSES = 30
TOLERANCE = 0.02  # of a step; a support vector's multiplier is about 1
_IDLE, _EVERY = 2, 5
SEED = 0


def learn_svm(rows: Any, targets: Targets, strength: float) -> Floats:
    """Learn a support vector machine for each label.

    Args:
        rows: scipy.sparse.csr_matrix float32[n, d] with int32 indices.
        targets: of the n rows.
        strength: C.

    Returns:
        float32[d + 1, labels]: coefficients, and in the last row the intercepts.
    """
    n, d = rows.shape
    spread = np.float32(0.5 / strength)
    squares = np.asarray(rows.multiply(rows).sum(axis=1), np.float32).ravel()
    rng = np.random.default_rng(SEED)
    orders = np.stack([rng.permutation(n).astype(np.int32) for _ in range(MAX_PASSES)])
    weights = np.empty((d + 1, targets.labels), np.float32)
    for first in range(0, targets.labels, LANES):
        count = min(LANES, targets.labels - first)
        signs = np.zeros((n, LANES), np.int8)
        signs[:, :count] = -1
        here = (targets.label >= first) & (targets.label < first + count)
        signs[targets.text[here], targets.label[here] - first] = 1
        lanes = np.empty((d + 1, LANES), np.float32)
        arrays = rows.indptr, rows.indices, rows.data, 1 / (squares + 1 + spread), orders, signs, lanes
        (passes if loops is None else loops.learn_svm)(*arrays, float(spread), TOLERANCE)
        weights[:, first : first + count] = lanes[:, :count]
    return weights


def passes(
    starts: NDArray[np.int32],
    columns: NDArray[np.int32],
    values: Floats,
    scales: Floats,
    orders: NDArray[np.int32],
    signs: NDArray[np.int8],
    weights: Floats,
    spread: float,
    tolerance: float,
) -> int:
    """Do what gramvec.native.loops.learn_svm does, to the bit, several times slower."""
    n, narrow = len(scales), np.float32(spread)
    duals, idle = np.zeros((n, LANES), np.float32), np.zeros(n, np.int64)
    weights[:] = 0
    for done, order in enumerate(orders):
        largest = 0.0
        for row in order.tolist():
            if done % _EVERY and idle[row] == _IDLE:
                continue
            at, sign, dual = slice(starts[row], starts[row + 1]), signs[row].astype(np.float32), duals[row]
            lines = weights[columns[at]]
            # Added one after the other, as numpy does along the first axis.
            sums = np.add.reduce(np.vstack([weights[-1:], lines * values[at, None]]), axis=0)
            after = dual - (sign * sums - np.float32(1) + narrow * dual) * scales[row]
            after = np.where((after > 0) & (sign != 0), after, np.float32(0))
            steps = (after - dual) * sign
            duals[row] = after
            if not steps.any():
                idle[row] = 0 if after.any() else min(idle[row] + 1, _IDLE)
                continue
            idle[row] = 0
            largest = max(largest, float(np.abs(steps).max()))
            weights[-1] += steps
            weights[columns[at]] = lines + values[at, None] * steps
        if largest < np.float32(tolerance):
            return done + 1
    return len(orders)
