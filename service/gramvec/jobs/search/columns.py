"""Files of columns that searches are narrowed by: which rows are within conditions, without asking for documents.

A file holds an entry for each value of each row, rows ascending: the row as uint32, then the value. A number is a
float64, a date int64 microseconds since 1970, and a text the 16 bytes of its BLAKE2b. A row without a value has none.
"""

from __future__ import annotations

import hashlib
import os
import stat
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from gramvec.errors import InputError
from gramvec.jobs.search.filters import ColumnCondition, FieldKind, FilterValue
from gramvec.jobs.search.vectors import map_file, open_behind
from gramvec.text.arrays import Array, Bools

# Entries that are compared together: some 10 MB.
SLAB = 1 << 18
ENTRIES: dict[FieldKind, np.dtype[Any]] = {
    "number": np.dtype([("row", "<u4"), ("value", "<f8")]),
    "date": np.dtype([("row", "<u4"), ("value", "<i8")]),
    "text": np.dtype([("row", "<u4"), ("value", "<u8"), ("rest", "<u8")]),
}


class ColumnFile:
    """The values of a column in the first `rows` rows, memory-mapped.

    Raises InputError if the file is not a regular one.
    """

    def __init__(self, path: Path, kind: FieldKind, rows: int) -> None:
        self._rows, self._kind = rows, kind
        entry = ENTRIES[kind]
        count = entries_below(path, kind, rows)
        self._entries: Array = np.frombuffer(map_file(path, count * entry.itemsize), entry)

    def holds(self, row: int, values: Sequence[FilterValue]) -> bool:
        """Return True if a row has these values and no others."""
        low = bisect_left(self._entries, row, key=lambda entry: int(entry["row"]))
        high = bisect_right(self._entries, row, low, key=lambda entry: int(entry["row"]))
        expected = entries_of(self._kind, row, [values])
        return bool(np.array_equal(self._entries[low:high], expected))

    def within(self, condition: ColumnCondition) -> Bools:
        """Return bool[rows], true for the rows that a condition on this column holds for."""
        holds, having = np.zeros(self._rows, np.bool_), np.zeros(self._rows if condition.missing else 0, np.bool_)
        for start in range(0, len(self._entries), SLAB):
            entries = self._entries[start : start + SLAB]
            rows = entries["row"]
            if len(rows) and int(rows.max()) >= self._rows:
                raise InputError("a damaged index (a column has a row that there never was); copy or build it again")
            holds[rows[_is_wanted(condition, entries)]] = True
            if condition.missing:
                having[rows] = True
        if condition.missing:
            holds |= ~having
        return np.logical_not(holds, out=holds) if condition.negated else holds


def entries_below(path: Path, kind: FieldKind, rows: int) -> int:
    """Return how many entries of a file are of the first `rows` rows."""
    entry = ENTRIES[kind]
    try:
        file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError as error:
        raise InputError(f"{path}: unreadable ({error.strerror}); build the index again") from error
    try:
        status = os.fstat(file)
        if not stat.S_ISREG(status.st_mode):
            raise OSError(0, "not a regular file")
        low, high = 0, status.st_size // entry.itemsize
        while low < high:
            middle = (low + high) // 2
            if int.from_bytes(os.pread(file, 4, middle * entry.itemsize), "little") < rows:
                low = middle + 1
            else:
                high = middle
    except OSError as error:
        raise InputError(f"{path}: unreadable ({error.strerror}); build the index again") from error
    finally:
        os.close(file)
    return low


def entries_of(kind: FieldKind, first: int, values: Sequence[Sequence[FilterValue]]) -> Array:
    """Return the entries of consecutive rows."""
    entries: Array = np.zeros(sum(map(len, values)), ENTRIES[kind])
    entries["row"] = [row for row, row_values in enumerate(values, first) for _ in row_values]
    if kind == "text":
        entries["value"], entries["rest"] = _hashes([str(value) for row_values in values for value in row_values]).T
    else:
        entries["value"] = [value for row_values in values for value in row_values]
    return entries


class ColumnWriter:
    """The values of a column behind those of the first `rows` rows of a file, which is made where it is not there."""

    def __init__(self, path: Path, kind: FieldKind, rows: int) -> None:
        self._kind = kind
        count = entries_below(path, kind, rows) if path.exists() else 0
        self._file = open_behind(path, count * ENTRIES[kind].itemsize)

    def append(self, first: int, values: Sequence[Sequence[FilterValue]]) -> None:
        """Add the values of consecutive rows."""
        self._file.write(entries_of(self._kind, first, values).tobytes())

    def save(self) -> None:
        """Write everything that was added to the disk."""
        self._file.flush()
        os.fsync(self._file.fileno())

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def _is_wanted(condition: ColumnCondition, entries: Array) -> Bools:
    values = entries["value"]
    if condition.texts:
        hashes = _hashes(condition.texts)
        hashes = hashes[np.lexsort((hashes[:, 1], hashes[:, 0]))]
        at = np.minimum(np.searchsorted(hashes[:, 0], values), len(hashes) - 1)
        return np.asarray((hashes[at, 0] == values) & (hashes[at, 1] == entries["rest"]))
    if not condition.intervals:
        return np.zeros(len(values), np.bool_)
    lower, upper = condition.intervals[0]
    if len(condition.intervals) == 1:
        above = np.ones(len(values), np.bool_) if lower is None else values >= lower
        return np.asarray(above if upper is None else above & (values <= upper))
    lowers, uppers = (np.array(ends, values.dtype) for ends in zip(*condition.intervals, strict=True))
    at = np.maximum(np.searchsorted(lowers, values, "right") - 1, 0)
    return np.asarray((values >= lowers[at]) & (values <= uppers[at]))


def _hashes(texts: Sequence[str]) -> Array:
    """Return uint64[n, 2]."""
    return np.frombuffer(b"".join(map(_hash, texts)), "<u8").reshape(-1, 2)


@lru_cache(1 << 14)
def _hash(text: str) -> bytes:
    return hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=16).digest()
