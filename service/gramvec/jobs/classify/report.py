"""Reports of heads: how right and how honest the answers on held-out texts are, and which labels texts were given."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gramvec.jobs.classify.fit import Report
from gramvec.jobs.classify.head import Head
from gramvec.jobs.classify.writer import LabelColumns
from gramvec.jobs.report import (
    Calibration,
    Confusion,
    JobReport,
    LabeledText,
    LearningPoint,
    ScoreHistogram,
    Table,
    TextList,
)
from gramvec.jobs.report.records import BINS, score_bins
from gramvec.jobs.tables.batches import Block
from gramvec.text.arrays import Int64s

MAX_TEXTS = 60
MAX_CHARACTERS = 300
MAX_LABELS = 100


def fit_report(
    head: Head,
    report: Report,
    texts: Sequence[str],
    labels: Sequence[Sequence[str]],
    *,
    learning: Sequence[LearningPoint] = (),
    title: str,
    facts: Sequence[tuple[str, str]],
) -> JobReport:
    """Return the report of a head that was learned, on the texts that were held out.

    Args:
        head: the head.
        report: its quality.
        texts: all labeled texts.
        labels: those of each text.
        learning: the learning curve.
        title: the heading.
        facts: what was done and with what.
    """
    answers = report.answers
    own = [labels[row] for row in answers.rows.tolist()]
    held = [texts[row] for row in answers.rows.tolist()]
    summary = (
        f"On {report.texts:,} held-out texts of {report.labels:,} labels the best label is right for "
        f"{report.accuracy:.1%}; {report.unknown:.1%} are unknown, below the threshold {head.threshold:.2f}."
    )

    def show(order: Int64s) -> list[LabeledText]:
        return [
            LabeledText(_shorten(held[at]), " | ".join(own[at]), answers.labels[at], float(answers.scores[at]))
            for at in order[:MAX_TEXTS].tolist()
        ]

    wrong = int(np.count_nonzero(~answers.right))
    descending = np.argsort(-answers.scores, kind="stable")
    near = np.argsort(np.abs(answers.scores - np.float32(head.threshold)), kind="stable")
    # Where a text may have several labels, the answer stands in for the one that it should be, if it is right.
    single = [answer if right else given[0] for answer, right, given in
              zip(answers.labels, answers.right.tolist(), own, strict=True)]  # fmt: skip
    return JobReport(
        title, summary, [*facts],
        scores=ScoreHistogram.from_scores(answers.scores, head.threshold, unit="held-out texts"),
        calibration=Calibration.from_answers(answers.scores, answers.right),
        confusion=Confusion.from_answers(held, single, answers.labels, answers.scores.tolist()),
        learning=[*learning],
        learning_measure="right labels, F1" if report.several else "right answers",
        texts=[
            TextList("Likeliest wrong labels", "Held-out texts with a wrong answer of the highest score: look whether "
                     "their own label is right.", show(descending[~answers.right[descending]]),
                     f"{wrong:,} wrong answer{'s' * (wrong != 1)}" if wrong else ""),
            TextList("Around the threshold", "The held-out texts whose scores are nearest to it.", show(near)),
        ],
        tables=[_label_table(single, answers.labels)],
    )  # fmt: skip


def _label_table(labels: Sequence[str], answers: Sequence[str]) -> Table:
    """Return how many texts each label has, and how many of them are right, the worst label first."""
    texts: dict[str, int] = {}
    right: dict[str, int] = {}
    times_answered: dict[str, int] = {}
    for label, answer in zip(labels, answers, strict=True):
        texts[label] = texts.get(label, 0) + 1
        right[label] = right.get(label, 0) + (label == answer)
        times_answered[answer] = times_answered.get(answer, 0) + 1
    worst = sorted(texts, key=lambda name: (right[name] / texts[name], -texts[name], name))[:MAX_LABELS]
    rows = [[name, f"{texts[name]:,}", f"{100 * right[name] / texts[name]:.1f} %", f"{times_answered.get(name, 0):,}"]
            for name in worst]  # fmt: skip
    return Table("Labels, the worst first", ["label", "held-out texts", "right", "given to"], rows)


class CountedLabels(LabelColumns):
    """The columns of `LabelColumns`, which counts what it gives, for a report; in memory that does not grow."""

    def __init__(self, head: Head, prefix: str = "", *, max_characters: int | None = None) -> None:
        super().__init__(head, prefix, max_characters=max_characters)
        self._counts, self._above = np.zeros(BINS, np.int64), 0
        # Texts of each label, those below the threshold, and the first one.
        self._labels: dict[str, tuple[int, int, str]] = {}
        self._near: list[tuple[float, LabeledText]] = []

    def values(self, block: Block, vectors: Any, missing: Any) -> list[list[Any]]:
        """Return the columns, and count them."""
        columns = super().values(block, vectors, missing)
        scores = np.array([score for score in columns[1] if score is not None], np.float32)
        self._counts += np.bincount(score_bins(scores), minlength=BINS)
        self._above += int(np.count_nonzero(scores >= np.float32(self._head.threshold)))
        for text, label, score, known in zip(block.texts, *columns, strict=True):
            if score is None:
                continue
            names = label if isinstance(label, list) else [label]
            for name in names:
                count, below, first = self._labels.get(name, (0, 0, _shorten(text)))
                self._labels[name] = count + 1, below + (not known), first
            shown = LabeledText(_shorten(text), "", " | ".join(names), float(score))
            self._near.append((abs(score - self._head.threshold), shown))
        self._near = sorted(self._near, key=lambda near: near[0])[:MAX_TEXTS]
        return columns

    def report(self, *, title: str, facts: Sequence[tuple[str, str]]) -> JobReport:
        """Return the report of the labels that were given."""
        texts, unknown = int(self._counts.sum()), sum(below for _, below, _ in self._labels.values())
        shown = sorted(self._labels, key=lambda name: (-self._labels[name][0], name))[:MAX_LABELS]
        rows = [[name, f"{count:,}", f"{below:,}", first]
                for name, (count, below, first) in ((name, self._labels[name]) for name in shown)]  # fmt: skip
        return JobReport(
            title, f"{texts:,} texts have a label; {unknown:,} labels are below their threshold.", [*facts],
            scores=ScoreHistogram(self._counts.tolist(), self._head.threshold, self._above, "texts"),
            texts=[TextList("Around the threshold", "The texts whose scores are nearest to it.",
                            [shown for _, shown in self._near])],
            tables=[Table("Labels that were given", ["label", "texts", "below the threshold", "first text"], rows,
                          f"{unknown:,} label{'s' * (unknown != 1)} below the threshold" if unknown else "")],
        )  # fmt: skip


def _shorten(text: str) -> str:
    return text if len(text) <= MAX_CHARACTERS else text[:MAX_CHARACTERS] + "…"
