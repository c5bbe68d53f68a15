"""Encoders that pool table rows: bags, weighted words, averages with layers, and CHARAGRAM with two layers."""

from __future__ import annotations

from functools import partial
from typing import Annotated, ClassVar, Literal

import numpy as np
import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn import functional

from gramvec.bundle.manifest import LayerActivation
from gramvec.errors import InputError
from gramvec.runtime.onnx_graph import write_graph
from gramvec_training.encoders.base import ACTIVATIONS, Arrays, Encoder, EncoderGraph, glorot, normal
from gramvec_training.sections import (
    ENCODERS,
    Activation,
    BagSettings,
    EncoderPooling,
    EncoderSettings,
    Export,
    ModelSettings,
    Schedule,
)
from gramvec_training.shared import Floats


@ENCODERS.register(BagSettings)
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

    @classmethod
    def build(cls, table: Tensor, settings: BagSettings, dimension: int, generator: torch.Generator) -> Bag:
        """Build a bag over the table; its bias begins at zero."""
        return cls(table, settings)

    def take(self, arrays: Arrays) -> None:
        """Load the arrays that `arrays` returned, with common components where they have some."""
        if "components" in arrays:
            self.components = torch.zeros(arrays["components"].shape)
        super().take(arrays)

    def graph(self, table: Floats, arrays: Arrays) -> EncoderGraph:
        """Return the graph of a pooled table.

        The common components (SIF, Algorithm 1, with u fixed here and not computed from the sentences at hand) are
        removed from the rows, which for a sum or mean of them is the same.
        """
        settings, u = self.settings, arrays.get("components")
        if settings.presence:
            raise InputError("the service counts a feature as often as it is there, the model once: not to be exported")
        if u is not None:
            table = np.asarray(table - (table @ u.T) @ u, np.float32)
        if settings.activation == "relu":
            raise InputError("a bag with relu is for taggers, which are not exported; take linear or tanh")
        writer = partial(write_graph, pooling=settings.pooling, activation=settings.activation, bias=arrays.get("bias"))
        return EncoderGraph(table, writer, sums=settings.pooling == "sum")


def distinct(ids: Tensor, offsets: Tensor) -> tuple[Tensor, Tensor]:
    """Return the bags with each feature once, ascending."""
    counts = offsets.diff()
    texts = torch.arange(len(counts), device=ids.device).repeat_interleave(counts.long())
    most = int(ids.max()) + 1 if len(ids) else 1
    kept = torch.unique(texts * most + ids)
    lengths = torch.bincount(kept // most, minlength=len(counts))
    return (kept % most).to(ids.dtype), torch.cat([offsets[:1], lengths.cumsum(0).to(offsets.dtype)])


def make_bag(
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


class WeightedSettings(EncoderSettings):
    """Mean of fixed word vectors, each times a learned number."""

    kind: Literal["weighted"] = "weighted"
    keeps_width: ClassVar[bool] = True

    def check(self, model: ModelSettings, learning: Schedule | None, export: Export) -> None:
        """Raise ValueError where the vectors are missing, or would not stay as they are."""
        if model.vectors is None:
            raise ValueError('encoder "weighted" learns a number for each of the words of model.vectors: name a file')
        if learning is not None and learning.l2 and learning.l2_center != "initial":
            raise ValueError('encoder "weighted" has fixed vectors: set l2_center = "initial", or l2 = 0')
        if learning is not None and learning.fixed_table:
            raise ValueError('encoder "weighted" learns numbers in its table: leave fixed_table out')
        if export.scales:
            raise ValueError('encoder "weighted" has learned how words weigh: leave export.scales out')


@ENCODERS.register(WeightedSettings)
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

    @classmethod
    def build(cls, table: Tensor, settings: WeightedSettings, dimension: int, generator: torch.Generator) -> Weighted:
        """Build an encoder whose numbers begin at one, or with the numbers behind the table's vectors."""
        return cls(table, dimension)

    def graph(self, table: Floats, arrays: Arrays) -> EncoderGraph:
        """Return the graph of a mean of the weighted rows."""
        writer = partial(write_graph, pooling="mean", activation="linear", bias=None)
        return EncoderGraph(fold_numbers(table), writer, sums=False)


def fold_numbers(table: Floats) -> Floats:
    """Return the rows a_w v_w, float32[rows, d], of a bag with the same vectors."""
    return table[:, :-1] * table[:, -1:]


class ProjectionSettings(EncoderSettings):
    """Mean of the words' rows and one layer: PP-proj of PARAGRAM-PHRASE."""

    kind: Literal["projection"] = "projection"
    activation: LayerActivation = "linear"


class DanSettings(EncoderSettings):
    """Deep averaging network: mean of the words' rows and one to four layers."""

    kind: Literal["dan"] = "dan"
    layers: Annotated[int, Field(ge=1, le=4)] = 1
    activation: LayerActivation = "tanh"


@ENCODERS.register(ProjectionSettings, DanSettings)
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

    def graph(self, table: Floats, arrays: Arrays) -> EncoderGraph:
        """Return the graph of a mean with layers above it."""
        layers = [
            (arrays[f"matrices.{i}"], arrays[f"biases.{i}"], self.settings.activation)
            for i in range(len(self.matrices))
        ]
        writer = partial(write_graph, pooling="mean", activation="linear", bias=None, layers=layers)
        return EncoderGraph(table, writer, sums=False)


class TwoLayerSettings(EncoderSettings):
    """CHARAGRAM with a second layer: sum of rows, activation, matrix, activation."""

    kind: Literal["two-layer"] = "two-layer"
    keeps_width: ClassVar[bool] = True
    activation: Activation = "tanh"


@ENCODERS.register(TwoLayerSettings)
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

    @classmethod
    def build(cls, table: Tensor, settings: TwoLayerSettings, dimension: int, generator: torch.Generator) -> TwoLayer:
        """Build an encoder over the table, with layers as wide as its rows."""
        return cls(table, settings, generator)

    def graph(self, table: Floats, arrays: Arrays) -> EncoderGraph:
        """Return the graph of a sum with a layer above it."""
        activation = self.settings.activation
        layers = [(arrays["second"], arrays["second_bias"], activation)]
        writer = partial(write_graph, pooling="sum", activation=activation, bias=arrays["bias"], layers=layers)
        return EncoderGraph(table, writer, sums=True)
