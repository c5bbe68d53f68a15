"""The margin loss over pairs of paraphrases (Wieting et al., 2016), and the choice of its negatives."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from gramvec_training.config import Among, Sampling, Training
from gramvec_training.data.corpus import Corpus
from gramvec_training.data.sampling import Mixture
from gramvec_training.encoders.base import Encoder
from gramvec_training.objectives.base import Examples, PairObjective
from gramvec_training.sections import OBJECTIVES, ObjectiveSettings
from gramvec_training.shared import Ints


def margin_loss(
    left: Tensor,
    right: Tensor,
    negatives: Tensor,
    margin: float,
    *,
    candidates: Tensor | None = None,
    lengths: Tensor | None = None,
    epsilon: float = 0.0,
) -> Tensor:
    """Return the mean over the pairs of the two hinges, a scalar.

    max(0, margin - cos(x1, x2) + cos(x1, t1)) + max(0, margin - cos(x1, x2) + cos(x2, t2)).
    (CHARAGRAM's supplement, the equation of section 1, without the L2 term, which the optimizer adds.)

    `left` and `right` float32[b, d] are unit vectors; `negatives` int64[2b] numbers, for each of the b left and then
    the b right phrases, one of the `candidates`, unit vectors float32[m, d], by default these 2b phrases (left
    first), or is -1 for none: that hinge then counts as zero. The gradient flows through the negatives' vectors;
    their choice is constant.

    With `epsilon` a cosine is x . y / (|x| |y| + epsilon), as in the authors' code of the character models, whose first
    vectors are short; `lengths` float32[m] are then the candidates' lengths before they were made unit vectors, the
    first 2b of them the phrases'.
    """
    phrases = torch.cat([left, right])  # [2b, d]
    among = phrases if candidates is None else candidates  # [m, d]
    chosen = negatives.clamp(min=0)
    positive = (left * right).sum(dim=1).repeat(2)  # [2b]
    negative = (phrases * among[chosen]).sum(dim=1)  # [2b]
    if epsilon:
        assert lengths is not None
        own = lengths[: len(phrases)]
        positive = positive * _share(own * own.roll(len(left)), epsilon)
        negative = negative * _share(own * lengths[chosen], epsilon)
    hinges = functional.relu(margin - positive + negative) * (negatives >= 0)  # [2b]
    return hinges.sum() / len(left)


def _share(products: Tensor, epsilon: float) -> Tensor:
    return products / (products + epsilon)


CHUNK_PHRASES = 1024  # of a mega-batch at a time: their cosines with 10,000 others take 40 MB
_OUT = -2.0  # below every cosine


@torch.no_grad()
def choose_negatives(
    phrases: Tensor,
    texts: Tensor,
    sampling: Sampling,
    *,
    among: Among = "both",
    generator: torch.Generator | None = None,
    classes: Tensor | None = None,
) -> Tensor:
    """Return int64[2b]: the negative of each of the 2b phrases (b left, then b right), -1 for none.

    `phrases` float32[2b, d] are unit vectors; `texts` int64[2b] are equal where the texts are equal. `classes`
    int64[2b] are the labels of the texts where they have any: no negative is of the phrase's own one, and a phrase of
    class -1, which has several labels, has none and is none. MAX takes the
    most similar candidate, the first of equals. RAND takes one uniformly at random, MIX does so for each phrase by
    itself with probability 0.5 and else takes MAX; `generator` (on the CPU) is then required. (CHARAGRAM's supplement,
    section 1.1; PARAGRAM-PHRASE, section 3.1.1 and the timing runs.)
    """
    half = len(texts) // 2
    partners = texts.roll(half)
    chosen = []
    for start in range(0, len(texts), CHUNK_PHRASES):
        part = slice(start, start + CHUNK_PHRASES)
        out = (texts[part, None] == texts) | (partners[part, None] == texts)  # [c, 2b]
        if classes is not None:
            out |= (classes[part, None] == classes) | (classes[part, None] < 0) | (classes < 0)
        if among == "own":
            is_left = torch.arange(len(texts), device=texts.device) < half
            out |= is_left[part, None] != is_left
        none_left = out.all(dim=1)
        if sampling != "rand":
            most = (phrases[part] @ phrases.T).masked_fill_(out, _OUT).argmax(dim=1)  # [c]
        if sampling != "max":
            drawn = torch.rand(out.shape, generator=generator).to(phrases.device).masked_fill_(out, -1.0).argmax(dim=1)
            coin = torch.rand(len(out), generator=generator).to(phrases.device) < 0.5
            most = drawn if sampling == "rand" else torch.where(coin, drawn, most)
        chosen.append(torch.where(none_left, -1, most))
    return torch.cat(chosen)


@torch.no_grad()
def find_mega_batch_negatives(
    encoder: Encoder,
    corpus: Corpus,
    pairs: Ints,
    sampling: Sampling,
    *,
    among: Among = "both",
    generator: torch.Generator | None = None,
    classes: Ints | None = None,
) -> Ints:
    """Return int64[2, m]: the negatives of pairs, sought among all their texts with the encoder's current weights.

    `pairs` int64[m, 2] are numbers of texts of the corpus, and so is what comes back, for the left and the right
    sides, with -1 for none; `classes` int64[texts] are the labels of the corpus: see `choose_negatives`.
    (Wieting and Gimpel, 2018, whose mega-batches are these pairs; they search only the opposite side.)
    """
    device = encoder.table.device
    phrases = np.concatenate([pairs[:, 0], pairs[:, 1]])  # [2m]
    texts, places = np.unique(phrases, return_inverse=True)
    vectors = []
    for start in range(0, len(texts), CHUNK_PHRASES):
        ids, offsets = corpus.cut(texts[start : start + CHUNK_PHRASES])
        vectors.append(encoder(torch.from_numpy(ids).to(device), torch.from_numpy(offsets).to(device)))
    unit = functional.normalize(torch.cat(vectors), dim=1)[torch.from_numpy(places).to(device)]  # [2m, d]
    same = torch.from_numpy(phrases).to(device)
    of_label = None if classes is None else torch.from_numpy(classes[phrases]).to(device)
    places_of_negatives = choose_negatives(unit, same, sampling, among=among, generator=generator, classes=of_label)
    chosen = places_of_negatives.cpu().numpy()
    negatives: Ints = np.where(chosen >= 0, phrases[chosen], -1).reshape(2, -1)
    return negatives


class MarginSettings(ObjectiveSettings):
    """The margin loss, whose numbers are in [training]: what pairs teach where a config has no [objective]."""

    kind: Literal["margin"] = "margin"


@OBJECTIVES.register(MarginSettings)
class MarginObjective(PairObjective):
    """The margin loss over pairs; a batch holds left phrases, right phrases, then the negatives of a mega-batch.

    The negatives are sought in the batch itself, whose phrases need not be repeated, or, with training.mega_batch
    above 1, among that number of batches of an epoch together, with the encoder as it is at the first of these. No
    negative is of a phrase's own label, where the texts have labels.
    """

    def __init__(self, encoder: Encoder, corpus: Corpus, mixture: Mixture, training: Training, **rest: Any) -> None:
        super().__init__(encoder, corpus, mixture, training, **rest)
        self.ahead = training.mega_batch == 1
        self._sought_at = -1  # the step at which these negatives were sought
        self._negatives = np.zeros((2, 0), dtype=np.int64)

    def examples_at(self, step: int) -> Examples:
        """Return the pairs of a step; `targets` int64[2b] number the negatives of a mega-batch, -1 for none."""
        if self.schedule.mega_batch == 1:
            return super().examples_at(step)
        pairs = self.pairs_at(step)
        texts = np.concatenate([pairs[:, 0], pairs[:, 1]])
        negatives = self._mega_batch_at(step)
        texts = np.concatenate([texts, np.setdiff1d(negatives, [-1])])
        return Examples(step, self.corpus.batch(texts), len(pairs), negatives)

    def loss(self, vectors: Tensor, examples: Examples) -> Tensor:
        """Return the margin loss with negatives chosen by the current parameters or by the mega-batch."""
        settings, texts = self.schedule, examples.batch.texts
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
        """Return the negatives of the current mega-batch."""
        return {"sought_at": self._sought_at, "negatives": torch.from_numpy(self._negatives)}

    def restore(self, state: dict[str, Any]) -> None:
        """Load what `state` returned."""
        self._sought_at, self._negatives = state["sought_at"], state["negatives"].numpy()

    def _mega_batch_at(self, step: int) -> Ints:
        """Return int64[2b]: the text numbers of the negatives of a step's phrases, -1 for none."""
        settings = self.schedule
        within = step % self.steps_per_epoch % settings.mega_batch
        if self._sought_at != step - within:
            self._sought_at = step - within
            pairs = self.pairs_at(self._sought_at, settings.mega_batch)
            generator = self._generator(self._sought_at)
            self._negatives = find_mega_batch_negatives(
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
        if self.schedule.negatives == "max":
            return None
        return torch.Generator().manual_seed(self.schedule.seed * 2**31 + step)


def build_objective(
    settings: ObjectiveSettings | None,
    encoder: Encoder,
    corpus: Corpus,
    mixture: Mixture,
    training: Training,
    classes: Ints | None = None,
) -> PairObjective:
    """Build what pairs of the corpus teach: by the settings of [objective], or the margin loss."""
    chosen = MarginSettings() if settings is None else settings
    objective: PairObjective = OBJECTIVES.find_class(chosen)(
        encoder, corpus, mixture, training, settings=chosen, classes=classes
    )
    return objective
