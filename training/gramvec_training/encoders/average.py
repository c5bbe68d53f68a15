"""Averages of words with layers above: PP-proj (Wieting et al., 2016b) and deep averaging networks."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from gramvec_training.configuration import DanSettings, ProjectionSettings
from gramvec_training.encoders.base import ACTIVATIONS, Encoder, glorot, normal


class Average(Encoder):
    """z_0 = the mean of the rows of x's words, z_l = f(z_(l-1) W_l + b_l), g(x) = z_L.

    PP-proj is one linear layer, begun as Glorot and Bengio's uniform. A deep averaging network (Iyyer et al., 2015) has
    one to four with tanh, the first begun normal with standard deviation 0.1, the others as Glorot's. Biases begin at
    zero. A text without words has a mean of zeros.
    """

    def __init__(
        self, table: Tensor, settings: ProjectionSettings | DanSettings, dimension: int, generator: torch.Generator
    ) -> None:
        super().__init__()
        self.settings = settings
        self.dimension = dimension
        self.table = nn.Parameter(table)  # [rows, width]
        widths = [table.shape[1], *[dimension] * (settings.layers if isinstance(settings, DanSettings) else 1)]
        self.matrices = nn.ParameterList(
            nn.Parameter(
                normal(wide, dimension, generator=generator)
                if isinstance(settings, DanSettings) and not layer
                else glorot(wide, dimension, generator)
            )
            for layer, wide in enumerate(widths[:-1])
        )  # [width, d], then [d, d]
        self.biases = nn.ParameterList(nn.Parameter(torch.zeros(dimension)) for _ in widths[1:])  # [d]

    def forward(self, ids: Tensor, offsets: Tensor, table: Tensor | None = None) -> Tensor:
        """See Encoder."""
        rows = self.table if table is None else table  # [rows, width]
        x = functional.embedding_bag(ids, rows, offsets, mode="mean", include_last_offset=True)  # [n, width]
        for matrix, bias in zip(self.matrices, self.biases, strict=True):
            x = ACTIVATIONS[self.settings.activation](x @ matrix + bias)  # [n, d]
        return x
