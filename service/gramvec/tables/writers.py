"""Writers of .npy and JSON lines: blocks become bytes in a stage file, and a last step completes it."""

from __future__ import annotations

import base64
import csv
import io
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, BinaryIO, Literal

import numpy as np
import orjson
from numpy.lib import format as npy
from numpy.typing import NDArray

from gramvec.errors import InputError
from gramvec.tables.batches import Block, Records

OutputForm = Literal["jsonl", "npy", "parquet"]
OPTIONS = orjson.OPT_SERIALIZE_NUMPY | orjson.OPT_APPEND_NEWLINE


class Writes(ABC):
    """Form of output. The bytes of a block depend only on the block and on the first one.

    in_place: whether the stage file becomes the output; otherwise `finish` writes another file.
    """

    in_place = True

    def begin(self, block: Block | None, columns: Any) -> bytes:
        """Return the first bytes. block: the first one; columns: the input's Arrow schema; None for other inputs."""
        return b""

    def resume(self, stage: Path) -> None:  # noqa: B027 - few forms have to
        """Continue a stage file that `begin` began."""

    @abstractmethod
    def encode(self, block: Block, vectors: NDArray[np.generic], missing: NDArray[np.bool_]) -> bytes:
        """Return the bytes of a block with its vectors [n, k]; `missing` bool[n] says which rows have none."""

    def finish(self, stage: BinaryIO, out: BinaryIO, rows: int) -> None:  # noqa: B027 - few forms have to
        """Complete the output of `rows` rows; `out` is the stage file itself if in_place."""


class NpyForm(Writes):
    """Writer of a .npy file of [rows, k], all zeros for a row without a vector.

    The header is written twice: numpy pads it so that a growing first dimension needs no more room.
    """

    def __init__(self, dtype: np.dtype[Any], width: int) -> None:
        self._dtype = dtype.newbyteorder("<")
        self._width = width

    def header(self, rows: int) -> bytes:
        """Return the bytes before the numbers."""
        file = io.BytesIO()
        entries = {"descr": self._dtype.str, "fortran_order": False, "shape": (rows, self._width)}
        npy.write_array_header_1_0(file, entries)
        return file.getvalue()

    def begin(self, block: Block | None, columns: Any) -> bytes:
        """Return the first bytes."""
        return self.header(0)

    def encode(self, block: Block, vectors: NDArray[np.generic], missing: NDArray[np.bool_]) -> bytes:
        """Return the bytes of a block."""
        return np.ascontiguousarray(vectors, self._dtype).tobytes()

    def finish(self, stage: BinaryIO, out: BinaryIO, rows: int) -> None:
        """Complete the file."""
        out.seek(0)
        out.write(self.header(rows))


class JsonForm(Writes):
    """Writer of JSON lines: the input's members and the vector, null for a row without one."""

    def __init__(self, column: str, embedding: str) -> None:
        self._column = column
        self._embedding = embedding

    def encode(self, block: Block, vectors: NDArray[np.generic], missing: NDArray[np.bool_]) -> bytes:
        """Return the lines of a block. Raises InputError, with the line, if it has a member of the vector's name."""
        lines = []
        for number, record, vector, no in zip(block.numbers, records_of(block), vectors, missing.tolist(), strict=True):
            if self._embedding in record:
                raise InputError(
                    f"line {number} has {self._embedding!r} already; name another one with --embedding-column"
                )
            record.setdefault(self._column, None)
            record[self._embedding] = None if no else vector
            lines.append(json_line(number, record))
        return b"".join(lines)


def records_of(block: Block) -> Records:
    """Return the columns of each row by name, of a reader that keeps them."""
    records: Records = block.batch.to_pylist() if block.batch is not None else block.records or []
    return records


def json_line(number: int, record: dict[str, Any]) -> bytes:
    """Return a record as a line of JSON. Raises InputError, with its number, for a value without a form there."""
    try:
        return orjson.dumps(record, _as_text, OPTIONS)
    except TypeError as error:
        raise InputError(f"line {number}: has no form in JSON ({error}); write .parquet instead") from error


def tsv_line(cells: Iterable[object], shown: Callable[[str], str] = str) -> str:
    """Return a line of TSV, which has no quotes: tabs and line feeds in a cell become spaces, then `shown` gets it."""
    return "\t".join(shown(" ".join(str(cell).split())) for cell in cells) + "\n"


def csv_line(cells: Iterable[str]) -> str:
    """Return a line of CSV."""
    line = io.StringIO()
    csv.writer(line, lineterminator="\n").writerow(cells)
    return line.getvalue()


def _as_text(value: Any) -> str:
    # Parquet holds decimals, durations and bytes, which JSON does not.
    return base64.b64encode(value).decode() if isinstance(value, bytes) else str(value)
