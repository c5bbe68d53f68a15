"""Sets of rows as bits, and the log of the rows that an index has no longer.

Tantivy's commit is the only commit, so removed.bin is written before it: one entry for each commit that removes rows.
The file may end with entries of commits that were lost, or that came after the one that is open. In their commit the
first row of an entry has no document, so the entries that count are those up to the last whose first row has none.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from gramvec.jobs.search.vectors import open_behind, read_file
from gramvec.text.arrays import Bools, Int64s, UInt64s

WORD_BITS = 64
# An entry: how many rows, the rows, and the CRC-32 of both, in numbers of four bytes.
NUMBER, FEWEST_BYTES = np.dtype("<u4"), 12


class RowSet(NamedTuple):
    """Rows as bits of uint64[words], the first in the lowest bit, and how many there are."""

    bits: UInt64s
    size: int

    @classmethod
    def of(cls, is_in: Bools) -> RowSet:
        """Return the rows at which bool[n] is true."""
        packed = np.packbits(is_in, bitorder="little")
        words = np.zeros(-(-len(is_in) // WORD_BITS) * (WORD_BITS // 8), np.uint8)
        words[: len(packed)] = packed
        return cls(words.view("<u8"), int(np.count_nonzero(is_in)))

    def flags(self, rows: int) -> Bools:
        """Return bool[rows], true for the rows of this set."""
        return np.unpackbits(self.bits.view(np.uint8), count=rows, bitorder="little").view(np.bool_)

    def rows(self) -> Int64s:
        """Return the rows, ascending."""
        return np.flatnonzero(np.unpackbits(self.bits.view(np.uint8), bitorder="little"))


class RemovedRows(NamedTuple):
    """The rows of the log that were removed, and the bytes of the entries that name them."""

    rows: Int64s
    size: int


def read_removed(path: Path, rows: int, is_there: Callable[[int], bool]) -> RemovedRows:
    """Return the rows that have been removed up to a commit.

    Args:
        path: the log; without one nothing was removed.
        rows: how many rows were ever used, at most.
        is_there: returns True if a row has a document in that commit.

    Raises:
        InputError: the file cannot be read, or is too large for the number of rows.
    """
    data = read_file(path, FEWEST_BYTES * rows) if path.exists() else b""
    entries: list[tuple[int, int]] = []
    numbers, at = np.frombuffer(data[: len(data) // 4 * 4], NUMBER), 0
    while at + 2 < len(numbers):
        end = at + int(numbers[at]) + 2
        if end == at + 2 or end > len(numbers) or zlib.crc32(numbers[at : end - 1].data) != numbers[end - 1]:
            break
        entries.append((at, end))
        at = end
    while entries and is_there(int(numbers[entries[-1][0] + 1])):
        entries.pop()
    found = [numbers[start + 1 : end - 1] for start, end in entries]
    removed = np.concatenate(found).astype(np.int64) if found else np.zeros(0, np.int64)
    return RemovedRows(removed, entries[-1][1] * NUMBER.itemsize if entries else 0)


class RemovedLog:
    """The log of removed rows behind its first `size` bytes."""

    def __init__(self, path: Path, size: int) -> None:
        self._file = open_behind(path, size)

    def save(self, removed: Sequence[int]) -> None:
        """Write an entry to the disk. Its first row has a document until the commit that it is of."""
        if removed:
            entry = np.array([len(removed), *removed], NUMBER).tobytes()
            self._file.write(entry + zlib.crc32(entry).to_bytes(4, "little"))
        self._file.flush()
        os.fsync(self._file.fileno())

    def close(self) -> None:
        """Close the file."""
        self._file.close()
