"""Word vectors of co-occurrences: the squared norm objective SN (Arora et al., 2016, a latent variable model).

    sum over words w, w' of  f(X_ww') (log X_ww' - |v_w + v_w'|^2 - C)^2,    f(X) = min(X, 100), 0 for X = 0

The matrix is taken a block of rows at a time, in an order that the seed decides; a block's gradient goes to its own
words and to all others, by AdaGrad. It is divided by the sum of the block's f, which AdaGrad does not notice.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from tqdm import tqdm

from gramvec_training.types import Floats

_ROWS = 256  # of a block
_EPSILON = 1e-10  # within AdaGrad's root


@dataclass(frozen=True)
class SquaredNorm:
    """How vectors are learned. most: above which co-occurrences weigh no more. first: of the vectors' first values."""

    dimension: int = 100
    epochs: int = 20
    rate: float = 0.05
    most: float = 100.0
    first: float = 0.1
    seed: int = 1


def squared_norm_vectors(pairs: Floats, settings: SquaredNorm) -> tuple[Floats, list[float]]:
    """Vectors float32[n, d] of a symmetric matrix of counts float32[n, n], and the mean loss of each epoch.

    The same seed and number of torch's threads give the same bytes. Beside the matrix memory has some blocks of it.
    """
    counts = torch.from_numpy(pairs)
    generator = torch.Generator().manual_seed(settings.seed)
    vectors = torch.empty(len(counts), settings.dimension).normal_(0, settings.first, generator=generator)
    constant = torch.zeros(1)
    learned = (vectors, constant)
    squares = [torch.zeros_like(one) for one in learned]
    losses = []
    rng = np.random.default_rng(settings.seed)
    for _ in tqdm(range(settings.epochs), desc="learning vectors", unit=" epochs", disable=None):
        epoch = []
        for rows in torch.split(torch.from_numpy(rng.permutation(len(counts))), _ROWS):
            loss, *gradients = squared_norm(counts[rows], rows, vectors, constant, settings.most)
            epoch.append(loss)
            for value, total, gradient in zip(learned, squares, gradients, strict=True):
                total.addcmul_(gradient, gradient)
                value.addcdiv_(gradient, (total + _EPSILON).sqrt_(), value=-settings.rate)
        losses.append(float(np.mean(epoch)))
    return vectors.numpy(), losses


def squared_norm(
    counts: Tensor, rows: Tensor, vectors: Tensor, constant: Tensor, most: float
) -> tuple[float, Tensor, Tensor]:
    """The mean loss over a block of rows of the matrix, float32[r, n], weighed by f, and its gradients.

    rows: int64[r], the block's words. The gradients are those of the vectors, float32[n, d], and of C, float32[1].
    """
    own = vectors[rows]  # [r, d]
    lengths = vectors.square().sum(dim=1)  # [n]
    weights = counts.clamp(max=most)  # [r, n]
    whole = weights.sum().clamp(min=1)
    apart = counts.clamp(min=1).log_().sub_(constant).sub_(lengths).sub_(lengths[rows, None])
    apart.addmm_(own, vectors.T, alpha=-2)  # log X - |v + v'|^2 - C
    pulled = weights.mul_(apart)  # [r, n]
    loss = float((pulled * apart).sum() / whole)
    # d/dv of |v + v'|^2 is 2 (v + v').
    gradient = pulled.sum(dim=0)[:, None] * vectors + pulled.T @ own  # [n, d]
    gradient.index_add_(0, rows, pulled.sum(dim=1)[:, None] * own + pulled @ vectors)
    return loss, gradient.mul_(-4 / whole), (pulled.sum() * (-2 / whole)).view(1)
