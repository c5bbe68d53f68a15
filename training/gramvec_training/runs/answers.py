"""What a head says of a text or a pair: one of some labels, or a score; what it learns for that, and how good it is."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from gramvec.errors import InputError
from gramvec_training.evaluation import correlations
from gramvec_training.objectives import score_targets
from gramvec_training.readers import Labelled, Scored, is_number
from gramvec_training.types import Floats

LEAST_ROWS = 10  # of a file
CLASSES = 5  # of a score (Tai et al., 2015, on SICK)
_MOST_TARGETS = 1 << 28  # rows times labels: a gigabyte
_DECIMALS = 4  # as they are written

Truth = npt.NDArray[np.float64]
Figures = dict[str, float | None]


class Answers(ABC):
    """Rows -> a head's targets, and its probabilities float32[n, classes] -> figures and what is written."""

    @property
    @abstractmethod
    def classes(self) -> int:
        """Of the head."""

    @property
    @abstractmethod
    def record(self) -> dict[str, Any]:
        """JSON types, from which `recorded` makes the same again."""

    @abstractmethod
    def truth(self, rows: Sequence[Labelled | Scored]) -> Truth:
        """float64[n]: what the rows say."""

    @abstractmethod
    def targets(self, truth: Truth) -> Floats:
        """float32[n, classes]: the distributions that are learned."""

    @abstractmethod
    def figures(self, said: Floats, truth: Truth) -> Figures:
        """How good the probabilities of some rows are."""

    @abstractmethod
    def simplest(self, learned: Truth, truth: Truth) -> Figures:
        """The figures of one answer for all rows, from those that are learned from."""

    @abstractmethod
    def told(self, said: Floats) -> list[tuple[str, ...]]:
        """The columns of each row's answer."""


@dataclass(frozen=True)
class Labels(Answers):
    """names: of the classes, by number."""

    names: tuple[str, ...]

    @classmethod
    def of(cls, rows: Sequence[Labelled]) -> Labels:
        """Of all labels of the rows. Raises InputError where there are too few rows or labels, or too many labels."""
        _enough(len(rows), "labelled texts")
        names = tuple(sorted({row.label for row in rows}))
        if len(names) < 2:
            raise InputError(f"All {len(rows):,} rows have the label {names[0]!r}; give texts of two labels at least.")
        if len(names) > len(rows) // 2 or len(names) * len(rows) > _MOST_TARGETS:
            remedy = "write a label, a tab and a text"
            if len(rows[0].texts) > 1 and all(map(is_number, names)):
                remedy = "if they are scores, give the file as --scored"
            raise InputError(f"There are {len(names):,} labels in {len(rows):,} rows, too many to learn; {remedy}.")
        return cls(names)

    @property
    def classes(self) -> int:
        """See Answers."""
        return len(self.names)

    @property
    def record(self) -> dict[str, Any]:
        """See Answers."""
        return {"labels": list(self.names)}

    def truth(self, rows: Sequence[Labelled | Scored]) -> Truth:
        """See Answers; the number of each one's class."""
        numbers = {name: number for number, name in enumerate(self.names)}
        return np.array([numbers[str(row[0])] for row in rows], np.float64)

    def targets(self, truth: Truth) -> Floats:
        """See Answers; 1 for the class, 0 for others."""
        targets = np.zeros((len(truth), self.classes), np.float32)
        targets[np.arange(len(truth)), truth.astype(np.int64)] = 1
        return targets

    def figures(self, said: Floats, truth: Truth) -> Figures:
        """accuracy: times 100."""
        return {"accuracy": 100 * float(np.mean(said.argmax(axis=1) == truth))}

    def simplest(self, learned: Truth, truth: Truth) -> Figures:
        """commonest: the accuracy, times 100, of the label that most rows have."""
        return {"commonest": 100 * float(np.mean(truth == np.bincount(learned.astype(np.int64)).argmax()))}

    def told(self, said: Floats) -> list[tuple[str, ...]]:
        """The likeliest label and its probability."""
        best = said.argmax(axis=1).tolist()
        return [(self.names[at], f"{row[at]:.{_DECIMALS}f}") for row, at in zip(said.tolist(), best, strict=True)]


@dataclass(frozen=True)
class Scores(Answers):
    """Scores from `least` to `most` as distributions over five classes, whose mean they are (Tai et al., 2015).

    A score s is class 1 + 4 (s - least) / (most - least), between two classes a share of each.
    """

    least: float
    most: float

    @classmethod
    def of(cls, rows: Sequence[Scored]) -> Scores:
        """Between the least and the greatest of the rows. Raises InputError where there are too few, or all alike."""
        _enough(len(rows), "scored pairs")
        scores = [row.score for row in rows]
        if min(scores) == max(scores):
            raise InputError(f"All {len(rows):,} rows have the score {scores[0]:g}; give pairs of different scores.")
        return cls(min(scores), max(scores))

    @property
    def classes(self) -> int:
        """See Answers."""
        return CLASSES

    @property
    def record(self) -> dict[str, Any]:
        """See Answers."""
        return {"scores": [self.least, self.most]}

    def truth(self, rows: Sequence[Labelled | Scored]) -> Truth:
        """See Answers; the scores."""
        return np.array([float(row[0]) for row in rows], np.float64)

    def targets(self, truth: Truth) -> Floats:
        """See Answers; p of the class above and 1 - p of the one below."""
        return score_targets(1 + (CLASSES - 1) * (truth - self.least) / (self.most - self.least), CLASSES)

    def expected(self, said: Floats) -> Truth:
        """float64[n]: the mean score of each distribution."""
        share = said.astype(np.float64) @ np.arange(CLASSES) / (CLASSES - 1)
        return self.least + (self.most - self.least) * share

    def figures(self, said: Floats, truth: Truth) -> Figures:
        """pearson: times 100, None where it is undefined. error: the mean absolute one, in scores."""
        scores = self.expected(said)
        return {"pearson": pearson(scores, truth), "error": float(np.mean(np.abs(scores - truth)))}

    def simplest(self, learned: Truth, truth: Truth) -> Figures:
        """error of the mean: that of the mean score of the rows that are learned from."""
        return {"error of the mean": float(np.mean(np.abs(truth - learned.mean())))}

    def told(self, said: Floats) -> list[tuple[str, ...]]:
        """The mean score."""
        return [(f"{score:.{_DECIMALS}f}",) for score in self.expected(said).tolist()]


def recorded(record: Mapping[str, Any]) -> Answers:
    """What a record says of its answers. Raises KeyError, TypeError or ValueError where it is damaged."""
    if "labels" in record:
        return Labels(tuple(map(str, record["labels"])))
    least, most = map(float, record["scores"])
    if not -math.inf < least < most < math.inf:
        raise ValueError("its scores have no ends")
    return Scores(least, most)


def pearson(said: npt.NDArray[np.floating[Any]], truth: Truth) -> float | None:
    """Pearson's r times 100; None where either has one value."""
    if not np.ptp(truth):
        return None
    found = correlations(said, truth)[0]
    return None if math.isnan(found) else 100 * found


def likelihood(said: Floats, targets: Floats) -> float:
    """The mean over rows of sum p log q, of targets p and what was said q; 0 at most."""
    logs = np.log(np.maximum(said.astype(np.float64), 1e-30))
    return float(np.mean((targets * logs).sum(axis=1)))


def _enough(rows: int, what: str) -> None:
    if rows < LEAST_ROWS:
        raise InputError(f"There are {rows} usable rows; give {LEAST_ROWS} {what} at least.")
