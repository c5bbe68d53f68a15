"""Boosted trees as arrays of numbers: evaluated by the loops in C, or by numpy, with the same bytes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gramvec import native
from gramvec.text.arrays import Doubles, Floats, Int32s, Int64s

# Pairs that walk down a tree together: their figures stay in a core's cache.
BLOCK_PAIRS = 16_384


@dataclass(frozen=True)
class Trees:
    """Boosted trees, node after node.

    A pair goes from a tree's first node to `below` where its figure is at most the cut, or has no value and `missing`
    is 1, else to `above`, until a leaf. The values of its leaves are added to `base`.

    Attributes:
        base: the sum before the first tree.
        starts: int32[trees + 1], each tree's first node.
        feature: int32[n], the number of a figure, -1 for a leaf.
        cut: float64[n].
        below: int32[n], a node of the same tree that comes after this one; not read for a leaf.
        above: int32[n], likewise.
        missing: uint8[n].
        value: float64[n].
    """

    base: float
    starts: Int32s
    feature: Int32s
    cut: Doubles
    below: Int32s
    above: Int32s
    missing: NDArray[np.uint8]
    value: Doubles

    def sums(self, figures: Floats) -> Doubles:
        """Return the sum of each pair's leaves, float64[p], for float32[p, figures]."""
        loops: Any = native.loops  # or None
        if loops is None:
            return self.sums_by_numpy(figures)
        sums = np.empty(len(figures))
        arrays = (self.starts, self.feature, self.cut, self.below, self.above, self.missing, self.value)
        loops.boosted_sums(np.ascontiguousarray(figures), arrays, self.base, sums)
        return sums

    def sums_by_numpy(self, figures: Floats) -> Doubles:
        """Return `sums` without the loops in C."""
        sums = np.full(len(figures), self.base)
        for start in range(0, len(figures), BLOCK_PAIRS):
            block = figures[start : start + BLOCK_PAIRS]
            pairs = np.arange(len(block))
            for first in self.starts[:-1].tolist():
                node = np.full(len(block), first, np.int64)
                while (inner := self.feature[node] >= 0).any():
                    after = self._next(node, block[pairs, np.maximum(self.feature[node], 0)])
                    node = np.where(inner, after, node)
                sums[start : start + BLOCK_PAIRS] += self.value[node]
        return sums

    @cached_property
    def middles(self) -> Doubles:
        """The value of each node, float64[n]: of a leaf its own, else the mean of the two nodes below it."""
        made = self.value.copy()
        # Nodes come before those below them.
        for node in range(len(made) - 1, -1, -1):
            if self.feature[node] >= 0:
                made[node] = (made[self.below[node]] + made[self.above[node]]) / 2
        return made

    @property
    def start(self) -> float:
        """The sum before anything is known of a pair, to which `contributions` are added."""
        return self.base + float(self.middles[self.starts[:-1]].sum())

    def contributions(self, figures: Floats) -> Doubles:
        """Return what each figure adds to `start`, float64[p, figures]; with it they are `sums`, but for rounding.

        Each decision adds what its branch is worth more than the mean of both. The way down a tree is told apart as by
        Saabas, Interpreting random forests (2014, blog.datadive.net). He takes for a node's value the mean of the pairs
        it was learned from. Most of those are of two things, so that nearly all would speak for a match.

        Args:
            figures: float32[p, figures].
        """
        made = np.zeros(figures.shape)
        for start in range(0, len(figures), BLOCK_PAIRS):
            block, sums = figures[start : start + BLOCK_PAIRS], made[start : start + BLOCK_PAIRS]
            pairs = np.arange(len(block))
            for first in self.starts[:-1].tolist():
                node = np.full(len(block), first, np.int64)
                while (inner := self.feature[node] >= 0).any():
                    figure = np.maximum(self.feature[node], 0)
                    after = np.where(inner, self._next(node, block[pairs, figure]), node)
                    sums[pairs, figure] += np.where(inner, self.middles[after] - self.middles[node], 0.0)
                    node = after
        return made

    def _next(self, node: Int64s, figure: Floats) -> Int64s:
        """Return the node below each inner one, int64[p], by the figures that they look at."""
        down = np.where(np.isnan(figure), self.missing[node] == 1, figure <= self.cut[node])
        return np.where(down, self.below[node], self.above[node]).astype(np.int64)

    def probabilities(self, figures: Floats) -> Doubles:
        """Return the logistic of `sums`, float64[p]."""
        made: Doubles = 1 / (1 + np.exp(-np.clip(self.sums(figures), -500, 500)))
        return made


def trees_of(record: Mapping[str, Any]) -> Trees:
    """Return the trees of a record of JSON."""
    types = {"cut": np.float64, "value": np.float64, "missing": np.uint8}
    arrays = {
        field.name: np.array(record[field.name], types.get(field.name, np.int32))
        for field in fields(Trees)
        if field.name != "base"
    }
    return Trees(float(record["base"]), **arrays)


def trees_of_scikit_learn(fitted: Any) -> Trees:
    """Return the trees of a fitted HistGradientBoostingClassifier of two classes."""
    # scikit-learn has no public way to a boosted tree's nodes; callers compare the probabilities.
    nodes = [trees[0].nodes for trees in fitted._predictors]
    sizes = [len(tree) for tree in nodes]
    starts = np.append(0, np.cumsum(sizes)).astype(np.int32)
    joined, first = np.concatenate(nodes), np.repeat(starts[:-1], sizes)
    leaf = joined["is_leaf"].astype(bool)
    return Trees(
        float(np.ravel(fitted._baseline_prediction)[0]),
        starts,
        np.where(leaf, -1, joined["feature_idx"]).astype(np.int32),
        np.where(leaf, 0.0, joined["num_threshold"]),
        np.where(leaf, 0, joined["left"] + first).astype(np.int32),
        np.where(leaf, 0, joined["right"] + first).astype(np.int32),
        np.where(leaf, 0, joined["missing_go_to_left"]).astype(np.uint8),
        np.where(leaf, joined["value"], 0.0),
    )
