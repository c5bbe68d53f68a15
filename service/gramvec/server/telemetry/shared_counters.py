"""Counters that several processes write without locks, each in its own part of shared memory, and any of them reads.

The memory is an anonymous mapping, made before the fork. Each part has one writer, and a worker that takes the part of
a dead one continues its counts. Every part names its own rows, so the processes agree on nothing before the fork.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import orjson

# 64 KiB of numbers and 32 KiB of names for each part: about 400 histograms, ten times as many as a service has.
NUMBERS = 8 * 1024
NAME_BYTES = 32 * 1024
PART_BYTES = 8 * NUMBERS + NAME_BYTES
# The first numbers of a part: the bytes of names and the numbers in use.
NAMES_USED, NUMBERS_USED = 0, 1
HEAD = 2
# Numbers of a row that is written and never read, for names that find no room.
WASTE = 64

Key = tuple[str, ...]


class Row(NamedTuple):
    """Place of a named run of numbers."""

    start: int
    width: int


class SharedCounters:
    """Shared counters of several processes.

    Args:
        parts: number of parts. The first one is written until `claim` takes another.

    Attributes:
        numbers: of the claimed part, float64[NUMBERS], written in place.
    """

    def __init__(self, parts: int) -> None:
        self._parts = parts
        self._bytes = memoryview(mmap.mmap(-1, parts * PART_BYTES))
        self.claim(0)

    def claim(self, part: int) -> None:
        """Write to this part from now on; its last writer must have ended."""
        self._part = part
        self.numbers = self._numbers(part)
        self._rows = dict(self._name_rows(part))
        if not self.numbers[NUMBERS_USED]:
            self.numbers[NUMBERS_USED] = HEAD + WASTE

    def row(self, key: Key, width: int) -> int:
        """Return the index of the first number of a named row, which is created with zeros.

        Once the part is full, new names share a row that is never read.
        """
        found = self._rows.get(key)
        if found is not None:
            return found.start
        line = orjson.dumps([width, *key]) + b"\n"
        used, start = int(self.numbers[NAMES_USED]), int(self.numbers[NUMBERS_USED])
        if used + len(line) > NAME_BYTES or start + width > NUMBERS:
            return HEAD
        offset = self._part * PART_BYTES + 8 * NUMBERS + used
        self._bytes[offset : offset + len(line)] = line
        self.numbers[NUMBERS_USED] = start + width
        # Last, in a single aligned store: readers see the whole name or nothing of it.
        self.numbers[NAMES_USED] = used + len(line)
        self._rows[key] = Row(start, width)
        return start

    def read(self) -> Iterator[tuple[int, Key, Sequence[float]]]:
        """Yield the part, the name and the current numbers of every row of every part."""
        for part in range(self._parts):
            numbers = self._numbers(part)
            for key, (start, width) in self._name_rows(part):
                yield part, key, numbers[start : start + width].tolist()

    def _numbers(self, part: int) -> memoryview[float]:
        start = part * PART_BYTES
        return self._bytes[start : start + 8 * NUMBERS].cast("d")

    def _name_rows(self, part: int) -> Iterator[tuple[Key, Row]]:
        offset = part * PART_BYTES + 8 * NUMBERS
        names = bytes(self._bytes[offset : offset + int(self._numbers(part)[NAMES_USED])])
        start = HEAD + WASTE
        for line in names.splitlines():
            width, *key = orjson.loads(line)
            yield tuple(key), Row(start, width)
            start += width
