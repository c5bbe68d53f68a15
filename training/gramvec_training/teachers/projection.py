"""The teacher's dimensions to the student's, by principal axes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from gramvec_training.types import Floats, Halves


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
