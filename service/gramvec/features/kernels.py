"""The loops of the featuriser, compiled by numba: a text's characters, its n-grams, its words, its memoised chunks.

Importing this module needs numba and takes half a second. All loops are in one file, because numba's cache looks at
the file of a function alone, not at those of the functions that it calls.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar, cast

import numba
import numpy as np
from numpy.typing import NDArray

from gramvec.vocab import hashing
from gramvec.vocab.characters import CLASS_SHIFT, ID_MASK, SPACE, WORD

F = TypeVar("F", bound=Callable[..., object])

_MULTIPLIER = np.uint64(hashing.MULTIPLIER)
_SEED = np.uint64(hashing.WORD_SEED)
_PRIME = np.uint64(hashing.WORD_PRIME)
_ONE = np.uint64(1)


def compiled(function: F) -> F:
    """The function compiled at its first call, without the interpreter's lock, and cached on disk where that works."""
    try:
        return cast(F, numba.njit(cache=True, nogil=True)(function))
    except RuntimeError:  # neither the package's folder nor the user's cache folder can be written
        return cast(F, numba.njit(nogil=True)(function))


@compiled
def _read_characters(points: NDArray[np.uint32], table: NDArray[np.uint32], codes: NDArray[np.uint32]) -> int:
    """Write the text's codes, padded and with single spaces; return how many, 0 for a text without any."""
    space = table[32]
    codes[0] = space
    length, after_space = 1, True
    for point in points:
        code = table[point]
        if code >> CLASS_SHIFT == SPACE:
            if after_space:
                continue
            after_space = True
        else:
            after_space = False
        codes[length] = code
        length += 1
    if length == 1:
        return 0
    if not after_space:
        codes[length] = space
        length += 1
    return length


@compiled
def _find_key(key: np.uint64, keys: NDArray[np.uint64], rows: NDArray[np.int32], shift: np.uint64) -> int:
    """The row of a packed key, -1 where the table has none; see gramvec.vocab.hashing."""
    last_slot = np.uint64(len(keys) - 1)
    slot = key * _MULTIPLIER >> shift
    while keys[slot] != key:
        if keys[slot] == 0:
            return -1
        slot = (slot + _ONE) & last_slot
    return int(rows[slot])


@compiled
def _find_ngrams(
    codes: NDArray[np.uint32],
    orders: NDArray[np.int64],
    masks: NDArray[np.uint64],
    bits: np.uint64,
    keys: NDArray[np.uint64],
    rows: NDArray[np.int32],
    shift: np.uint64,
    ids: NDArray[np.int32],
    at: int,
) -> int:
    history, run = np.uint64(0), 0
    for code in codes:
        one = np.uint64(code & ID_MASK)
        if one == 0:
            history, run = np.uint64(0), 0
            continue
        history = history << bits | one
        run += 1
        for index in range(len(orders)):
            if run < orders[index]:
                break
            row = _find_key(history & masks[index], keys, rows, shift)
            if row >= 0:
                ids[at] = row
                at += 1
    return at


@compiled
def _find_word(
    codes: NDArray[np.uint32],
    slots: NDArray[np.int32],
    starts: NDArray[np.uint32],
    chars: NDArray[np.uint16],
    rows: NDArray[np.int32],
    shift: np.uint64,
) -> int:
    value = _SEED
    for code in codes:
        one = np.uint64(code & ID_MASK)
        if one == 0:
            return -1
        value = (value ^ one) * _PRIME
    slot = np.int64(value * _MULTIPLIER >> shift)
    while slots[slot] >= 0:
        word = slots[slot]
        begin = np.int64(starts[word])
        if np.int64(starts[word + 1]) - begin == len(codes):
            for k in range(len(codes)):
                if chars[begin + k] != codes[k] & ID_MASK:
                    break
            else:
                return int(rows[word])
        slot = (slot + 1) & (len(slots) - 1)
    return -1


@compiled
def _find_words(
    codes: NDArray[np.uint32],
    slots: NDArray[np.int32],
    starts: NDArray[np.uint32],
    chars: NDArray[np.uint16],
    rows: NDArray[np.int32],
    shift: np.uint64,
    longest: int,
    unknown_row: int,
    ids: NDArray[np.int32],
    at: int,
) -> int:
    position = 0
    while position < len(codes):
        kind = codes[position] >> CLASS_SHIFT
        begin = position
        position += 1
        if kind == SPACE:
            continue
        if kind == WORD:
            while codes[position] >> CLASS_SHIFT == WORD:  # the padding ends every run
                position += 1
        row = -1
        if position - begin <= longest:
            row = _find_word(codes[begin:position], slots, starts, chars, rows, shift)
        if row < 0:
            row = unknown_row
        if row >= 0:
            ids[at] = row
            at += 1
    return at


@compiled
def _find_crossing(
    codes: NDArray[np.uint32],
    space: int,
    end: int,
    orders: NDArray[np.int64],
    masks: NDArray[np.uint64],
    bits: np.uint64,
    keys: NDArray[np.uint64],
    rows: NDArray[np.int32],
    shift: np.uint64,
    ids: NDArray[np.int32],
    at: int,
) -> int:
    """The n-grams with characters on both sides of `space` that end before the next space, or in it (at `end`)."""
    longest = orders[-1]
    history, run = np.uint64(0), 0
    for position in range(max(0, space - longest + 2), min(end, space + longest - 2) + 1):
        one = np.uint64(codes[position] & ID_MASK)
        if one == 0:
            history, run = np.uint64(0), 0
            continue
        history = history << bits | one
        run += 1
        for index in range(len(orders)):
            order = orders[index]
            if run < order:
                break
            if position <= space or order < position - space + 2:
                continue
            row = _find_key(history & masks[index], keys, rows, shift)
            if row >= 0:
                ids[at] = row
                at += 1
    return at


@compiled
def _find_edge(
    codes: NDArray[np.uint32],
    space: int,
    end: int,
    reach: int,
    bits: np.uint64,
    keys: NDArray[np.uint64],
    rows: NDArray[np.int32],
    shift: np.uint64,
) -> int:
    """The row of the edge at `space`, -1 where the memo has none; see gramvec.vocab.memo."""
    if reach == 0:
        return -1
    key = np.uint64(0)
    for position in range(max(0, space - reach), min(end, space + reach) + 1):
        one = np.uint64(codes[position] & ID_MASK)
        if one == 0:
            return -1
        key = key << bits | one
    return _find_key(key, keys, rows, shift)


@compiled
def featurise(
    points: NDArray[np.uint32],
    starts: NDArray[np.int64],
    table: NDArray[np.uint32],
    orders: NDArray[np.int64],
    masks: NDArray[np.uint64],
    bits: np.uint64,
    ngram_keys: NDArray[np.uint64],
    ngram_rows: NDArray[np.int32],
    ngram_shift: np.uint64,
    use_words: bool,
    word_slots: NDArray[np.int32],
    word_starts: NDArray[np.uint32],
    word_chars: NDArray[np.uint16],
    word_rows: NDArray[np.int32],
    word_shift: np.uint64,
    longest_word: int,
    unknown_row: int,
    ids: NDArray[np.int32],
    offsets: NDArray[np.int64],
) -> int:
    """Write ids and offsets as plain.featurise has them; return the number of ids."""
    longest = 0
    for text in range(len(starts) - 1):
        longest = max(longest, starts[text + 1] - starts[text])
    codes = np.empty(longest + 2, np.uint32)
    at = 0
    offsets[0] = 0
    for text in range(len(starts) - 1):
        length = _read_characters(points[starts[text] : starts[text + 1]], table, codes)
        if length > 0:
            own = codes[:length]
            at = _find_ngrams(own, orders, masks, bits, ngram_keys, ngram_rows, ngram_shift, ids, at)
            if use_words:
                at = _find_words(
                    own,
                    word_slots,
                    word_starts,
                    word_chars,
                    word_rows,
                    word_shift,
                    longest_word,
                    unknown_row,
                    ids,
                    at,
                )
        offsets[text + 1] = at
    return at


@compiled
def featurise_memoised(
    points: NDArray[np.uint32],
    starts: NDArray[np.int64],
    table: NDArray[np.uint32],
    orders: NDArray[np.int64],
    masks: NDArray[np.uint64],
    bits: np.uint64,
    ngram_keys: NDArray[np.uint64],
    ngram_rows: NDArray[np.int32],
    ngram_shift: np.uint64,
    use_words: bool,
    word_slots: NDArray[np.int32],
    word_starts: NDArray[np.uint32],
    word_chars: NDArray[np.uint16],
    word_rows: NDArray[np.int32],
    word_shift: np.uint64,
    longest_word: int,
    unknown_row: int,
    memo_slots: NDArray[np.int32],
    memo_starts: NDArray[np.uint32],
    memo_chars: NDArray[np.uint16],
    memo_rows: NDArray[np.int32],
    memo_shift: np.uint64,
    longest_chunk: int,
    reach: int,
    edge_keys: NDArray[np.uint64],
    edge_rows: NDArray[np.int32],
    edge_shift: np.uint64,
    ids: NDArray[np.int32],
    offsets: NDArray[np.int64],
) -> int:
    """Write ids and offsets as compiled.CompiledFeaturiser has them with a memo; return the number of ids."""
    longest = 0
    for text in range(len(starts) - 1):
        longest = max(longest, starts[text + 1] - starts[text])
    codes = np.empty(longest + 2, np.uint32)
    at = 0
    offsets[0] = 0
    for text in range(len(starts) - 1):
        length = _read_characters(points[starts[text] : starts[text + 1]], table, codes)
        space = 0
        while space < length - 1:
            end = space + 1
            while codes[end] >> CLASS_SHIFT != SPACE:
                end += 1
            if space > 0:
                row = _find_edge(codes, space, end, reach, bits, edge_keys, edge_rows, edge_shift)
                if row >= 0:
                    ids[at] = row
                    at += 1
                else:
                    at = _find_crossing(
                        codes, space, end, orders, masks, bits, ngram_keys, ngram_rows, ngram_shift, ids, at
                    )
            row = -1
            if end - space - 1 <= longest_chunk:
                row = _find_word(codes[space + 1 : end], memo_slots, memo_starts, memo_chars, memo_rows, memo_shift)
            if row >= 0:
                ids[at] = row
                at += 1
            else:
                own = codes[space : end + 1]
                at = _find_ngrams(own, orders, masks, bits, ngram_keys, ngram_rows, ngram_shift, ids, at)
                if use_words:
                    at = _find_words(
                        own,
                        word_slots,
                        word_starts,
                        word_chars,
                        word_rows,
                        word_shift,
                        longest_word,
                        unknown_row,
                        ids,
                        at,
                    )
            space = end
        offsets[text + 1] = at
    return at
