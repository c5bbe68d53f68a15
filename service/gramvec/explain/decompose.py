"""A text at length 1 as the sum of its features, and the share of each feature in the words of the text."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gramvec.embed.embedder import Embedder
from gramvec.errors import InputError
from gramvec.explain.row_vectors import Weights
from gramvec.features.spans import FeaturePlaces, locate
from gramvec.lexical.sketch import Ngrams
from gramvec.text.arrays import Doubles, FeatureBatch, Int64s


@dataclass(frozen=True, eq=False)
class TextSum:
    """A text at length 1 as the sum of its features."""

    text: str
    located: FeaturePlaces
    unknown_row: int
    coverage: float
    first: Int64s  # of each distinct feature, its first occurrence
    counts: Int64s
    distinct: Doubles  # float64[distinct, d], all occurrences together
    inverse: Int64s  # of each occurrence, its distinct feature
    unit: Doubles | None = None  # float64[d], the text's vector at length 1, where it is not the sum

    @classmethod
    def from_rows(cls, text: str, served: NDArray[np.float32], embedder: Embedder, weights: Weights) -> TextSum:
        """Decompose the served vector of a text into rows, n-grams, or both."""
        bundle = embedder.bundle
        located, unknown = locate(text, bundle.spec, bundle.vocabulary), bundle.vocabulary.unknown_row
        coverage = _coverage(text, located, unknown)
        meaning = embedder.dimension - (0 if embedder.lexical is None else embedder.lexical.columns)
        first, inverse, counts = _distinct(located, unknown)
        distinct = np.zeros((len(first), embedder.dimension))
        if meaning:
            distinct[:, :meaning] = _decompose_rows(located.rows[first], counts, served[:meaning], embedder, weights)
        if embedder.lexical is not None:
            ngrams = embedder.lexical.ngrams(text)
            located = _add_unknown(located, ngrams)
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
    def from_occlusion(cls, text: str, embedder: Embedder) -> TextSum:
        """Return the sum with each occurrence by itself, since a word elsewhere has another effect."""
        bundle = embedder.bundle
        if embedder.lexical is not None:
            sentence = "only the semantic columns of this model can be explained; load it without another space"
            raise InputError(sentence, field="space")
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
        return split_words(self.text)

    @cached_property
    def of_words(self) -> Doubles:
        """Return the sum of the features in each word, float64[words, d]."""
        first, last = locate_characters(self.text, self.located)
        return share_by_word(self.words, first, last, self.distinct, self.inverse, 1 / self.counts)

    def contributions_with(self, other: TextSum) -> Doubles:
        """Return what each feature adds to the cosine with the other text, float64[n]."""
        against = other.whole if other.unit is None else other.unit
        each = np.add.reduce(self.distinct * against, axis=1) / self.counts
        return np.asarray(each[self.inverse])

    def occurrence(self, index: int) -> tuple[int, int]:
        """Return a distinct feature's first position among all features, and its number of occurrences."""
        return int(self.first[index]), int(self.counts[index])


def locate_characters(text: str, located: FeaturePlaces) -> tuple[Int64s, Int64s]:
    """Return the characters of each feature as (first, end), int64[n]; padding has the nearest character."""
    first = np.minimum(located.start, max(0, len(text) - 1))
    return first, np.maximum(located.end, first + 1)


def _decompose_rows(
    ids: NDArray[np.int32], counts: Int64s, served: NDArray[np.float32], embedder: Embedder, weights: Weights
) -> Doubles:
    """Return what each feature, as often as it occurs, adds to the served vector, float64[n, d]."""
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


def _add_unknown(located: FeaturePlaces, ngrams: Ngrams) -> FeaturePlaces:
    """Return the features, and after them the n-grams that have no row."""
    none = np.full(len(ngrams.first), -1, np.int32)
    # Both spell the text alike, but for letters that the one has learned of since.
    return FeaturePlaces(
        np.append(located.rows, none),
        np.append(located.start, ngrams.start),
        np.append(located.end, ngrams.end),
        located.text,
        np.append(located.first, ngrams.first),
        np.append(located.last, ngrams.last),
        np.append(located.words, np.zeros(len(none), bool)),
        located.names,
    )


def _length(vector: NDArray[Any]) -> float:
    return float(np.sqrt(np.add.reduce(np.square(vector, dtype=np.float64))))


def _distinct(located: FeaturePlaces, unknown_row: int) -> tuple[Int64s, Int64s, Int64s]:
    # Words that share a row are as many features as there are words.
    keys = located.rows.astype(np.int64)
    names: dict[str, int] = {}
    for index in np.flatnonzero(located.rows == unknown_row).tolist() if unknown_row >= 0 else []:
        keys[index] = -1 - names.setdefault(located.spell(index), len(names))
    _, first, inverse, counts = np.unique(keys, return_index=True, return_inverse=True, return_counts=True)
    order = np.argsort(first)
    places = np.empty_like(order)
    places[order] = np.arange(len(order))
    return first[order], places[inverse], counts[order]


def _coverage(text: str, located: FeaturePlaces, unknown_row: int) -> float:
    known = located.rows != unknown_row
    depth = np.zeros(len(text) + 1, np.int64)
    np.add.at(depth, located.start[known], 1)
    np.subtract.at(depth, located.end[known], 1)
    ink = np.array([not character.isspace() for character in text], bool)
    covered = int(np.count_nonzero(ink & (np.cumsum(depth)[:-1] > 0)))
    return covered / max(1, int(np.count_nonzero(ink)))


# Rows that are added at a time: 10 MB of 300 columns.
BLOCK_ROWS = 4_096


class Word(NamedTuple):
    """Run of characters between white space; start, end: code-point offsets into the text as given."""

    text: str
    start: int
    end: int


class WordPair(NamedTuple):
    """Contribution of a source word and a target word to the score."""

    source: Word
    target: Word
    contribution: float


def split_words(text: str) -> list[Word]:
    """Return the words of a text, at least one: the whole text if it is only white space."""
    return [Word(match[0], *match.span()) for match in re.finditer(r"\S+", text)] or [Word(text, 0, len(text))]


def share_by_word(words: list[Word], first: Int64s, last: Int64s, rows: Doubles, of: Int64s, part: Doubles) -> Doubles:
    """Share occurrences of features among words by the characters that they have in each word, float64[words, d].

    White space has no share, and an occurrence of only white space goes to the next word.

    Args:
        words: of the text.
        first: int64[m], the first character of each occurrence.
        last: int64[m], the end of each occurrence.
        rows: float64[n, d].
        of: int64[m], the row of each occurrence.
        part: float64[n], the share that one occurrence has of its row.
    """
    ends = np.cumsum([max(1, word.end - word.start) for word in words])
    begins = np.append(0, ends[:-1])
    # Characters are counted without white space: a place in the text -> those before it.
    edges = np.array([(word.start, word.end) for word in words]).ravel()
    counted = np.stack([begins, ends], axis=1).ravel()
    first = np.minimum(np.interp(first, edges, counted).astype(np.int64), max(0, ends[-1] - 1))
    last = np.maximum(np.interp(last, edges, counted).astype(np.int64), first + 1)
    sums = np.zeros((len(words), rows.shape[1]))
    word = np.searchsorted(begins, first, side="right") - 1
    left = np.arange(len(first))
    while len(left):
        here = np.minimum(last[left], ends[word]) - np.maximum(first[left], begins[word])
        _add(sums, word, rows, of[left], part[of[left]] * here / (last[left] - first[left]))
        further = last[left] > ends[word]
        left, word = left[further], word[further] + 1
    return sums


def _add(sums: Doubles, word: Int64s, rows: Doubles, of: Int64s, shares: Doubles) -> None:
    order = np.argsort(word, kind="stable")
    for start in range(0, len(order), BLOCK_ROWS):
        block = order[start : start + BLOCK_ROWS]
        words, places = np.unique(word[block], return_index=True)
        sums[words] += np.add.reduceat(rows[of[block]] * shares[block, None], places, axis=0)


# Pieces of a text that are left out, one at a time: each is another text to embed. A text of more features is cut into
# this many pieces, or fewer where all of these texts would have more rows than MAX_ROWS.
MAX_PIECES = 64
MAX_ROWS = 16_384


def shares(embedder: Embedder, rows: NDArray[np.int32]) -> tuple[Doubles, Doubles]:
    r"""Return the share of each of a text's features by occlusion (Zeiler and Fergus, 2014).

    It explains models with layers above the sum of their rows, and models that read rows in order. With u(a) the
    vector of a at length 1 and a\\i the text without feature i, the share of i is u(a) - u(a\\i). Its product with u(b)
    is by how much the cosine with b falls when i is left out. The product of two shares,
    cos(a, b) - cos(a\\i, b) - cos(a, b\\j) + cos(a\\i, b\\j), is what i and j do only together. For a sum of rows
    without normalization it is exactly the product of two rows.

    Args:
        embedder: the model.
        rows: int32[n], the features in the model's order.

    Returns:
        float64[n, d], the shares, and float64[d], the text's vector at length 1. Features that are left out together
        share their effect evenly.

    Raises:
        BackendError: the runtime fails.
    """
    n = len(rows)
    pieces = max(1, min(n, MAX_PIECES, MAX_ROWS // max(1, n)))
    bounds = np.linspace(0, n, pieces + 1).astype(np.int64)
    sizes = np.diff(bounds)
    piece = np.repeat(np.arange(pieces), sizes)
    left = [rows, *(rows[piece != index] for index in range(pieces))]
    offsets = np.cumsum([0, *map(len, left)]).astype(np.int64)
    units = _units(embedder.vectors_of(FeatureBatch(np.concatenate(left), offsets)), np.diff(offsets))
    whole = units[0]
    return ((whole - units[1:]) / np.maximum(sizes, 1)[:, None])[piece], whole


def _units(vectors: NDArray[np.float32], counts: NDArray[np.int64]) -> Doubles:
    """Return vectors at length 1, float64[n, d]; zeros for a text without features, as served."""
    wide = np.where(counts[:, None] > 0, vectors, np.float32(0)).astype(np.float64)
    lengths = np.linalg.norm(wide, axis=1, keepdims=True)
    return np.asarray(wide / np.where(lengths > 0, lengths, 1))
