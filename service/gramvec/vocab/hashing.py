"""Open-addressing tables: built once by plain Python, probed by the featurisers.

An n-gram's key packs the ids of its characters, first character highest, into one uint64. Ids start at 1 and an
order's bits fit into 64, so two n-grams never share a key: the look-up is exact. A word's key would be too wide;
its hash only finds candidates, whose characters are then compared.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

MULTIPLIER = 0x9E3779B97F4A7C15  # 2^64 / golden ratio: Fibonacci hashing (Knuth, TAOCP 3, 6.4)
WORD_SEED = 0xCBF29CE484222325  # the offset basis and prime of 64-bit FNV-1a, over character ids
WORD_PRIME = 0x100000001B3
_U64 = 0xFFFFFFFFFFFFFFFF


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


def word_hash(ids: Iterable[int]) -> int:
    """The 64-bit hash of a word's character ids."""
    value = WORD_SEED
    for one in ids:
        value = (value ^ one) * WORD_PRIME & _U64
    return value


def capacity_for(count: int) -> int:
    """The power of two at which the table is at most half full (and has an empty slot, so that probing ends)."""
    return 1 << max(1, (2 * count - 1).bit_length()) if count else 2


def shift_for(capacity: int) -> int:
    """A slot is (hash * MULTIPLIER mod 2^64) >> shift: its highest bits."""
    return 65 - capacity.bit_length()


def place(hashes: Sequence[int], capacity: int) -> list[int]:
    """The slot of each hash under linear probing, in order: earlier (more frequent) ones get the better slots."""
    shift, mask = shift_for(capacity), capacity - 1
    taken = bytearray(capacity)
    slots = []
    for value in hashes:
        slot = (value * MULTIPLIER & _U64) >> shift
        while taken[slot]:
            slot = (slot + 1) & mask
        taken[slot] = 1
        slots.append(slot)
    return slots


def ngram_table(keys: Sequence[int], rows: Sequence[int]) -> tuple[NDArray[np.uint64], NDArray[np.int32]]:
    """Slots of (key, row); key 0 marks an empty slot."""
    capacity = capacity_for(len(keys))
    table_keys, table_rows = np.zeros(capacity, np.uint64), np.full(capacity, -1, np.int32)
    slots = place(keys, capacity)
    table_keys[slots] = np.array(keys, np.uint64)
    table_rows[slots] = np.array(rows, np.int32)
    return table_keys, table_rows


def word_table(words: Sequence[Sequence[int]]) -> NDArray[np.int32]:
    """Slots of word indices; -1 marks an empty slot."""
    capacity = capacity_for(len(words))
    table = np.full(capacity, -1, np.int32)
    table[place([word_hash(word) for word in words], capacity)] = np.arange(len(words), dtype=np.int32)
    return table
