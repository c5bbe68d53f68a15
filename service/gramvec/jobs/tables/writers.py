"""Writers of .npy, JSON lines, CSV and TSV: blocks become bytes in a stage file, and a last step completes it."""

from __future__ import annotations

import base64
import csv
import io
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO, Literal

import numpy as np
import orjson
from numpy.lib import format as npy
from numpy.typing import NDArray

from gramvec.errors import InputError
from gramvec.jobs.tables.batches import Block, Records
from gramvec.jobs.tables.decoding import UTF_8_MARK

OutputForm = Literal["jsonl", "npy", "csv", "tsv", "parquet"]
# What begins a formula in Excel, LibreOffice or Google Sheets (OWASP, CSV injection).
FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n")
_is_number = re.compile(r"[+-]?\d{1,300}([.,]\d{1,300})?([eE][+-]?\d{1,3})?").fullmatch
OPTIONS = orjson.OPT_SERIALIZE_NUMPY | orjson.OPT_APPEND_NEWLINE


class Writes(ABC):
    """Form of output. The bytes of a block depend only on the block and on the first one.

    in_place: whether the stage file becomes the output; otherwise `finish` writes another file.
    """

    in_place = True

    def begin(self, block: Block | None, columns: Any, names: Sequence[str] | None = None) -> bytes:
        """Return the first bytes.

        Args:
            block: the first one, None for an input without rows.
            columns: the input's Arrow schema; None for other inputs.
            names: the input's columns, None where only its rows name them.
        """
        return b""

    def resume(self, stage: Path) -> None:  # noqa: B027 - few forms have to
        """Continue a stage file that `begin` began."""

    @abstractmethod
    def encode(self, block: Block, vectors: NDArray[np.generic], missing: NDArray[np.bool_]) -> bytes:
        """Return the bytes of a block with its vectors [n, k]; `missing` bool[n] marks rows without a vector."""

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

    def begin(self, block: Block | None, columns: Any, names: Sequence[str] | None = None) -> bytes:
        """Return the first bytes."""
        return self.header(0)

    def encode(self, block: Block, vectors: NDArray[np.generic], missing: NDArray[np.bool_]) -> bytes:
        """Return the bytes of a block."""
        return np.ascontiguousarray(vectors, self._dtype).tobytes()

    def finish(self, stage: BinaryIO, out: BinaryIO, rows: int) -> None:
        """Complete the file."""
        out.seek(0)
        out.write(self.header(rows))


class AddedColumns(ABC):
    """Columns that a job adds to those of its input.

    names: of them. option: the option that gives them other names, or what else to do where the input has one.
    """

    names: tuple[str, ...]
    option: str

    @abstractmethod
    def values(self, block: Block, vectors: NDArray[np.generic], missing: NDArray[np.bool_]) -> list[list[Any]]:
        """Return the values of each column for the rows of a block with vectors [n, k]; `missing` bool[n] has none."""

    @abstractmethod
    def types(self, pa: Any) -> list[Any]:
        """Return the Arrow type of each column."""

    def arrays(self, pa: Any, block: Block, vectors: NDArray[np.generic], missing: NDArray[np.bool_]) -> list[Any]:
        """Return an Arrow array for each column."""
        values = self.values(block, vectors, missing)
        return [pa.array(column, type=kind) for column, kind in zip(values, self.types(pa), strict=True)]

    def check(self, names: Iterable[str], where: str = "the input") -> None:
        """Raise InputError where one of the names is a column of the input already."""
        if twice := [name for name in names if name in self.names]:
            raise InputError(f"{where} has {twice[0]!r} already; {self.option}")


class RowsForm(Writes):
    """Writer of CSV, TSV or JSON lines: the input's columns, and those that a job adds.

    Args:
        form: "csv", "tsv" or "jsonl".
        column: of the texts, which JSON lines have for a bad row, too.
        added: the new columns.
        shown: escapes a cell for a terminal.
        safe_cells: as of `encoder`.
        bom: whether CSV and TSV begin with a byte order mark.
    """

    def __init__(
        self,
        form: Literal["csv", "tsv", "jsonl"],
        column: str,
        added: AddedColumns,
        shown: Callable[[str], str] = str,
        *,
        safe_cells: bool = False,
        bom: bool = False,
    ) -> None:
        self._form, self._column, self._added, self._shown, self._safe_cells = form, column, added, shown, safe_cells
        self._mark = UTF_8_MARK if bom else b""
        self._names: list[str] = []
        # Of a resumed run, whose columns are called as in the header.
        self._in_header: Callable[[str], str] | None = None

    def begin(self, block: Block | None, columns: Any, names: Sequence[str] | None = None) -> bytes:
        """Return the header of CSV and TSV. Raises InputError where the input has a column of an added name."""
        if self._form == "jsonl":
            return b""
        if columns is not None:
            own = list(columns.names)
        elif names is not None:
            own = list(names)
        else:
            own = list(dict.fromkeys(chain.from_iterable(records_of(block) if block else []))) or [self._column]
        self._added.check(own)
        self._names = [*own, *self._added.names]
        return self._mark + header_line(self._form, self._names, safe_cells=self._safe_cells).encode()

    def resume(self, stage: Path) -> None:
        """Take the columns from the header, as it has them."""
        if self._form == "jsonl":
            return
        with stage.open(encoding="utf-8-sig", newline="") as file:
            self._names = next(csv.reader(file), []) if self._form == "csv" else next(file)[:-1].split("\t")
        self._in_header = partial(name_in_header, self._form, safe_cells=self._safe_cells)

    def encode(self, block: Block, vectors: NDArray[np.generic], missing: NDArray[np.bool_]) -> bytes:
        """Return the lines of a block. Raises InputError, with the line's number, for a column the header lacks."""
        line = encoder(self._form, self._names, self._shown, safe_cells=self._safe_cells)
        added = zip(*self._added.values(block, vectors, missing), strict=True)
        return b"".join(
            line(number, record | dict(zip(self._added.names, values, strict=True)))
            for (number, record), values in zip(self._rows(block), added, strict=True)
        )

    def _rows(self, block: Block) -> Iterator[tuple[int, dict[str, Any]]]:
        """Yield the number and the columns of each row. Raises InputError for a column that cannot be written."""
        known = set(self._names)
        for number, record in zip(block.numbers, records_of(block), strict=True):
            if self._in_header is not None:
                record = {self._in_header(name): value for name, value in record.items()}
            if self._form == "jsonl":
                self._added.check(record, f"line {number}")
                if "." not in self._column:  # the text is in a member else
                    record.setdefault(self._column, None)
            elif extra := record.keys() - known:
                raise InputError(
                    f"line {number}: {min(extra)!r} is no column of the first lines; name all there, or write .jsonl"
                )
            yield number, record


class VectorRowsForm(RowsForm):
    """Writer of CSV or TSV whose added columns are the dimensions of the vectors, empty in a row without one."""

    def encode(self, block: Block, vectors: NDArray[np.generic], missing: NDArray[np.bool_]) -> bytes:
        """Return the lines of a block, as RowsForm does; numbers have the digits that float32 needs."""
        separator = b"," if self._form == "csv" else b"\t"
        width = len(self._added.names)
        line = encoder(self._form, self._names[:-width], self._shown, safe_cells=self._safe_cells)
        cells = orjson.dumps(np.ascontiguousarray(vectors), option=orjson.OPT_SERIALIZE_NUMPY)[2:-2].split(b"],[")
        empty = separator * (width - 1)
        return b"".join(
            line(number, record)[:-1] + separator + (empty if no else cell.replace(b",", separator)) + b"\n"
            for (number, record), cell, no in zip(self._rows(block), cells, missing.tolist(), strict=True)
        )


def encoder(
    form: Literal["csv", "tsv", "jsonl"],
    names: Sequence[str],
    shown: Callable[[str], str] = str,
    *,
    safe_cells: bool = False,
) -> Callable[[int, dict[str, Any]], bytes]:
    """Return a function of a row's number and its columns that gives its bytes.

    Args:
        form: how it is written. CSV and TSV have a list's texts between bars and other lists and objects as JSON; TSV
            has spaces for tabs and line feeds.
        names: the columns, in order; none for JSON lines with the members of each row.
        shown: escapes a cell of TSV.
        safe_cells: whether a cell of CSV or TSV that a spreadsheet would take for a formula is made a text.
    """
    safe: Callable[[str], str] = safe_cell if safe_cells else str
    if form == "jsonl":
        return lambda number, record: json_line(number, {name: record.get(name) for name in names} if names else record)
    if form == "csv":
        return lambda _, record: csv_line(safe(cell(record.get(name))) for name in names).encode("utf-8", "replace")
    # A line of TSV has no white space around a cell, so that only what is left can begin a formula.
    return lambda _, record: tsv_line(
        (cell(record.get(name)) for name in names), lambda text: shown(safe(text))
    ).encode("utf-8", "replace")  # fmt: skip


def cell(value: Any) -> str:
    """Return a value as a cell of CSV: "" for None."""
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    if isinstance(value, list | tuple) and all(isinstance(item, str) for item in value):
        return " | ".join(value)
    if isinstance(value, list | tuple | dict):
        return orjson.dumps(value, _as_text, orjson.OPT_SERIALIZE_NUMPY).decode()
    return str(value)


def safe_cell(text: str) -> str:
    """Return a cell with "'" before it where a spreadsheet takes it for a formula: OWASP's rule, but for numbers."""
    return f"'{text}" if text.startswith(FORMULA_STARTS) and not _is_number(text) else text


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


def header_line(form: Literal["csv", "tsv"], names: Iterable[str], *, safe_cells: bool = False) -> str:
    """Return the line of CSV or TSV that names the columns."""
    shown = (name_in_header(form, name, safe_cells=safe_cells) for name in names)
    return csv_line(shown) if form == "csv" else tsv_line(shown)


def name_in_header(form: Literal["csv", "tsv"], name: str, *, safe_cells: bool = False) -> str:
    """Return a column's name as a header of CSV or TSV has it; arguments as of `encoder`."""
    shown = name if form == "csv" else " ".join(name.split())
    return safe_cell(shown) if safe_cells else shown


def csv_line(cells: Iterable[str]) -> str:
    """Return a line of CSV."""
    line = io.StringIO()
    csv.writer(line).writerow(cells)  # with "\n" for its end, "\r" in a cell would have no quotes
    return line.getvalue().removesuffix("\r\n") + "\n"


def _as_text(value: Any) -> str:
    # Parquet holds decimals, durations and bytes, which JSON does not.
    return base64.b64encode(value).decode() if isinstance(value, bytes) else str(value)
