"""Records of what a report shows. They hold plain values, so that the page's script reads them as JSON."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gramvec.jobs.report.differences import Segment, mark_differences
from gramvec.text.arrays import Int64s

# The slider moves in steps of a thousandth.
BINS = 1000
_BIN_STARTS = (np.arange(BINS) / BINS).astype(np.float32)


def score_bins(scores: Any) -> Int64s:
    """Return the bin of each score, int64[n]; scores outside of 0 to 1, and NaN, have the nearest end.

    Jobs compare scores with a threshold in float32, in which 0.35 lies below the float64 of that name. So the bins
    begin at the float32 nearest to each thousandth, and a score at a threshold is in the bin that begins there.
    """
    values = np.nan_to_num(np.asarray(scores, dtype=np.float32))
    places = np.searchsorted(_BIN_STARTS, values, side="right") - 1
    return np.clip(places, 0, BINS - 1).astype(np.int64)


@dataclass(frozen=True)
class ScoreHistogram:
    """Counts of scores by thousandths, from which the page draws the histogram and counts again at any threshold.

    Attributes:
        counts: for each of BINS bins from 0 to 1, the number of scores in it.
        threshold: the threshold that the job used, 0 to 1, which may lie within a bin.
        above: how many scores are at that threshold or above it.
        unit: what is counted, such as "pairs".
        probabilities: whether the scores are probabilities, so that precision and recall can be expected from them.
        missing: matches that are expected among pairs that have no score, for the expected recall.
        note: a sentence on what is counted.
    """

    counts: list[int]
    threshold: float
    above: int
    unit: str = "pairs"
    probabilities: bool = True
    missing: float = 0.0
    note: str = ""

    @classmethod
    def from_scores(
        cls,
        scores: Any,
        threshold: float,
        *,
        unit: str = "pairs",
        probabilities: bool = True,
        missing: float = 0.0,
        note: str = "",
    ) -> ScoreHistogram:
        """Count scores, float[n] from 0 to 1; scores outside are counted at the nearest end."""
        values = np.asarray(scores, dtype=np.float32)
        counts = np.bincount(score_bins(values), minlength=BINS)
        above = int(np.count_nonzero(values >= np.float32(threshold)))
        return cls(counts.tolist(), float(threshold), above, unit, probabilities, float(missing), note)


@dataclass(frozen=True)
class ValuePair:
    """A compared column of a pair: its name, and both values with their differences marked."""

    name: str
    left: list[Segment]
    right: list[Segment]

    @classmethod
    def mark(cls, name: str, left: str, right: str) -> ValuePair:
        """Mark the differences of two values."""
        return cls(name, *mark_differences(left, right))


@dataclass(frozen=True)
class Pair:
    """A pair of rows with its score.

    Attributes:
        score: 0 to 1.
        left: what names the left row, such as its id or its line.
        right: what names the right row.
        columns: the compared columns.
        note: why the pair is listed, or what speaks against it.
    """

    score: float
    left: str
    right: str
    columns: list[ValuePair]
    note: str = ""


@dataclass(frozen=True)
class PairList:
    """Pairs under a title, with a sentence on which they are.

    Attributes:
        title: the heading.
        note: which pairs they are.
        pairs: the pairs, of which the page shows twenty at once.
        doubt: what looks doubtful here, as the page's first sentence names it, such as "3 pairs with other numbers".
    """

    title: str
    note: str
    pairs: list[Pair]
    doubt: str = ""


@dataclass(frozen=True)
class DuplicateGroup:
    """Rows that are one thing.

    Attributes:
        kept: the row that stays.
        others: those that go, or the first of them.
        rows: how many rows they are, with the one that stays.
    """

    kept: str
    others: list[str]
    rows: int


@dataclass(frozen=True)
class GroupSizes:
    """Groups of duplicates by size, and the largest of them; `doubt` is as of `PairList`."""

    sizes: list[tuple[int, int]]
    largest: list[DuplicateGroup]
    doubt: str = ""


@dataclass(frozen=True)
class Bar:
    """A bin of a calibration curve: the mean score of its answers, and the share of them that is right."""

    score: float
    right: float
    count: int


@dataclass(frozen=True)
class Calibration:
    """The calibration curve, and the expected calibration error, 0 to 1."""

    bins: list[Bar]
    error: float

    @classmethod
    def from_answers(cls, scores: Any, right: Any, bins: int = 10) -> Calibration:
        """Bin answers, float[n] scores from 0 to 1 and bool[n], by score."""
        values, truth = np.asarray(scores, np.float64), np.asarray(right, np.float64)
        places = np.clip((values * bins).astype(np.int64), 0, bins - 1)
        filled = [np.flatnonzero(places == place) for place in range(bins)]
        found = [Bar(float(values[rows].mean()), float(truth[rows].mean()), len(rows)) for rows in filled if len(rows)]
        error = sum(abs(bar.score - bar.right) * bar.count for bar in found) / max(1, len(values))
        return cls(found, float(error))


@dataclass(frozen=True)
class LabeledText:
    """A text with the label it has and the one it was given."""

    text: str
    label: str
    answer: str
    score: float


@dataclass(frozen=True)
class Confusion:
    """Counts of answers for the labels that are confused most.

    Attributes:
        labels: the names.
        counts: counts[i][j] is how many texts of label i were given label j.
        examples: texts that were given a wrong label, for pairs of these labels.
    """

    labels: list[str]
    counts: list[list[int]]
    examples: list[LabeledText]

    @classmethod
    def from_answers(
        cls, texts: Sequence[str], labels: Sequence[str], answers: Sequence[str], scores: Sequence[float],
        *, max_labels: int = 20, max_examples: int = 3,
    ) -> Confusion:  # fmt: skip
        """Count the answers of the labels that take part in most wrong answers."""
        wrong: dict[str, int] = {}
        for label, answer in zip(labels, answers, strict=True):
            if label != answer:
                wrong[label] = wrong.get(label, 0) + 1
                wrong[answer] = wrong.get(answer, 0) + 1
        names = sorted(sorted(wrong, key=lambda name: (-wrong[name], name))[:max_labels])
        place = {name: at for at, name in enumerate(names)}
        counts = [[0] * len(names) for _ in names]
        examples: list[LabeledText] = []
        shown: dict[tuple[str, str], int] = {}
        for text, label, answer, score in zip(texts, labels, answers, scores, strict=True):
            if label not in place or answer not in place:
                continue
            counts[place[label]][place[answer]] += 1
            if label != answer and shown.get((label, answer), 0) < max_examples:
                shown[label, answer] = shown.get((label, answer), 0) + 1
                examples.append(LabeledText(text[:300], label, answer, float(score)))
        return cls(names, counts, examples)


@dataclass(frozen=True)
class LearningPoint:
    """A point of a learning curve: the number of labels, and the quality that they gave, 0 to 1."""

    labels: int
    value: float


@dataclass(frozen=True)
class Table:
    """A plain table under a title; `doubt` is as of `PairList`."""

    title: str
    columns: list[str]
    rows: list[list[str]]
    doubt: str = ""


@dataclass(frozen=True)
class ComparedValue:
    """A value that a series, such as a model, has in a row of a comparison."""

    row: str
    series: str
    value: float


@dataclass(frozen=True)
class ScoreComparison:
    """A table of values of several series, and those that are drawn.

    Attributes:
        title: the heading.
        values: what is drawn, a dot each.
        table: all figures; its title is not shown.
    """

    title: str
    values: list[ComparedValue]
    table: Table


@dataclass(frozen=True)
class TextList:
    """Labeled texts under a title; `doubt` is as of `PairList`."""

    title: str
    note: str
    texts: list[LabeledText]
    doubt: str = ""


@dataclass(frozen=True)
class JobReport:
    """Contents of a page, in its order. Parts that are None or empty are left out.

    Attributes:
        title: the heading of the page.
        summary: what came out, in one sentence.
        facts: names and values of what was done and with what: command, model and digest, rows, time.
        learning_measure: what the learning curve shows.
    """

    title: str
    summary: str
    facts: list[tuple[str, str]]
    comparisons: list[ScoreComparison] = field(default_factory=list)
    scores: ScoreHistogram | None = None
    pairs: list[PairList] = field(default_factory=list)
    groups: GroupSizes | None = None
    calibration: Calibration | None = None
    confusion: Confusion | None = None
    learning: list[LearningPoint] = field(default_factory=list)
    learning_measure: str = "right answers"
    texts: list[TextList] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)


def count_groups(sizes: Iterable[int]) -> list[tuple[int, int]]:
    """Return (size, groups of this size) in ascending order of size."""
    counted: dict[int, int] = {}
    for size in sizes:
        counted[size] = counted.get(size, 0) + 1
    return sorted(counted.items())
