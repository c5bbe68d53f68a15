"""Readers of .txt, .jsonl, .json, .csv and .tsv: blocks of rows, each with its line's number and its columns."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from itertools import chain
from typing import Any, cast

import orjson

from gramvec.errors import InputError, quoted
from gramvec.tables import json_bounds
from gramvec.tables.batches import (
    BLOCK_ROWS,
    MISSING,
    START,
    Block,
    ColumnNames,
    Position,
    Reader,
    named,
    value_at,
)
from gramvec.tables.decoding import UTF_8_MARK, UTF_16_MARKS
from gramvec.tables.inputs import MAX_LINE_BYTES, UTF_8, FileFormat, Form, Lines, Source, readable
from gramvec.tables.json_elements import JsonElements

# A block of long texts or of many values ends early, so that memory is a few blocks.
BLOCK_BYTES = 4 << 20
VALUE_BYTES = 64  # at least what a parsed value takes
MAX_COLUMNS = 10_000
MAX_HEADER_BYTES = 1 << 20
MAX_FIELDS = 1_000_000  # of one row of CSV, so that few bytes do not become many objects
DELIMITERS = ",;\t|"
TOO_LONG = f"longer than {MAX_LINE_BYTES >> 20} MiB; split it"
IS_UTF_16 = "{} is UTF-16; save it as UTF-8, e.g. with iconv -f UTF-16 -t UTF-8"
OLD_MAC = "a line ends with a carriage return alone, as of old Mac files; convert the file, e.g. with tr '\\r' '\\n'"
_LATIN = "cp1252"
_ENDS = b"\r\n"
DELIMITED = ", or say what separates them with --delimiter"
_SAYS_DELIMITER = re.compile(r'"?sep=([^"\r\n])"?\r?\n?', re.IGNORECASE).fullmatch


def not_in_encoding(line: bytes, error: UnicodeDecodeError, *, marked: bool) -> str:
    """Return why a line cannot be decoded, and which --encoding would decode it where no byte order mark names one."""
    if marked:
        return f"not UTF-8 ({error.reason}), though the file begins with its byte order mark; convert the file"
    if error.encoding.replace("-", "") != "utf8":
        return f"not {error.encoding} ({error.reason}); give another --encoding"
    why = f"not UTF-8 ({error.reason})"
    begin = max(error.start - 10, 0)
    try:
        text = line[begin : error.end + 10].decode(_LATIN)
        found = line[error.start : error.start + 1].decode(_LATIN)
    except UnicodeDecodeError:
        return f"{why}; give its --encoding, or convert the file"
    # A sign such as a euro's stands alone; in other encodings bytes over 127 come in rows.
    alone = all(one < 128 for one in line[max(error.start - 1, 0) : error.start] + line[error.start + 1 :][:1])
    if not (found.isalpha() or (found.isprintable() and alone)):
        return f"{why}; give its --encoding, or convert the file"
    return f"{why}; it looks like Latin-1 ({text.strip()[:24]!r}): give --encoding {_LATIN}, or convert the file"


class LineReader:
    """Reader of text: a line is a row with one column."""

    unit = "line"
    total_unit = "B"
    skips_blank = False  # an empty line is an empty text

    def __init__(self, source: Source, given: FileFormat, column: str | None, *, keep: bool, rows: int) -> None:
        self.source = source
        self.column = column
        self.keep = keep
        self.rows = rows
        self.format = given
        self.marked = source.peek().startswith(UTF_16_MARKS)
        self.encoding = source.translate(given.encoding)
        self.total = source.size
        self.notes: list[str] = []

    @property
    def done(self) -> int:
        """Bytes of the file that have been read."""
        return self.source.done

    @property
    def names(self) -> list[str] | None:
        """Columns that the file's header names; a file of lines has none."""
        return None

    def blocks(self, start: Position = START) -> Iterator[Block]:
        """Yield blocks from `start` on. Raises InputError for damaged compressed bytes and an unusable header."""
        with readable(self.source):
            lines = self._at(start)
            while True:
                block = Block(START, records=[] if self.keep else None)
                size = 0
                while len(block.texts) < self.rows and size < BLOCK_BYTES:
                    begin = lines.offset
                    if not self._take(lines, block):
                        break
                    size += lines.offset - begin + VALUE_BYTES * self._values(block.raw[-1])
                if not block.texts and not block.blank:
                    return
                block.position = Position(lines.offset, lines.number)
                yield block

    def _at(self, start: Position) -> Lines:
        if start != START:
            self._without_bom(self.source.peek())
        self.source.skip_to(start.offset)
        return Lines(self.source.stream, *start)

    def _values(self, raw: bytes) -> int:
        """Return how many values the bytes of a row may become, beside the text."""
        return 0

    def check_column(self, name: str) -> None:
        """Do nothing: only rows say which columns there are."""

    def _take(self, lines: Lines, block: Block) -> bool:
        """Add the next row to the block, and skip blank lines before it; return False at the end."""
        while True:
            is_first, number = lines.offset == 0, lines.number
            line = lines.read()
            if line == b"":
                return False
            if line is None or not self.skips_blank or line.strip(_ENDS + b" \t"):
                break
            block.blank += 1
        block.numbers.append(number)
        block.raw.append(line or b"")
        if line is None:
            block.refuse(TOO_LONG)
            return True
        line = line.removesuffix(b"\n").removesuffix(b"\r")
        if is_first:
            line = self._without_bom(line)
        try:
            self._line(line, block)
        except UnicodeDecodeError as error:
            block.refuse(not_in_encoding(line, error, marked=self.marked))
        return True

    def _without_bom(self, line: bytes) -> bytes:
        if line.startswith(UTF_16_MARKS):
            raise InputError(IS_UTF_16.format(self.source.name))
        if line.startswith(UTF_8_MARK):
            # Whatever is given: no text begins so in another encoding.
            self.encoding, self.marked = UTF_8, True
        return line.removeprefix(UTF_8_MARK)

    def _line(self, line: bytes, block: Block) -> None:
        text = line.decode(self.encoding)
        block.texts.append(text)
        if block.records is not None:
            block.records.append({self.column or "text": text})


class JsonReader(LineReader):
    """Reader of JSON lines: a line is an object, its members are the columns; dots name members of members."""

    skips_blank = True

    def _values(self, raw: bytes) -> int:
        return raw.count(b",") + raw.count(b"[") + raw.count(b"{")

    def _line(self, line: bytes, block: Block) -> None:
        text = line.decode(self.encoding)  # orjson would not say that the encoding is what is wrong
        try:
            record = self._record(json_bounds.parse(line if self.encoding == UTF_8 else text.encode()))
        except json_bounds.TooLarge as error:
            block.refuse(str(error))
            return
        except orjson.JSONDecodeError as error:
            block.refuse(self._not_json(error, block))
            return
        if not isinstance(record, dict):
            block.refuse('not a JSON object such as {"text": "..."}')
            return
        found = value_at(record, self.column) if self.column is not None else ""
        if isinstance(found, str):
            block.texts.append(found)
            if block.records is not None:
                block.records.append(record)
            return
        wrong = f"is of type {type(found).__name__}, not a string"
        if found is None:
            wrong = "is null, not a text"
        if found is MISSING:
            wrong = f"is missing; there is {named(record)}: choose one with --column"
        block.refuse(f"{self.column!r} {wrong}")
        if block.records is not None:
            block.records[-1] = record

    def _record(self, value: Any) -> Any:
        """Return the columns of a parsed value."""
        return value

    def _not_json(self, error: orjson.JSONDecodeError, block: Block) -> str:
        """Return why a row is bad that cannot be parsed."""
        return f"not JSON ({quoted(error)})"


class JsonFileReader(JsonReader):
    """Reader of .json: an array of objects or of texts; or JSON lines, as many programs call them so."""

    def __init__(self, source: Source, given: FileFormat, column: str | None, *, keep: bool, rows: int) -> None:
        super().__init__(source, given, column, keep=keep, rows=rows)
        head = source.peek().removeprefix(UTF_8_MARK).lstrip()
        self.is_array = not head.startswith(b"{")
        self.unit = "row" if self.is_array else "line"

    def _at(self, start: Position) -> Lines:
        if not self.is_array:
            return super()._at(start)
        self.source.skip_to(start.offset)
        return cast(Lines, JsonElements(self.source.stream, self.source.name, *start))

    def _record(self, value: Any) -> Any:
        return {self.column or "text": value} if self.is_array and isinstance(value, str) else value

    def _not_json(self, error: orjson.JSONDecodeError, block: Block) -> str:
        if not self.is_array and block.numbers == [1]:
            raise InputError(
                f"{self.source.name}: is one JSON object; give an array of objects, [{{...}}, {{...}}], or JSON lines"
            )
        return super()._not_json(error, block)


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
        return "choose one with --column" + (DELIMITED if len(self._columns.names) == 1 else "")

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
            first, said = self._first()
            self.delimiter = self.format.delimiter or said or (self._recognize(first) if first else ",")
            lines = chain(() if first is None else (first,), iter(self._decode, None))  # goes on after an error
            self._csv = csv.reader(lines, delimiter=self.delimiter, **self._dialect(first))
            names = next(self._csv, [])
        except csv.Error as error:
            raise InputError(
                f"{self.source.name}: line 1: {OLD_MAC if _is_old_mac(error) else quoted(error)}; its first line must"
                " name the columns"
            ) from error
        self._check_header(names)
        self._header = self._columns.names
        self.header = bytes(self._taken)

    def _first(self) -> tuple[str | None, str | None]:
        """Return the first line with something in it, and the delimiter that a line such as "sep=;" before it names."""
        first, said = self._decode(), None
        found = _SAYS_DELIMITER(first) if first else None
        if found:
            first, said = self._decode(), found[1]
        while first is not None and self._wrong is None and not first.strip():
            first = self._decode()
        return first, said

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
        return max(found, key=lambda one: one[:2])[2]

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
            if max(line.count(one.encode()) for one in self.format.delimiter or self.delimiters) > MAX_COLUMNS:
                self._wrong = f"more than {MAX_COLUMNS:,} columns; remove some"
                return "\n"
        else:
            self._fields += line.count(self.delimiter.encode())
            if self._fields > MAX_FIELDS:
                self._wrong = f"more than {MAX_FIELDS:,} fields, the header has {len(self._header or ()):,}"
                return "\n"
        most = MAX_HEADER_BYTES if self._header is None else MAX_LINE_BYTES
        if len(self._taken) > most:
            raise csv.Error(f"longer than {most >> 20} MiB, maybe a quote is never closed")
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
            is_blank = not self._taken.strip(_ENDS) or (len(values) == 1 < len(names) and not self._taken.strip())
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

    delimiters = "\t"
    dialect: dict[str, Any] = {"quoting": csv.QUOTE_NONE}  # noqa: RUF012 - never changed

    def _dialect(self, header: str | None) -> dict[str, Any]:
        fields = (header or "").rstrip("\r\n").split("\t")
        self._is_quoted = any(len(one) > 1 and one[0] == one[-1] == '"' for one in fields)
        return CsvReader.dialect if self._is_quoted else self.dialect

    def _why(self, values: list[str]) -> str:
        if self._is_quoted or not any(one.startswith('"') for one in values):
            return ""
        return "; if its fields are in quotes, give --input-format csv --delimiter tab"


def _not_csv(error: csv.Error) -> str:
    return OLD_MAC if _is_old_mac(error) else f"not CSV ({quoted(error)})"


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
        from gramvec.tables.parquet import ParquetReader

        return ParquetReader(source, wanted, column, keep=keep, rows=rows)
    if wanted.form in ("xlsx", "ods"):
        from gramvec.tables.spreadsheet import SheetReader

        return SheetReader(source, wanted, column, keep=keep, rows=rows)
    return READERS[wanted.form](source, wanted, column, keep=keep, rows=rows)
