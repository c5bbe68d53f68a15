"""An index file is written: its parts one after the other, the header last."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator
from typing import BinaryIO

import numpy as np

from gramvec.errors import InputError, quoted
from gramvec.search.filters import collect, padded
from gramvec.search.layout import HEADER_BYTES, MOST_ROWS, Bytes, IndexHeader, Ints, Part

COPIED_BYTES = 4 << 20


def write_index(out: BinaryIO, header: IndexHeader, parts: Callable[[], Iterator[Part]], weights: Bytes) -> IndexHeader:
    """Write an index of these parts, which are gone through several times; give back the header as it was written.

    weights: the bytes that the header's `weights` is of, none where it is None.

    Raises InputError if there is no row, or if two have one id.
    """
    id_lengths = _joined([part.id_lengths for part in parts()])
    record_lengths = _joined([part.record_lengths for part in parts()])
    _check_ids(parts, len(id_lengths))
    header = header.model_copy(
        update={
            "rows": len(id_lengths),
            "id_bytes": int(id_lengths.sum()),
            "record_bytes": int(record_lengths.sum()),
        }
    )
    out.write(bytes(HEADER_BYTES))
    body = _Hashed(out)
    for part in parts():
        body.write(part.vectors.reshape(-1).view(np.uint8))
    body.pad(header.rows * header.dimensions)
    if header.fine:
        for part in parts():
            body.write(part.remainders.reshape(-1).view(np.uint8))
        body.pad(header.rows * header.dimensions)
    body.write(_places(id_lengths))
    for part in parts():
        body.write(part.ids)
    body.pad(header.id_bytes)
    body.write(_places(record_lengths))
    for part in parts():
        body.write(part.records)
    names = [one.column for one in header.filters]
    if names or len(weights):
        body.pad(header.record_bytes)
    filters = []
    for one in collect(
        names, (line for part in parts() for line in _pieces(part.records, part.record_lengths)), header.rows
    ):
        filters.append(one.header)
        for some in one.parts:
            body.write(some)
            body.pad(len(some))
    body.write(weights)
    header = header.model_copy(update={"filters": tuple(filters), "body": body.hash.hexdigest()})
    out.seek(0)
    out.write(header.packed())
    out.seek(0, os.SEEK_END)
    return header


class _Hashed:
    def __init__(self, out: BinaryIO) -> None:
        self.hash = hashlib.sha256()
        self._out = out

    def write(self, data: Bytes) -> None:
        view = data.data
        for at in range(0, len(view), COPIED_BYTES):
            piece = view[at : at + COPIED_BYTES]
            self.hash.update(piece)
            self._out.write(piece)

    def pad(self, size: int) -> None:
        self.write(np.zeros(padded(size) - size, np.uint8))


def _joined(lengths: list[Ints]) -> Ints:
    return np.concatenate([np.empty(0, np.int64), *lengths])


def _places(lengths: Ints) -> Bytes:
    return np.concatenate([[0], np.cumsum(lengths)]).astype("<i8").view(np.uint8)


def _pieces(joined: Bytes, lengths: Ints) -> Iterator[bytes]:
    data, at = joined.tobytes(), 0
    for length in lengths.tolist():
        yield data[at : at + length]
        at += length


def _ids_of(part: Part) -> Iterator[bytes]:
    return _pieces(part.ids, part.id_lengths)


def _check_ids(parts: Callable[[], Iterator[Part]], rows: int) -> None:
    """Eight bytes a row: hashes first, and the ids themselves only of those that are equal."""
    if not rows:
        raise InputError("no row has a text; an index needs at least one")
    if rows > MOST_ROWS:
        raise InputError(f"{rows:,} rows; an index holds at most {MOST_ROWS:,}: make several")
    hashes = np.fromiter((hash(one) for part in parts() for one in _ids_of(part)), np.int64, rows)
    hashes.sort()
    equal = set(hashes[1:][hashes[1:] == hashes[:-1]].tolist())
    seen: set[bytes] = set()
    for one in (one for part in parts() for one in _ids_of(part)) if equal else ():
        if one in seen:
            raise InputError(f"two rows have the id {quoted(one.decode('utf-8', 'replace'))}; ids must differ")
        if hash(one) in equal:
            seen.add(one)
