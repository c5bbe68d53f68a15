"""The featurizer in vectorized numpy, a function a stage: for training's counts, and where there are no loops in C."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gramvec.features.spec import FeatureSpec
from gramvec.text import hashing
from gramvec.text.arrays import Bools, FeatureBatch, Int32s, Int64s, UInt64s
from gramvec.text.characters import CLASS_SHIFT, ID_MASK, SPACE, WORD, CharacterTable
from gramvec.text.inputs import CodePoints
from gramvec.text.vocabulary import Vocabulary


class Characters(NamedTuple):
    """Characters of n texts after the space rule: each text has one space on both sides and none doubled.

    codes: uint32[m], class << 16 | id. text: int64[m], the text of each. first: int64[m], where its text begins.
    source: int64[m], index into the code points; -1 for the padding.
    """

    codes: NDArray[np.uint32]
    text: Int64s
    first: Int64s
    source: Int64s


def characters(texts: CodePoints, table: CharacterTable) -> Characters:
    """Pad with spaces, collapse runs of white space; a text of only white space has no characters."""
    lengths = np.diff(texts.starts)
    n, total = len(lengths), len(texts.points)
    padded = np.full(total + 2 * n, table[ord(" ")], np.uint32)
    source = np.full(total + 2 * n, -1, np.int64)
    places = np.arange(total) + 2 * np.repeat(np.arange(n), lengths) + 1
    padded[places] = table[texts.points]
    source[places] = np.arange(total)
    text = np.repeat(np.arange(n), lengths + 2)
    space = padded >> CLASS_SHIFT == SPACE
    begins = np.diff(text, prepend=-1) != 0
    keep = ~space | begins | np.append(True, ~space[:-1])
    keep &= np.bincount(text[~space], minlength=n).astype(bool)[text]
    text, codes, source = text[keep], padded[keep], source[keep]
    first = np.searchsorted(text, text)
    return Characters(codes, text, first, source)


def ngram_keys(chars: Characters, orders: Sequence[int], bits: int) -> tuple[UInt64s, Bools]:
    """Return the key of the n-gram of each order that ends at each character, and whether it is an n-gram.

    An n-gram lies within its text and holds no character of id 0.

    Returns:
        uint64[m, orders] and bool[m, orders].
    """
    ids = (chars.codes & ID_MASK).astype(np.uint64)
    m = len(ids)
    position = np.arange(m)
    keys = np.zeros((m, len(orders)), np.uint64)
    valid = np.zeros((m, len(orders)), np.bool_)
    key, ok = np.zeros(m, np.uint64), np.ones(m, np.bool_)
    for n in range(1, max(orders, default=0) + 1):
        back = position - (n - 1)
        ok = ok & (back >= chars.first)
        at_back = ids[np.maximum(back, 0)]
        ok &= at_back != 0
        key = key | at_back << np.uint64(bits * (n - 1))
        if n in orders:
            column = list(orders).index(n)
            keys[:, column], valid[:, column] = key, ok
    return keys, valid


def ngram_rows(keys: UInt64s, vocabulary: Vocabulary) -> NDArray[np.int32]:
    """Return the row of each key, int32 in the shape of `keys`; -1 where the vocabulary has none."""
    places = vocabulary.ngram_index.find(keys.ravel())
    rows = np.full(places.shape, -1, np.int32)
    rows[places >= 0] = vocabulary.ngram_rows[places[places >= 0]]
    return rows.reshape(keys.shape)


class WordSpans(NamedTuple):
    """Words as spans of characters: start and end int64[w], and the text int64[w] of each."""

    start: Int64s
    end: Int64s
    text: Int64s


def word_spans(chars: Characters) -> WordSpans:
    """Return the words of the texts: a word is a longest run of WORD characters, or one SYMBOL."""
    kind = chars.codes >> CLASS_SHIFT
    word = kind == WORD
    # Padding keeps texts apart: a run never crosses from one text into the next.
    start = (kind != SPACE) & ~(word & np.append(False, word[:-1]))
    end = (kind != SPACE) & ~(word & np.append(word[1:], False))
    starts = np.flatnonzero(start)
    return WordSpans(starts, np.flatnonzero(end) + 1, chars.text[starts])


def word_rows(chars: Characters, spans: WordSpans, vocabulary: Vocabulary) -> NDArray[np.int32]:
    """Return the row of each word, int32[w]; -1 where the vocabulary has none."""
    ids = (chars.codes & ID_MASK).astype(np.uint64)
    lengths = spans.end - spans.start
    known = np.append(0, np.cumsum(ids != 0))
    fits = (lengths <= vocabulary.longest_word) & (known[spans.end] - known[spans.start] == lengths)
    hashes = hashing.word_hashes(ids, spans.start, np.where(fits, lengths, 0))
    rows = np.full(len(lengths), -1, np.int32)
    places = vocabulary.word_index.find(hashes)
    at = np.flatnonzero(fits & (places >= 0))
    same = _same_word(ids, spans.start[at], lengths[at], places[at], vocabulary)
    rows[at[same]] = vocabulary.word_rows[places[at[same]]]
    return rows


def _same_word(ids: UInt64s, start: Int64s, length: Int64s, candidate: Int64s, vocabulary: Vocabulary) -> Bools:
    begin = vocabulary.word_starts[candidate].astype(np.int64)
    same: Bools = np.equal(vocabulary.word_starts[candidate + 1] - begin, length)
    at, k = np.flatnonzero(same), 0
    while len(at):
        same[at] = vocabulary.word_chars[begin[at] + k] == ids[start[at] + k]
        k += 1
        at = at[same[at] & (length[at] > k)]
    return same


def longest(chars: Characters, keys: UInt64s, valid: Bools, spec: FeatureSpec, vocabulary: Vocabulary) -> Int32s:
    """Return the rows of `ngram_rows`, but -1 where a longer n-gram ends in the same character, int32[m, orders].

    N-grams that cross a space and those that do not are compared separately, see gramvec.text.suffixes.
    """
    position = np.arange(len(chars.codes))
    spaces = np.where(chars.codes >> CLASS_SHIFT == SPACE, position, -1)
    before = np.maximum.accumulate(np.append(-1, spaces[:-1])) if len(spaces) else spaces
    rows = np.full(keys.shape, -1, np.int32)
    longer = np.zeros((2, len(position)), np.bool_)
    for column in reversed(range(len(spec.orders))):
        crosses = (position - spec.orders[column] + 1 < before).astype(np.intp)
        at = np.flatnonzero(valid[:, column] & ~longer[crosses, position])
        rows[at, column] = ngram_rows(keys[at, column], vocabulary)
        hit = at[rows[at, column] >= 0]
        longer[crosses[hit], hit] = True
    return rows


class SpeltFeatures(NamedTuple):
    """Features of texts word by word: the row of a word that is listed, or those of the n-grams that spell it.

    rows: int32[n]. text: int64[n], the text of each. first, last: int64[n], which of the word's characters each is made
    of. spaces: bool[n, 2], whether an n-gram has the space before and behind the word. words: bool[n], True for words.
    """

    rows: NDArray[np.int32]
    text: Int64s
    first: Int64s
    last: Int64s
    spaces: Bools
    words: Bools


def spell_words(
    chars: Characters, spans: WordSpans, of_words: NDArray[np.int32], spec: FeatureSpec, vocabulary: Vocabulary
) -> SpeltFeatures:
    """Return the row of each word, or where it has none (-1) its n-grams by their last character, shorter first.

    Only a run of letters and their like is spelt. It is read between two spaces, whatever stands beside it.
    """
    kind = chars.codes >> CLASS_SHIFT
    spelt = np.flatnonzero((of_words < 0) & (kind[spans.start] == WORD))
    lengths = (spans.end - spans.start)[spelt] + 2
    begins = np.cumsum(lengths) - lengths
    word = np.repeat(np.arange(len(spelt)), lengths)
    place = np.arange(len(word)) - begins[word]  # in the word with its spaces
    at = spans.start[spelt][word] + place - 1
    inside = (place > 0) & (place < lengths[word] - 1)
    codes = np.where(inside, chars.codes[np.clip(at, 0, len(chars.codes) - 1)], vocabulary.table[ord(" ")])
    alone = Characters(codes.astype(np.uint32), word, begins[word], at)
    keys, valid = ngram_keys(alone, spec.orders, vocabulary.bits)
    orders = np.array(spec.orders)
    valid &= inside[:, None] | (orders > 1)  # a space by itself is no n-gram of the word
    rows = np.where(valid, ngram_rows(keys, vocabulary), -1)
    known, order = np.nonzero(rows >= 0)
    of = spelt[word[known]]
    end, listed = at[known] + 1, np.flatnonzero(of_words >= 0)
    begin = end - orders[order]
    spaces = np.stack([begin < spans.start[of], end > spans.end[of]], axis=1)
    owners = np.append(of, listed)
    by_word = np.argsort(owners, kind="stable")
    return SpeltFeatures(
        np.append(rows[known, order], of_words[listed])[by_word].astype(np.int32),
        spans.text[owners][by_word],
        np.append(begin + spaces[:, 0], spans.start[listed])[by_word],
        np.append(end - spaces[:, 1], spans.end[listed])[by_word],
        np.append(spaces, np.zeros((len(listed), 2), np.bool_), axis=0)[by_word],
        (np.arange(len(owners)) >= len(known))[by_word],
    )


def featurize(texts: CodePoints, spec: FeatureSpec, vocabulary: Vocabulary, *, sums: bool = False) -> FeatureBatch:
    """Return each text's n-grams by their last character, shorter first, and then its words; or as `spell_words` does.

    Args:
        texts: the code points of the texts.
        spec: the kinds of features.
        vocabulary: the rows of features.
        sums: look up only the longest n-gram, whose row holds the others, see gramvec.text.suffixes.
    """
    chars = characters(texts, vocabulary.table)
    text, rows = np.zeros(0, np.int64), np.zeros(0, np.int32)
    unknown = int(np.count_nonzero((chars.codes & ID_MASK == 0) & (chars.codes >> CLASS_SHIFT != SPACE)))
    if spec.orders and not spec.spells:
        keys, valid = ngram_keys(chars, spec.orders, vocabulary.bits)
        if sums:
            rows = longest(chars, keys, valid, spec, vocabulary).ravel()
        else:
            rows = np.where(valid, ngram_rows(keys, vocabulary), -1).ravel()
        text = np.repeat(chars.text, len(spec.orders))
    if spec.words:
        spans = word_spans(chars)
        of_words = word_rows(chars, spans, vocabulary)
        unknown += int(np.count_nonzero(of_words < 0))
        if spec.spells:
            spelt = spell_words(chars, spans, of_words, spec, vocabulary)
            return FeatureBatch(spelt.rows, _offsets(spelt.text, len(texts.starts)), unknown)
        if spec.unknown_words == "row":
            of_words = np.where(of_words < 0, np.int32(vocabulary.unknown_row), of_words)
        rows, text = np.append(rows, of_words), np.append(text, spans.text)
    rows, text = rows[rows >= 0], text[rows >= 0]
    order = np.argsort(text, kind="stable")
    return FeatureBatch(rows[order], _offsets(text, len(texts.starts)), unknown)


def _offsets(text: Int64s, size: int) -> Int64s:
    offsets = np.zeros(size, np.int64)
    np.cumsum(np.bincount(text, minlength=size - 1), out=offsets[1:])
    return offsets
