"""The bag of table rows: CHARAGRAM, PARAGRAM-PHRASE and SIF, which differ in pooling, activation and what is added."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from gramvec_training.configuration import Activation, BagSettings, Pooling
from gramvec_training.encoders.base import ACTIVATIONS, Encoder
from gramvec_training.types import Floats


class Bag(Encoder):
    """g(x) = h(b + p - (p u^T) u), p the sum or the mean of the rows of x's features.

    CHARAGRAM (Wieting et al., 2016a, equation 1): sum, tanh, with bias, a row an n-gram. PARAGRAM-PHRASE (2016b):
    mean, linear, no bias, a row a word. SIF (Arora et al., 2017, Algorithm 1): the same with weighted rows, and with
    common components u, orthonormal rows float32[k, d], which are not learned. A feature that occurs twice counts
    twice, or with settings.presence once. A text without features pools to zeros.
    """

    def __init__(self, table: Tensor, settings: BagSettings, *, components: Tensor | None = None) -> None:
        super().__init__()
        self.settings = settings
        self.dimension = table.shape[1]
        self.table = nn.Parameter(table)  # [rows, d]
        self.bias = nn.Parameter(torch.zeros(self.dimension)) if settings.bias else None  # [d]
        self.components: Tensor | None
        self.register_buffer("components", components)  # [k, d]

    def forward(self, ids: Tensor, offsets: Tensor, table: Tensor | None = None) -> Tensor:
        """See Encoder."""
        rows = self.table if table is None else table  # [rows, d]
        if self.settings.presence:
            ids, offsets = distinct(ids, offsets)
        x = functional.embedding_bag(ids, rows, offsets, mode=self.settings.pooling, include_last_offset=True)  # [n, d]
        if self.components is not None:
            x = x - (x @ self.components.T) @ self.components  # [n, d]
        if self.bias is not None:
            x = x + self.bias  # [n, d]
        return ACTIVATIONS[self.settings.activation](x)  # [n, d]


def distinct(ids: Tensor, offsets: Tensor) -> tuple[Tensor, Tensor]:
    """The bags with each feature once, ascending."""
    counts = offsets.diff()
    texts = torch.arange(len(counts), device=ids.device).repeat_interleave(counts.long())
    most = int(ids.max()) + 1 if len(ids) else 1
    kept = torch.unique(texts * most + ids)
    lengths = torch.bincount(kept // most, minlength=len(counts))
    return (kept % most).to(ids.dtype), torch.cat([offsets[:1], lengths.cumsum(0).to(offsets.dtype)])


def bag_of(
    table: Floats,
    bias: Floats | None = None,
    *,
    pooling: Pooling,
    activation: Activation,
    components: Floats | None = None,
) -> Bag:
    """A bag with these weights: table float32[rows, d], bias float32[d], components float32[k, d]."""
    settings = BagSettings(pooling=pooling, activation=activation, bias=bias is not None)
    encoder = Bag(
        torch.from_numpy(table), settings, components=None if components is None else torch.from_numpy(components)
    )
    if bias is not None and encoder.bias is not None:
        encoder.bias.data.copy_(torch.from_numpy(bias))
    return encoder
