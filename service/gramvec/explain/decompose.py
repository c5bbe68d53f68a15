"""A text at length 1 as the sum of its features: what an explanation multiplies, pair by pair."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gramvec.embed.embedder import Embedder
from gramvec.errors import InputError
from gramvec.explain.occlusion import shares
from gramvec.explain.row_vectors import Weights
from gramvec.explain.words import Word, spread, words_of
from gramvec.features.spans import Located, locate
from gramvec.lexical.sketch import Ngrams
from gramvec.text.arrays import Doubles, Int64s


@dataclass(frozen=True, eq=False)
class TextSum:
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
    def of(cls, text: str, served: NDArray[np.float32], embedder: Embedder, weights: Weights) -> TextSum:
        """Decompose the served vector of a text into rows, n-grams, or both."""
        bundle = embedder.bundle
        located, unknown = locate(text, bundle.spec, bundle.vocabulary), bundle.vocabulary.unknown_row
        coverage = _coverage(text, located, unknown)
        meaning = embedder.dimension - (0 if embedder.lexical is None else embedder.lexical.columns)
        first, inverse, counts = _distinct(located, unknown)
        distinct = np.zeros((len(first), embedder.dimension))
        if meaning:
            distinct[:, :meaning] = _rows_of(located.rows[first], counts, served[:meaning], embedder, weights)
        if embedder.lexical is not None:
            ngrams = embedder.lexical.ngrams(text)
            located = _located_too(located, ngrams)
            _, own_first, own_inverse, own_counts = np.unique(
                ngrams.hashes, return_index=True, return_inverse=True, return_counts=True
            )
            vectors = np.zeros((len(own_first), embedder.dimension))
            vectors[:, meaning:] = ngrams.vectors[own_first] * own_counts[:, None]
            vectors *= _length(served[meaning:]) / (_length(ngrams.vectors.sum(axis=0)) or 1.0)
            first = np.append(first, own_first + len(inverse))
            inverse = np.append(inverse, own_inverse + len(counts))
            counts = np.append(counts, own_counts)
            distinct = np.concatenate([distinct, vectors])
        distinct /= _length(served) or 1.0
        return cls(text, located, unknown, coverage, first, counts, distinct, inverse)

    @classmethod
    def by_occlusion(cls, text: str, embedder: Embedder) -> TextSum:
        """Each occurrence by itself, since the same word elsewhere does something else."""
        bundle = embedder.bundle
        if embedder.lexical is not None:
            said = "of its meaning alone the vectors of this model can be explained; load it without another space"
            raise InputError(said, field="space")
        located = locate(text, bundle.spec, bundle.vocabulary)
        unknown = bundle.vocabulary.unknown_row
        each, unit = shares(embedder, located.rows)
        places = np.arange(len(each))
        coverage = _coverage(text, located, unknown)
        return cls(text, located, unknown, coverage, places, np.ones_like(places), each, places, unit)

    @cached_property
    def whole(self) -> Doubles:
        """float64[d]: the sum of all features."""
        return np.asarray(np.add.reduce(self.distinct, axis=0))

    @cached_property
    def words(self) -> list[Word]:
        """Return the words of the text: the runs between white space."""
        return words_of(self.text)

    @cached_property
    def of_words(self) -> Doubles:
        """float64[words, d]: the sum of what lies in each word of all features."""
        first, last = characters_of(self.text, self.located)
        return spread(self.words, first, last, self.distinct, self.inverse, 1 / self.counts)

    def contributions_with(self, other: TextSum) -> Doubles:
        """float64[n]: what each feature adds to the cosine with the other text."""
        against = other.whole if other.unit is None else other.unit
        each = np.add.reduce(self.distinct * against, axis=1) / self.counts
        return np.asarray(each[self.inverse])

    def occurrence(self, index: int) -> tuple[int, int]:
        """Return a distinct feature's first position among all features, and its number of occurrences."""
        return int(self.first[index]), int(self.counts[index])


def characters_of(text: str, located: Located) -> tuple[Int64s, Int64s]:
    """The characters of each feature, (first, end) int64[n]; one of nothing but padding has the nearest."""
    first = np.minimum(located.start, max(0, len(text) - 1))
    return first, np.maximum(located.end, first + 1)


def _rows_of(
    ids: NDArray[np.int32], counts: Int64s, served: NDArray[np.float32], embedder: Embedder, weights: Weights
) -> Doubles:
    """float64[n, d]: what so many of each of these features add to the vector that was served."""
    graph, total = embedder.manifest.graph, max(1, int(counts.sum()))
    rows = weights.rows(ids).astype(np.float64) * counts[:, None]
    if graph.pooling == "mean":
        rows /= total
    vector = np.add.reduce(rows, axis=0) + weights.bias
    if graph.activation == "tanh":
        gain = np.divide(np.tanh(vector), vector, out=np.ones_like(vector), where=vector != 0)
        rows *= gain
        vector = vector * gain
    return np.asarray(rows + (served - vector) * (counts / total)[:, None])


def _located_too(located: Located, ngrams: Ngrams) -> Located:
    """The features, and after them the n-grams, which have no row."""
    none = np.full(len(ngrams.first), -1, np.int32)
    # Both spell the text alike, but for letters that the one has learned of since.
    return Located(
        np.append(located.rows, none),
        np.append(located.start, ngrams.start),
        np.append(located.end, ngrams.end),
        located.text,
        np.append(located.first, ngrams.first),
        np.append(located.last, ngrams.last),
        np.append(located.words, np.zeros(len(none), bool)),
    )


def _length(vector: NDArray[Any]) -> float:
    return float(np.sqrt(np.add.reduce(np.square(vector, dtype=np.float64))))


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
