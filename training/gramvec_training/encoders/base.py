"""What every encoder is: a torch module with a table, whose rows are learned lazily, and other parameters, densely."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

Arrays = Mapping[str, npt.NDArray[np.float32]]


class Encoder(nn.Module, ABC):
    """Features of texts -> vectors.

    The features are what the FeatureSpec of the model makes them: a bag of rows, or the rows of a text's words or
    characters in their order. An encoder sees them as flat ids with offsets and pads them for itself if it has to;
    what it gives for a text must not depend on the other texts.
    """

    table: nn.Parameter  # [rows, width]
    dimension: int  # of the vectors
    draws: bool = False  # whether learning draws at random, by torch's generator: dropout

    @abstractmethod
    def forward(self, ids: Tensor, offsets: Tensor, table: Tensor | None = None) -> Tensor:
        """Vectors float32[n, dimension] of n texts; `ids` [m] index `table`, or the own one; `offsets` [n + 1]."""

    def dense(self) -> dict[str, nn.Parameter]:
        """The parameters besides the table, by name."""
        return {name: parameter for name, parameter in self.named_parameters() if name != "table"}

    def parameter_counts(self) -> dict[str, int]:
        """The number of entries of each parameter, by name; the table is "table"."""
        return {name: parameter.numel() for name, parameter in self.named_parameters()}

    def arrays(self) -> dict[str, npt.NDArray[np.float32]]:
        """Everything that the encoder is made of, by name, float32: what a run folder stores and an export reads."""
        return {name: value.detach().cpu().numpy() for name, value in self.state_dict().items()}

    def take(self, arrays: Arrays) -> None:
        """Take over what `arrays` gave. Raises RuntimeError where a name or a shape is another."""
        self.load_state_dict({name: torch.from_numpy(np.asarray(value)) for name, value in arrays.items()})


ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "linear": lambda x: x,
    "tanh": torch.tanh,
    "relu": torch.relu,
    "sigmoid": torch.sigmoid,
}


def glorot(rows: int, columns: int, generator: torch.Generator) -> Tensor:
    """float32[rows, columns], uniform within sqrt(6 / (rows + columns)) (Glorot and Bengio, 2010)."""
    half = (6 / (rows + columns)) ** 0.5
    return torch.empty(rows, columns).uniform_(-half, half, generator=generator)


def normal(*shape: int, generator: torch.Generator) -> Tensor:
    """float32 of this shape, normal with standard deviation 0.1: how the authors' library begins LSTMs and DANs."""
    return torch.empty(*shape).normal_(0, 0.1, generator=generator)
