"""N-gram counts of texts as the lexical sketch cuts them, and weights learned from labeled pairs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from gramvec.features.numpy_reference import characters
from gramvec.lexical.hashing import hash_features
from gramvec.lexical.sketch import LexicalSketch
from gramvec.lexical.sparse import SIF_A
from gramvec.lexical.weights import WEIGHT_BITS
from gramvec.text.inputs import code_points
from gramvec_training.shared import Doubles, Ints

_BLOCK = 4_096  # texts whose n-grams are looked at together
_SPACE = ord(" ")
_LETTERS = ord("a")  # and above: a letter of some alphabet
_DIGITS = (ord("0"), ord("9"))


@dataclass(frozen=True)
class NgramCounts:
    """N-gram counts of some texts.

    counts: scipy.sparse float64[texts, n]. places: int64[n], ascending, of each n-gram among a sketch's weights.
    shares: float64[n], above 0, of the texts that have it. traits: float64[n, t], averaged over n-grams that share a
    place.
    """

    counts: Any
    places: Ints
    shares: Doubles
    traits: Doubles

    @classmethod
    def from_texts(cls, lexical: LexicalSketch, texts: Sequence[str]) -> NgramCounts:
        """Count the n-grams of texts, in time linear in their characters and 100 bytes for each n-gram of each text."""
        from scipy import sparse  # half a second, which --help need not wait

        size = 1 << WEIGHT_BITS
        rows, numbers = [], np.zeros(size)
        sums = np.zeros((size, _number_of_traits(lexical)))
        for block in _blocks(texts):
            text, place, traits = _describe(lexical, block)
            block_counts = sparse.csr_matrix((np.ones(len(place)), (text, place)), shape=(len(block), size))
            block_counts.sum_duplicates()
            rows.append(block_counts)
            numbers += np.bincount(place, minlength=size)
            for column, values in enumerate(traits.T):
                sums[:, column] += np.bincount(place, values, size)
        counts = sparse.vstack(rows).tocsc()
        held = np.diff(counts.indptr)
        places = np.flatnonzero(held)
        shares = held[places] / max(len(texts), 1)
        means = sums[places] / numbers[places, None]
        logs = np.log(shares)
        # A square that is not ten times as long as the others, and how much more rarity counts for digits.
        of_shares = np.stack([logs, logs**2 / 10, means[:, 1] * logs], axis=1)
        return cls(counts[:, places].tocsr(), places, shares, np.concatenate([means, of_shares], axis=1))


def _blocks(texts: Sequence[str]) -> Iterator[Sequence[str]]:
    for start in range(0, len(texts), _BLOCK):
        yield texts[start : start + _BLOCK]


def _number_of_traits(lexical: LexicalSketch) -> int:
    return 8 + len(lexical.orders) - 1


def _describe(lexical: LexicalSketch, texts: Sequence[str]) -> tuple[Ints, Ints, Doubles]:
    """Return int64[m] text, int64[m] place and float64[m, t] traits of each n-gram of the texts."""
    coded = code_points(texts, lexical.read)
    chars = characters(coded, lexical.spaces)
    features = hash_features(coded, chars, lexical.letter, lexical.orders)
    letters = np.where(chars.source < 0, np.uint32(_SPACE), lexical.letter(coded.points[np.maximum(chars.source, 0)]))
    depth = np.arange(len(letters)) - chars.first
    # In the order of `hash_features`: all n-grams of an order, then those of the next.
    lengths = np.concatenate([np.full(int((depth >= order - 1).sum()), order) for order in lexical.orders])
    last = features.place + 1
    first = last - lengths
    is_digit = (letters >= _DIGITS[0]) & (letters <= _DIGITS[1])
    is_space = letters == _SPACE
    digits, spaces, letter_counts = (_within(mask, first, last) for mask in (is_digit, is_space, letters >= _LETTERS))
    traits = [
        np.ones(len(first)),
        digits / lengths,
        (digits > 0) & (letter_counts > 0),
        digits == lengths,
        is_space[first],
        is_space[last - 1],
        (spaces > 0) & ~is_space[first] & ~is_space[last - 1],
        digits + spaces + letter_counts < lengths,
        *(lengths == order for order in lexical.orders[1:]),
    ]
    places = (features.hash >> np.uint64(64 - WEIGHT_BITS)).astype(np.int64)
    return features.text, places, np.stack(traits, axis=1).astype(np.float64)


def _within(marked: npt.NDArray[np.bool_], first: Ints, last: Ints) -> Ints:
    """Return int64: the number of marked characters from each `first` to before each `last`."""
    sums = np.append(0, np.cumsum(marked))
    return np.asarray(sums[last] - sums[first], np.int64)


# Chosen on train and valid of three matching sets (training/gramvec_research/log.md).
STEPS, RATE = 60, 0.02
L2, L2_TRAITS = 1e-4, 1e-5
_FIRST_SLOPE, _FIRST_THRESHOLD = 10.0, 0.5
_MOMENTS = 0.9, 0.999
_LEAST, _MOST = -12.0, 4.0  # of a weight's logarithm
_TINY = 1e-30


@dataclass(frozen=True)
class TextPairs:
    """Rows of counted texts, left and right int64[n], and the label float64[n] of each pair.

    binary: whether labels are 0 and 1.
    """

    left: Ints
    right: Ints
    labels: Doubles
    binary: bool

    def take(self, chosen: Ints) -> TextPairs:
        """Return the chosen pairs."""
        return TextPairs(self.left[chosen], self.right[chosen], self.labels[chosen], self.binary)


def make_first_weights(counts: NgramCounts) -> Doubles:
    """Return float64[n]: the weights a / (a + share) before labels are used."""
    return np.asarray(SIF_A / (SIF_A + counts.shares))


def learn_weights(counts: NgramCounts, pairs: TextPairs) -> Doubles:
    """Return float64[n]: weights learned from the labels; deterministic for pairs in the same order."""
    traits, number = counts.traits, len(counts.shares)
    squares = counts.counts.multiply(counts.counts).tocsr()
    shared = _share(counts, pairs)
    of_squares, of_shared = squares.T.tocsr(), shared.T.tocsr()
    start = np.log(make_first_weights(counts))
    labels = pairs.labels if pairs.binary else _standard(pairs.labels)
    slope, middle = _FIRST_SLOPE, _FIRST_THRESHOLD
    if not pairs.binary:
        first = _cosines(np.exp(2 * start), squares, shared, pairs)[0]
        slope, middle = 1 / max(float(first.std()), 1e-3), float(first.mean())
    # Of each n-gram's own weight, of its traits, and of the loss: the logarithm of the slope, and the threshold.
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
    """Return float64[n]: the cosine of each pair's texts with these weights; 0 for a text without n-grams."""
    squares = counts.counts.multiply(counts.counts).tocsr()
    return _cosines(weights**2, squares, _share(counts, pairs), pairs)[0]


def _share(counts: NgramCounts, pairs: TextPairs) -> Any:
    return counts.counts[pairs.left].multiply(counts.counts[pairs.right]).tocsr()


def _cosines(u: Doubles, squares: Any, shared: Any, pairs: TextPairs) -> tuple[Doubles, Doubles, Doubles]:
    """Return cosines, products of both lengths, and squared lengths of all texts; u is the squared weights."""
    lengths = np.maximum(squares @ u, _TINY)
    products = np.sqrt(lengths[pairs.left] * lengths[pairs.right])
    return shared @ u / products, products, lengths


def _logarithms(start: Doubles, values: Doubles, traits: Doubles) -> Doubles:
    number = len(start)
    return np.asarray(np.clip(start + values[:number] + traits @ values[number:-2], _LEAST, _MOST))


def _standard(labels: Doubles) -> Doubles:
    return np.asarray(labels - labels.mean()) / max(float(labels.std()), _TINY)


class _Adam:
    """Adam (Kingma and Ba, 2015, algorithm 1)."""

    def __init__(self, size: int) -> None:
        self._first, self._second, self._steps = np.zeros(size), np.zeros(size), 0

    def step(self, values: Doubles, gradient: Doubles) -> Doubles:
        mean_decay, square_decay = _MOMENTS
        self._steps += 1
        self._first = mean_decay * self._first + (1 - mean_decay) * gradient
        self._second = square_decay * self._second + (1 - square_decay) * gradient**2
        first, second = self._first / (1 - mean_decay**self._steps), self._second / (1 - square_decay**self._steps)
        return np.asarray(values - RATE * first / (np.sqrt(second) + 1e-8))
