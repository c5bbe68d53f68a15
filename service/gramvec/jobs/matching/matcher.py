"""Learned matchers: a classifier of pairs with its threshold, evaluated by numpy, and the pairs it scores."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gramvec.jobs.matching.features import PairFeatures, PairValues, TablePair
from gramvec.jobs.matching.fields import NgramSettings
from gramvec.jobs.matching.nearest import Matches, RowIds, select_pairs
from gramvec.progress import NO_PROGRESS, Progress
from gramvec.text.arrays import Floats

NodeIds = NDArray[np.int32]

# Pairs that walk down a tree together: their features stay in a core's cache.
BLOCK_PAIRS = 16_384


@dataclass(frozen=True)
class LinearClassifier:
    """A logistic regression of standardized features. Arrays are float64[features]; scales are above 0."""

    means: PairValues
    scales: PairValues
    coefficients: PairValues
    intercept: float

    def probabilities(self, features: PairFeatures) -> PairValues:
        """Return float64[p], 0 to 1, for float32[p, features]. A row has the same value in any batch."""
        terms = (features - self.means) / self.scales * self.coefficients
        return _sigmoid(terms.sum(axis=1) + self.intercept)


@dataclass(frozen=True)
class BoostedTrees:
    """Boosted trees, node after node.

    A pair goes from a tree's first node to `below` where its feature is at most the cut, else to `above`, until a leaf.
    The values of its leaves are added to `base`.

    Attributes:
        base: the sum before the first tree.
        starts: int32[trees + 1], each tree's first node.
        feature: int32[n], -1 for a leaf.
        cut: float64[n].
        below: int32[n], a node of the same tree that comes after this one; not read for a leaf.
        above: int32[n], likewise.
        value: float64[n].
    """

    base: float
    starts: NodeIds
    feature: NodeIds
    cut: PairValues
    below: NodeIds
    above: NodeIds
    value: PairValues

    def probabilities(self, features: PairFeatures) -> PairValues:
        """Return float64[p], 0 to 1, for float32[p, features]. A row has the same value in any batch."""
        sums = np.full(len(features), self.base)
        for start in range(0, len(features), BLOCK_PAIRS):
            block = np.ascontiguousarray(features[start : start + BLOCK_PAIRS].T)
            for first, depth in zip(self.starts[:-1].tolist(), self.depths.tolist(), strict=True):
                sums[start : start + BLOCK_PAIRS] += self.value[self._leaves(block, first, depth)]
        return _sigmoid(sums)

    def _leaves(self, block: PairFeatures, first: int, depth: int) -> RowIds:
        """Return the leaf of each pair, int64[p], of float32[features, p]."""
        pairs = np.arange(block.shape[1])
        node = np.full(block.shape[1], first, np.int64)
        for _ in range(depth):
            feature = self.feature[node]
            next_one = np.where(block[feature, pairs] <= self.cut[node], self.below[node], self.above[node])
            node = np.where(feature < 0, node, next_one)
        return node

    @cached_property
    def depths(self) -> NodeIds:
        """Edges from each tree's first node to its lowest leaf, int32[trees]."""
        depth = np.zeros(len(self.feature), np.int32)
        # From the last node up: children stand after their parent.
        for node in np.flatnonzero(self.feature >= 0)[::-1].tolist():
            depth[node] = 1 + max(depth[self.below[node]], depth[self.above[node]])
        return depth[self.starts[:-1]]


PairClassifier = LinearClassifier | BoostedTrees


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
        scored: candidates by left row, then descending score.
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
