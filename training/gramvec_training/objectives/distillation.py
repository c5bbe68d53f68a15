"""Distillation from a teacher's vectors, of texts or with misspelled words beside them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

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
from gramvec_training.sections import OBJECTIVES, ObjectiveSettings
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


@dataclass(frozen=True)
class SpellingWords:
    """Words behind the texts of a corpus: all words, then all of them misspelled, `settings.copies` times.

    first: the corpus's number of the first. alike int64[words, near]: which are spelt alike. teacher float16[words, d].
    """

    settings: Spelling
    first: int
    alike: Ints
    teacher: Halves


@dataclass(frozen=True)
class TaughtTexts:
    """Texts and misspelled copies, the items, with the vectors of their teacher.

    corpus: the items, then the words and copies of `words`. rows int64[items]: the teacher's row of each item. teacher:
    float16[rows, d]. dropout float32[rows of the table]: with which probability each occurrence of a feature is left
    out of a step, None for none. words: those that [distillation.spelling] adds.
    """

    corpus: Corpus
    rows: Ints
    teacher: Halves
    projection: Projection
    dropout: npt.NDArray[np.float32] | None = None
    words: SpellingWords | None = None


class TeacherSettings(ObjectiveSettings):
    """The loss beside a teacher, whose numbers are in [distillation]."""

    kind: Literal["teacher"] = "teacher"
    section: ClassVar[Literal["training", "distillation"]] = "distillation"

    def check(self, learning: Distillation) -> None:
        """Raise ValueError where there are words, whose loss is another objective."""
        if learning.spelling is not None:
            raise ValueError('[distillation.spelling] belongs to objective "spelling"')


@OBJECTIVES.register(TeacherSettings)
class TeacherObjective(Objective):
    """Distillation of texts; each epoch visits all items in a new order, but those without a known feature.

    schedule: the settings of [distillation]. settings: of [objective].
    """

    schedule: Distillation

    def __init__(
        self, texts: TaughtTexts, schedule: Distillation, device: torch.device, *, settings: Any = None
    ) -> None:
        self._known = np.flatnonzero(texts.corpus.counts[: len(texts.rows)])
        if len(self._known) < 2:
            raise InputError("distillation needs at least two texts with known features; check the texts")
        # A last batch may be of one text, whose cosines to others teach nothing, so it is left out.
        self.steps_per_epoch = max((len(self._known) - 2) // schedule.batch + 1, 1)
        self.steps = schedule.steps or (schedule.epochs or 1) * self.steps_per_epoch
        self.schedule = schedule
        self.settings = settings
        self.texts = texts
        self._axes = texts.projection.on(device)
        self._epoch = -1
        self._order = self._known

    def examples_at(self, step: int) -> Examples:
        """Return the items of a step; `targets` float16[n, d] are their teacher vectors."""
        items = self._items_at(step)
        return Examples(step, self._batch_at(step, items), len(items), self.texts.teacher[self.texts.rows[items]])

    def _items_at(self, step: int) -> Ints:
        epoch, position = divmod(step, self.steps_per_epoch)
        if epoch != self._epoch:
            rng = np.random.default_rng([self.schedule.seed, epoch])
            self._epoch, self._order = epoch, self._known[rng.permutation(len(self._known))]
        start = position * self.schedule.batch
        return self._order[start : start + self.schedule.batch]

    def _batch_at(self, step: int, items: Ints) -> TrainingBatch:
        dropout = self.texts.dropout
        return self.texts.corpus.batch(items, None if dropout is None else self._kept_at(step, dropout))

    def _kept_at(self, step: int, dropout: npt.NDArray[np.float32]) -> Callable[[Int32s], Bools]:
        rng = np.random.default_rng([self.schedule.seed, step, 2**30])
        return lambda ids: rng.random(len(ids), np.float32) >= dropout[ids]

    def teacher_vectors(self, examples: Examples, device: torch.device) -> Tensor:
        """Return the teacher's vectors float32[n, d] of the targets, projected to the student's width."""
        assert examples.targets is not None
        return project_vectors(move(examples.targets, device), self._axes)

    def loss(self, vectors: Tensor, examples: Examples) -> Tensor:
        """Return the distillation loss against the teacher's projected vectors."""
        targets = self.teacher_vectors(examples, vectors.device)  # [n, d]
        return distillation_loss(vectors, targets, relation=self.schedule.relation)


def spelling_loss(copies: Tensor, words: Tensor, *, temperature: float) -> Tensor:
    """Return mean_i of -log(exp(cos(c_i, w_i) / t) / sum_j exp(cos(c_i, w_j) / t)) (van den Oord et al., 2018).

    `copies` and `words` float32[n, d] of any length: the i-th copy is of the i-th word. Only the copies are moved: the
    words stay what their own loss makes of them.
    """
    cosines = functional.normalize(copies, dim=1) @ functional.normalize(words, dim=1).detach().T  # [n, n]
    return functional.cross_entropy(cosines / temperature, torch.arange(len(copies), device=copies.device))


class SpellingSettings(ObjectiveSettings):
    """The loss beside a teacher, of texts and of the words of [distillation.spelling]."""

    kind: Literal["spelling"] = "spelling"
    section: ClassVar[Literal["training", "distillation"]] = "distillation"

    def check(self, learning: Distillation) -> None:
        """Raise ValueError where there are no words."""
        if learning.spelling is None:
            raise ValueError('objective "spelling" needs [distillation.spelling]; name its file of words')


@OBJECTIVES.register(SpellingSettings)
class SpellingObjective(TeacherObjective):
    """Distillation of texts with the spelling loss of words beside them."""

    def __init__(self, texts: TaughtTexts, *given: Any, **options: Any) -> None:
        super().__init__(texts, *given, **options)
        assert texts.words is not None
        self._words = texts.words

    def examples_at(self, step: int) -> Examples:
        """Return the texts of a step, then words, then a copy of each; `targets` are of texts and words."""
        texts, words = self._items_at(step), self._words
        count = len(words.alike)
        rng = np.random.default_rng([self.schedule.seed, step, 2**31])
        chosen = np.unique(words.alike[rng.integers(count, size=words.settings.groups)])
        copies = chosen + count * (1 + rng.integers(words.settings.copies, size=len(chosen)))
        items = np.concatenate([texts, words.first + chosen, words.first + copies])
        targets = np.concatenate([self.texts.teacher[self.texts.rows[texts]], words.teacher[chosen]])
        return Examples(step, self._batch_at(step, items), len(texts), targets)

    def loss(self, vectors: Tensor, examples: Examples) -> Tensor:
        """Return the distillation loss of the texts plus the loss of the words."""
        settings = self._words.settings
        targets = self.teacher_vectors(examples, vectors.device)  # [texts + words, d]
        texts, known = examples.count, len(targets)
        words, copies = vectors[texts:known], vectors[known:]
        kept = 1 - functional.cosine_similarity(words, targets[texts:]).mean()
        spelling = spelling_loss(copies, words, temperature=settings.temperature)
        loss = distillation_loss(vectors[:texts], targets[:texts], relation=self.schedule.relation)
        return loss + settings.keep * kept + settings.weight * spelling


def build_distillation(
    settings: ObjectiveSettings | None, texts: TaughtTexts, schedule: Distillation, device: torch.device
) -> TeacherObjective:
    """Build what a teacher teaches: by the settings of [objective], or the losses of its texts and words."""
    chosen = settings or (TeacherSettings() if texts.words is None else SpellingSettings())
    objective: TeacherObjective = OBJECTIVES.find_class(chosen)(texts, schedule, device, settings=chosen)
    return objective
