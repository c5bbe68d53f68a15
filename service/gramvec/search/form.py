"""Blocks of texts into a stage file of parts, and those, with the rows of a former index, into an index."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from gramvec.errors import InputError, quoted
from gramvec.search.layout import Bytes, IndexHeader, Layout, Part
from gramvec.search.scan import split
from gramvec.search.writing import write_index
from gramvec.tables.batches import Block
from gramvec.tables.writers import json_line, records_of

# Rows, bytes of their ids, bytes of their records.
PIECE = struct.Struct("<QQQ")
MOST_ID_BYTES = 1024

Base = Callable[[], Layout | None]


class IndexForm:
    """An index as what `embed_file` writes; a row without a vector is left out.

    base: the index whose rows come first, asked for when nobody else can write it any more; None for a new one.
    weights: the bytes that the header's `weights` is of.
    """

    in_place = False

    def __init__(self, header: IndexHeader, base: Base, weights: Bytes) -> None:
        self._header = header
        self._weights = weights
        self._base = base
        self._former: Layout | None = None

    def begin(self, block: Block | None, columns: Any) -> bytes:
        """See Writes."""
        self._former = self._base()
        return b""

    def resume(self, stage: Path) -> None:
        """See Writes."""
        self._former = self._base()

    def encode(self, block: Block, vectors: NDArray[np.generic], missing: NDArray[np.bool_]) -> bytes:
        """See Writes. Raises InputError for a row without a usable id."""
        ids, records = [], []
        for number, record, no in zip(block.numbers, records_of(block), missing.tolist(), strict=True):
            if not no:
                ids.append(self._id(number, record))
                records.append(json_line(number, record))
        lengths = [np.array([len(one) for one in some], np.int64) for some in (ids, records)]
        return b"".join(
            [
                PIECE.pack(len(ids), *(int(one.sum()) for one in lengths)),
                *(one.tobytes() for one in split(np.asarray(vectors[~missing], np.float32), fine=self._header.fine)),
                lengths[0].tobytes(), *ids, lengths[1].tobytes(), *records,
            ]
        )  # fmt: skip

    def _id(self, number: int, record: dict[str, Any]) -> bytes:
        if self._header.id is None:
            return str(self._header.next + number - 1).encode()
        if self._header.id not in record:
            raise InputError(f"line {number}: no {self._header.id!r} to take the id from; name another one with --id")
        value = record[self._header.id]
        if isinstance(value, bool) or not isinstance(value, str | int) or not 0 < len(str(value)) <= MOST_ID_BYTES // 4:
            raise InputError(
                f"line {number}: {self._header.id!r} is no id (a number, or a text of 1 to {MOST_ID_BYTES // 4} "
                "characters); mend it, or name another one with --id"
            )
        return str(value).encode("utf-8", "replace")

    def finish(self, stage: BinaryIO, out: BinaryIO, rows: int) -> None:
        """See Writes.

        Raises InputError if two rows have one id, if a column to filter by has no value, and if there is no row.
        """
        stage.flush()
        size = stage.seek(0, 2)
        data = np.frombuffer(mmap(stage.fileno(), 0, access=ACCESS_READ), np.uint8) if size else np.empty(0, np.uint8)

        def parts() -> Iterator[Part]:
            if self._former is not None:
                yield from self._former.parts()
            yield from self._staged(data)

        added = sum(len(part.vectors) for part in self._staged(data))
        if not added:
            raise InputError("there is no text in the input; an index needs at least one")
        last = max((int(one) for one in self._counted(data)), default=0)
        header = self._header.model_copy(update={"next": max(self._header.next, last + 1)})
        header = write_index(out, header, parts, self._weights)
        for one in header.filters if self._former is None else ():
            if not one.values:
                raise InputError(
                    f"no row has a value in {quoted(one.column)}; name a column of the input with --filter"
                )

    def _counted(self, data: NDArray[np.uint8]) -> Iterator[bytes]:
        """The last id of each piece, where ids are counted."""
        for part in self._staged(data) if self._header.id is None else ():
            if len(part.id_lengths):
                yield part.ids[-int(part.id_lengths[-1]) :].tobytes()

    def _staged(self, data: NDArray[np.uint8]) -> Iterator[Part]:
        d, at = self._header.dimensions, 0
        while at < len(data):
            rows, id_bytes, record_bytes = PIECE.unpack(data[at : at + PIECE.size].tobytes())
            fine = rows if self._header.fine else 0
            taken = []
            at += PIECE.size
            for size in (rows * d, fine * d, 8 * rows, id_bytes, 8 * rows, record_bytes):
                taken.append(data[at : at + size])
                at += size
            vectors, remainders, id_lengths, ids, record_lengths, records = taken
            yield Part(
                vectors.view(np.int8).reshape(rows, d),
                remainders.view(np.int8).reshape(fine, d),
                np.frombuffer(id_lengths.tobytes(), np.int64),
                ids,
                np.frombuffer(record_lengths.tobytes(), np.int64),
                records,
            )


class Removal:
    """An index without some of its rows, as what a stage file becomes.

    kept: says of an index which rows stay.
    """

    in_place = False

    def __init__(self, path: Path, kept: Callable[[Layout], NDArray[np.bool_]]) -> None:
        self._path = path
        self._kept = kept
        self.left = 0

    def begin(self, block: Block | None, columns: Any) -> bytes:
        """See Writes."""
        return b""

    def resume(self, stage: Path) -> None:
        """See Writes."""

    def encode(self, block: Block, vectors: NDArray[np.generic], missing: NDArray[np.bool_]) -> bytes:
        """See Writes."""
        return b""

    def finish(self, stage: BinaryIO, out: BinaryIO, rows: int) -> None:
        """See Writes. Raises InputError for ids that are not there, and if no row is left."""
        former = Layout(self._path)
        kept = self._kept(former)
        self.left = int(kept.sum())
        if not self.left:
            raise InputError(f"{self._path}: no row would be left; delete the file instead")
        write_index(out, former.header, lambda: former.parts(kept), former.weights)
