"""Learning from paraphrases: the objective of CHARAGRAM-PHRASE and PARAGRAM-PHRASE."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from gramvec.errors import InputError
from gramvec_training.configuration import Training
from gramvec_training.data import Corpus, Ints, Mixture
from gramvec_training.encoders import Encoder
from gramvec_training.objectives.base import Examples, Objective
from gramvec_training.objectives.margin import margin_loss
from gramvec_training.objectives.negatives import choose_negatives, mega_batch_negatives


class PairObjective(Objective):
    """The margin loss over pairs. A batch is its left phrases, its right ones, then the negatives of a mega-batch.

    The negatives are sought in the batch itself, whose phrases need not be repeated, or, with settings.mega_batch
    above 1, among so many batches of an epoch together, with the encoder as it is when the first of these is taken.
    `classes` int64[texts] are the labels of the corpus where it has any: no negative is of a phrase's own label.
    """

    def __init__(
        self, encoder: Encoder, corpus: Corpus, mixture: Mixture, settings: Training, classes: Ints | None = None
    ) -> None:
        if mixture.pairs_per_epoch < 2:
            raise InputError("Training needs at least two pairs, since the negatives come from the batch.")
        # A last batch of one pair would have no negatives, so it is left out.
        self.steps_per_epoch = max((mixture.pairs_per_epoch - 2) // settings.batch + 1, 1)
        self.steps = settings.steps or (settings.epochs or 1) * self.steps_per_epoch
        self.schedule = self.settings = settings
        self.ahead = settings.mega_batch == 1
        self.encoder = encoder
        self.corpus = corpus
        self.mixture = mixture
        self._classes = classes
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

    def examples_at(self, step: int) -> Examples:
        """The pairs of a step; `targets` int64[2b] are the numbers of their negatives, -1 for none, of a mega-batch."""
        pairs = self.pairs_at(step)
        texts = np.concatenate([pairs[:, 0], pairs[:, 1]])
        if self.settings.mega_batch == 1:
            return Examples(step, self.corpus.batch(texts), len(pairs))
        negatives = self._mega_batch_at(step)
        texts = np.concatenate([texts, np.setdiff1d(negatives, [-1])])
        return Examples(step, self.corpus.batch(texts), len(pairs), negatives)

    def loss(self, vectors: Tensor, examples: Examples) -> Tensor:
        """The margin loss, its negatives chosen with the current parameters, or with those of the mega-batch."""
        settings, texts = self.settings, examples.batch.texts
        unit = functional.normalize(vectors, dim=1)  # [n, d]
        phrases = 2 * examples.count
        left, right = unit[:phrases].chunk(2)
        if examples.targets is None:
            same = torch.from_numpy(texts).to(vectors.device)
            of_label = None if self._classes is None else torch.from_numpy(self._classes[texts]).to(vectors.device)
            negatives = choose_negatives(
                unit, same, settings.negatives, among=settings.negatives_among,
                generator=self._generator(examples.step), classes=of_label,
            )  # [2b]  # fmt: skip
        else:
            numbers = examples.targets  # [2b]
            places = np.where(numbers >= 0, phrases + np.searchsorted(texts[phrases:], numbers), -1)
            negatives = torch.from_numpy(places).to(vectors.device)
        lengths = vectors.norm(dim=1) if settings.cosine_epsilon else None
        return margin_loss(
            left,
            right,
            negatives,
            settings.margin,
            candidates=unit,
            lengths=lengths,
            epsilon=settings.cosine_epsilon,
        )

    def state(self) -> dict[str, Any]:
        """The negatives of the mega-batch that is under way."""
        return {"sought_at": self._sought_at, "negatives": torch.from_numpy(self._negatives)}

    def restore(self, state: dict[str, Any]) -> None:
        """Take up what `state` gave."""
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
                self.encoder,
                self.corpus,
                pairs,
                settings.negatives,
                among=settings.negatives_among,
                generator=generator,
                classes=self._classes,
            )
        start = within * settings.batch
        return self._negatives[:, start : start + settings.batch].reshape(-1)

    def _generator(self, step: int) -> torch.Generator | None:
        if self.settings.negatives == "max":
            return None
        return torch.Generator().manual_seed(self.settings.seed * 2**31 + step)
