"""Keys of n-grams, hashes of words, and how the featurizer in numpy finds them.

An n-gram's key packs the ids of its characters, first character highest, into one uint64. Ids start at 1 and an
order's bits fit into 64, so two n-grams never share a key: the look-up is exact. A word's key would be too wide;
its hash only finds candidates, whose characters are then compared.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gramvec.text.arrays import Int64s, UInt64s

WORD_SEED = 0xCBF29CE484222325  # the offset basis and prime of 64-bit FNV-1a, over character ids
WORD_PRIME = 0x100000001B3


def pack(ids: Sequence[int], bits: int) -> int:
    """Return the key of an n-gram of these character ids."""
    key = 0
    for symbol in ids:
        key = key << bits | symbol
    return key


def unpack(key: int, bits: int) -> list[int]:
    """Return the character ids of a key; the inverse of `pack`."""
    ids = []
    while key:
        ids.append(key & ((1 << bits) - 1))
        key >>= bits
    return ids[::-1]


def unpack_keys(keys: UInt64s, bits: int) -> tuple[NDArray[np.uint16], Int64s]:
    """Return the character ids of all keys, uint16[m], key after key, and where each key begins, int64[n + 1]."""
    mask = np.uint64((1 << bits) - 1)
    places = range(64 // bits - 1, -1, -1)
    ids = np.stack([(keys >> np.uint64(bits * place) & mask).astype(np.uint16) for place in places], axis=1)
    # Ids begin at 1, so the first character of a key is its highest that is not 0.
    inside = np.logical_or.accumulate(ids > 0, axis=1)
    return ids[inside], np.append(0, np.cumsum(inside.sum(axis=1)))


def word_hashes(chars: NDArray[Any], starts: Int64s, lengths: Int64s) -> UInt64s:
    """Return the hash of each word chars[start : start + length], uint64[n]: 64-bit FNV-1a over its character ids.

    The time is linear in the characters of all words, even if one of them is long.
    """
    hashes = np.full(len(lengths), WORD_SEED, np.uint64)
    at, k = np.flatnonzero(lengths > 0), 0
    while len(at):
        hashes[at] = (hashes[at] ^ chars[starts[at] + k].astype(np.uint64)) * np.uint64(WORD_PRIME)
        k += 1
        at = at[lengths[at] > k]
    return hashes


class SortedKeys:
    """Sorted index of the positions of 64-bit keys in a list; unlike a hash table, it is not slowed by chosen keys.

    keys: uint64[n]. An index of 180,000 keys is built in 7 to 16 ms. A table of slots in numpy, whose searches would
    have to be bounded, makes the featurizer 1.4 to 1.5 times as fast for 512 texts a call, and 14 % slower for one.
    """

    def __init__(self, keys: UInt64s) -> None:
        self._order = np.argsort(keys, kind="stable")
        self._keys = keys[self._order]

    def find(self, asked: UInt64s) -> Int64s:
        """Return the place of each key in the list, int64 in the shape of `asked`; -1 for none."""
        if not len(self._keys):
            return np.full(len(asked), -1, np.int64)
        at = np.minimum(np.searchsorted(self._keys, asked), len(self._keys) - 1)
        return np.where(self._keys[at] == asked, self._order[at], -1)

    @property
    def are_distinct(self) -> bool:
        """Return True if no key occurs twice."""
        return not np.any(self._keys[1:] == self._keys[:-1])
