"""Learning from a teacher, and from misspelt words: which of the words that are spelt alike was meant?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from gramvec_training.configuration import Spelling
from gramvec_training.data import Ints
from gramvec_training.objectives.base import Examples, moved
from gramvec_training.objectives.distillation import TeacherObjective, distillation_loss
from gramvec_training.teachers import projected
from gramvec_training.types import Halves


@dataclass(frozen=True)
class Words:
    """Words that a corpus has behind its texts: all words, then all of them misspelt, `settings.copies` times.

    first: the corpus's number of the first. alike int64[words, near]: which are spelt alike. teacher float16[words, d].
    """

    settings: Spelling
    first: int
    alike: Ints
    teacher: Halves


def spelling_loss(copies: Tensor, words: Tensor, *, temperature: float) -> Tensor:
    """mean_i of -log(exp(cos(c_i, w_i) / t) / sum_j exp(cos(c_i, w_j) / t)); a scalar (van den Oord et al. 2018).

    `copies` and `words` float32[n, d] of any length: the i-th copy is of the i-th word. Only the copies are moved: the
    words stay what their own loss makes of them.
    """
    cosines = functional.normalize(copies, dim=1) @ functional.normalize(words, dim=1).detach().T  # [n, n]
    return functional.cross_entropy(cosines / temperature, torch.arange(len(copies), device=copies.device))


class SpellingObjective(TeacherObjective):
    """Draws a student to a teacher's vectors, and misspelt words to their own; see Spelling for the loss."""

    def __init__(self, words: Words, *given: Any, **options: Any) -> None:
        super().__init__(*given, **options)
        self._words = words

    def examples_at(self, step: int) -> Examples:
        """The texts of a step, then words, then a copy of each; `targets` are of texts and words."""
        texts, words = self._items_at(step), self._words
        count = len(words.alike)
        rng = np.random.default_rng([self.settings.seed, step, 2**31])
        chosen = np.unique(words.alike[rng.integers(count, size=words.settings.groups)])
        copies = chosen + count * (1 + rng.integers(words.settings.copies, size=len(chosen)))
        items = np.concatenate([texts, words.first + chosen, words.first + copies])
        targets = np.concatenate([self._teacher[self._rows[texts]], words.teacher[chosen]])
        return Examples(step, self._batch_at(step, items), len(texts), targets)

    def loss(self, vectors: Tensor, examples: Examples) -> Tensor:
        """The distillation loss of the texts, and that of the words."""
        assert examples.targets is not None
        settings = self._words.settings
        targets = projected(moved(examples.targets, vectors.device), self._axes)  # [texts + words, d]
        texts, known = examples.count, len(targets)
        words, copies = vectors[texts:known], vectors[known:]
        kept = 1 - functional.cosine_similarity(words, targets[texts:]).mean()
        found = spelling_loss(copies, words, temperature=settings.temperature)
        loss = distillation_loss(vectors[:texts], targets[:texts], relation=self.settings.relation)
        return loss + settings.keep * kept + settings.weight * found
