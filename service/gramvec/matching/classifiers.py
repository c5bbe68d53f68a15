"""What was learned from labelled pairs, as plain arrays: a logistic regression, or trees; evaluated by numpy alone."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

Floats64 = NDArray[np.float64]
Int32s = NDArray[np.int32]
Pairs = NDArray[np.float32]

# Pairs that walk down a tree together: what they hold stays in a core's cache.
BLOCK_PAIRS = 16_384


@dataclass(frozen=True)
class Linear:
    """A logistic regression of standardised features. Each float64[features]; scales are above 0."""

    means: Floats64
    scales: Floats64
    coefficients: Floats64
    intercept: float

    def probabilities(self, features: Pairs) -> Floats64:
        """float64[p], from 0 to 1, of float32[p, features]; each row's by itself, so the same in any batch."""
        terms = (features - self.means) / self.scales * self.coefficients
        return _sigmoid(terms.sum(axis=1) + self.intercept)


@dataclass(frozen=True)
class Trees:
    """Boosted trees, node after node: a pair goes from a tree's first node to `below` where its feature is at most the
    cut, else to `above`, until a leaf, and the values of its leaves are added to `base`.

    starts: int32[trees + 1], each tree's first node. feature: int32[n], -1 for a leaf. cut, value: float64[n].
    below, above: int32[n], nodes of the same tree that come after this one; a leaf's are not read.
    """

    base: float
    starts: Int32s
    feature: Int32s
    cut: Floats64
    below: Int32s
    above: Int32s
    value: Floats64

    def probabilities(self, features: Pairs) -> Floats64:
        """float64[p], from 0 to 1, of float32[p, features]; each row's by itself, so the same in any batch."""
        sums = np.full(len(features), self.base)
        for start in range(0, len(features), BLOCK_PAIRS):
            block = np.ascontiguousarray(features[start : start + BLOCK_PAIRS].T)
            for first, depth in zip(self.starts[:-1].tolist(), self.depths.tolist(), strict=True):
                sums[start : start + BLOCK_PAIRS] += self.value[self._leaves(block, first, depth)]
        return _sigmoid(sums)

    def _leaves(self, block: Pairs, first: int, depth: int) -> NDArray[np.int64]:
        """int64[p]: the leaf of each pair of float32[features, p]."""
        pairs = np.arange(block.shape[1])
        node = np.full(block.shape[1], first, np.int64)
        for _ in range(depth):
            feature = self.feature[node]
            next_one = np.where(block[feature, pairs] <= self.cut[node], self.below[node], self.above[node])
            node = np.where(feature < 0, node, next_one)
        return node

    @cached_property
    def depths(self) -> Int32s:
        """int32[trees]: the nodes from a tree's first to its lowest leaf, less one."""
        depth = np.zeros(len(self.feature), np.int32)
        # From the last node up: what comes below a node stands after it.
        for node in np.flatnonzero(self.feature >= 0)[::-1].tolist():
            depth[node] = 1 + max(depth[self.below[node]], depth[self.above[node]])
        return depth[self.starts[:-1]]


Classifier = Linear | Trees


def _sigmoid(values: Floats64) -> Floats64:
    return 1 / (1 + np.exp(-np.clip(values, -500, 500)))
