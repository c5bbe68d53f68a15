"""Learning from paraphrases: the trainer of CHARAGRAM-PHRASE and PARAGRAM-PHRASE."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch.nn import functional

from gramvec.errors import InputError
from gramvec_training.config import Training
from gramvec_training.corpus import Batch, Corpus, Ints
from gramvec_training.encoders import Encoder
from gramvec_training.fit import Trainer
from gramvec_training.losses import margin_loss
from gramvec_training.mixture import Mixture
from gramvec_training.negatives import choose_negatives, mega_batch_negatives


class PairTrainer(Trainer):
    """Learns from paraphrases by the margin loss. A batch is its left phrases, its right ones, then their negatives.

    The negatives are sought in the batch itself, whose phrases need not be repeated, or, with settings.mega_batch
    above 1, among so many batches of an epoch together, when the first of these is taken.
    """

    def __init__(
        self, encoder: Encoder, corpus: Corpus, mixture: Mixture, settings: Training, device: torch.device
    ) -> None:
        if mixture.pairs_per_epoch < 2:
            raise InputError("Training needs at least two pairs, since the negatives come from the batch.")
        # A last batch of one pair would have no negatives, so it is left out.
        self.steps_per_epoch = max((mixture.pairs_per_epoch - 2) // settings.batch + 1, 1)
        steps = settings.steps or (settings.epochs or 1) * self.steps_per_epoch
        super().__init__(encoder, corpus, settings, steps, device, optimiser=settings.optimiser, clip=settings.clip)
        self.mixture = mixture
        self.settings = settings
        self._epoch = -1
        self._pairs = np.zeros((0, 2), dtype=np.int64)
        self._sought_at = -1  # the step at which these negatives were sought
        self._negatives = np.zeros((2, 0), dtype=np.int64)

    def pairs_at(self, step: int, batches: int = 1) -> Ints:
        """int64[b, 2]: the numbers of the texts of a step's pairs, or of so many steps' of its epoch."""
        epoch, position = divmod(step, self.steps_per_epoch)
        if epoch != self._epoch:
            self._epoch, self._pairs = epoch, self.mixture.epoch(epoch)
        start, batch = position * self.settings.batch, self.settings.batch
        return self._pairs[start : min(start + batches * batch, self.steps_per_epoch * batch)]

    def batch_at(self, step: int) -> Batch:
        """The batch of a step, counted from 0: left phrases, right phrases, and the negatives of a mega-batch."""
        pairs = self.pairs_at(step)
        texts = np.concatenate([pairs[:, 0], pairs[:, 1]])
        if self.settings.mega_batch > 1:
            texts = np.concatenate([texts, np.setdiff1d(self._mega_batch_at(step), [-1])])
        return self.corpus.batch(texts)

    def take(self, step: int) -> tuple[torch.Tensor, int]:
        """Learn from the batch of a step; gives the loss and the number of its pairs."""
        return super().take(step)[0], len(self.pairs_at(step))

    def loss(self, vectors: torch.Tensor, batch: Batch, step: int) -> torch.Tensor:
        """The margin loss, its negatives chosen with the current parameters, or with those of the mega-batch."""
        settings = self.settings
        unit = functional.normalize(vectors, dim=1)  # [n, d]
        phrases = 2 * len(self.pairs_at(step))
        left, right = unit[:phrases].chunk(2)
        if settings.mega_batch == 1:
            texts = torch.from_numpy(batch.texts).to(self.device)
            negatives = choose_negatives(unit, texts, settings.negatives, generator=self._generator(step))  # [2b]
            return margin_loss(left, right, negatives, settings.margin)
        numbers = self._mega_batch_at(step)  # [2b]
        places = np.where(numbers >= 0, phrases + np.searchsorted(batch.texts[phrases:], numbers), -1)
        return margin_loss(left, right, torch.from_numpy(places).to(self.device), settings.margin, candidates=unit)

    def state(self) -> dict[str, Any]:
        """As of every trainer, and the negatives of the mega-batch that is under way."""
        return super().state() | {"sought_at": self._sought_at, "negatives": torch.from_numpy(self._negatives)}

    def restore(self, state: dict[str, Any]) -> None:
        """Take up what `state` gave."""
        super().restore(state)
        self._sought_at, self._negatives = state["sought_at"], state["negatives"].numpy()

    def _mega_batch_at(self, step: int) -> Ints:
        """int64[2b]: the numbers of the texts that are the negatives of a step's phrases; -1 for none."""
        settings = self.settings
        within = step % self.steps_per_epoch % settings.mega_batch
        if self._sought_at != step - within:
            self._sought_at = step - within
            pairs = self.pairs_at(self._sought_at, settings.mega_batch)
            generator = self._generator(self._sought_at)
            self._negatives = mega_batch_negatives(
                self.encoder, self.corpus, pairs, settings.negatives, generator=generator
            )
        start = within * settings.batch
        return self._negatives[:, start : start + settings.batch].reshape(-1)

    def _generator(self, step: int) -> torch.Generator | None:
        if self.settings.negatives == "max":
            return None
        return torch.Generator().manual_seed(self.settings.seed * 2**31 + step)
