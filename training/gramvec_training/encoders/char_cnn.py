"""charCNN, the convolutional network over characters of CHARAGRAM's comparison (after Kim et al., 2015)."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
import torch
from pydantic import Field
from torch import Tensor, nn
from torch.autograd import Function
from torch.nn import functional

from gramvec.bundle.manifest import GRAPH, Graph, Precision
from gramvec.errors import InputError
from gramvec.runtime.onnx_graph import ACTIVATIONS as OPERATORS
from gramvec.runtime.onnx_graph import Writer
from gramvec_training.encoders.base import ACTIVATIONS, LONGEST, Arrays, Encoder, EncoderGraph, Steps, glorot
from gramvec_training.encoders.graphs import INPUTS, record_graph, write_lengths, write_steps
from gramvec_training.sections import (
    ENCODERS,
    Activation,
    EncoderSettings,
    Export,
    ModelSettings,
    Positive,
    Schedule,
)
from gramvec_training.shared import Floats

FilterSet = Literal["a", "b"]


class CharCnnSettings(EncoderSettings):
    """Convolutions over characters, the maximum over positions, and a layer.

    filters: "a" is 175 each of 2, 3 and 4 characters, "b" 25, 50, 75, 100, 125 and 150 of 1 to 6 (Kim et al., 2015);
    `scale` times as many of each. Without `layer` the filters' maxima are the vector. dropout: of what goes into it.
    """

    kind: Literal["char-cnn"] = "char-cnn"
    reads_in_order: ClassVar[bool] = True
    filters: FilterSet = "b"
    scale: Positive = 1.0
    filter_activation: Activation = "tanh"
    layer: bool = True
    activation: Activation = "tanh"
    dropout: Annotated[float, Field(ge=0, lt=1)] = 0.0

    @property
    def counts(self) -> tuple[tuple[int, int], ...]:
        """Return (width in characters, number of filters) for each width."""
        usual = {"a": ((2, 175), (3, 175), (4, 175)), "b": tuple((width, 25 * width) for width in range(1, 7))}
        return tuple((width, max(1, round(count * self.scale))) for width, count in usual[self.filters])

    def check(self, model: ModelSettings, learning: Schedule | None, export: Export) -> None:
        """Raise ValueError where vectors that are the filters' maxima have another width."""
        width = sum(count for _, count in self.counts)
        if not self.layer and model.dimension != width:
            raise ValueError(f"without encoder.layer a vector is the {width} filters: set model.dimension to that")


@ENCODERS.register(CharCnnSettings)
class CharCnn(Encoder):
    """f_k(x) = phi(b_k + max over places t of sum over j < w of e_(t+j) F_kj), g(x) = h(W f + b).

    e_t are the rows of x's characters, k runs over filters of several widths w. The maximum is over the places that a
    filter of width w has in the text; a shorter text is one place, with zeros behind its end. phi never falls, so it is
    taken of the maximum, which is the maximum of phi. (Wieting et al., 2016a, sections 3 and 4.1.3.) Filters and W
    begin as Glorot and Bengio's uniform, biases at zero. Without settings.layer g(x) is f(x); dropout is on f(x).

    A convolution over characters is a sum of rows: e F_kj is computed once for each different character, and each place
    adds w of these products. That is the same number, for a fortieth of the work.
    """

    def __init__(self, table: Tensor, settings: CharCnnSettings, dimension: int, generator: torch.Generator) -> None:
        super().__init__()
        self.settings = settings
        self.dimension = dimension
        self.draws = settings.dropout > 0
        self.table = nn.Parameter(table)  # [rows, width]
        self.filters = nn.ParameterList(
            # Glorot's fans of a convolution count its places: width * w in, filters * w out.
            nn.Parameter(_uniform(table.shape[1], wide * count, wide * (table.shape[1] + count), generator))
            for wide, count in settings.counts
        )  # [width, w * filters], the filters of the first character of a place, then of the second
        width = sum(count for _, count in settings.counts)
        self.filter_bias = nn.Parameter(torch.zeros(width))  # [filters]
        self.layer = nn.Parameter(glorot(width, dimension, generator)) if settings.layer else None  # [filters, d]
        self.bias = nn.Parameter(torch.zeros(dimension)) if settings.layer else None  # [d]

    def forward(self, ids: Tensor, offsets: Tensor, table: Tensor | None = None) -> Tensor:
        """Return the vectors float32[n, dimension] of a batch."""
        rows = self.table if table is None else table  # [rows, width]
        maxima = [
            _maxima(rows @ filters, ids, offsets, wide)
            for (wide, _), filters in zip(self.settings.counts, self.filters, strict=True)
        ]
        filtered = ACTIVATIONS[self.settings.filter_activation](
            torch.cat(maxima, dim=1) + self.filter_bias
        )  # [n, filters]
        if self.draws:
            filtered = functional.dropout(filtered, self.settings.dropout, training=self.training)
        if self.layer is None or self.bias is None:
            return filtered
        return ACTIVATIONS[self.settings.activation](torch.addmm(self.bias, filtered, self.layer))  # [n, d]

    def graph(self, table: Floats, arrays: Arrays) -> EncoderGraph:
        """Return the graph of convolutions as sums of products of rows and filters."""
        return EncoderGraph(table, partial(_write_graph, encoder=self), sums=False, in_order=True)


def _uniform(rows: int, columns: int, fans: int, generator: torch.Generator) -> Tensor:
    half = (6 / fans) ** 0.5
    return torch.empty(rows, columns).uniform_(-half, half, generator=generator)


def _maxima(products: Tensor, ids: Tensor, offsets: Tensor, wide: int) -> Tensor:
    """Return float32[n, filters]: the maximum over the places of each text; products are float32[rows, wide *
    filters].
    """
    filters = products.shape[1] // wide
    parts = torch.cat([products.view(-1, filters), products.new_zeros(1, filters)])  # row * wide + j; the last is zero
    steps, characters = _places(offsets, wide)
    inside = characters >= 0
    rows = ids[characters.clamp(min=0)].long() if len(ids) else characters
    places = torch.where(inside, rows * wide + torch.arange(wide, device=rows.device), len(parts) - 1)  # [m, wide]
    maxima: Tensor = _Maxima.apply(parts, places, steps.sizes)  # type: ignore[no-untyped-call]  # the texts of most places first
    return maxima[steps.rank]


def _places(offsets: Tensor, wide: int) -> tuple[Steps, Tensor]:
    """Return the places of every text by step, and int64[m, wide] indices of their characters, -1 behind the end."""
    bounds = offsets.cpu().numpy().astype(np.int64)
    lengths = np.minimum(np.diff(bounds), LONGEST)
    counts = np.maximum(lengths - wide + 1, 1)
    places = np.cumsum(np.append(0, counts))
    text = np.repeat(np.arange(len(counts)), counts)
    first = bounds[text] + np.arange(len(text)) - places[text]
    characters = first[:, None] + np.arange(wide)
    characters[characters >= (bounds[:-1] + lengths)[text][:, None]] = -1
    steps = Steps.from_offsets(torch.from_numpy(places).to(offsets.device))
    return steps, torch.from_numpy(characters).to(offsets.device)[steps.places]


class _Maxima(Function):
    """Maximum over each text's places of the sum of a place's parts; the first of equal places has the gradient."""

    @staticmethod
    def forward(ctx: Any, parts: Tensor, places: Tensor, sizes: list[int]) -> Tensor:
        sums = functional.embedding_bag(places, parts, mode="sum")  # [m, filters]
        texts = sizes[0] if sizes else 0
        best = sums[:texts].clone()
        begins = torch.zeros_like(best, dtype=torch.int64)  # of the step that has the maximum so far
        begin = texts
        for size in sizes[1:]:
            step, so_far = sums[begin : begin + size], best[:size]
            begins[:size].masked_fill_(step > so_far, begin)
            torch.maximum(so_far, step, out=so_far)
            begin += size
        # Within a step the places are in the order of the texts.
        ctx.save_for_backward(places, begins.add_(torch.arange(texts, device=parts.device).unsqueeze(1)))
        ctx.rows = len(parts)
        return best

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        places, chosen = ctx.saved_tensors
        of_parts = gradient.new_zeros(ctx.rows, gradient.shape[1])
        for part in places.T:
            of_parts.scatter_add_(0, part[chosen], gradient)
        return of_parts, None, None


def _write_graph(folder: Path, encoder: CharCnn, *, table: Floats, precision: Precision) -> Graph:
    """Write model.onnx and model.onnx.data into `folder`; return the manifest's record of the graph.

        products = table @ the filters' j-th character, at export                     float32[rows + 1, filters], j < w
        sums     = products_0[ids at t] + products_1[ids at t + 1] + ...              float32[n, steps, filters]
        maxima   = the largest of the places that the text has
        vectors  = h(phi(maxima + bias) W + bias)

    The operator Conv would do the same, from the rows: but onnxruntime cuts its sums by how many places there are, so
    that a vector would depend on the longest text of the batch, and it multiplies where these look up.

    The products are stored in place of the table and the filters: for the characters of a language one or two
    megabytes.

    Raises:
        InputError: Another precision than float32.
    """
    if precision != "float32":
        raise InputError(
            f"a character CNN stores what its filters make of each character, in float32 and not in {precision}: there "
            'are few characters; set export.precision = "float32"'
        )
    w, arrays = Writer(), encoder.arrays()
    widest = max(wide for wide, _ in encoder.settings.counts)
    write_lengths(w)
    write_steps(w, "lengths", minimum=1)
    w.constant("further", [widest - 1])
    w.node("Add", ["longest", "further"], "columns")
    w.constant("first", 0)
    w.constant("by_one", 1)
    w.node("Squeeze", ["columns"], "column_count")
    w.node("Range", ["first", "column_count", "by_one"], "every_column")  # [steps + widest - 1]
    w.node("Unsqueeze", ["lengths", "minus_one"], "lengths_down")  # [n, 1]
    w.node("Unsqueeze", ["starts", "minus_one"], "starts_down")
    w.node("Less", ["every_column", "lengths_down"], "inside")  # [n, steps + widest - 1]
    w.node("Add", ["every_column", "starts_down"], "places")
    w.node("Where", ["inside", "places", "row_count"], "places_or_end")
    w.constant("nothing", [len(table)], np.int32)
    w.node("Concat", ["ids", "nothing"], "ids_and_nothing", axis=0)
    w.node("Gather", ["ids_and_nothing", "places_or_end"], "characters")  # [n, steps + widest - 1]
    w.constant("across", [1])
    w.constant("lowest", -3e38, np.float32)
    maxima = [
        _write_maxima(w, table, arrays[f"filters.{i}"], wide) for i, (wide, _) in enumerate(encoder.settings.counts)
    ]
    w.node("Concat", maxima, "maxima", axis=1)  # [n, filters]
    w.weight("filter_bias", arrays["filter_bias"])
    w.node("Add", ["maxima", "filter_bias"], "filters_biased")
    phi = OPERATORS[encoder.settings.filter_activation]
    if not encoder.settings.layer:
        w.node(phi, ["filters_biased"], "vectors")
    else:
        w.node(phi, ["filters_biased"], "found")
        layer = w.weight("layer", arrays["layer"])
        w.node("MatMul", ["found", layer], "product")
        w.node("Add", ["product", w.weight("bias", arrays["bias"])], "biased")
        w.node(OPERATORS[encoder.settings.activation], ["biased"], "vectors")
    w.save(folder / GRAPH, INPUTS, {"vectors": encoder.dimension})
    last = encoder.settings.activation if encoder.settings.layer else encoder.settings.filter_activation
    return record_graph(precision, "max", last)


def _write_maxima(w: Writer, table: Floats, filters: Floats, wide: int) -> str:
    """Add the largest sums of one width; return their name, float32[n, filters]."""
    products = (table @ filters).reshape(len(table), wide, -1)
    last = ""
    for j in range(wide):
        part = np.concatenate([products[:, j], np.zeros((1, products.shape[2]), np.float32)])
        w.constant(f"from_{wide}_{j}", [j])
        w.node("Add", ["longest", f"from_{wide}_{j}"], f"to_{wide}_{j}")
        w.node("Slice", ["characters", f"from_{wide}_{j}", f"to_{wide}_{j}", "across"], f"characters_{wide}_{j}")
        w.weight(f"products_{wide}_{j}", part)
        part_sums = w.node("Gather", [f"products_{wide}_{j}", f"characters_{wide}_{j}"], f"parts_{wide}_{j}")
        last = w.node("Add", [last, part_sums], f"sums_{wide}_{j}") if last else part_sums
    # Places where the filter ends within the text, or the first one.
    w.constant(f"less_{wide}", [1 - wide])
    w.constant(f"one_{wide}", [1])
    w.node("Add", ["lengths_down", f"less_{wide}"], f"ends_{wide}")  # [n, 1]
    w.node("Max", [f"ends_{wide}", f"one_{wide}"], f"counts_{wide}")
    w.node("Less", ["steps", f"counts_{wide}"], f"known_{wide}")  # [n, steps]
    w.node("Unsqueeze", [f"known_{wide}", "minus_one"], f"mask_{wide}")  # [n, steps, 1]
    w.node("Where", [f"mask_{wide}", last, "lowest"], f"masked_{wide}")
    return w.node("ReduceMax", [f"masked_{wide}", "across"], f"maxima_{wide}", keepdims=0)
