"""Keys of n-grams, hashes of words, and the open-addressing tables that the featuriser in numpy probes.

An n-gram's key packs the ids of its characters, first character highest, into one uint64. Ids start at 1 and an
order's bits fit into 64, so two n-grams never share a key: the look-up is exact. A word's key would be too wide;
its hash only finds candidates, whose characters are then compared.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

MULTIPLIER = 0x9E3779B97F4A7C15  # 2^64 / golden ratio: Fibonacci hashing (Knuth, TAOCP 3, 6.4)
WORD_SEED = 0xCBF29CE484222325  # the offset basis and prime of 64-bit FNV-1a, over character ids
WORD_PRIME = 0x100000001B3

Int64s = NDArray[np.int64]
UInt64s = NDArray[np.uint64]


def pack(ids: Sequence[int], bits: int) -> int:
    """The key of an n-gram of these character ids."""
    key = 0
    for one in ids:
        key = key << bits | one
    return key


def unpack(key: int, bits: int) -> list[int]:
    """The character ids of a key; the inverse of pack."""
    ids = []
    while key:
        ids.append(key & ((1 << bits) - 1))
        key >>= bits
    return ids[::-1]


def word_hashes(chars: NDArray[Any], starts: Int64s, lengths: Int64s) -> UInt64s:
    """uint64[n]: the hash of each word, chars[start : start + length]: 64-bit FNV-1a over its character ids."""
    hashes = np.full(len(lengths), WORD_SEED, np.uint64)
    for k in range(int(lengths.max(initial=0))):
        at = np.flatnonzero(lengths > k)
        hashes[at] = (hashes[at] ^ chars[starts[at] + k].astype(np.uint64)) * np.uint64(WORD_PRIME)
    return hashes


def capacity_for(count: int) -> int:
    """The power of two at which the table is at most half full (and has an empty slot, so that probing ends)."""
    return 1 << max(1, (2 * count - 1).bit_length()) if count else 2


def first_slots(hashes: UInt64s, capacity: int) -> Int64s:
    """int64, shape of the hashes: where the search for each begins: the highest bits of hash * MULTIPLIER mod 2^64."""
    return (hashes * np.uint64(MULTIPLIER) >> np.uint64(65 - capacity.bit_length())).astype(np.int64)


def place(hashes: UInt64s, capacity: int) -> Int64s:
    """The slot of each hash under linear probing; of those that want one slot the first (most frequent) gets it."""
    slots = first_slots(hashes, capacity)
    taken = np.zeros(capacity, np.bool_)
    waiting = np.arange(len(hashes))
    while len(waiting):
        free = waiting[~taken[slots[waiting]]]
        _, first = np.unique(slots[free], return_index=True)
        taken[slots[free[first]]] = True
        placed = np.zeros(len(hashes), np.bool_)
        placed[free[first]] = True
        waiting = waiting[~placed[waiting]]
        slots[waiting] = (slots[waiting] + 1) & (capacity - 1)
    return slots


def ngram_table(keys: UInt64s, rows: NDArray[np.int32]) -> tuple[UInt64s, NDArray[np.int32]]:
    """Slots of (key, row); key 0 marks an empty slot."""
    capacity = capacity_for(len(keys))
    table_keys, table_rows = np.zeros(capacity, np.uint64), np.full(capacity, -1, np.int32)
    slots = place(keys, capacity)
    table_keys[slots] = keys
    table_rows[slots] = rows
    return table_keys, table_rows


def word_table(hashes: UInt64s) -> NDArray[np.int32]:
    """Slots of word indices; -1 marks an empty slot."""
    capacity = capacity_for(len(hashes))
    table = np.full(capacity, -1, np.int32)
    table[place(hashes, capacity)] = np.arange(len(hashes), dtype=np.int32)
    return table
