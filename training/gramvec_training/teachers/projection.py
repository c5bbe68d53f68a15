"""The teacher's dimensions to the student's, by principal axes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from gramvec_training.types import Floats, Halves

FLOOR = 1e-4  # of the largest variance: directions with less are not blown up further


@dataclass(frozen=True)
class Projection:
    """The teacher's dimensions to the student's: the leading principal axes of the teacher's vectors, not centred.

    `axes` float32[k, d]; `kept` is the share of the vectors' squared length that lies in them.
    """

    axes: Floats
    kept: float

    def on(self, device: torch.device) -> Tensor:
        """The axes float32[k, d] on a device, for `projected`."""
        return torch.from_numpy(self.axes).to(device)


def projected(vectors: Tensor, axes: Tensor) -> Tensor:
    """Unit vectors float32[n, k] of vectors [n, d] of any type, where both lie."""
    return functional.normalize(vectors.float() @ axes.T, dim=1)


def principal_projection(vectors: Halves, dimension: int, *, whitening: float = 0.0) -> Projection:
    """The leading axes of all vectors float16[n, d]; the identity if `dimension` is d, so that nothing is turned.

    whitening: each axis is divided by its variance to the power of half of this: 0 keeps their variances, and 1 makes
    them equal. Directions of less than 1e-4 of the largest variance count as of that.
    """
    d = vectors.shape[1]
    if dimension == d and not whitening:
        return Projection(np.eye(d, dtype=np.float32), 1.0)
    gram = np.zeros((d, d), np.float64)
    for start in range(0, len(vectors), 65_536):
        block = vectors[start : start + 65_536].astype(np.float32)
        gram += block.T @ block
    values, axes = np.linalg.eigh(gram)
    order = np.argsort(values)[::-1][:dimension]
    kept = values[order]
    scales = (np.maximum(kept, FLOOR * kept[0]) / kept[0]) ** (-whitening / 2)
    return Projection((axes[:, order] * scales).T.astype(np.float32), float(kept.sum() / values.sum()))
