"""Numbers that several processes count side by side, and any of them reads together.

An anonymous shared mapping, made before the fork, has one part for each worker, and only that worker writes to it: no
locks, and a replaced worker goes on where the dead one stopped. Every part names its own rows, so nothing has to be
agreed upon before the fork.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import orjson

# 64 KiB of numbers and 32 KiB of names for each worker: about 400 histograms, ten times of what a service has.
NUMBERS = 8 * 1024
NAME_BYTES = 32 * 1024
PART_BYTES = 8 * NUMBERS + NAME_BYTES
# The first numbers of a part: how many bytes of names and how many numbers are in use.
NAMES_USED, NUMBERS_USED = 0, 1
HEAD = 2
# Where a row goes for which no room is left: written and never read.
WASTE = 64

Key = tuple[str, ...]


class Row(NamedTuple):
    """A named run of numbers: where it begins, and how many there are."""

    start: int
    width: int


class SharedCounters:
    """One part for each of so many workers. The first is in use until `claim` takes another.

    `numbers` are the claimed part's: float64[NUMBERS], written in place.
    """

    def __init__(self, parts: int = 1) -> None:
        self._parts = parts
        self._bytes = memoryview(mmap.mmap(-1, parts * PART_BYTES))
        self.claim(0)

    def claim(self, part: int) -> None:
        """Write to this part from now on; its only other writer, if there ever was one, is gone.

        Raises:
            ValueError: there is no such part.
        """
        if not 0 <= part < self._parts:
            raise ValueError(f"there are {self._parts} parts, and none is number {part}")
        self._part = part
        self.numbers = self._numbers(part)
        self._rows = dict(self._named(part))
        if not self.numbers[NUMBERS_USED]:
            self.numbers[NUMBERS_USED] = HEAD + WASTE

    def row(self, key: Key, width: int) -> int:
        """Where the numbers of this name begin; all zero the first time that it is asked for in this part.

        Once the part is full, new names share a row that nobody reads.
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
        # Last, because readers go by it: a single aligned store, so they see the whole name or none.
        self.numbers[NAMES_USED] = used + len(line)
        self._rows[key] = Row(start, width)
        return start

    def read(self) -> Iterator[tuple[int, Key, Sequence[float]]]:
        """Every row of every part: the part, the name, the numbers as they are now."""
        for part in range(self._parts):
            numbers = self._numbers(part)
            for key, (start, width) in self._named(part):
                yield part, key, numbers[start : start + width].tolist()

    def _numbers(self, part: int) -> memoryview[float]:
        start = part * PART_BYTES
        return self._bytes[start : start + 8 * NUMBERS].cast("d")

    def _named(self, part: int) -> Iterator[tuple[Key, Row]]:
        offset = part * PART_BYTES + 8 * NUMBERS
        names = bytes(self._bytes[offset : offset + int(self._numbers(part)[NAMES_USED])])
        start = HEAD + WASTE
        for line in names.splitlines():
            width, *key = orjson.loads(line)
            yield tuple(key), Row(start, width)
            start += width
