"""Reader of .xlsx and .ods: another process reads the file, within bounds of memory and time, and gives rows as JSON.

Such a file may be hostile: a few bytes become many by decompression, and one cell at the last place of a sheet takes
the memory of all before it. What a process may take is bounded for any of these; this one only sees its lines.
"""

from __future__ import annotations

import os
import re
import resource
import subprocess
import sys
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import suppress
from datetime import date, datetime, time
from importlib.util import find_spec
from pathlib import Path
from typing import IO, Any, BinaryIO, cast
from xml.etree import ElementTree

import orjson

from gramvec.errors import InputError, quote
from gramvec.jobs.tables.batches import MAX_COLUMNS, START, Block, ColumnNames, Position, list_names, quote_column
from gramvec.jobs.tables.inputs import STDIN, FileFormat, Lines, Source
from gramvec.jobs.tables.lines import JsonReader

MAX_MEMORY_BYTES = 2 << 30
MAX_CPU_SECONDS = 300
MAX_SAID_BYTES = 2000
# Of a sheet's XML: what is read at a time, the longest cell that can hold an error, the list of sheets, and all.
CHUNK_BYTES, MAX_CELL_BYTES, MAX_PART_BYTES, MAX_SHEET_BYTES = 1 << 20, 1 << 16, 16 << 20, 512 << 20
_ERROR = b't="e"'
_PLACE = re.compile(rb'\br="([A-Z]{1,3}\d{1,7})"').search
_VALUE = re.compile(rb"<v>([^<>]{1,20})</v>").search
NEEDS = "a spreadsheet needs python-calamine; install it with: pip install 'gramvec[sheets]'"
# The message for a process that was ended from outside, or by Rust for want of memory.
TOO_MUCH = (
    f"needs more than {MAX_MEMORY_BYTES >> 30} GiB of memory or {MAX_CPU_SECONDS} seconds to be read, or is damaged;"
    " save the sheet as CSV"
)


class SheetReader(JsonReader):
    """Reader of a sheet, the first or a named one, whose first row with something in it names the columns.

    Numbers and dates stay what they are among the columns that are kept; as the text they are written as text. Rows
    without a value are skipped.
    """

    unit = "row"

    def __init__(self, source: Source, given: FileFormat, column: str | None, *, keep: bool, rows: int) -> None:
        if not source.is_file or source.is_compressed or source.path == STDIN:
            raise InputError(f"{source.name}: a spreadsheet is read from a plain file; save it to one")
        if find_spec("python_calamine") is None:
            raise InputError(NEEDS)
        self.source = source
        self.column = column
        self.keep, self.rows, self.format = keep, rows, given
        self.encoding, self.marked, self.total = "utf-8", False, None
        self.notes = []
        self._process: subprocess.Popen[bytes] | None = None
        self._columns: ColumnNames | None = None
        source.also_closed.append(self._end)

    @property
    def names(self) -> list[str] | None:
        """Columns of the first row. Reads it; raises InputError for a file that cannot be read."""
        if self._columns is None:
            self._begin()
        assert self._columns is not None
        return self._columns.names

    def check_column(self, name: str) -> None:
        """Raise InputError for a column that the first row names twice, or does not name at all."""
        if self.names:
            assert self._columns is not None
            self._columns.check(name, self.source.name)

    def blocks(self, start: Position = START) -> Iterator[Block]:
        """Yield blocks from `start` on. Raises InputError for a file that cannot be read."""
        yield from super().blocks(start)
        self._finish()

    def _at(self, start: Position) -> Lines:
        if self._columns is None:
            self._begin()
        while self._lines.offset < start.offset and self._lines.read():
            pass
        return self._lines

    def _begin(self) -> None:
        self._said = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the process
        command = [sys.executable, "-P", "-c", f"from {__name__} import main; main()", str(self.source.path)]
        command += [] if self.format.sheet is None else [self.format.sheet]
        paths = [str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH", "")]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))}
        self._process = subprocess.Popen(  # noqa: S603 - this Python, without a shell
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=self._said, env=environment
        )
        assert self._process.stdout is not None
        self._lines = Lines(cast(BinaryIO, self._process.stdout))
        first = self._lines.read() or b""
        if not first:
            self._finish()
        header, notes = orjson.loads(first) if first else ([], [])
        self._columns = ColumnNames(header)
        self.notes = [*notes, *self._columns.notes]
        if self.column is not None and self._columns.names:
            self._columns.check(self.column, self.source.name)

    def _finish(self) -> None:
        """Wait for the process, and raise InputError with its message where it failed."""
        if self._process is None or self._process.wait() == 0:
            return
        self._said.seek(0)
        message = self._said.read(MAX_SAID_BYTES).decode("utf-8", "replace").strip().splitlines() or [""]
        failed = self._process.returncode == 1 and message[-1].startswith("gramvec: ")
        raise InputError(f"{self.source.name}: {message[-1].removeprefix('gramvec: ') if failed else TOO_MUCH}")

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()
            assert process.stdout is not None
            process.stdout.close()
            self._said.close()

    def _line(self, line: bytes, block: Block) -> None:
        number, *values = orjson.loads(line)
        assert self._columns is not None
        block.numbers[-1] = number
        record = dict(zip(self._columns.names, values, strict=True))
        text = record.get(self.column, "") if self.column is not None else ""
        block.texts.append("" if text is None else text if isinstance(text, str) else str(text))
        if block.records is not None:
            block.records.append(record)


def main() -> None:
    """Print a sheet's rows as JSON: the header's names and notes, then arrays of a row's number and its values."""
    limit_process()
    path, *sheet = sys.argv[1:]
    try:
        for row in rows_of(Path(path), *sheet):
            sys.stdout.buffer.write(orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE))
        sys.stdout.buffer.flush()
    except InputError as error:
        sys.stderr.write(f"gramvec: {error}\n")
        raise SystemExit(1) from None


def limit_process() -> None:
    """Bound what this process may take of memory and time."""
    resource.setrlimit(resource.RLIMIT_AS, (MAX_MEMORY_BYTES, MAX_MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CPU, (MAX_CPU_SECONDS, MAX_CPU_SECONDS))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def rows_of(path: Path, sheet: str | None = None) -> Iterator[list[Any]]:
    """Yield the names of the columns and notes, then each row that has a value: its number from 1 and as many values.

    A note is a sentence about the sheet: that it is hidden, though nobody named it, and how many of its cells are
    formulas that failed.

    Raises InputError for a file that cannot be read, an unknown sheet, and a header that is too wide.
    """
    from python_calamine import CalamineError, CalamineWorkbook

    try:
        book = CalamineWorkbook.from_path(path)
        names = book.sheet_names
        if sheet is not None and sheet not in names:
            raise InputError(f"has no sheet {quote_column(sheet)}; it has {list_names(names)}: choose one with `sheet`")
        if not names:
            return
        name = names[0] if sheet is None else sheet
        notes = [] if sheet is not None or str(book.sheets_metadata[0].visible).endswith(".Visible") else [
            f"the first sheet, {quote_column(name)}, is hidden; `sheet` reads another of {list_names(names)}"
        ]  # fmt: skip
        notes += _note_errors(path, name)
        found = book.get_sheet_by_name(name)
    except (CalamineError, OSError) as error:
        raise InputError(f"cannot be read ({quote(error)}); save it again, or as CSV") from error
    if found.start is None:  # an empty sheet, whose rows some versions cannot iterate
        return
    header: list[str] = []
    for number, row in enumerate(found.iter_rows(), start=1):
        values = [_value(cell) for cell in row]
        if all(value is None for value in values):
            continue
        if not header:
            if len(values) > MAX_COLUMNS:
                raise InputError(f"has {len(values):,} columns; the limit is {MAX_COLUMNS:,}, remove some")
            header = ["" if value is None else str(value) for value in values]
            yield [header, notes]
        else:
            yield [number, *values]


def _note_errors(path: Path, sheet: str) -> list[str]:
    """Return a sentence about the cells of a sheet of .xlsx that hold an error, such as #REF!; none without any.

    The library has nothing in such a cell. What cannot be read in this way is read by it, which says what is wrong.
    """
    count, first = 0, ""
    damage = (zipfile.BadZipFile, KeyError, StopIteration, ElementTree.ParseError, NotImplementedError, RuntimeError)
    with (
        suppress(*damage, EOFError, zlib.error),
        zipfile.ZipFile(path) as zipped,
        zipped.open(_part_of(zipped, sheet)) as file,
    ):
        for cell in _cells_with_errors(file):
            count += 1
            tag = cell.partition(b">")[0]
            place, value = _PLACE(tag), _VALUE(cell, len(tag))
            first = first or " ".join(found[1].decode("ascii", "replace") for found in (value, place) if found)
    if not count:
        return []
    what = "cell holds an error and counts" if count == 1 else "cells hold an error and count"
    return [f"{count:,} {what} as empty, such as {first}; see to its formula"]


def _cells_with_errors(file: IO[bytes]) -> Iterator[bytes]:
    """Yield the XML of each cell that holds an error, of a sheet's first MAX_SHEET_BYTES."""
    rest, done = b"", 0
    while done < MAX_SHEET_BYTES and (chunk := file.read(CHUNK_BYTES)):
        done += len(chunk)
        data = rest + chunk
        begin = max(data.rfind(b"<c "), 0)
        rest = data[begin:][-MAX_CELL_BYTES:]
        yield from _errors_in(data[:begin])
    yield from _errors_in(rest)


def _errors_in(data: bytes) -> Iterator[bytes]:
    if _ERROR in data:
        yield from (cell for cell in data.split(b"<c ") if _ERROR in cell.partition(b">")[0])


def _part_of(zipped: zipfile.ZipFile, sheet: str) -> str:
    """Return the name of the part of .xlsx that holds a sheet. Raises KeyError where it is not named as usual."""
    book, links = (
        ElementTree.fromstring(zipped.open(name).read(MAX_PART_BYTES))  # noqa: S314 - in a bounded process
        for name in ("xl/workbook.xml", "xl/_rels/workbook.xml.rels")
    )
    found = {one.get("name"): one for one in book.iter() if one.tag.endswith("}sheet")}[sheet]
    link = next(value for name, value in found.items() if name.endswith("}id"))
    target = {one.get("Id"): one.get("Target", "") for one in links}[link]
    return target.removeprefix("/") if target.startswith("/") else f"xl/{target}"


def _value(value: Any) -> Any:
    """Return a cell as JSON has it: a whole number without a fraction, a date by ISO 8601, None for nothing."""
    if value == "" or value is None:
        return None
    if isinstance(value, bool | str | int):
        return value
    if isinstance(value, float):
        return int(value) if value.is_integer() and abs(value) < 1e15 else value
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    return str(value)
