"""Encoders that pool table rows: bags, weighted words, averages with layers, and CHARAGRAM with two layers."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from gramvec_training.encoders.base import ACTIVATIONS, Encoder, glorot, normal
from gramvec_training.sections import (
    Activation,
    BagSettings,
    DanSettings,
    EncoderPooling,
    ProjectionSettings,
    TwoLayerSettings,
)
from gramvec_training.shared import Floats


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
        """Return the vectors float32[n, d] of a batch."""
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
    """Return the bags with each feature once, ascending."""
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
    pooling: EncoderPooling,
    activation: Activation,
    components: Floats | None = None,
) -> Bag:
    """Build a bag of these weights: table float32[rows, d], bias float32[d], components float32[k, d]."""
    settings = BagSettings(pooling=pooling, activation=activation, bias=bias is not None)
    encoder = Bag(
        torch.from_numpy(table), settings, components=None if components is None else torch.from_numpy(components)
    )
    if bias is not None and encoder.bias is not None:
        encoder.bias.data.copy_(torch.from_numpy(bias))
    return encoder


class Weighted(Encoder):
    """g(x) = the mean of a_w v_w over the words w of x, in which the v_w are given and the numbers a_w learned.

    A row of the table is v_w and behind it a_w, so that a number is learned lazily, as rows are; v_w has no gradient.
    table: float32[rows, d], the vectors, to which are added numbers that begin at one; or float32[rows, d + 1].
    A text without words has zeros.
    """

    def __init__(self, table: Tensor, dimension: int) -> None:
        super().__init__()
        self.dimension = dimension
        if table.shape[1] == dimension:
            table = torch.cat([table, torch.ones(len(table), 1)], dim=1)
        self.table = nn.Parameter(table)  # [rows, d + 1]

    def forward(self, ids: Tensor, offsets: Tensor, table: Tensor | None = None) -> Tensor:
        """Return the vectors float32[n, d] of a batch."""
        rows = self.table if table is None else table
        weighted = rows[:, :-1].detach() * rows[:, -1:]  # [rows, d]
        return functional.embedding_bag(ids, weighted, offsets, mode="mean", include_last_offset=True)  # [n, d]

    def parameter_counts(self) -> dict[str, int]:
        """Return the number of learned entries; the fixed vectors are not parameters."""
        return {"table": len(self.table)}


def folded(table: Floats) -> Floats:
    """Return the rows a_w v_w, float32[rows, d], of a bag with the same vectors."""
    return table[:, :-1] * table[:, -1:]


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
        """Return the vectors float32[n, dimension] of a batch."""
        rows = self.table if table is None else table  # [rows, width]
        x = functional.embedding_bag(ids, rows, offsets, mode="mean", include_last_offset=True)  # [n, width]
        for matrix, bias in zip(self.matrices, self.biases, strict=True):
            x = ACTIVATIONS[self.settings.activation](x @ matrix + bias)  # [n, d]
        return x


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
        """Return the vectors float32[n, d] of a batch."""
        rows = self.table if table is None else table  # [rows, d]
        h = ACTIVATIONS[self.settings.activation]
        x = functional.embedding_bag(ids, rows, offsets, mode="sum", include_last_offset=True)  # [n, d]
        return h(h(x + self.bias) @ self.second + self.second_bias)  # [n, d]
