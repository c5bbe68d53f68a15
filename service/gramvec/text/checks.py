"""Checks of the arrays of a vocabulary and a memo: each is in range, and all of them fit together.

The arrays are untrusted. Each check is linear, without a loop over entries, and raises ValueError with the rest of a
sentence. Repeated n-grams and words are found when they are put into tables.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from gramvec.text.arrays import Array
from gramvec.text.characters import CODE_POINTS, MAX_ALPHABET, SPACE

MAX_BITS, KEY_BITS = 16, 64
MAX_ROWS = 2**31 - 1
LONGEST_WORD = 2**16 - 1


def check_vocabulary(arrays: Mapping[str, Array]) -> None:
    """Check the arrays of vocabulary.safetensors, whose types are right already. Raises ValueError."""
    meta = arrays["meta"]
    _demand(len(meta) == 5, "meta has not 5 numbers")
    rows, bits, unknown, longest, lowercase = meta.tolist()
    alphabet = len(arrays["alphabet"])
    _demand(1 <= bits <= MAX_BITS and alphabet < 1 << bits, f"ids of {bits} bits for {alphabet} characters")
    _demand(lowercase in (0, 1), "lowercase is neither 0 nor 1")
    _check_characters(arrays)
    _demand(len(arrays["ngram_keys"]) == len(arrays["ngram_rows"]), "ngram_keys and ngram_rows differ in length")
    check_keys("ngram_keys", arrays["ngram_keys"], bits, alphabet, KEY_BITS // bits)
    check_spans("word", arrays["word_starts"], arrays["word_chars"], arrays["word_rows"], alphabet, longest)
    _check_rows(arrays, rows, unknown)


def check_memo(arrays: Mapping[str, Array], *, rows: int, bits: int, alphabet: int, space: int) -> None:
    """Check the arrays of memo.safetensors against their vocabulary.

    Args:
        arrays: by name, of the right types.
        rows: number of rows of the vocabulary.
        bits: of a character id in a key.
        alphabet: number of characters.
        space: the character id of a space, 0 for none.

    Raises:
        ValueError: an array is out of range, or two do not fit together.
    """
    meta = arrays["meta"]
    _demand(len(meta) == 4, "meta has not 4 numbers")
    first, longest, reach, n_edges = meta.tolist()
    starts, chars, keys = arrays["starts"], arrays["chars"], arrays["edge_keys"]
    _demand(first == rows, f"its rows begin at {first}, and those of the vocabulary end at {rows}")
    check_spans("chunk", starts, chars, arrays["rows"], alphabet, longest)
    _demand(space == 0 or not np.any(chars == space), "a chunk holds a space")
    _demand(len(keys) == len(arrays["edge_rows"]) == n_edges, "edge_keys and edge_rows have other lengths than meta")
    # Before anything is multiplied: `reach` may be any number of 64 bits.
    _demand(0 <= reach <= KEY_BITS and (2 * reach + 1) * bits <= KEY_BITS, f"a reach of {reach}")
    _demand(reach > 0 or n_edges == 0, "edges without a reach")
    check_keys("edge_keys", keys, bits, alphabet, 2 * reach + 1)
    after = first + len(arrays["rows"])
    _demand(after + n_edges <= MAX_ROWS, "more rows than an id counts")
    _demand(_counts_up(arrays["rows"], first), "rows do not count up from the first")
    _demand(_counts_up(arrays["edge_rows"], after), "edge_rows do not count up from the last of the chunks")


def check_keys(name: str, keys: Array, bits: int, alphabet: int, longest: int) -> None:
    """Check keys (see hashing.pack): different n-grams of at most `longest` characters, with ids up to `alphabet`."""
    rest, mask, shift = keys.copy(), np.uint64((1 << bits) - 1), np.uint64(bits)
    for n in range(longest + 1):
        left = rest != 0
        if n == 0:
            _demand(bool(left.all()), f"{name} holds 0, the key of no n-gram")
        if not left.any():
            break
        _demand(n < longest, f"{name} holds one of more than {longest} characters")
        ids = rest & mask
        _demand(not np.any(left & (ids == 0)) and not np.any(ids > alphabet), f"{name} holds what is no character")
        rest >>= shift
    ordered = np.sort(keys)
    _demand(not np.any(ordered[1:] == ordered[:-1]), f"{name} holds one twice")


def check_spans(what: str, starts: Array, chars: Array, rows: Array, alphabet: int, longest: int) -> None:
    """Check words or chunks: chars[starts[i] : starts[i + 1]] has 1 to 65,535 ids, and `longest` is the most."""
    _demand(len(starts) == len(rows) + 1, f"{what}s and their rows differ in number")
    lengths = np.diff(starts.astype(np.int64))
    _demand(starts[0] == 0 and starts[-1] == len(chars), f"the characters of {what}s are not those that they have")
    _demand(
        not np.any(lengths < 1) and not np.any(lengths > LONGEST_WORD), f"a {what} without a character, or too long"
    )
    _demand(lengths.max(initial=0) == longest, f"the longest {what} has not {longest} characters")
    _demand(not np.any(chars == 0) and not np.any(chars > alphabet), f"a {what} holds what is no character")


def _check_characters(arrays: Mapping[str, Array]) -> None:
    alphabet, folded = arrays["alphabet"], arrays["folded"]
    firsts, classes = arrays["range_firsts"], arrays["range_classes"]
    _demand(len(alphabet) <= MAX_ALPHABET and _are_points(alphabet), "alphabet holds no ascending code points")
    _demand(not np.any((alphabet >= 0xD800) & (alphabet < 0xE000)), "alphabet holds a surrogate, which is no character")
    _demand(len(folded) % 2 == 0, "folded holds no pairs")
    points, ids = folded[::2], folded[1::2]
    _demand(_are_points(points), "folded holds no ascending code points")
    _demand(not np.any(ids == 0) and not np.any(ids > len(alphabet)), "folded holds what is no character")
    _demand(not np.any(np.isin(points, alphabet)), "folded and alphabet hold one code point")
    _demand(_are_points(firsts) and len(firsts) > 0 and firsts[0] == 0, "range_firsts do not ascend from 0")
    _demand(len(classes) == len(firsts) and not np.any(classes > SPACE), "range_classes are no classes of the ranges")
    # It pads every text.
    _demand(classes[np.searchsorted(firsts, ord(" "), side="right") - 1] == SPACE, "U+0020 is no space")


def _check_rows(arrays: Mapping[str, Array], rows: int, unknown: int) -> None:
    ngrams, words = arrays["ngram_rows"], arrays["word_rows"]
    owners = len(ngrams) + len(words) + (unknown >= 0)
    # Before memory for the rows is taken.
    _demand(1 <= rows <= MAX_ROWS and rows == owners == len(arrays["counts"]), f"not {rows} rows, each with a count")
    _demand(-1 <= unknown < rows, f"row {unknown} for unknown words, of {rows}")
    owned = np.zeros(rows, np.bool_)
    for name, owned_rows in (("ngram_rows", ngrams), ("word_rows", words)):
        _demand(
            not np.any(owned_rows < 0) and not np.any(owned_rows >= rows),
            f"{name} holds a row that is not among {rows}",
        )
        _demand(not np.any(owned_rows[1:] <= owned_rows[:-1]), f"{name} does not ascend")
        owned[owned_rows] = True
    if unknown >= 0:
        owned[unknown] = True
    _demand(bool(owned.all()), "a row is owned twice")  # as many owners as rows, so another row has no owner


def _are_points(points: Array) -> bool:
    return not np.any(points >= CODE_POINTS) and not np.any(points[1:] <= points[:-1])


def _counts_up(rows: Array, first: int) -> bool:
    return np.array_equal(rows, np.arange(first, first + len(rows)))


def _demand(holds: bool | np.bool_, otherwise: str) -> None:
    if not holds:
        raise ValueError(otherwise)
