"""Base class of encoders, random initial values, and batches of sequences packed by step."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from gramvec.bundle.manifest import Graph, Precision
from gramvec.errors import InputError
from gramvec_training.shared import Floats

Arrays = Mapping[str, npt.NDArray[np.float32]]


@dataclass(frozen=True)
class EncoderGraph:
    """An encoder's `table` float32[rows, width], and the function that writes its ONNX graph.

    sums: whether a vector is a function of the sum of the text's rows, so that rows may stand for sums of others.
    in_order: whether the order of the rows counts.
    """

    table: Floats
    writer: Callable[..., Graph]
    sums: bool
    in_order: bool = False

    def write(self, folder: Path, precision: Precision, *, table: Floats | None = None) -> Graph:
        """Write model.onnx and its data; `table` replaces the encoder's, for example with further rows."""
        rows = self.table if table is None else table
        return self.writer(folder, table=rows, precision=precision)


class Encoder(nn.Module, ABC):
    """Torch module from the features of texts to vectors; its table is learned lazily, other parameters densely.

    The features are what the FeatureSpec of the model makes them: a bag of rows, or the rows of a text's words or
    characters in their order. An encoder sees them as flat ids with offsets and pads them for itself if it has to;
    what it gives for a text must not depend on the other texts.
    """

    table: nn.Parameter  # [rows, width]
    dimension: int  # of the vectors
    draws: bool = False  # whether learning draws at random, by torch's generator: dropout

    @abstractmethod
    def forward(self, ids: Tensor, offsets: Tensor, table: Tensor | None = None) -> Tensor:
        """Return vectors float32[n, dimension]; `ids` [m] index `table` (by default the own one), `offsets` is [n +
        1].
        """

    @classmethod
    def build(cls, table: Tensor, settings: Any, dimension: int, generator: torch.Generator) -> Encoder:
        """Build an encoder over the initial table float32[rows, width]; the generator draws all other first values."""
        return cls(table, settings, dimension, generator)

    def graph(self, table: Floats, arrays: Arrays) -> EncoderGraph:
        """Return the graph of the table float32[rows, width] and the other arrays, which are finite.

        Raises:
            InputError: The encoder, or its settings, have no graph.
        """
        raise InputError(f"there is no graph for {type(self).__name__}; it cannot be exported")

    def dense(self) -> dict[str, nn.Parameter]:
        """Return the parameters besides the table, by name."""
        return {name: parameter for name, parameter in self.named_parameters() if name != "table"}

    def parameter_counts(self) -> dict[str, int]:
        """Return the number of entries of each parameter, by name; the table is "table"."""
        return {name: parameter.numel() for name, parameter in self.named_parameters()}

    def arrays(self) -> dict[str, npt.NDArray[np.float32]]:
        """Return all float32 arrays of the encoder by name, as a run folder stores them."""
        return {name: value.detach().cpu().numpy() for name, value in self.state_dict().items()}

    def take(self, arrays: Arrays) -> None:
        """Load the arrays that `arrays` returned.

        Raises:
            RuntimeError: A name or a shape differs.
        """
        self.load_state_dict({name: torch.from_numpy(np.asarray(value)) for name, value in arrays.items()})


ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "linear": lambda x: x,
    "tanh": torch.tanh,
    "relu": torch.relu,
    "sigmoid": torch.sigmoid,
}


def glorot(rows: int, columns: int, generator: torch.Generator) -> Tensor:
    """Draw float32[rows, columns], uniform within sqrt(6 / (rows + columns)) (Glorot and Bengio, 2010)."""
    half = (6 / (rows + columns)) ** 0.5
    return torch.empty(rows, columns).uniform_(-half, half, generator=generator)


def normal(*shape: int, generator: torch.Generator) -> Tensor:
    """Draw float32 of this shape, normal with standard deviation 0.1, as the authors' library initializes LSTMs and
    DANs.
    """
    return torch.empty(*shape).normal_(0, 0.1, generator=generator)


LONGEST = 4_096  # a text is read up to this position: which bounds the memory of an untrusted text


class Steps(NamedTuple):
    """Positions of n texts by step: the first of each, then the second of those that have one, and so on.

    Within a step the longer texts come first, so the texts of a step are the first ones of the step before. places
    int64[m]: of each, its index in the flat ids. sizes: how many texts each step has. last int64[n]: of each text, in
    the order in which they came, the index of its last position among the m, or -1 for an empty one; rank int64[n]: how
    many texts come before it.
    """

    places: Tensor
    sizes: list[int]
    last: Tensor
    rank: Tensor

    @classmethod
    def from_offsets(cls, offsets: Tensor, *, backwards: bool = False) -> Steps:
        """Pack texts whose ids begin at `offsets` [n + 1]; `backwards` reads each from its last position."""
        bounds = offsets.cpu().numpy().astype(np.int64)
        lengths = np.minimum(np.diff(bounds), LONGEST)
        order = np.argsort(-lengths, kind="stable")
        ranked = lengths[order]
        steps = int(ranked[0]) if len(ranked) else 0
        sizes = np.searchsorted(-ranked, -np.arange(steps), side="left")  # how many are longer than each step
        begins = np.cumsum(sizes) - sizes
        step = np.repeat(np.arange(steps), sizes)
        rank = np.arange(len(step)) - begins[step]
        places = bounds[order][rank] + (ranked[rank] - 1 - step if backwards else step)
        last = np.full(len(lengths), -1, np.int64)
        known = np.flatnonzero(ranked)
        last[order[known]] = begins[ranked[known] - 1] + known
        rank_of = np.empty_like(order)
        rank_of[order] = np.arange(len(order))
        at, ends, ranks = (torch.from_numpy(array).to(offsets.device) for array in (places, last, rank_of))
        return cls(at, sizes.tolist(), ends, ranks)

    def take_last(self, states: Tensor) -> Tensor:
        """Return the last state float32[n, h] of each text from states float32[m, h]; zeros for an empty text."""
        if not len(states):
            return states.new_zeros(len(self.last), states.shape[1])
        last_states = states[self.last.clamp(min=0)]
        return last_states * (self.last >= 0).unsqueeze(1)


def project_rows(rows: Tensor, ids: Tensor, matrix: Tensor, bias: Tensor) -> tuple[Tensor, Tensor]:
    """Return values float32[v, k] and int64[m], the value of each position: rows[ids] @ matrix + bias.

    A position's product depends only on its row, so each row is multiplied once: a batch of words has some thirty
    different characters in thousands of positions. Where there are more rows than positions, each position is.
    """
    if len(rows) <= len(ids):
        return torch.addmm(bias, rows, matrix), ids
    return torch.addmm(bias, rows[ids], matrix), torch.arange(len(ids), device=ids.device)
