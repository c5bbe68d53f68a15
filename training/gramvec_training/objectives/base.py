"""What every objective is: which texts each step learns from, and the loss of their vectors."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy.typing as npt
import torch
from torch import Tensor, nn

from gramvec_training.data.corpus import Batch
from gramvec_training.sections import Schedule


@dataclass(frozen=True)
class Examples:
    """What one step learns from: a batch of texts, how many examples it counts as, and what the loss wants besides."""

    step: int
    batch: Batch
    count: int
    targets: npt.NDArray[Any] | None = None


class Objective(ABC):
    """The step number alone decides the batch, the draws and the rate.

    schedule: how the encoder's parameters are learned. steps: of the whole run; steps_per_epoch: of one pass.
    l2_own: the weight of the L2 term, towards zero, on the objective's own parameters.
    ahead: whether `examples_at` may be asked for a step before the one before it is learned, and in another thread.
    """

    schedule: Schedule
    steps: int
    steps_per_epoch: int
    l2_own: float = 0.0
    ahead: bool = True

    @abstractmethod
    def examples_at(self, step: int) -> Examples:
        """What a step, counted from 0, learns from."""

    @abstractmethod
    def loss(self, vectors: Tensor, examples: Examples) -> Tensor:
        """The loss, a scalar, of the vectors float32[n, d] of a batch's texts."""

    def parameters(self) -> dict[str, nn.Parameter]:
        """Parameters of its own that are learned with the encoder's, by name: those of a head, say."""
        return {}

    def state(self) -> dict[str, Any]:
        """Besides the parameters, all that the following steps depend on: tensors and numbers."""
        return {}

    def restore(self, state: dict[str, Any]) -> None:  # noqa: B027 - most have nothing to take up
        """Take up what `state` gave."""


def moved(array: npt.NDArray[Any], device: torch.device) -> Tensor:
    """A tensor on the device; to CUDA from pinned memory, so that the copy does not wait for what runs there."""
    tensor = torch.from_numpy(array)
    return tensor.pin_memory().to(device, non_blocking=True) if device.type == "cuda" else tensor
