"""Pairs of texts with a score each: score<TAB>text<TAB>text lines, CSV or JSON lines."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from gramvec.errors import InputError
from gramvec_training.evaluation.similarity import correlate
from gramvec_training.readers.columns import SCORES, describe_header, find_places, is_number, split_header, table_rows
from gramvec_training.readers.labels import Labeled
from gramvec_training.readers.lines import SkippedRows
from gramvec_training.readers.pairs import LEFT, RIGHT
from gramvec_training.sections import OnBad
from gramvec_training.shared import Floats

_REMEDY = "write a score, a tab, a text, a tab and the other text on each line"
_IN_ORDER = (0, 1, 2)


class Scored(NamedTuple):
    """A finite score, and two texts."""

    score: float
    texts: tuple[str, ...]


def read_scored(path: Path, *, on_bad: OnBad = "skip") -> tuple[list[Scored], SkippedRows]:
    """Read the rows of a file, plain or compressed; where no name is known, they are the first three columns.

    A header that names a score and both texts (`score`, `sentence1`, `sentence2` and the like) names their
    columns and is no row. Bad rows (another number of columns, an empty text, a score that is no finite number, not
    UTF-8, longer than 16 MiB) are skipped and counted, or refused with InputError. Raises InputError where the file is
    missing or holds no usable row.
    """
    scored: list[Scored] = []
    bad = SkippedRows(path, on_bad, _REMEDY)
    header, rows = split_header(table_rows(bad), bad, SCORES, LEFT)
    places = _IN_ORDER
    if header is not None and len(header) >= len(places):
        score, pair = find_places(header, SCORES, LEFT), find_places(header, LEFT, RIGHT)
        places = (score[0], *pair) if score and pair else _IN_ORDER
        names = [repr(header[place]) for place in places]
        bad.add_note(f"{describe_header(bad)}; scores are {names[0]} and texts {names[1]} and {names[2]}")
    for number, columns, why in rows:
        why = why or _find_fault(columns, places, named=header is not None)
        if why:
            bad.add(number, why)
        else:
            scored.append(Scored(float(columns[places[0]]), (columns[places[1]], columns[places[2]])))
    bad.require(scored)
    return scored, bad


def _find_fault(columns: list[str], places: tuple[int, int, int], *, named: bool) -> str | None:
    if len(columns) <= max(places) or (not named and len(columns) > len(places)):
        return f"{len(columns)} column{'s' if len(columns) > 1 else ''}"
    score, *texts = (columns[place] for place in places)
    if not is_number(score) or not math.isfinite(float(score)):
        return "no score that is a number"
    return None if all(texts) else "an empty column"


MIN_ROWS = 10  # of a file
CLASSES = 5  # of a score (Tai et al., 2015, on SICK)
_MAX_TARGETS = 1 << 28  # rows times labels: a gigabyte
_DECIMALS = 4  # as they are written

Truth = npt.NDArray[np.float64]
Figures = dict[str, float | None]


@dataclass(frozen=True)
class LabelAnswers:
    """Labels of texts or pairs. names: of the classes, by number."""

    names: tuple[str, ...]

    @classmethod
    def of(cls, rows: Sequence[Labeled]) -> LabelAnswers:
        """Take all labels of the rows. Raises InputError where there are too few rows or labels, or too many labels."""
        _check_enough(len(rows), "labeled texts")
        names = tuple(sorted({row.label for row in rows}))
        if len(names) < 2:
            raise InputError(f"all {len(rows):,} rows have the label {names[0]!r}; give texts of two labels at least")
        if len(names) > len(rows) // 2 or len(names) * len(rows) > _MAX_TARGETS:
            remedy = "write a label, a tab and a text"
            if len(rows[0].texts) > 1 and all(map(is_number, names)):
                remedy = "if they are scores, give the file as --scored"
            raise InputError(f"there are {len(names):,} labels in {len(rows):,} rows, too many to learn; {remedy}")
        return cls(names)

    @property
    def classes(self) -> int:
        """Return the number of the head's classes."""
        return len(self.names)

    @property
    def record(self) -> dict[str, Any]:
        """Return JSON types, from which `read_answers` makes the same again."""
        return {"labels": list(self.names)}

    def truth(self, rows: Sequence[Labeled | Scored]) -> Truth:
        """Return float64[n], the number of each row's class."""
        numbers = {name: number for number, name in enumerate(self.names)}
        return np.array([numbers[str(row[0])] for row in rows], np.float64)

    def targets(self, truth: Truth) -> Floats:
        """Return float32[n, classes], the distributions that are learned: 1 for the class, 0 for others."""
        targets = np.zeros((len(truth), self.classes), np.float32)
        targets[np.arange(len(truth)), truth.astype(np.int64)] = 1
        return targets

    def figures(self, predicted: Floats, truth: Truth) -> Figures:
        """Return how good the probabilities float32[n, classes] of some rows are. accuracy: times 100."""
        return {"accuracy": 100 * float(np.mean(predicted.argmax(axis=1) == truth))}

    def simplest(self, learned: Truth, truth: Truth) -> Figures:
        """Return the figures of one answer for all. commonest: of the label that most rows have, times 100."""
        return {"commonest": 100 * float(np.mean(truth == np.bincount(learned.astype(np.int64)).argmax()))}

    def list_answers(self, predicted: Floats) -> list[tuple[str, ...]]:
        """Return the columns of each row's answer: the likeliest label and its probability."""
        best = predicted.argmax(axis=1).tolist()
        return [(self.names[at], f"{row[at]:.{_DECIMALS}f}") for row, at in zip(predicted.tolist(), best, strict=True)]


@dataclass(frozen=True)
class ScoreAnswers:
    """Scores from `lowest` to `highest` as distributions over five classes, whose mean they are (Tai et al., 2015).

    A score s is class 1 + 4 (s - lowest) / (highest - lowest), between two classes a share of each.
    """

    lowest: float
    highest: float

    @classmethod
    def of(cls, rows: Sequence[Scored]) -> ScoreAnswers:
        """Take the least and the greatest of the rows. Raises InputError where there are too few, or all alike."""
        _check_enough(len(rows), "scored pairs")
        scores = [row.score for row in rows]
        if min(scores) == max(scores):
            raise InputError(f"all {len(rows):,} rows have the score {scores[0]:g}; give pairs of different scores")
        return cls(min(scores), max(scores))

    @property
    def classes(self) -> int:
        """Return the number of the head's classes."""
        return CLASSES

    @property
    def record(self) -> dict[str, Any]:
        """Return JSON types, from which `read_answers` makes the same again."""
        return {"scores": [self.lowest, self.highest]}

    def truth(self, rows: Sequence[Labeled | Scored]) -> Truth:
        """Return float64[n], the score of each row."""
        return np.array([float(row[0]) for row in rows], np.float64)

    def targets(self, truth: Truth) -> Floats:
        """Return float32[n, classes]: p of the class above and 1 - p of the one below."""
        return spread_scores(1 + (CLASSES - 1) * (truth - self.lowest) / (self.highest - self.lowest), CLASSES)

    def expected(self, predicted: Floats) -> Truth:
        """Return float64[n], the mean score of each distribution."""
        share = predicted.astype(np.float64) @ np.arange(CLASSES) / (CLASSES - 1)
        return self.lowest + (self.highest - self.lowest) * share

    def figures(self, predicted: Floats, truth: Truth) -> Figures:
        """Return pearson, times 100, None where it is undefined, and error, the mean absolute one, in scores."""
        scores = self.expected(predicted)
        return {"pearson": pearson(scores, truth), "error": float(np.mean(np.abs(scores - truth)))}

    def simplest(self, learned: Truth, truth: Truth) -> Figures:
        """Return the error of the mean score of the rows that are learned from."""
        return {"error of the mean": float(np.mean(np.abs(truth - learned.mean())))}

    def list_answers(self, predicted: Floats) -> list[tuple[str, ...]]:
        """Return the columns of each row's answer: its mean score."""
        return [(f"{score:.{_DECIMALS}f}",) for score in self.expected(predicted).tolist()]


Answers = LabelAnswers | ScoreAnswers


def read_answers(record: Mapping[str, Any]) -> Answers:
    """Return the answers of a record. Raises KeyError, TypeError or ValueError where it is damaged."""
    if "labels" in record:
        return LabelAnswers(tuple(map(str, record["labels"])))
    lowest, highest = map(float, record["scores"])
    if not -math.inf < lowest < highest < math.inf:
        raise ValueError("its scores have no ends")
    return ScoreAnswers(lowest, highest)


def pearson(predicted: npt.NDArray[np.floating[Any]], truth: Truth) -> float | None:
    """Return Pearson's r times 100, or None where either has one value."""
    if not np.ptp(truth):
        return None
    correlation = correlate(predicted, truth)[0]
    return None if math.isnan(correlation) else 100 * correlation


def likelihood(predicted: Floats, targets: Floats) -> float:
    """Return the mean over rows of sum p log q, of targets p and predictions q; 0 at most."""
    logs = np.log(np.maximum(predicted.astype(np.float64), 1e-30))
    return float(np.mean((targets * logs).sum(axis=1)))


def _check_enough(rows: int, what: str) -> None:
    if rows < MIN_ROWS:
        raise InputError(f"there are {rows} usable rows; give {MIN_ROWS} {what} at least")


def spread_scores(scores: npt.NDArray[np.float64], classes: int) -> Floats:
    """Return float32[n, classes]: a score y in [1, classes] as two neighboring classes, whose mean it is.

    p = y - floor(y) of class floor(y) + 1 and 1 - p of class floor(y). Scores outside are drawn to the nearest end
    (Tai et al., 2015).
    """
    inside = np.clip(scores, 1, classes)
    low = np.minimum(np.floor(inside), classes - 1).astype(np.int64)
    targets = np.zeros((len(inside), classes), np.float32)
    rows = np.arange(len(inside))
    targets[rows, low - 1] = 1 - (inside - low)
    targets[rows, low] = inside - low
    return targets
