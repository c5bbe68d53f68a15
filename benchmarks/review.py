"""F1 after some answers of `gramvec review pairs`, beside as many random labels: python -m benchmarks.review FOLDER.

On the pairs of tables in the folder `matching` of development data. The truth answers what the review asks among the
labeled pairs of train and valid; test pairs are left out, and F1 is on them, at the threshold that is learned. Where
answers do not suffice to learn, on either side, the pair model scores the pairs, at its own threshold, as the command
does. For each set it is a pair model that has not learned from that set.

Each of the rounds asks among four fifths of the labeled pairs, drawn anew, and the random labels are drawn from them.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import tempfile
from collections.abc import Iterator
from pathlib import Path

import click
import numpy as np
from numpy.typing import NDArray

from benchmarks.left_out import leave_out
from benchmarks.match import Tables, find_tables
from benchmarks.review_labels import print_label_figures
from gramvec.errors import InputError
from gramvec.jobs.matching.features import TablePair
from gramvec.jobs.matching.fit_matcher import check_enough, fit_matcher
from gramvec.jobs.matching.match_tables import choose_pairs, score_fields
from gramvec.jobs.matching.matcher import PairLabels, score_pairs
from gramvec.jobs.report.records import Pair
from gramvec.jobs.review.answers_file import AnswersFile
from gramvec.jobs.review.pair_questions import LearnedScores, PairQuestions
from gramvec.jobs.review.session import ReviewSession
from gramvec_training.evaluation.matching import f1_at
from gramvec_training.runs.pair_model import read_all_tables

COUNTS = (25, 50, 100)
# Random labels that no review asks for.
MANY = 300
POOL_SHARE = 0.8

Ids = NDArray[np.int64]


class LabeledPool:
    """Set of tables: its labeled pairs with the pair model's probabilities, and F1 of what labels teach."""

    def __init__(self, tables: Tables) -> None:
        scored = score_fields(tables.every)
        self.threshold = choose_pairs(scored, None, None, one_to_one=False).threshold
        width = len(scored.right.counts)
        keys = (scored.pairs.left * width + scored.pairs.right).tolist()
        self._known = dict(zip(keys, scored.pairs.scores.tolist(), strict=True))
        self._scored, self._tables = scored, tables
        self.pair = TablePair(tables.every)
        self.columns = [("", str(number)) for number in range(len(tables.every))]
        self.labels = tables.known

    def probabilities(self, left: Ids, right: Ids) -> NDArray[np.float64]:
        """Return the pair model's probabilities, 0 for a pair that is no candidate."""
        scored = self._scored
        keys = scored.left.of_row[left] * len(scored.right.counts) + scored.right.of_row[right]
        return np.array([self._known.get(key, 0.0) for key in keys.tolist()])

    def f1(self, labels: PairLabels) -> float:
        """Return F1 on the test pairs of what these labels teach, or of the pair model where they do not suffice."""
        test = self._tables.one.test
        try:
            check_enough(labels)
        except InputError:
            return f1_at(self.threshold, self.probabilities(test.left, test.right), test.match)[0]
        known = fit_matcher(self.pair, self.columns, labels)
        return f1_at(known.threshold, score_pairs(known, self.pair, test.left, test.right), test.match)[0]


class PoolReview:
    """Review of some labeled pairs, as `PairJob`."""

    title, question, unit = "", "", "pairs"
    columns: tuple[str, ...] = ("left", "right", "match")

    def __init__(self, pool: LabeledPool, labels: PairLabels) -> None:
        self._pool, self.labels = pool, labels

    def first(self) -> LearnedScores:
        """Return the pair model's probabilities and threshold."""
        return LearnedScores(self._pool.probabilities(self.labels.left, self.labels.right), self._pool.threshold)

    def rows(self, pair: int) -> tuple[int, int]:
        """Return both rows of a pair."""
        return int(self.labels.left[pair]), int(self.labels.right[pair])

    def show(self, pair: int, scores: NDArray[np.float64]) -> Pair:
        """Return a pair without texts, which nobody reads."""
        return Pair(float(scores[pair]), "", "", [])

    def names(self, pair: int) -> tuple[str, ...]:
        """Return the place of a pair."""
        return str(pair), ""

    def find(self, names: tuple[str, ...]) -> int | None:
        """Return the place that `names` gave."""
        return int(names[0])

    def learn(self, pairs: Ids, match: NDArray[np.bool_]) -> LearnedScores:
        """Return what a matcher learns."""
        pool = self._pool
        known = fit_matcher(pool.pair, pool.columns, choose_labels(self.labels, pairs))
        scores = score_pairs(known, pool.pair, self.labels.left, self.labels.right)
        return LearnedScores(scores.astype(np.float64), known.threshold)

    def finish(self, pairs: Ids, match: NDArray[np.bool_]) -> list[str]:
        """Write nothing."""
        return []


def choose_labels(labels: PairLabels, pairs: Ids) -> PairLabels:
    """Return some labels by left row, then right row."""
    left, right, match = (column[pairs] for column in labels)
    order = np.lexsort((right, left))
    return PairLabels(left[order], right[order], match[order])


def ask(pool: LabeledPool, labels: PairLabels) -> Iterator[PairLabels]:
    """Yield the answers of a review when they are as many as each of COUNTS."""
    job = PoolReview(pool, labels)
    with tempfile.TemporaryDirectory() as folder:
        session = ReviewSession(PairQuestions(job), AnswersFile(Path(folder, "labels.csv"), job.columns))
        asked: list[int] = []
        for count in COUNTS:
            while len(asked) < count and (question := session.state()["question"]) is not None:
                pair = question["id"]
                session.answer(pair, "yes" if labels.match[pair] else "no")
                session.wait_for_learning()
                asked.append(pair)
            yield choose_labels(labels, np.array(asked, np.int64))
        session.close()


def measure(tables: Tables, rounds: int) -> tuple[float, list[float], list[float], float]:
    """Return F1 without labels, with COUNTS answers and random labels, and with MANY: means of the rounds."""
    pool = LabeledPool(tables)
    none = pool.labels.left[:0]
    found, many = np.zeros((rounds, 2, len(COUNTS))), np.zeros(rounds)
    for number in range(rounds):
        random = np.random.default_rng(number)
        size = len(pool.labels.left)
        labels = choose_labels(pool.labels, random.permutation(size)[: int(POOL_SHARE * size)])
        drawn = random.permutation(len(labels.left))
        for at, (count, answers) in enumerate(zip(COUNTS, ask(pool, labels), strict=True)):
            found[number, :, at] = pool.f1(answers), pool.f1(choose_labels(labels, drawn[:count]))
        many[number] = pool.f1(choose_labels(labels, drawn[:MANY]))
    active, chance = found.mean(axis=0).tolist()
    return pool.f1(PairLabels(none, none, none.astype(np.bool_))), active, chance, float(many.mean())


@click.command()
@click.argument("folder", type=click.Path(path_type=Path, exists=True, file_okay=False))
@click.option("--rounds", type=click.IntRange(min=1), default=2, show_default=True)
@click.option("--label-rounds", type=click.IntRange(min=1), default=5, show_default=True)
def main(folder: Path, rounds: int, label_rounds: int) -> None:
    """Print F1 after 25, 50 and 100 answers about pairs, and after as many random labels; then accuracy of labels."""
    head = [f"{count} {way}" for count in COUNTS for way in ("asked", "random")] + [f"{MANY} random"]
    click.echo(f"{'F1, %':<16}{'no labels':>10}" + "".join(f"{name:>12}" for name in head))
    rows = []
    learned_from = [table for table in read_all_tables(folder) if not table.is_one_table]
    for tables in find_tables(folder / "matching"):
        with leave_out(tables.one.name, learned_from):
            none, active, chance, many = measure(tables, rounds)
        rows.append([none, *(value for both in zip(active, chance, strict=True) for value in both), many])
        _print_row(tables.one.name, rows[-1])
    _print_row("mean", np.mean(rows, axis=0).tolist())
    click.echo()
    print_label_figures(folder / "classification", COUNTS, label_rounds)


def _print_row(name: str, values: list[float]) -> None:
    click.echo(f"{name:<16}{100 * values[0]:>10.1f}" + "".join(f"{100 * value:>12.1f}" for value in values[1:]))


if __name__ == "__main__":
    main()
