"""Learning from a teacher: a text's vector is drawn to the teacher's, the batch's cosines to the teacher's."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from torch import Tensor
from torch.nn import functional

Floats = npt.NDArray[np.float32]
Halves = npt.NDArray[np.float16]


def distillation_loss(student: Tensor, teacher: Tensor, *, relation: float) -> Tensor:
    """mean(1 - cos(s_i, t_i)) + relation * mean((cos(s_i, s_j) - cos(t_i, t_j))^2); a scalar.

    `student` float32[b, d] of any length; `teacher` float32[b, d] unit vectors. The second term is over all pairs of
    the batch and weighted by `relation`.
    """
    unit = functional.normalize(student, dim=1)  # [b, d]
    loss = 1 - (unit * teacher).sum(dim=1).mean()
    if relation:
        loss = loss + relation * functional.mse_loss(unit @ unit.T, teacher @ teacher.T)  # [b, b]
    return loss


@dataclass(frozen=True)
class Projection:
    """The teacher's dimensions to the student's: the leading principal axes of the teacher's vectors, not centred.

    `axes` float32[k, d]; `kept` is the share of the vectors' squared length that lies in them.
    """

    axes: Floats
    kept: float

    def __call__(self, vectors: Halves) -> Floats:
        """Unit vectors float32[n, k]."""
        projected = vectors.astype(np.float32) @ self.axes.T
        scaled: Floats = projected / np.maximum(np.linalg.norm(projected, axis=1, keepdims=True), 1e-12)
        return scaled


def principal_projection(vectors: Halves, dimension: int) -> Projection:
    """The leading axes of all vectors float16[n, d]; the identity if `dimension` is d, so that nothing is turned."""
    d = vectors.shape[1]
    if dimension == d:
        return Projection(np.eye(d, dtype=np.float32), 1.0)
    gram = np.zeros((d, d), np.float64)
    for start in range(0, len(vectors), 65_536):
        block = vectors[start : start + 65_536].astype(np.float32)
        gram += block.T @ block
    values, axes = np.linalg.eigh(gram)
    order = np.argsort(values)[::-1][:dimension]
    return Projection(axes[:, order].T.astype(np.float32), float(values[order].sum() / values.sum()))
