"""The margin loss of PARAGRAM-PHRASE and CHARAGRAM (Wieting et al., 2016)."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional


def margin_loss(
    left: Tensor,
    right: Tensor,
    negatives: Tensor,
    margin: float,
    *,
    candidates: Tensor | None = None,
    lengths: Tensor | None = None,
    epsilon: float = 0.0,
) -> Tensor:
    """Mean over the pairs of the two hinges; a scalar.

    max(0, margin - cos(x1, x2) + cos(x1, t1)) + max(0, margin - cos(x1, x2) + cos(x2, t2)).
    (CHARAGRAM's supplement, the equation of section 1, without the L2 term, which the optimiser adds.)

    `left` and `right` float32[b, d] are unit vectors; `negatives` int64[2b] numbers, for each of the b left and then
    the b right phrases, one of the `candidates`, unit vectors float32[m, d], by default these 2b phrases (left
    first), or is -1 for none: that hinge then counts as zero. The gradient flows through the negatives' vectors;
    their choice is constant.

    With `epsilon` a cosine is x . y / (|x| |y| + epsilon), as in the authors' code of the character models, whose first
    vectors are short; `lengths` float32[m] are then the candidates' lengths before they were made unit vectors, the
    first 2b of them the phrases'.
    """
    phrases = torch.cat([left, right])  # [2b, d]
    among = phrases if candidates is None else candidates  # [m, d]
    chosen = negatives.clamp(min=0)
    positive = (left * right).sum(dim=1).repeat(2)  # [2b]
    negative = (phrases * among[chosen]).sum(dim=1)  # [2b]
    if epsilon:
        assert lengths is not None
        own = lengths[: len(phrases)]
        positive = positive * _share(own * own.roll(len(left)), epsilon)
        negative = negative * _share(own * lengths[chosen], epsilon)
    hinges = functional.relu(margin - positive + negative) * (negatives >= 0)  # [2b]
    return hinges.sum() / len(left)


def _share(products: Tensor, epsilon: float) -> Tensor:
    return products / (products + epsilon)
