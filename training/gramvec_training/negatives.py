"""Which phrase of the mini-batch each phrase is held apart from.

Candidates are the phrases of both sides of the mini-batch. Excluded are the phrase itself, its partner, and every
other phrase with the same text as one of these two (the papers exclude t in {x1, x2}; a text may stand in a batch
twice). The authors' code differs in two points that are not copied: it masks with cosine 0, so that a phrase may
become its own negative where all others are below 0, and its random draw of MIX never excludes the own pair.
"""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

Sampling = Literal["max", "mix"]

_OUT = -2.0  # below every cosine


@torch.no_grad()
def choose_negatives(
    phrases: Tensor, texts: Tensor, sampling: Sampling, *, generator: torch.Generator | None = None
) -> Tensor:
    """int64[2b]: the negative of each of the 2b phrases (b left, then b right), or -1 where no phrase is left.

    `phrases` float32[2b, d] are unit vectors; `texts` int64[2b] are equal where the texts are equal. MAX takes the
    most similar candidate, the first of equals. MIX takes MAX or, with probability 0.5 for each phrase by itself, a
    candidate uniformly at random; `generator` (on the CPU) is then required. (CHARAGRAM's supplement, section 1.1.)
    """
    allowed = _allowed(texts)  # [2b, 2b]
    similarity = (phrases @ phrases.T).masked_fill(~allowed, _OUT)  # [2b, 2b]
    best, chosen = similarity.max(dim=1)
    if sampling == "mix":
        drawn = torch.rand(len(texts), len(texts), generator=generator).to(phrases.device)
        coin = torch.rand(len(texts), generator=generator).to(phrases.device) < 0.5
        chosen = torch.where(coin, drawn.masked_fill(~allowed, -1.0).argmax(dim=1), chosen)
    return torch.where(best == _OUT, torch.full_like(chosen, -1), chosen)


def _allowed(texts: Tensor) -> Tensor:
    partner = texts.roll(len(texts) // 2)
    return (texts[:, None] != texts[None, :]) & (partner[:, None] != texts[None, :])
