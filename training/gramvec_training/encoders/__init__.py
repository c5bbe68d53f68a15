"""Encoders: feature ids and offsets -> vectors. A new one is a module here and a line in `ENCODERS`."""

from __future__ import annotations

from typing import Protocol

from torch import Tensor, nn

from gramvec_training.encoders.bag import Activation, Bag, Pooling


class Encoder(Protocol):
    """A table whose rows are learned lazily, and a composition whose few parameters are learned densely."""

    table: nn.Parameter  # [rows, d]

    def composition(self) -> list[nn.Parameter]:
        """The parameters besides the table."""
        ...

    def __call__(self, ids: Tensor, offsets: Tensor, table: Tensor | None = None) -> Tensor:
        """Vectors float32[n, d] of n texts; `ids` index `table`, or the encoder's own where it is None."""
        ...


ENCODERS = {"bag": Bag}

__all__ = ["ENCODERS", "Activation", "Bag", "Encoder", "Pooling"]
