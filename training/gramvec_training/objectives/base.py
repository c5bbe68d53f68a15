"""Base class of objectives: the examples of each step, and the loss of their vectors."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from gramvec.errors import InputError
from gramvec_training.config import Training
from gramvec_training.data.corpus import Corpus, TrainingBatch
from gramvec_training.data.sampling import Mixture
from gramvec_training.encoders.base import Encoder
from gramvec_training.sections import Schedule
from gramvec_training.shared import Ints


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


class PairObjective(Objective):
    """Base of objectives over pairs of texts that mean the same; a batch holds left phrases, then right phrases.

    settings: of [objective], where the config has one. `classes` int64[texts] are the labels of the corpus where it has
    any.
    """

    schedule: Training

    def __init__(
        self,
        encoder: Encoder,
        corpus: Corpus,
        mixture: Mixture,
        training: Training,
        *,
        settings: Any = None,
        classes: Ints | None = None,
    ) -> None:
        if mixture.pairs_per_epoch < 2:
            raise InputError("training needs at least two pairs, since the negatives come from the batch")
        # A last batch of one pair would have no negatives, so it is left out.
        self.steps_per_epoch = max((mixture.pairs_per_epoch - 2) // training.batch + 1, 1)
        self.steps = training.steps or (training.epochs or 1) * self.steps_per_epoch
        self.schedule = training
        self.settings = settings
        self.encoder = encoder
        self.corpus = corpus
        self.mixture = mixture
        self._classes = classes
        self._epoch = -1
        self._pairs = np.zeros((0, 2), dtype=np.int64)

    def pairs_at(self, step: int, batches: int = 1) -> Ints:
        """Return int64[b, 2]: the text numbers of a step's pairs, or of `batches` steps of its epoch."""
        epoch, position = divmod(step, self.steps_per_epoch)
        if epoch != self._epoch:
            self._epoch, self._pairs = epoch, self.mixture.epoch(epoch)
        start, batch = position * self.schedule.batch, self.schedule.batch
        return self._pairs[start : min(start + batches * batch, self.steps_per_epoch * batch)]

    def examples_at(self, step: int) -> Examples:
        """Return the pairs of a step: the left texts, then the right ones."""
        pairs = self.pairs_at(step)
        return Examples(step, self.corpus.batch(np.concatenate([pairs[:, 0], pairs[:, 1]])), len(pairs))


def move(array: npt.NDArray[Any], device: torch.device) -> Tensor:
    """Return a tensor on the device; pinned memory keeps the copy to CUDA from waiting."""
    tensor = torch.from_numpy(array)
    return tensor.pin_memory().to(device, non_blocking=True) if device.type == "cuda" else tensor
