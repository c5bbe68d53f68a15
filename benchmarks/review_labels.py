"""Accuracy after some answers of `gramvec review labels TEXTS --head HEAD`, beside as many random labels.

On intents of the folder `classification` of development data. The review begins with a head of PER_LABEL texts of each
label, and asks among POOL others; the truth answers. Accuracy is of the head that `classify fit` learns from the first
labels and the answers, on the test texts, of which none is asked about. Each of the rounds draws all texts anew.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import click
import numpy as np

from gramvec.embed.embedder import Embedder
from gramvec.embed.loading import load
from gramvec.jobs.classify.fit import fit_head
from gramvec.jobs.classify.head import Head
from gramvec.jobs.classify.labeled import read_labeled
from gramvec.jobs.review.answers_file import AnswersFile
from gramvec.jobs.review.label_questions import LabelQuestions
from gramvec.jobs.review.session import ReviewSession
from gramvec.jobs.tables.inputs import FileFormat
from gramvec.text.arrays import Floats

SETS = {"hwu64": "HWU64", "snips": "SNIPS"}
PER_LABEL, POOL = 2, 4_000
# How texts are chosen was decided on the draws 0 and 1.
FIRST_DRAW = 2


class LabeledRows(NamedTuple):
    """Texts with a label and a vector each, float32[n, d]."""

    texts: list[str]
    labels: list[str]
    vectors: Floats

    def only(self, rows: Sequence[int]) -> LabeledRows:
        """Return some rows."""
        return LabeledRows([self.texts[row] for row in rows], [self.labels[row] for row in rows], self.vectors[rows])

    def with_rows(self, other: LabeledRows) -> LabeledRows:
        """Return these rows and others."""
        return LabeledRows(self.texts + other.texts, self.labels + other.labels,
                           np.vstack([self.vectors, other.vectors]))  # fmt: skip


def read_rows(path: Path, embedder: Embedder) -> LabeledRows:
    """Return the different texts of a file."""
    found = read_labeled(path, FileFormat("tsv"), "text", "label", several=False)
    first = {" ".join(text.split()): label for text, (label,) in zip(found.texts, found.labels, strict=True)}
    return LabeledRows([*first], [*first.values()], embedder.embed([*first]))


def fit(rows: LabeledRows) -> Head:
    """Return a head of these rows."""
    return fit_head(rows.texts, rows.vectors, rows.labels, model="", digest="")[0]


def accuracy(head: Head, test: LabeledRows) -> float:
    """Return the share of test texts whose best label is right."""
    best = head.predict(test.texts, test.vectors).argmax(axis=1).tolist()
    return float(np.mean([head.labels[one] == label for one, label in zip(best, test.labels, strict=True)]))


def ask(first: LabeledRows, pool: LabeledRows, counts: Sequence[int]) -> Iterator[list[int]]:
    """Yield the texts that a review has asked about when they are as many as each of `counts`."""
    others = list(zip(first.texts, first.labels, strict=True)), first.vectors
    subject = LabelQuestions("", pool.texts, pool.vectors, fit(first), lambda labels: [], others=others)
    with tempfile.TemporaryDirectory() as folder:
        session = ReviewSession(subject, AnswersFile(Path(folder, "labels.csv"), subject.columns))
        asked: list[int] = []
        for count in counts:
            while len(asked) < count:
                number = session.state()["question"]["id"]
                session.answer(number, pool.labels[number])
                session.wait_for_learning()
                asked.append(number)
            yield list(asked)
        session.close()


def draw_first(labels: Sequence[str], order: Sequence[int]) -> list[int]:
    """Return the first PER_LABEL rows of each label, in this order."""
    of_label: dict[str, list[int]] = {}
    for row in order:
        of_label.setdefault(labels[row], []).append(row)
    return [row for rows in of_label.values() for row in rows[:PER_LABEL]]


def measure(folder: Path, embedder: Embedder, counts: Sequence[int], rounds: int) -> list[float]:
    """Return accuracy of the first head, then for each of `counts` of asked and of random texts; means of rounds."""
    every, test = read_rows(folder / "train.tsv", embedder), read_rows(folder / "test.tsv", embedder)
    found = np.zeros((rounds, 1 + 2 * len(counts)))
    for number in range(rounds):
        order = np.random.default_rng(FIRST_DRAW + number).permutation(len(every.texts)).tolist()
        first = draw_first(every.labels, order)
        start, chosen = every.only(first), {*first}
        pool = every.only([row for row in order if row not in chosen][:POOL])
        found[number, 0] = accuracy(fit(start), test)
        for at, asked in enumerate(ask(start, pool, counts)):
            for way, rows in enumerate((asked, range(len(asked)))):
                found[number, 1 + 2 * at + way] = accuracy(fit(start.with_rows(pool.only(list(rows)))), test)
    return [float(value) for value in found.mean(axis=0)]


def print_label_figures(folder: Path, counts: Sequence[int], rounds: int) -> None:
    """Print accuracy after each of `counts` answers of a review, and after as many random labels."""
    head = [f"{count} {way}" for count in counts for way in ("asked", "random")]
    click.echo(f"{'accuracy, %':<16}{'first head':>10}" + "".join(f"{name:>12}" for name in head))
    with load("gramvec-en", device="cpu") as embedder:
        for name, title in SETS.items():
            values = measure(folder / name, embedder, counts, rounds)
            click.echo(f"{title:<16}{100 * values[0]:>10.1f}" + "".join(f"{100 * one:>12.1f}" for one in values[1:]))
