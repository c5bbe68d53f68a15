"""Reader of .xlsx and .ods: another process reads the file, within bounds of memory and time, and gives rows as JSON.

Such a file may be hostile: a few bytes become many by decompression, and one cell at the last place of a sheet takes
the memory of all before it. What a process may take is bounded for any of these; this one only sees its lines.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from datetime import date, datetime, time
from importlib.util import find_spec
from pathlib import Path
from typing import Any, BinaryIO, cast

import orjson

from gramvec.errors import InputError, quote
from gramvec.jobs.tables.batches import MAX_COLUMNS, START, Block, ColumnNames, Position, list_names, quote_column
from gramvec.jobs.tables.inputs import STDIN, FileFormat, Lines, Source
from gramvec.jobs.tables.lines import JsonReader

MAX_MEMORY_BYTES = 2 << 30
MAX_CPU_SECONDS = 300
MAX_SAID_BYTES = 2000
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
        self._columns = ColumnNames(orjson.loads(first) if first else [])
        self.notes = self._columns.notes
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
    """Print a sheet's rows as JSON: the header's names, then arrays of a row's number and its values."""
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
    """Yield the names of the columns, then each row that has a value: its number from 1 and as many values.

    Raises InputError for a file that cannot be read, an unknown sheet, and a header that is too wide.
    """
    from python_calamine import CalamineError, CalamineWorkbook

    try:
        book = CalamineWorkbook.from_path(path)
        names = book.sheet_names
        if sheet is not None and sheet not in names:
            raise InputError(f"has no sheet {quote_column(sheet)}; it has {list_names(names)}: choose one with --sheet")
        if not names:
            return
        found = book.get_sheet_by_name(sheet if sheet is not None else names[0])
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
            yield list(header)
        else:
            yield [number, *values]


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
