"""Features of one text with their places in it, for explanations; the featurizer returns only rows."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gramvec.features import numpy_reference as plain
from gramvec.features.spec import FeatureSpec
from gramvec.text.arrays import Int64s
from gramvec.text.characters import CLASS_SHIFT, ID_MASK, SPACE, compose, lower
from gramvec.text.inputs import code_points
from gramvec.text.vocabulary import Vocabulary

# The last block with letters that have canonical decompositions is the Supplementary Ideographs' at U+2FA1D.
_LAST_COMPOSED = 0x30000
_HANGUL_VOWELS_AND_TAILS = range(0x1161, 0x11C3)


class FeaturePlaces(NamedTuple):
    """Features of a text in the featurizer's order, with their places.

    Args:
        rows: int32[n], rows of the model's table.
        start: int64[n], code-point offsets into the text as given, clipped to the text.
        end: int64[n], the ends that belong to `start`.
        text: the normalized text with its padding.
        first: int64[n], offsets into `text`.
        last: int64[n], the ends that belong to `first`.
        words: bool[n], True for words.
        names: how the model sees the first features, where their places in `text` do not say it: a word that is spelt
            has spaces on both sides, whatever stands there.
    """

    rows: NDArray[np.int32]
    start: Int64s
    end: Int64s
    text: str
    first: Int64s
    last: Int64s
    words: NDArray[np.bool_]
    names: tuple[str, ...] = ()

    def spell(self, index: int) -> str:
        """Return a feature as the model sees it: normalized, with the spaces of the padding."""
        return self.names[index] if index < len(self.names) else self.text[self.first[index] : self.last[index]]


def locate(text: str, spec: FeatureSpec, vocabulary: Vocabulary) -> FeaturePlaces:
    """Return the features of one text, each with its place.

    A space has the place of the whole run of white space that it replaces. If normalization replaced several letters,
    each result has the place of all of them. Raises InputError for a lone surrogate.
    """
    own: FeaturePlaces | None = vocabulary.locate(text, spec)
    if own is not None:
        return own
    coded = code_points([text], spec.read)
    chars = plain.characters(coded, vocabulary.table)
    starts, ends = places(text, chars, len(coded.points), spec.read)
    spelt = _spell(chars, coded.points, spec, vocabulary)
    if spec.spells:
        spans = plain.word_spans(chars)
        features = plain.spell_words(chars, spans, plain.word_rows(chars, spans, vocabulary), spec, vocabulary)
        names = tuple(
            f"{' ' * before}{spelt[first:last]}{' ' * behind}"
            for first, last, (before, behind) in zip(
                features.first.tolist(), features.last.tolist(), features.spaces.tolist(), strict=True
            )
        )
        return FeaturePlaces(
            features.rows,
            starts[features.first],
            ends[features.last - 1],
            spelt,
            features.first,
            features.last,
            features.words,
            names,
        )
    firsts, lasts, rows = [], [], []
    if spec.orders:
        keys, valid = plain.ngram_keys(chars, spec.orders, vocabulary.bits)
        ngrams = np.where(valid, plain.ngram_rows(keys, vocabulary), -1)
        last = np.repeat(np.arange(1, len(ngrams) + 1)[:, None], len(spec.orders), axis=1)
        firsts.append((last - np.array(spec.orders)).ravel())
        lasts.append(last.ravel())
        rows.append(ngrams.ravel())
    of_ngrams = sum(map(len, rows))
    if spec.words:
        spans = plain.word_spans(chars)
        words = plain.word_rows(chars, spans, vocabulary)
        if spec.unknown_words == "row":
            words = np.where(words < 0, np.int32(vocabulary.unknown_row), words)
        firsts.append(spans.start)
        lasts.append(spans.end)
        rows.append(words)
    row = np.concatenate(rows).astype(np.int32)
    known = np.flatnonzero(row >= 0)
    first, last = np.concatenate(firsts)[known], np.concatenate(lasts)[known]
    return FeaturePlaces(row[known], starts[first], ends[last - 1], spelt, first, last, known >= of_ngrams)


def places(
    text: str, chars: plain.Characters, composed: int, read: Callable[[str], str] = compose
) -> tuple[Int64s, Int64s]:
    """Return the start and end in a text of each normalized character, int64[m].

    composed: code points of the text as `read` gives it, see FeatureSpec.
    """
    origin_start, origin_end = _origins(text, composed, read)
    padding = chars.source < 0
    source = np.where(padding, 0, chars.source)
    starts = np.where(padding, 0, origin_start[source]) if composed else np.zeros(len(source), np.int64)
    ends = np.where(padding, 0, origin_end[source]) if composed else np.zeros(len(source), np.int64)
    space = chars.codes >> CLASS_SHIFT == SPACE
    inner = np.flatnonzero(space)
    starts[inner] = np.where(inner > 0, ends[inner - 1], 0)
    # A run of white space ends where the next character begins; the last one at the end of the text.
    ends[inner] = np.where(inner + 1 < len(space), starts[np.minimum(inner + 1, len(space) - 1)], len(text))
    return starts, ends


def _origins(text: str, composed: int, read: Callable[[str], str]) -> tuple[Int64s, Int64s]:
    # The place in `text` of each code point of the text as it is read (NFC, maybe of plain forms).
    if read(text) == text:
        places = np.arange(len(text))
        return places, places + 1
    starts, ends = np.zeros(composed, np.int64), np.zeros(composed, np.int64)
    boundaries = [0, *(place for place in range(1, len(text)) if _begins_character(read(text[place]))), len(text)]
    filled = 0
    for begin, end in pairwise(boundaries):
        piece = read(text[begin:end])
        length = len(piece)
        if piece == text[begin:end]:
            starts[filled : filled + length] = np.arange(begin, end)
            ends[filled : filled + length] = np.arange(begin, end) + 1
        else:
            starts[filled : filled + length], ends[filled : filled + length] = begin, end
        filled += length
    assert filled == composed
    return starts, ends


def _begins_character(read: str) -> bool:
    """Return True if normalization never joins or reorders it with preceding text (UAX #15, stable boundaries).

    read: a character as it is read; one that is left out does not begin another.
    """
    if read.isascii():
        return read != ""
    decomposed = unicodedata.normalize("NFD", read)[0]
    return unicodedata.combining(decomposed) == 0 and decomposed not in _find_joining_characters()


@lru_cache(maxsize=1)
def _find_joining_characters() -> frozenset[str]:
    # Characters that may be the second half of a composed letter. Most are combining marks; a few are not.
    joining = {chr(point) for point in _HANGUL_VOWELS_AND_TAILS}
    for point in range(0xC0, _LAST_COMPOSED):
        parts = unicodedata.decomposition(chr(point)).split()
        if len(parts) == 2 and not parts[0].startswith("<"):
            joining.add(chr(int(parts[1], 16)))
    return frozenset(joining)


def _spell(chars: plain.Characters, points: NDArray[np.uint32], spec: FeatureSpec, vocabulary: Vocabulary) -> str:
    letters: list[str] = []
    for code, source in zip(chars.codes.tolist(), chars.source.tolist(), strict=True):
        if code >> CLASS_SHIFT == SPACE:
            letters.append(" ")
        elif one := code & ID_MASK:
            letters.append(chr(vocabulary.alphabet[one - 1]))
        else:
            letters.append(lower(chr(points[source])) if spec.lowercase else chr(points[source]))
    return "".join(letters)
