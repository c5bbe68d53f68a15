"""Weights of n-grams, learned from labelled pairs through the cosine of their texts.

A text is the sum of its n-grams, each times its weight, so a cosine is a product of sparse sums and no vector is made.
The logarithm of a weight is what SIF gives it (Arora et al. 2017, equation 3, with the texts' own shares), what its
traits are worth (digits, spaces, how rare it is: a few numbers that all n-grams share), and what it alone is worth,
which is kept small: so an n-gram of no label has learned from those like it. The loss is logistic, or, of scores,
squared; all pairs make a step of Adam.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gramvec.lexical.sparse import SIF_A
from gramvec_training.data import Ints
from gramvec_training.objectives.ngrams import Doubles, NgramCounts

# Chosen on train and valid of three matching sets (docs/training-log.md).
STEPS, RATE = 60, 0.02
L2, L2_TRAITS = 1e-4, 1e-5
_FIRST_SLOPE, _FIRST_THRESHOLD = 10.0, 0.5
_MOMENTS = 0.9, 0.999
_LEAST, _MOST = -12.0, 4.0  # of a weight's logarithm
_TINY = 1e-30


@dataclass(frozen=True)
class TextPairs:
    """Rows of counted texts, left and right int64[n], and what is said of each pair, labels float64[n].

    binary: whether labels are 0 and 1.
    """

    left: Ints
    right: Ints
    labels: Doubles
    binary: bool

    def of(self, chosen: Ints) -> TextPairs:
        """These of the pairs."""
        return TextPairs(self.left[chosen], self.right[chosen], self.labels[chosen], self.binary)


def first_weights(counts: NgramCounts) -> Doubles:
    """float64[n]: the weights without labels, a / (a + share)."""
    return np.asarray(SIF_A / (SIF_A + counts.shares))


def learned_weights(counts: NgramCounts, pairs: TextPairs) -> Doubles:
    """float64[n]: the weights that the labels teach; the same for the same pairs in the same order."""
    traits, number = counts.traits, len(counts.shares)
    squares = counts.counts.multiply(counts.counts).tocsr()
    shared = _shared(counts, pairs)
    of_squares, of_shared = squares.T.tocsr(), shared.T.tocsr()
    start = np.log(first_weights(counts))
    labels = pairs.labels if pairs.binary else _standard(pairs.labels)
    slope, middle = _FIRST_SLOPE, _FIRST_THRESHOLD
    if not pairs.binary:
        first = _cosines(np.exp(2 * start), squares, shared, pairs)[0]
        slope, middle = 1 / max(float(first.std()), 1e-3), float(first.mean())
    # Of each n-gram alone, of its traits, and of the loss: the logarithm of the slope, and the threshold.
    values = np.concatenate([np.zeros(number + traits.shape[1]), [np.log(slope), middle]])
    adam = _Adam(len(values))
    for _ in range(STEPS):
        u = np.exp(2 * _logarithms(start, values, traits))
        cosines, products, lengths = _cosines(u, squares, shared, pairs)
        slope, middle = float(np.exp(values[-2])), float(values[-1])
        z = slope * (cosines - middle)
        error = ((1 / (1 + np.exp(-z)) if pairs.binary else z) - labels) / len(labels)
        by_cosine = error * slope
        by_length = sum(
            np.bincount(side, -by_cosine * cosines / 2 / lengths[side], len(lengths))
            for side in (pairs.left, pairs.right)
        )
        by_weight = 2 * u * (of_shared @ (by_cosine / products) + of_squares @ by_length)
        gradient = np.concatenate(
            [
                by_weight + L2 * values[:number],
                traits.T @ by_weight + L2_TRAITS * values[number:-2],
                [float((error * z).sum()), float(-by_cosine.sum())],
            ]
        )
        values = adam.step(values, gradient)
    return np.asarray(np.exp(_logarithms(start, values, traits)))


def pair_cosines(counts: NgramCounts, weights: Doubles, pairs: TextPairs) -> Doubles:
    """float64[n]: the cosine of each pair's texts with these weights; 0 for a text without n-grams."""
    squares = counts.counts.multiply(counts.counts).tocsr()
    return _cosines(weights**2, squares, _shared(counts, pairs), pairs)[0]


def _shared(counts: NgramCounts, pairs: TextPairs) -> Any:
    return counts.counts[pairs.left].multiply(counts.counts[pairs.right]).tocsr()


def _cosines(u: Doubles, squares: Any, shared: Any, pairs: TextPairs) -> tuple[Doubles, Doubles, Doubles]:
    """(cosines, products of both lengths, squared lengths of all texts), u: the squares of the weights."""
    lengths = np.maximum(squares @ u, _TINY)
    products = np.sqrt(lengths[pairs.left] * lengths[pairs.right])
    return shared @ u / products, products, lengths


def _logarithms(start: Doubles, values: Doubles, traits: Doubles) -> Doubles:
    number = len(start)
    return np.asarray(np.clip(start + values[:number] + traits @ values[number:-2], _LEAST, _MOST))


def _standard(labels: Doubles) -> Doubles:
    return np.asarray(labels - labels.mean()) / max(float(labels.std()), _TINY)


class _Adam:
    """Kingma and Ba (2015), algorithm 1."""

    def __init__(self, size: int) -> None:
        self._first, self._second, self._steps = np.zeros(size), np.zeros(size), 0

    def step(self, values: Doubles, gradient: Doubles) -> Doubles:
        one, two = _MOMENTS
        self._steps += 1
        self._first = one * self._first + (1 - one) * gradient
        self._second = two * self._second + (1 - two) * gradient**2
        first, second = self._first / (1 - one**self._steps), self._second / (1 - two**self._steps)
        return np.asarray(values - RATE * first / (np.sqrt(second) + 1e-8))
