"""TF-IDF of a text's n-grams: characters (2 to 4 within a word and its edges) and words (1 to 2), as hashed columns.

A column is the highest 24 bits of a feature's hash (see gramvec.lexical.hashing), so that a head stores no texts. A
feature that occurs t times weighs (1 + ln t) idf, idf = ln((1 + n) / (1 + df)) + 1 as in scikit-learn; the characters
of a text have length 1 together, and so have its words.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gramvec.features.numpy_reference import word_spans
from gramvec.lexical.hashing import COLUMN_BITS, PRIME, fold_to_letters, mix_key, to_columns
from gramvec.lexical.tfidf import damp_counts, inverse_frequency
from gramvec.text import hashing
from gramvec.text.arrays import Floats, Int64s
from gramvec.text.inputs import blocks

ORDERS = (2, 3, 4)
KEYS = 2 << COLUMN_BITS
FEATURES_A_CHARACTER = len(ORDERS) + 2  # at most
CHARACTERS, WORDS = 0, 1
# Keys of what is hashed, apart from those of gramvec.lexical: 0 there is a word, 1 to 8 an n-gram.
_PAIR_OF_WORDS = 16
BLOCK_TEXTS, BLOCK_CHARACTERS = 2048, 1 << 17
BYTES_A_CHARACTER = 256  # while the features of a block are made


class HashedNgrams(NamedTuple):
    """Features of texts: text int64[m] and key int64[m], the part (0: characters, 1: words) << 24 | column."""

    text: Int64s
    key: Int64s


def features(texts: Sequence[str]) -> HashedNgrams:
    """Hash the features of texts, repeated as often as they occur.

    Raises:
        InputError: with the text's index, for a lone surrogate or anything but str.
    """
    chars, letters = fold_to_letters(texts)
    place = np.arange(len(letters)) - chars.first
    space = letters == ord(" ")
    found: list[HashedNgrams] = []
    key = letters.astype(np.uint64)
    inside = np.ones(len(letters), np.bool_)  # no space between the first and the last character
    for order in range(2, max(ORDERS) + 1):
        key = np.append(np.uint64(0), key[:-1])[: len(key)] * np.uint64(PRIME) + letters
        if order > 2:
            inside = np.append(False, inside[:-1])[: len(inside)] & ~np.append(True, space[:-1])[: len(space)]
        at = np.flatnonzero(inside & (place >= order - 1))
        found.append(HashedNgrams(chars.text[at], to_columns(mix_key(key[at], order))))
    spans = word_spans(chars)
    words = hashing.word_hashes(letters, spans.start, spans.end - spans.start)
    second = np.flatnonzero(np.diff(spans.text, prepend=-1) == 0)
    pairs = words[second - 1] * np.uint64(PRIME) + words[second]
    of_words = WORDS << COLUMN_BITS
    found.append(HashedNgrams(spans.text, to_columns(mix_key(words, 0)) | of_words))
    found.append(HashedNgrams(spans.text[second], to_columns(mix_key(pairs, _PAIR_OF_WORDS)) | of_words))
    return HashedNgrams(*(np.concatenate(parts) for parts in zip(*found, strict=True)))


class WeightedNgrams(NamedTuple):
    """Sparse rows: of each entry the text int64[m] ascending, the place in NgramColumns int64[m], and the value.

    known: float64[n, 2], of the characters and of the words of each text the share of their length that known features
    have, 0 to 1; 0 for a text without any.
    """

    text: Int64s
    place: Int64s
    value: NDArray[np.float64]
    known: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class NgramColumns:
    """Known features. keys: int32[k], ascending, as in HashedNgrams. idf: float32[k]; unseen: that of any other."""

    keys: NDArray[np.int32]
    idf: Floats
    unseen: float = 0.0

    @classmethod
    def of_texts(cls, texts: Sequence[str], *, min_texts: int, max_columns: int) -> NgramColumns:
        """Return the features that at least `min_texts` texts hold, of each part the `max_columns` commonest."""
        keys, counts = np.zeros(0, np.int64), np.zeros(0, np.int64)
        for first, last in blocks(texts, BLOCK_TEXTS, BLOCK_CHARACTERS):
            found = features(texts[first:last])
            # A feature counts once in each text.
            pairs, _ = _count_sorted(np.sort(found.key << 32 | found.text))
            new, of_new = _count_sorted(pairs >> 32)
            keys, places = np.unique(np.concatenate([keys, new]), return_inverse=True)
            counts = np.bincount(places, np.concatenate([counts, of_new])).astype(np.int64)
        kept = []
        for part in (CHARACTERS, WORDS):
            at = np.flatnonzero((keys >> COLUMN_BITS == part) & (counts >= min_texts))
            kept.append(at[np.argsort(-counts[at], kind="stable")[:max_columns]])
        places = np.sort(np.concatenate(kept))
        idf = inverse_frequency(len(texts), counts[places])
        unseen = float(np.float32(inverse_frequency(len(texts), np.zeros(1))[0]))
        return cls(keys[places].astype(np.int32), idf.astype(np.float32), unseen)

    def select(self, places: Int64s) -> NgramColumns:
        """Return the features at these places, ascending."""
        return NgramColumns(self.keys[places], self.idf[places], self.unseen)

    def weigh(self, texts: Sequence[str]) -> WeightedNgrams:
        """Return the TF-IDF of the known features of texts, of length 1 for each part of a text."""
        found = features(texts)
        pairs, times = _count_sorted(np.sort(found.text << 32 | found.key))
        text, key, values = pairs >> 32, pairs & 0xFFFFFFFF, damp_counts(times)
        group = text * 2 + (key >> COLUMN_BITS)
        places = np.searchsorted(self.keys, key)
        places[places == len(self.keys)] = 0
        known = self.keys[places] == key if len(self.keys) else np.zeros(len(key), np.bool_)
        # A feature that no text had weighs as much as it would have weighed there.
        missed = np.bincount(group[~known], (values[~known] * self.unseen) ** 2, minlength=2 * len(texts))
        text, group, places = text[known], group[known], places[known]
        values = values[known] * self.idf[places]
        squares = np.bincount(group, values * values, minlength=2 * len(texts))
        shares = np.sqrt(squares / np.maximum(squares + missed, np.finfo(np.float64).tiny))
        return WeightedNgrams(text, places, values / np.sqrt(squares)[group], shares.reshape(-1, 2))


def _count_sorted(values: Int64s) -> tuple[Int64s, Int64s]:
    """Return the distinct ones of ascending numbers from 0, and how often each is there: faster than np.unique."""
    first = np.flatnonzero(np.diff(values, prepend=np.int64(-1)))
    return values[first], np.diff(np.append(first, len(values)))
