"""Learned matchers: a classifier of pairs with its threshold, and the pairs it scores."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gramvec.jobs.matching.features import PairFeatures, PairValues, TablePair
from gramvec.jobs.matching.fields import NgramSettings
from gramvec.jobs.matching.nearest import Matches, RowIds, select_pairs
from gramvec.jobs.pairs.trees import Trees
from gramvec.progress import NO_PROGRESS, Progress
from gramvec.text.arrays import Floats


@dataclass(frozen=True)
class LinearClassifier:
    """A logistic regression of standardized features. Arrays are float64[features]; scales are above 0."""

    means: PairValues
    scales: PairValues
    coefficients: PairValues
    intercept: float

    def probabilities(self, features: PairFeatures) -> PairValues:
        """Return float64[p], 0 to 1, for float32[p, features]. A row has the same value in any batch."""
        return _sigmoid(self.contributions(features).sum(axis=1) + self.intercept)

    @property
    def start(self) -> float:
        """The log odds before anything is known of a pair, to which `contributions` are added."""
        return self.intercept

    def contributions(self, features: PairFeatures) -> PairValues:
        """Return what each feature adds to the log odds, float64[p, features]."""
        added: PairValues = (features - self.means) / self.scales * self.coefficients
        return added


PairClassifier = LinearClassifier | Trees


class PairLabels(NamedTuple):
    """Labeled pairs, each once.

    Attributes:
        left: int64[p], rows of the left table.
        right: int64[p], rows of the right table.
        match: bool[p], whether they are the same thing.
    """

    left: RowIds
    right: RowIds
    match: NDArray[np.bool_]

    def lower_left(self) -> PairLabels:
        """Return labels of one table as its candidates are: the lower row left, each pair once, no row with itself."""
        low, high = np.minimum(self.left, self.right), np.maximum(self.left, self.right)
        _, first = np.unique(np.stack([low, high]), axis=1, return_index=True)
        first = first[low[first] != high[first]]
        return PairLabels(low[first], high[first], self.match[first])


class LabelReport(NamedTuple):
    """Quality of a matcher on labels that were held out: a fifth, by left rows.

    Attributes:
        kind: of classifier, "logistic" or "trees".
        pairs: labeled pairs.
        matches: labeled matches.
        held_pairs: labeled pairs that were held out.
        held_matches: labeled matches that were held out.
        precision: at the threshold, 0 to 1.
        recall: likewise.
        f1: likewise.
    """

    kind: str
    pairs: int
    matches: int
    held_pairs: int
    held_matches: int
    precision: float
    recall: float
    f1: float


@dataclass(frozen=True)
class LearnedMatcher:
    """A classifier of pairs and the threshold of its probabilities.

    Attributes:
        columns: the names of each compared column in the left and the right table.
        weights: the columns' weights in the cosine that finds candidates.
        ngrams: settings of that cosine.
        classifier: the classifier.
        threshold: the lowest probability of a match, 0 to 1.
        top: right rows that a left row may match; None for all above the threshold.
        report: its quality on held-out labels.
    """

    columns: tuple[tuple[str, str], ...]
    weights: tuple[float, ...]
    ngrams: NgramSettings
    classifier: PairClassifier
    threshold: float
    top: int | None
    report: LabelReport


def score_candidates(matcher: LearnedMatcher, pair: TablePair, progress: Progress = NO_PROGRESS) -> Matches:
    """Return the candidates of two tables with their probabilities.

    Pairs are sorted by left row, then descending score.
    """
    found = pair.candidates()
    scores = score_pairs(matcher, pair, found.left, found.right, progress)
    return select_pairs(found._replace(scores=scores), np.lexsort((found.right, -scores, found.left)))


def score_pairs(
    matcher: LearnedMatcher, pair: TablePair, left: RowIds, right: RowIds, progress: Progress = NO_PROGRESS
) -> Floats:
    """Return the probabilities of pairs of rows, float32[p].

    Args:
        matcher: the matcher.
        pair: the tables.
        left: int64[p], rows of the left table.
        right: int64[p], rows of the right table.
        progress: as in `match_fields`.
    """
    parts = pair.feature_blocks(left, right, progress)
    probabilities = [matcher.classifier.probabilities(part) for part in parts]
    return np.concatenate([np.zeros(0), *probabilities]).astype(np.float32)


def hold_labels(scored: Matches, labels: PairLabels) -> Matches:
    """Return scored candidates as labels have them: labeled matches with a score of 1, and no labeled other pair.

    Args:
        scored: candidates, each once.
        labels: pairs of the same rows, each once; matches that are no candidates are added.
    """
    width = 1 + max(int(scored.right.max(initial=0)), int(labels.right.max(initial=0)))
    labeled = labels.left * width + labels.right
    unlabeled = select_pairs(scored, ~np.isin(scored.left * width + scored.right, labeled))
    left, right = labels.left[labels.match], labels.right[labels.match]
    every = Matches(
        np.append(unlabeled.left, left),
        np.append(unlabeled.right, right),
        np.append(unlabeled.scores, np.ones(len(left), np.float32)),
    )
    return select_pairs(every, np.lexsort((every.right, -every.scores, every.left)))


def _sigmoid(values: PairValues) -> PairValues:
    return 1 / (1 + np.exp(-np.clip(values, -500, 500)))
