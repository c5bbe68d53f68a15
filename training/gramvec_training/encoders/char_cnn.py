"""charCNN, the convolutional network over characters of CHARAGRAM's comparison (after Kim et al., 2015)."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.autograd import Function
from torch.nn import functional

from gramvec_training.encoders.base import ACTIVATIONS, LONGEST, Encoder, Steps, glorot
from gramvec_training.sections import CharCnnSettings


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
        found = sum(count for _, count in settings.counts)
        self.filter_bias = nn.Parameter(torch.zeros(found))  # [filters]
        self.layer = nn.Parameter(glorot(found, dimension, generator)) if settings.layer else None  # [filters, d]
        self.bias = nn.Parameter(torch.zeros(dimension)) if settings.layer else None  # [d]

    def forward(self, ids: Tensor, offsets: Tensor, table: Tensor | None = None) -> Tensor:
        """Return the vectors float32[n, dimension] of a batch."""
        rows = self.table if table is None else table  # [rows, width]
        maxima = [
            _maxima(rows @ filters, ids, offsets, wide)
            for (wide, _), filters in zip(self.settings.counts, self.filters, strict=True)
        ]
        found = ACTIVATIONS[self.settings.filter_activation](
            torch.cat(maxima, dim=1) + self.filter_bias
        )  # [n, filters]
        if self.draws:
            found = functional.dropout(found, self.settings.dropout, training=self.training)
        if self.layer is None or self.bias is None:
            return found
        return ACTIVATIONS[self.settings.activation](torch.addmm(self.bias, found, self.layer))  # [n, d]


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
    steps = Steps.of(torch.from_numpy(places).to(offsets.device))
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
