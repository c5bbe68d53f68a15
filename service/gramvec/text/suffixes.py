"""Rows that hold an n-gram and its suffixes: of the n-grams that end in one character only the longest is looked up.

Wherever an n-gram stands in a text, its suffixes stand, and end in the same character. So a table may hold, in place of
an n-gram's row, the sum of this row and those of all suffixes that the vocabulary knows; a text is then, for each of
its characters, one row in place of one for each order, and has the same sum, exactly.

N-grams with a space inside, neither first nor last, cross from one chunk into the next. They are summed by themselves,
because a memo holds what is inside of chunks and what crosses between them in rows of their own (see memo): the
suffixes of one that crosses are those that still do.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gramvec.text.arrays import Floats, Int32s
from gramvec.text.characters import ID_MASK
from gramvec.text.vocabulary import Vocabulary


def suffix_rows(vocabulary: Vocabulary) -> Int32s:
    """Return the row of each n-gram's longest suffix that is summed with it, int32[rows]; -1 for none."""
    order = np.argsort(vocabulary.ngram_keys)
    keys, rows = vocabulary.ngram_keys[order], vocabulary.ngram_rows[order]
    lengths = _lengths(keys, vocabulary.bits)
    shortest = _shortest(keys, lengths, vocabulary)
    parents = np.full(len(vocabulary), -1, np.int32)
    for n in sorted(set(lengths.tolist())):
        mask = np.uint64((1 << vocabulary.bits * n) - 1)
        suffixes = keys & mask
        places = np.minimum(np.searchsorted(keys, suffixes), len(keys) - 1)
        known = (lengths > n) & (n >= shortest) & (keys[places] == suffixes)
        parents[rows[known]] = rows[places[known]]  # longer ones come later
    return parents


def sum_suffixes(table: Floats, parents: Int32s) -> Floats:
    """Return each row of the table plus the rows of its suffixes, float32[rows, d]. `parents` is from `suffix_rows`."""
    sums = table.astype(np.float32)
    ancestors = parents
    while (at := np.flatnonzero(ancestors >= 0)).size:
        sums[at] += table[ancestors[at]]
        ancestors = np.where(ancestors >= 0, parents[ancestors], -1)
    return sums


def _lengths(keys: NDArray[np.uint64], bits: int) -> NDArray[np.int64]:
    # Ids begin at 1, so the first character of a key is its highest that is not 0.
    lengths = np.zeros(len(keys), np.int64)
    for n in range(64 // bits):
        lengths += keys >> np.uint64(bits * n) != 0
    return lengths


def _shortest(keys: NDArray[np.uint64], lengths: NDArray[np.int64], vocabulary: Vocabulary) -> NDArray[np.int64]:
    # How long a suffix has to be: over the space nearest to the end of an n-gram that crosses, and one character more.
    space = int(vocabulary.table[ord(" ")]) & ID_MASK
    bits, mask = vocabulary.bits, np.uint64((1 << vocabulary.bits) - 1)
    shortest = np.ones(len(keys), np.int64)
    if space:
        for behind in range(64 // bits - 1, 0, -1):  # characters behind the space
            inside = behind < lengths - 1
            shortest[inside & (keys >> np.uint64(bits * behind) & mask == space)] = behind + 2
    return shortest
