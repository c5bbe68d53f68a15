"""Distillation from a teacher's vectors, alone or with misspelled words beside the texts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn import functional

from gramvec.errors import InputError
from gramvec.text.arrays import Int32s
from gramvec_training.config import Distillation, Spelling
from gramvec_training.data.corpus import Corpus, TrainingBatch
from gramvec_training.objectives.base import Examples, Objective, move
from gramvec_training.shared import Bools, Halves, Ints
from gramvec_training.teachers import Projection, project_vectors


def distillation_loss(student: Tensor, teacher: Tensor, *, relation: float) -> Tensor:
    """Return mean(1 - cos(s_i, t_i)) + relation * mean((cos(s_i, s_j) - cos(t_i, t_j))^2), a scalar.

    `student` float32[b, d] of any length; `teacher` float32[b, d] unit vectors. The second term is over all pairs of
    the batch and weighted by `relation`.
    """
    unit = functional.normalize(student, dim=1)  # [b, d]
    loss = 1 - (unit * teacher).sum(dim=1).mean()
    if relation:
        loss = loss + relation * functional.mse_loss(unit @ unit.T, teacher @ teacher.T)  # [b, b]
    return loss


class TeacherObjective(Objective):
    """Distillation of texts; each epoch visits all items, texts and copies, in a new order.

    `rows` int64[items]: the teacher's row of each item, which are the corpus's first; `teacher` float16[rows, d]. Items
    without a known feature are left out. `dropout` float32[rows of the table]: with which probability each occurrence
    of a feature is left out of a step, None for none.
    """

    def __init__(
        self,
        corpus: Corpus,
        rows: Ints,
        teacher: Halves,
        projection: Projection,
        settings: Distillation,
        device: torch.device,
        *,
        dropout: npt.NDArray[np.float32] | None = None,
    ) -> None:
        self._known = np.flatnonzero(corpus.counts[: len(rows)])
        if len(self._known) < 2:
            raise InputError("distillation needs at least two texts with known features; check the texts")
        # A last batch may be of one text, whose cosines to others teach nothing, so it is left out.
        self.steps_per_epoch = max((len(self._known) - 2) // settings.batch + 1, 1)
        self.steps = settings.steps or (settings.epochs or 1) * self.steps_per_epoch
        self.schedule = self.settings = settings
        self._corpus = corpus
        self._rows = rows
        self._teacher = teacher
        self._axes = projection.on(device)
        self._dropout = dropout
        self._epoch = -1
        self._order = self._known

    def examples_at(self, step: int) -> Examples:
        """Return the items of a step; `targets` float16[n, d] are their teacher vectors."""
        items = self._items_at(step)
        return Examples(step, self._batch_at(step, items), len(items), self._teacher[self._rows[items]])

    def _items_at(self, step: int) -> Ints:
        epoch, position = divmod(step, self.steps_per_epoch)
        if epoch != self._epoch:
            rng = np.random.default_rng([self.settings.seed, epoch])
            self._epoch, self._order = epoch, self._known[rng.permutation(len(self._known))]
        start = position * self.settings.batch
        return self._order[start : start + self.settings.batch]

    def _batch_at(self, step: int, items: Ints) -> TrainingBatch:
        return self._corpus.batch(items, None if self._dropout is None else self._kept_at(step, self._dropout))

    def _kept_at(self, step: int, dropout: npt.NDArray[np.float32]) -> Callable[[Int32s], Bools]:
        rng = np.random.default_rng([self.settings.seed, step, 2**30])
        return lambda ids: rng.random(len(ids), np.float32) >= dropout[ids]

    def loss(self, vectors: Tensor, examples: Examples) -> Tensor:
        """Return the distillation loss against the teacher's projected vectors."""
        assert examples.targets is not None
        targets = project_vectors(move(examples.targets, vectors.device), self._axes)  # [n, d]
        return distillation_loss(vectors, targets, relation=self.settings.relation)


@dataclass(frozen=True)
class SpellingWords:
    """Words behind the texts of a corpus: all words, then all of them misspelled, `settings.copies` times.

    first: the corpus's number of the first. alike int64[words, near]: which are spelt alike. teacher float16[words, d].
    """

    settings: Spelling
    first: int
    alike: Ints
    teacher: Halves


def spelling_loss(copies: Tensor, words: Tensor, *, temperature: float) -> Tensor:
    """Return mean_i of -log(exp(cos(c_i, w_i) / t) / sum_j exp(cos(c_i, w_j) / t)) (van den Oord et al., 2018).

    `copies` and `words` float32[n, d] of any length: the i-th copy is of the i-th word. Only the copies are moved: the
    words stay what their own loss makes of them.
    """
    cosines = functional.normalize(copies, dim=1) @ functional.normalize(words, dim=1).detach().T  # [n, n]
    return functional.cross_entropy(cosines / temperature, torch.arange(len(copies), device=copies.device))


class SpellingObjective(TeacherObjective):
    """Distillation of texts with the spelling loss of words beside them."""

    def __init__(self, words: SpellingWords, *given: Any, **options: Any) -> None:
        super().__init__(*given, **options)
        self._words = words

    def examples_at(self, step: int) -> Examples:
        """Return the texts of a step, then words, then a copy of each; `targets` are of texts and words."""
        texts, words = self._items_at(step), self._words
        count = len(words.alike)
        rng = np.random.default_rng([self.settings.seed, step, 2**31])
        chosen = np.unique(words.alike[rng.integers(count, size=words.settings.groups)])
        copies = chosen + count * (1 + rng.integers(words.settings.copies, size=len(chosen)))
        items = np.concatenate([texts, words.first + chosen, words.first + copies])
        targets = np.concatenate([self._teacher[self._rows[texts]], words.teacher[chosen]])
        return Examples(step, self._batch_at(step, items), len(texts), targets)

    def loss(self, vectors: Tensor, examples: Examples) -> Tensor:
        """Return the distillation loss of the texts plus the loss of the words."""
        assert examples.targets is not None
        settings = self._words.settings
        targets = project_vectors(move(examples.targets, vectors.device), self._axes)  # [texts + words, d]
        texts, known = examples.count, len(targets)
        words, copies = vectors[texts:known], vectors[known:]
        kept = 1 - functional.cosine_similarity(words, targets[texts:]).mean()
        found = spelling_loss(copies, words, temperature=settings.temperature)
        loss = distillation_loss(vectors[:texts], targets[:texts], relation=self.settings.relation)
        return loss + settings.keep * kept + settings.weight * found
