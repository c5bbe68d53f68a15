"""Readers of .csv and .tsv, and the reader of each form."""

from __future__ import annotations

import csv
import re
from itertools import chain
from typing import Any

from gramvec.errors import InputError, quote
from gramvec.jobs.tables.batches import BLOCK_ROWS, MAX_COLUMNS, START, Block, ColumnNames, Position, Reader
from gramvec.jobs.tables.inputs import MAX_LINE_BYTES, SPREADSHEETS, FileFormat, Form, Lines, Source, readable
from gramvec.jobs.tables.lines import LINE_ENDS, TOO_LONG, JsonFileReader, JsonReader, LineReader, not_in_encoding

MAX_HEADER_BYTES = 1 << 20
MAX_FIELDS = 1_000_000  # of one row of CSV, so that few bytes do not become many objects
DELIMITERS = ",;\t|"
OLD_MAC = "a line ends with only a carriage return, as in old Mac files; convert the file, e.g. with tr '\\r' '\\n'"
DELIMITED = ", or say what separates them with `delimiter`"
_SAYS_DELIMITER = re.compile(r'"?sep=([^"\r\n])"?\r?\n?', re.IGNORECASE).fullmatch


class CsvReader(LineReader):
    """Reader of delimiter-separated values (RFC 4180) below a header that names the columns.

    A quoted field may hold line feeds; a row's number is that of its first line. Without a delimiter in the format, it
    is that of a first line "sep=;", else the one of comma, semicolon, tab and pipe that makes the column, else the most
    columns, of the header.
    """

    skips_blank = True
    delimiters = DELIMITERS
    dialect: dict[str, Any] = {"strict": True}  # noqa: RUF012 - never changed

    _header: list[str] | None = None
    _taken: bytearray  # bytes of the row that is read, which may be many lines
    _fields: int
    _wrong: str | None

    @property
    def names(self) -> list[str] | None:
        """Columns that the file's header names. Reads the header; raises InputError for an unusable one."""
        if self._header is None:
            with readable(self.source):
                self._read_header()
        return self._header

    @property
    def _remedy(self) -> str:
        return "choose one with `column`" + (DELIMITED if len(self._columns.names) == 1 else "")

    def check_column(self, name: str) -> None:
        """Raise InputError for a column that the header names twice, or does not name at all."""
        if self.names:
            self._columns.check(name, self.source.name, self._remedy)

    def _at(self, start: Position) -> Lines:
        if self._header is None:
            self._read_header()
        if start != START:
            self.source.skip_to(start.offset - (0 if self.source.can_seek else self._lines.offset))
            self._lines.offset, self._lines.number = start
        return self._lines

    def _read_header(self) -> None:
        csv.field_size_limit(MAX_LINE_BYTES)
        self._lines = Lines(self.source.stream)
        self._begin()
        try:
            first, stated = self._first()
            self.delimiter = self.format.delimiter or stated or (self._recognize(first) if first else ",")
            lines = chain(() if first is None else (first,), iter(self._decode, None))  # goes on after an error
            self._csv = csv.reader(lines, delimiter=self.delimiter, **self._dialect(first))
            names = next(self._csv, [])
        except csv.Error as error:
            raise InputError(
                f"{self.source.name}: line 1: {OLD_MAC if _is_old_mac(error) else quote(error)}; its first line must"
                " name the columns"
            ) from error
        self._check_header(names)
        self._header = self._columns.names
        self.header = bytes(self._taken)

    def _first(self) -> tuple[str | None, str | None]:
        """Return the first line with something in it, and the delimiter that a line such as "sep=;" before it names."""
        first, stated = self._decode(), None
        found = _SAYS_DELIMITER(first) if first else None
        if found:
            first, stated = self._decode(), found[1]
        while first is not None and self._wrong is None and not first.strip():
            first = self._decode()
        return first, stated

    def _dialect(self, header: str | None) -> dict[str, Any]:
        """Return how quotes are read."""
        return self.dialect

    def _begin(self) -> None:
        self._taken, self._fields, self._wrong = bytearray(), 0, None

    def _recognize(self, line: str) -> str:
        found: list[tuple[bool, int, str]] = []
        for delimiter in self.delimiters:
            try:
                names = next(csv.reader([line], delimiter=delimiter, **self._dialect(line)), [])
            except csv.Error:
                names = []
            found.append((self.column in names, len(names), delimiter))
        return max(found, key=lambda form: form[:2])[2]

    def _check_header(self, names: list[str]) -> None:
        if self._wrong is not None:
            raise InputError(f"{self.source.name}: line 1: {self._wrong}")
        if not names and not self._taken.strip():
            self._columns = ColumnNames([])
            return  # an empty file
        if len(names) > MAX_COLUMNS:
            raise InputError(
                f"{self.source.name}: line 1 names {len(names):,} columns; the limit is {MAX_COLUMNS:,}, remove some"
            )
        self._columns = ColumnNames(names)
        self.notes = self._columns.notes
        if self.column is not None:
            self._columns.check(self.column, self.source.name, self._remedy)
        names = self._columns.names
        self._index = None if self.column is None else names.index(self.column)

    def _decode(self) -> str | None:
        line = self._lines.read()
        if line == b"":
            return None
        if line is None:
            self._wrong = TOO_LONG
            return "\n"
        self._taken += line
        if self._lines.offset == len(line):
            line = self._without_bom(line)
        if self._header is None:
            if (
                max(line.count(delimiter.encode()) for delimiter in self.format.delimiter or self.delimiters)
                > MAX_COLUMNS
            ):
                self._wrong = f"more than {MAX_COLUMNS:,} columns; remove some"
                return "\n"
        else:
            self._fields += line.count(self.delimiter.encode())
            if self._fields > MAX_FIELDS:
                self._wrong = f"more than {MAX_FIELDS:,} fields, the header has {len(self._header or ()):,}"
                return "\n"
        limit = MAX_HEADER_BYTES if self._header is None else MAX_LINE_BYTES
        if len(self._taken) > limit:
            raise csv.Error(f"longer than {limit >> 20} MiB, maybe a quote is never closed")
        try:
            return line.decode(self.encoding)
        except UnicodeDecodeError as error:
            self._wrong = not_in_encoding(line, error, marked=self.marked)
            return line.decode(self.encoding, "replace")

    def _values(self, raw: bytes) -> int:
        return raw.count(self.delimiter.encode()) if self.keep else 0

    def _why(self, values: list[str]) -> str:
        """Return more about a row with another number of fields than the header."""
        return ""

    def _take(self, lines: Lines, block: Block) -> bool:
        names, values = self._header or [], list[str]()
        while True:
            number = self._lines.number
            self._begin()
            try:
                values = next(self._csv)
            except StopIteration:
                return False
            except csv.Error as error:
                self._wrong = self._wrong or _not_csv(error)
            is_blank = not self._taken.strip(LINE_ENDS) or (len(values) == 1 < len(names) and not self._taken.strip())
            if self._wrong is not None or not is_blank:
                break
            block.blank += 1
        block.numbers.append(number)
        block.raw.append(bytes(self._taken))
        if self._wrong is None and len(values) != len(names):
            self._wrong = f"{len(values)} fields, the header has {len(names)}{self._why(values)}"
        if self._wrong is not None:
            block.refuse(self._wrong)
            return True
        block.texts.append(values[self._index] if self._index is not None else "")
        if block.records is not None:
            block.records.append(dict(zip(names, values, strict=True)))
        return True


class TsvReader(CsvReader):
    """Reader of tab-separated values (IANA's text/tab-separated-values): no quotes, a row is a line.

    Where the header has a field in quotes, the file is read as CSV with tabs.
    """

    is_quoted: bool
    delimiters = "\t"
    dialect: dict[str, Any] = {"quoting": csv.QUOTE_NONE}  # noqa: RUF012 - never changed

    def _dialect(self, header: str | None) -> dict[str, Any]:
        fields = (header or "").rstrip("\r\n").split("\t")
        self.is_quoted = any(len(field) > 1 and field[0] == field[-1] == '"' for field in fields)
        return CsvReader.dialect if self.is_quoted else self.dialect

    def _why(self, values: list[str]) -> str:
        if self.is_quoted or not any(value.startswith('"') for value in values):
            return ""
        return '; if its fields are in quotes, give `input_format="csv"` and `delimiter="tab"`'


def _not_csv(error: csv.Error) -> str:
    return OLD_MAC if _is_old_mac(error) else f"not CSV ({quote(error)})"


def _is_old_mac(error: csv.Error) -> bool:
    return "new-line" in str(error)


READERS: dict[Form, type[LineReader]] = {
    "txt": LineReader, "jsonl": JsonReader, "json": JsonFileReader, "csv": CsvReader, "tsv": TsvReader
}  # fmt: skip


def open_reader(
    source: Source,
    form: Form | FileFormat,
    column: str | None,
    *,
    keep: bool,
    rows: int = BLOCK_ROWS,
) -> Reader:
    """Return a reader of a source.

    Args:
        source: what is read.
        form: the source's form or whole format.
        column: of the texts; with None every row that can be parsed is good, and texts are "".
        keep: whether the other columns are wanted.
        rows: the most of a block.

    Raises:
        InputError: the source cannot be read in this form.
    """
    wanted = form if isinstance(form, FileFormat) else FileFormat(form)
    if wanted.form == "parquet":
        from gramvec.jobs.tables.parquet import ParquetReader

        return ParquetReader(source, wanted, column, keep=keep, rows=rows)
    if wanted.form in SPREADSHEETS:
        from gramvec.jobs.tables.spreadsheet import SheetReader

        return SheetReader(source, wanted, column, keep=keep, rows=rows)
    return READERS[wanted.form](source, wanted, column, keep=keep, rows=rows)
