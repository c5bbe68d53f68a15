"""Ridge regression of many columns at once, by conjugate gradients."""

from __future__ import annotations

from typing import Any

import numpy as np

from gramvec.progress import NO_PROGRESS, Progress
from gramvec_training.shared import Floats


def solve_ridge(
    design: Any, targets: Floats, penalty: float, *, steps: int = 20, progress: Progress = NO_PROGRESS
) -> Floats:
    """Return the X float32[k, d] that makes |A X - Y|^2 + penalty |X|^2 least, nearly.

    Conjugate gradients with the diagonal as preconditioner (Hestenes and Stiefel, 1952), on all columns at once:
    `steps` of them, each of two products with A, so the time is linear in what A holds. `progress` shows the task
    "n-grams".

    Args:
        design: scipy's sparse matrix A float32[n, k].
        targets: Y float32[n, d].
        penalty: above 0.
        steps: of the iteration.
        progress: is told of each step.
    """
    transposed = design.T.tocsr()
    scale = np.float32(penalty) + np.asarray(design.multiply(design).sum(axis=0), np.float32).reshape(-1, 1)
    rest = transposed @ targets
    solution = np.zeros_like(rest)
    step = rest / scale
    length = _products(rest, step)
    progress.start("n-grams", steps, "steps")
    for _ in range(steps):
        image = transposed @ (design @ step) + np.float32(penalty) * step
        size = length / np.maximum(_products(step, image), np.finfo(np.float32).tiny)
        solution += size * step
        rest -= size * image
        scaled = rest / scale
        before, length = length, _products(rest, scaled)
        step = scaled + length / np.maximum(before, np.finfo(np.float32).tiny) * step
        progress.advance(1)
    return np.asarray(solution, np.float32)


def _products(a: Floats, b: Floats) -> Floats:
    """Return the product of each pair of columns, float32[d]."""
    return np.asarray(np.einsum("ij,ij->j", a, b), np.float32)
