"""N-grams and words of any characters as columns: hashed, so that none is unknown and no vocabulary is kept.

The text's rules are those of the models (docs/architecture.md): NFC, lower case, runs of white space are one space, one
space on each side, n-grams cross spaces. An n-gram's hash is a polynomial of its code points, a word's is FNV-1a over
them, both put through the finaliser of SplitMix64 (Steele, Lea and Flood 2014); a column is its highest 24 bits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gramvec.features.numpy_reference import Characters, characters, word_spans
from gramvec.text import hashing
from gramvec.text.arrays import Int64s, UInt64s
from gramvec.text.characters import CODE_POINTS, SPACE, CharacterTable, class_ranges, lower_case_pairs
from gramvec.text.folding import fold_texts
from gramvec.text.inputs import CodePoints, code_points

# With 500,000 different features 3 % share their column with another.
COLUMN_BITS = 24
COLUMNS = 1 << COLUMN_BITS
PRIME = 0x9E3779B97F4A7C15

UInt32s = NDArray[np.uint32]


class HashedFeatures(NamedTuple):
    """Features of texts: of each the text int64[m], a hash uint64[m], and its place among the `characters`, int64[m]:
    of an n-gram its last, of a word its first.
    """

    text: Int64s
    hash: UInt64s
    place: Int64s


def count_features(
    texts: Sequence[str], orders: Sequence[int], *, words: bool
) -> tuple[Int64s, NDArray[np.int32], Int64s]:
    """Count the features of texts; lone surrogates and anything but str are refused.

    Returns:
        indptr int64[n + 1], columns int32[m] ascending within each text, and counts int64[m].

    Raises:
        InputError: with the text's index.
    """
    coded = code_points(texts)
    features = hash_features(coded, characters(coded, _classes()), lower_table().__getitem__, orders, words=words)
    keys = np.sort(features.text << COLUMN_BITS | to_columns(features.hash))
    first = np.flatnonzero(np.diff(keys, prepend=np.int64(-1)))
    counts = np.diff(np.append(first, len(keys)))
    indptr = np.searchsorted(keys[first], np.arange(len(coded.starts), dtype=np.int64) << COLUMN_BITS)
    return indptr, (keys[first] & (COLUMNS - 1)).astype(np.int32), counts


def hash_features(
    texts: CodePoints,
    chars: Characters,
    lower: Callable[[UInt32s], UInt32s],
    orders: Sequence[int],
    *,
    words: bool = False,
) -> HashedFeatures:
    """Return the features of texts, given their characters; `lower` maps code points to lower case."""
    letters = _letters(texts, chars, lower)
    place = np.arange(len(letters)) - chars.first
    features: list[HashedFeatures] = []
    key = np.zeros(len(letters), np.uint64)
    for order in range(1, max(orders, default=0) + 1):
        before = np.append(np.uint64(0), key[:-1])[: len(key)]
        key = (before if order > 1 else key) * np.uint64(PRIME) + letters
        if order in orders:
            at = np.flatnonzero(place >= order - 1)
            features.append(HashedFeatures(chars.text[at], mix_key(key[at], order), at))
    if words:
        spans = word_spans(chars)
        hashes = hashing.word_hashes(letters, spans.start, spans.end - spans.start)
        features.append(HashedFeatures(spans.text, mix_key(hashes, 0), spans.start))
    if not features:
        return HashedFeatures(np.zeros(0, np.int64), np.zeros(0, np.uint64), np.zeros(0, np.int64))
    return HashedFeatures(*(np.concatenate(parts) for parts in zip(*features, strict=True)))


def fold_to_letters(texts: Sequence[str]) -> tuple[Characters, UInt32s]:
    """Return the characters of texts as their letters fold, and the code point of each, U+0020 for white space.

    Raises InputError with the text's index for a lone surrogate or anything but str.
    """
    try:
        folded = fold_texts(texts)
    except (AttributeError, TypeError):
        code_points(texts)  # raises an error that names the text
        raise
    coded = code_points(folded)
    chars = characters(coded, _classes())
    return chars, _letters(coded, chars, lower_table().__getitem__)


def _letters(texts: CodePoints, chars: Characters, lower: Callable[[UInt32s], UInt32s]) -> UInt32s:
    if not len(texts.points):
        return np.zeros(0, np.uint32)
    return np.where(chars.source < 0, np.uint32(ord(" ")), lower(texts.points[np.maximum(chars.source, 0)]))


def ngram_hashes(letters: UInt32s) -> UInt64s:
    """Return the hash uint64[n] of each n-gram in uint32[n, order], code points as `fold_to_letters` reads them."""
    key = np.zeros(len(letters), np.uint64)
    for column in letters.T:
        key = key * np.uint64(PRIME) + column
    return mix_key(key, letters.shape[1])


def to_columns(hashes: UInt64s) -> Int64s:
    """Return the highest bits of hashes, int64."""
    return (hashes >> np.uint64(64 - COLUMN_BITS)).astype(np.int64)


def mix_key(key: UInt64s, kind: int) -> UInt64s:
    """Return SplitMix64's finalizer of a key. kind: the order of an n-gram, 0 for words, or what else is hashed."""
    x = key + np.uint64((kind + 1) * PRIME & 0xFFFFFFFFFFFFFFFF)
    x = (x ^ x >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ x >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
    return x ^ x >> np.uint64(31)


@lru_cache(maxsize=1)
def _classes() -> CharacterTable:
    return CharacterTable(np.zeros(0, np.uint32), np.zeros((0, 2), np.uint32), *class_ranges())


@lru_cache(maxsize=1)
def lower_table() -> NDArray[np.uint32]:
    """Return the lower case of each code point, uint32[0x110000]; every white space character is U+0020."""
    lower = np.arange(CODE_POINTS, dtype=np.uint32)
    pairs = np.array(lower_case_pairs(), np.uint32)
    lower[pairs[:, 0]] = pairs[:, 1]
    firsts, classes = class_ranges()
    ends = np.append(firsts[1:], np.uint32(CODE_POINTS))
    for first, end in zip(firsts[classes == SPACE].tolist(), ends[classes == SPACE].tolist(), strict=True):
        lower[first:end] = ord(" ")
    lower.setflags(write=False)
    return lower
