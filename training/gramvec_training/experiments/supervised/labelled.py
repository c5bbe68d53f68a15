"""The labelled texts of the supervised experiments: to learn from, to choose an epoch on, and to score."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
from scipy import stats

from gramvec.errors import InputError
from gramvec_training.data import Ints
from gramvec_training.experiments.common import Inputs
from gramvec_training.objectives import score_targets
from gramvec_training.readers import Labelled, read_labelled
from gramvec_training.types import Floats

SCORES = 5  # of similarity, 1 to 5
_HELD_OUT = 10  # of what has no development part, one in so many

Texts = list[tuple[str, ...]]


@dataclass(frozen=True)
class Part:
    """Single texts or pairs, and of each its score, or the number of its class: float64[n]."""

    texts: Texts
    truth: npt.NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.texts)

    def those(self, rows: Ints) -> Part:
        """The examples with these numbers."""
        return Part([self.texts[row] for row in rows.tolist()], self.truth[rows])


@dataclass(frozen=True)
class Task:
    """classes: the labels by number; none where they are scores from 1 to 5."""

    name: str
    classes: tuple[str, ...]
    learned: Part
    held_out: Part
    scored: Part

    @property
    def width(self) -> int:
        """The number of a head's classes."""
        return len(self.classes) or SCORES

    @property
    def sides(self) -> int:
        """How many texts an example has."""
        return len(self.learned.texts[0])

    @property
    def digest(self) -> str:
        """16 hex digits over all of it."""
        state = hashlib.sha256(repr(self.classes).encode())
        for part in (self.learned, self.held_out, self.scored):
            state.update(repr(part.texts).encode() + part.truth.tobytes())
        return state.hexdigest()[:16]

    def targets(self, part: Part) -> Floats:
        """float32[n, width]: the distribution of each example's classes."""
        if not self.classes:
            return score_targets(part.truth, SCORES)
        return np.eye(self.width, dtype=np.float32)[part.truth.astype(np.int64)]

    def score(self, probabilities: Floats, part: Part) -> float:
        """Times 100: Pearson's r of the mean scores, or the share of examples whose class is right."""
        if self.classes:
            return 100 * float(np.mean(probabilities.argmax(axis=1) == part.truth))
        said = probabilities.astype(np.float64) @ np.arange(1, SCORES + 1)
        if not np.ptp(said) or not np.ptp(part.truth):
            return 0.0
        return 100 * float(stats.pearsonr(said, part.truth).statistic)

    def majority(self) -> float:
        """Times 100: the share of the class that most examples of learning have."""
        commonest = np.bincount(self.learned.truth.astype(np.int64)).argmax()
        return 100 * float(np.mean(self.scored.truth == commonest))

    def shuffled(self, seed: int) -> Task:
        """The same with the words of every text in another order."""
        rng = np.random.default_rng(seed)

        def shuffle(part: Part) -> Part:
            texts = [tuple(" ".join(rng.permutation(text.split())) for text in sides) for sides in part.texts]
            return replace(part, texts=texts)

        return replace(
            self,
            name=f"{self.name}-shuffled",
            learned=shuffle(self.learned),
            held_out=shuffle(self.held_out),
            scored=shuffle(self.scored),
        )

    def only(self, number: int, seed: int) -> Task:
        """The same with so many examples to learn from, drawn by the seed, of each class its share."""
        rows = np.random.default_rng(seed).permutation(len(self.learned))
        if self.classes:
            # A round takes one of each class, so that every number of examples has all of them.
            rank = np.empty(len(rows), np.int64)
            truth = self.learned.truth[rows]
            for value in np.unique(truth):
                of_class = np.flatnonzero(truth == value)
                rank[of_class] = np.arange(len(of_class))
            rows = rows[np.argsort(rank, kind="stable")]
        return replace(self, learned=self.learned.those(rows[:number]))


def similarity(inputs: Inputs) -> Task:
    """SICK's scores: a tenth of its training part held out, its trial part scored."""
    folder = _folder(inputs)
    # The scores of the trial part are a similarity set, which lies beside the labelled texts.
    learned, scored = _read(folder / "sick" / "train.tsv"), _read(folder.parent / "sick" / "trial.tsv")
    return _task("similarity", learned, None, scored, scores=True)


def entailment(inputs: Inputs) -> Task:
    """SICK's three classes: a tenth of its training part held out, its trial part scored."""
    folder = _folder(inputs) / "sick"
    return _task("entailment", _read(folder / "train.entail.tsv"), None, _read(folder / "trial.entail.tsv"))


def sentiment(inputs: Inputs, phrases: int) -> Task:
    """The two classes of Stanford's treebank: so many of its 67,349 phrases, its development and its test part."""
    folder = _folder(inputs) / "sst2"
    parts = [_read(folder / f"binary.{name}.tsv") for name in ("train", "dev", "test")]
    return _task("sentiment", *parts).only(phrases, seed=1)


def reviews(inputs: Inputs) -> Task:
    """The two classes of 2,440 reviews of IMDB."""
    folder = _folder(inputs) / "imdb"
    return _task("reviews", *(_read(folder / f"{name}.tsv") for name in ("train", "dev", "test")))


def inference(inputs: Inputs) -> Task:
    """SNLI's three classes: its development part learned from, a tenth of it held out, its test part scored."""
    folder = _folder(inputs) / "snli"
    return _task("inference", _read(folder / "dev.tsv"), None, _read(folder / "test.tsv"))


def _folder(inputs: Inputs) -> Path:
    if inputs.labelled is None:
        raise InputError("This experiment learns from labels: give --labelled, the folder of SICK, SST, SNLI and IMDB.")
    return inputs.labelled


def _read(path: Path) -> list[Labelled]:
    packed = path.with_name(f"{path.name}.gz")
    return read_labelled(packed if packed.is_file() and not path.is_file() else path)[0]


def _task(
    name: str,
    learned: list[Labelled],
    held_out: list[Labelled] | None,
    scored: list[Labelled],
    *,
    scores: bool = False,
) -> Task:
    classes = () if scores else tuple(sorted({row.label for row in learned}))
    numbers = {label: float(number) for number, label in enumerate(classes)}

    def part(rows: Sequence[Labelled]) -> Part:
        try:
            truth = [float(row.label) if scores else numbers[row.label] for row in rows]
        except (KeyError, ValueError) as error:
            raise InputError(f"The labels of {name} are not all of one kind: {error}.") from None
        return Part([row.texts for row in rows], np.array(truth))

    whole = part(learned)
    if held_out is not None:
        return Task(name, classes, whole, part(held_out), part(scored))
    rows = np.random.default_rng(1).permutation(len(whole))
    cut = max(1, len(rows) // _HELD_OUT)
    return Task(name, classes, whole.those(rows[cut:]), whole.those(rows[:cut]), part(scored))
