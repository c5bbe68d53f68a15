"""Which features made a cosine: the score of two texts, shared out over pairs of features and over characters.

A model that sums rows has cos(a, b) = sum over i, j of <x_i, y_j> / (|a| |b|), where x_i are the rows of the features
of a and y_j those of b: each pair of features contributes one term. A mean divides the rows by their number. Before a
tanh each column of a text is scaled by tanh(z) / z, z being its sum, so that features share what the tanh left of them
(the rescale rule of DeepLIFT, Shrikumar et al. 2017). What is left then is the `residual`: the share of the bias, and
less than 1e-5 of rounding where there is none.

Where a vector is no sum of rows, because layers are above it or the order of rows counts, features are left out one at
a time (see `occlusion`): contributions of pairs are their interactions, and those of a text's features by how much the
score falls without them, whose sum need not be the score.

Rows of a memo in int8 were rounded apart from the rows that they stand for, by up to a hundredth of a text's vector.
That difference is shared evenly among the text's features, so that the contributions are those of the score as served.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gramvec.embedding import Embedder, cosine_matrix
from gramvec.errors import InputError
from gramvec.explaining.largest import largest
from gramvec.explaining.occlusion import shares
from gramvec.explaining.weights import Weights, weights_of
from gramvec.explaining.words import Word, WordPair, spread, words_of
from gramvec.features import Located, locate
from gramvec.vocab import EntryKind

Doubles = NDArray[np.float64]
Int64s = NDArray[np.int64]

TOP_K, MOST_PAIRS = 20, 1_000
# Two texts of so many characters have some 10,000 features each, and 100 million pairs: half a second of a core.
MAX_CHARACTERS = 4_096


class Feature(NamedTuple):
    """A feature of a text, and where it stands.

    kind: "ngram", "word", or "unknown" for a word that shares the row of unknown words. text: normalised, with the
    spaces of the padding. start, end: code-point offsets into the text as given, clipped to it; of the first, if the
    feature is there more than once. times: how often it is there.
    """

    kind: EntryKind
    text: str
    start: int
    end: int
    times: int = 1


class Contribution(NamedTuple):
    """What a feature of the source and one of the target add to the score, all their occurrences together."""

    source: Feature
    target: Feature
    contribution: float


@dataclass(frozen=True, eq=False)
class Side:
    """One text of an explanation.

    located: its features, see Located. contributions: float64[n], what each of them, with all of the other text, adds
    to the score. coverage: the share of the text's characters, white space aside, that lie in at least one feature of
    the vocabulary; 0 for a text without any (the row that unknown words share is no feature of theirs).
    """

    text: str
    located: Located
    contributions: Doubles
    coverage: float
    unknown_row: int

    @property
    def features(self) -> list[Feature]:
        """One for each of the contributions, in the order in which the model sums them."""
        return [self.feature(index) for index in range(len(self.located.rows))]

    def feature(self, index: int, times: int = 1) -> Feature:
        """The feature of this index."""
        place = self.located
        kind: EntryKind = "word" if place.words[index] else "ngram"
        if kind == "word" and place.rows[index] == self.unknown_row:
            kind = "unknown"
        return Feature(kind, place.spelt(index), int(place.start[index]), int(place.end[index]), times)

    @cached_property
    def characters(self) -> Doubles:
        """float64[len(text)]: the contributions, each spread evenly over the characters of its feature."""
        shares = np.zeros(len(self.text) + 1)
        first, last = _characters(self.text, self.located)
        each = self.contributions / (last - first)
        np.add.at(shares, first, each)
        np.subtract.at(shares, last, each)
        return np.asarray(np.cumsum(shares)[:-1])


@dataclass(frozen=True, eq=False)
class Explanation:
    """A score and what made it: the contributions of `pairs`, plus `rest`, plus `residual`, are the score.

    score: the cosine in [-1, 1], as Embedder.similarity has it. pairs: those that add or take away the most, that one
    first; features that repeat are one. rest: the sum of the pairs that are not listed. residual: what no pair of
    features explains: the share of the model's bias, and rounding. by_occlusion: whether features were left out one at
    a time; what each does alone is then in the residual, too. words: the pairs of words that add or take away the most,
    that one first, a feature over two words being shared between them by its characters; they and `words_rest`, what
    all other pairs of words add, are what `pairs` and `rest` are.
    """

    score: float
    residual: float
    rest: float
    source: Side
    target: Side
    pairs: list[Contribution]
    words: list[WordPair]
    words_rest: float
    by_occlusion: bool = False

    def to_dict(self) -> dict[str, Any]:
        """JSON types and numpy's float32; `characters` are Side.characters of source and target."""
        return {
            "score": np.float32(self.score),
            "residual": np.float32(self.residual),
            "rest": np.float32(self.rest),
            "coverage": [np.float32(side.coverage) for side in (self.source, self.target)],
            "features": [
                {
                    "source": pair.source._asdict(),
                    "target": pair.target._asdict(),
                    "contribution": np.float32(pair.contribution),
                }
                for pair in self.pairs
            ],
            "words": [
                {
                    "source": pair.source._asdict(),
                    "target": pair.target._asdict(),
                    "contribution": np.float32(pair.contribution),
                }
                for pair in self.words
            ],
            "words_rest": np.float32(self.words_rest),
            "characters": [side.characters.astype(np.float32) for side in (self.source, self.target)],
        }


def explain(embedder: Embedder, source: str, target: str, *, top_k: int = TOP_K) -> Explanation:
    """Share out the cosine of two texts over the pairs of their features; the `top_k` largest are listed (1 to 1000).

    Takes memory for the features of each, not for all pairs. A text without a known feature explains its score of 0
    with nothing.

    Raises InputError for what Embedder.prepare refuses, for a text of more than 4,096 characters, and for a top_k out
    of range; BackendError if the runtime fails; BundleError if the bundle does not say where its table lies.
    """
    if isinstance(top_k, bool) or not isinstance(top_k, int) or not 1 <= top_k <= MOST_PAIRS:
        raise InputError(f"top_k must be a whole number from 1 to {MOST_PAIRS}, not {top_k!r}", field="top_k")
    texts = embedder.prepare([source, target])
    for index, text in enumerate(texts):
        if len(text) > MAX_CHARACTERS:
            raise InputError(
                f"text {index} has {len(text)} characters, and explanations take {MAX_CHARACTERS}: shorten it",
                index=index,
            )
    weights = None if embedder.manifest.graph.beyond_rows else weights_of(embedder.bundle)
    raw = embedder.raw(texts)
    score = float(cosine_matrix(raw.take(slice(1)), raw.take(slice(1, 2)))[0, 0])
    one, other = (
        _Sum.by_occlusion(text, embedder) if weights is None else _Sum.of(text, vector, embedder, weights)
        for text, vector in zip(texts, raw.vectors, strict=True)
    )
    left, right = one.beside(other), other.beside(one)
    total = float(one.whole @ other.whole)
    pairs = [
        Contribution(left.feature(*one.occurrence(i)), right.feature(*other.occurrence(j)), contribution)
        for i, j, contribution in largest(one.distinct, other.distinct, top_k)
    ]
    of_words = largest(one.of_words, other.of_words, top_k) if pairs else []
    words = [WordPair(one.words[i], other.words[j], contribution) for i, j, contribution in of_words]
    rest, words_rest = (total - sum(pair.contribution for pair in some) for some in (pairs, words))
    return Explanation(score, score - total, rest, left, right, pairs, words, words_rest, by_occlusion=weights is None)


@dataclass(frozen=True, eq=False)
class _Sum:
    """A text at length 1 as the sum of its features."""

    text: str
    located: Located
    unknown_row: int
    coverage: float
    first: Int64s  # of each distinct feature, its first occurrence
    counts: Int64s
    distinct: Doubles  # float64[distinct, d], all occurrences together
    inverse: Int64s  # of each occurrence, its distinct feature
    unit: Doubles | None = None  # float64[d], the text's vector at length 1, where it is not the sum

    @classmethod
    def of(cls, text: str, served: NDArray[np.float32], embedder: Embedder, weights: Weights) -> _Sum:
        bundle, graph = embedder.bundle, embedder.manifest.graph
        located = locate(text, bundle.spec, bundle.vocabulary)
        unknown = bundle.vocabulary.unknown_row
        first, inverse, counts = _distinct(located, unknown)
        rows = weights.rows(located.rows[first]).astype(np.float64) * counts[:, None]
        if graph.pooling == "mean":
            rows /= max(1, len(located.rows))
        vector = np.add.reduce(rows, axis=0) + weights.bias
        if graph.activation == "tanh":
            gain = np.divide(np.tanh(vector), vector, out=np.ones_like(vector), where=vector != 0)
            rows *= gain
            vector = vector * gain
        rows += (served - vector) * (counts / max(1, len(located.rows)))[:, None]
        length = float(np.sqrt(np.add.reduce(np.square(served, dtype=np.float64))))
        rows /= length if length > 0 else 1.0
        return cls(text, located, unknown, _coverage(text, located, unknown), first, counts, rows, inverse)

    @classmethod
    def by_occlusion(cls, text: str, embedder: Embedder) -> _Sum:
        """Each occurrence by itself, since the same word elsewhere does something else."""
        bundle = embedder.bundle
        located = locate(text, bundle.spec, bundle.vocabulary)
        unknown = bundle.vocabulary.unknown_row
        each, unit = shares(embedder, located.rows)
        places = np.arange(len(each))
        coverage = _coverage(text, located, unknown)
        return cls(text, located, unknown, coverage, places, np.ones_like(places), each, places, unit)

    @cached_property
    def whole(self) -> Doubles:
        return np.asarray(np.add.reduce(self.distinct, axis=0))

    @cached_property
    def words(self) -> list[Word]:
        return words_of(self.text)

    @cached_property
    def of_words(self) -> Doubles:
        first, last = _characters(self.text, self.located)
        return spread(self.words, first, last, self.distinct, self.inverse, 1 / self.counts)

    def beside(self, other: _Sum) -> Side:
        against = other.whole if other.unit is None else other.unit
        each = np.add.reduce(self.distinct * against, axis=1) / self.counts
        return Side(self.text, self.located, each[self.inverse], self.coverage, self.unknown_row)

    def occurrence(self, index: int) -> tuple[int, int]:
        return int(self.first[index]), int(self.counts[index])


def _characters(text: str, located: Located) -> tuple[Int64s, Int64s]:
    # A feature of nothing but padding has no character; it goes to the nearest one.
    first = np.minimum(located.start, max(0, len(text) - 1))
    return first, np.maximum(located.end, first + 1)


def _distinct(located: Located, unknown_row: int) -> tuple[Int64s, Int64s, Int64s]:
    # Words that share a row are as many features as there are words.
    keys = located.rows.astype(np.int64)
    names: dict[str, int] = {}
    for index in np.flatnonzero(located.rows == unknown_row).tolist() if unknown_row >= 0 else []:
        keys[index] = -1 - names.setdefault(located.spelt(index), len(names))
    _, first, inverse, counts = np.unique(keys, return_index=True, return_inverse=True, return_counts=True)
    order = np.argsort(first)
    places = np.empty_like(order)
    places[order] = np.arange(len(order))
    return first[order], places[inverse], counts[order]


def _coverage(text: str, located: Located, unknown_row: int) -> float:
    known = located.rows != unknown_row
    depth = np.zeros(len(text) + 1, np.int64)
    np.add.at(depth, located.start[known], 1)
    np.subtract.at(depth, located.end[known], 1)
    ink = np.array([not character.isspace() for character in text], bool)
    covered = int(np.count_nonzero(ink & (np.cumsum(depth)[:-1] > 0)))
    return covered / max(1, int(np.count_nonzero(ink)))
