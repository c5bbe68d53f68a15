"""Base class of objectives: the examples of each step, and the loss of their vectors."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy.typing as npt
import torch
from torch import Tensor, nn

from gramvec_training.data.corpus import TrainingBatch
from gramvec_training.sections import Schedule


@dataclass(frozen=True)
class Examples:
    """Examples of one step: a batch of texts, the number of examples, and extra inputs of the loss."""

    step: int
    batch: TrainingBatch
    count: int
    targets: npt.NDArray[Any] | None = None


class Objective(ABC):
    """A loss with its examples; only the step number decides the batch, the draws and the rate.

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
        """Return the examples of a step counted from 0."""

    @abstractmethod
    def loss(self, vectors: Tensor, examples: Examples) -> Tensor:
        """Return the scalar loss of the vectors float32[n, d] of a batch's texts."""

    def parameters(self) -> dict[str, nn.Parameter]:
        """Return the objective's own learned parameters by name, such as those of a head."""
        return {}

    def state(self) -> dict[str, Any]:
        """Return the tensors and numbers, besides the parameters, that later steps depend on."""
        return {}

    def restore(self, state: dict[str, Any]) -> None:  # noqa: B027 - most have nothing to take up
        """Load what `state` returned."""


def move(array: npt.NDArray[Any], device: torch.device) -> Tensor:
    """Return a tensor on the device; pinned memory keeps the copy to CUDA from waiting."""
    tensor = torch.from_numpy(array)
    return tensor.pin_memory().to(device, non_blocking=True) if device.type == "cuda" else tensor
