"""The bag of table rows: CHARAGRAM and PARAGRAM-PHRASE, which differ in pooling, activation and bias alone."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional

Pooling = Literal["sum", "mean"]
Activation = Literal["linear", "tanh"]


class Bag(nn.Module):
    """g(x) = h(b + pool of the rows of x's features).

    CHARAGRAM (Wieting et al., 2016a, equation 1): sum, tanh, with bias, a row an n-gram. PARAGRAM-PHRASE (2016b):
    mean, linear, no bias, a row a word. A feature that occurs twice counts twice. A text without features pools to
    zeros.
    """

    def __init__(self, table: Tensor, *, pooling: Pooling, activation: Activation, bias: bool) -> None:
        super().__init__()
        self.pooling = pooling
        self.activation = activation
        self.table = nn.Parameter(table)  # [rows, d]
        self.bias = nn.Parameter(torch.zeros(table.shape[1])) if bias else None  # [d]

    def composition(self) -> list[nn.Parameter]:
        """The parameters besides the table."""
        return [] if self.bias is None else [self.bias]

    def forward(self, ids: Tensor, offsets: Tensor, table: Tensor | None = None) -> Tensor:
        """Vectors float32[n, d] of n bags; `ids` [m] index `table`, or the encoder's own; `offsets` [n + 1]."""
        rows = self.table if table is None else table  # [rows, d]
        x = functional.embedding_bag(ids, rows, offsets, mode=self.pooling, include_last_offset=True)  # [n, d]
        if self.bias is not None:
            x = x + self.bias  # [n, d]
        return torch.tanh(x) if self.activation == "tanh" else x  # [n, d]
