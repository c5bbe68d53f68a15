"""CHARAGRAM with two layers (Wieting et al., 2016a, footnote 4 and Table 4)."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from gramvec_training.configuration import TwoLayerSettings
from gramvec_training.encoders.base import ACTIVATIONS, Encoder, glorot


class TwoLayer(Encoder):
    """g(x) = h(b2 + W2 h(b1 + sum of the rows of x's features)).

    The second layer has as many units as the first. W2 begins as Glorot and Bengio's uniform, the biases at zero.
    """

    def __init__(self, table: Tensor, settings: TwoLayerSettings, generator: torch.Generator) -> None:
        super().__init__()
        self.settings = settings
        self.dimension = table.shape[1]
        self.table = nn.Parameter(table)  # [rows, d]
        self.bias = nn.Parameter(torch.zeros(self.dimension))  # [d]
        self.second = nn.Parameter(glorot(self.dimension, self.dimension, generator))  # [d, d]
        self.second_bias = nn.Parameter(torch.zeros(self.dimension))  # [d]

    def forward(self, ids: Tensor, offsets: Tensor, table: Tensor | None = None) -> Tensor:
        """See Encoder."""
        rows = self.table if table is None else table  # [rows, d]
        h = ACTIVATIONS[self.settings.activation]
        x = functional.embedding_bag(ids, rows, offsets, mode="sum", include_last_offset=True)  # [n, d]
        return h(h(x + self.bias) @ self.second + self.second_bias)  # [n, d]
