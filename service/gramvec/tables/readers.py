"""Blocks of texts from .txt, .jsonl, .csv and .tsv; each row keeps its line's number and what else the line held."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from typing import Any

import orjson

from gramvec.errors import InputError
from gramvec.tables.batches import BLOCK_ROWS, START, Block, Position, Reader
from gramvec.tables.inputs import MAX_LINE_BYTES, Form, Lines, Source, readable

# A block of long texts ends earlier: what is in memory at a time is a few blocks.
BLOCK_BYTES = 4 << 20
BOM = b"\xef\xbb\xbf"
NOT_UTF8 = "not UTF-8 ({}); convert the file, e.g. with iconv"
TOO_LONG = f"longer than {MAX_LINE_BYTES >> 20} MiB; split it"


class LineReader:
    """A line is a text."""

    form: Form = "txt"
    unit = "line"
    total_unit = "B"

    def __init__(self, source: Source, column: str, *, keep: bool, rows: int = BLOCK_ROWS) -> None:
        self.source = source
        self.column = column
        self.keep = keep
        self.rows = rows
        self.total = source.size

    @property
    def done(self) -> int:
        """See Reader."""
        return self.source.done

    def blocks(self, start: Position = START) -> Iterator[Block]:
        """See Reader. Raises InputError for damaged compressed bytes, and for a header without the column."""
        with readable(self.source):
            lines = self._at(start)
            while True:
                block = Block(START, records=[] if self.keep else None)
                size = 0
                while len(block.texts) < self.rows and size < BLOCK_BYTES:
                    number, begin = lines.number, lines.offset
                    if not self._take(lines, block):
                        break
                    block.numbers.append(number)
                    size += lines.offset - begin
                if not block.texts:
                    return
                block.position = Position(lines.offset, lines.number)
                yield block

    def _at(self, start: Position) -> Lines:
        self.source.skip_to(start.offset)
        return Lines(self.source.stream, *start)

    def _take(self, lines: Lines, block: Block) -> bool:
        """Add the next row to the block; False at the end."""
        first = lines.offset == 0
        line = lines.read()
        if line == b"":
            return False
        block.raw.append(line or b"")
        if line is None:
            block.refuse(TOO_LONG)
            return True
        line = line.removesuffix(b"\n").removesuffix(b"\r")
        try:
            self._line(line.removeprefix(BOM) if first else line, block)
        except UnicodeDecodeError as error:
            block.refuse(NOT_UTF8.format(error.reason))
        return True

    def _line(self, line: bytes, block: Block) -> None:
        text = line.decode("utf-8")
        block.texts.append(text)
        if block.records is not None:
            block.records.append({self.column: text})


class JsonReader(LineReader):
    """A line is a JSON object, and its member `column` the text."""

    form: Form = "jsonl"

    def _line(self, line: bytes, block: Block) -> None:
        line.decode("utf-8")  # orjson takes the bytes, but does not say that they are what is wrong
        if not line.strip():
            block.refuse("empty; a line must be a JSON object")
            return
        try:
            record = orjson.loads(line)
        except orjson.JSONDecodeError as error:
            block.refuse(f"not JSON ({error})")
            return
        if not isinstance(record, dict):
            block.refuse('not a JSON object such as {"text": "..."}')
            return
        text = record.get(self.column)
        if not isinstance(text, str):
            found = f"is of type {type(text).__name__}, not a string" if self.column in record else "is missing"
            block.refuse(f"{self.column!r} {found}")
            if block.records is not None:
                block.records[-1] = record
            return
        block.texts.append(text)
        if block.records is not None:
            block.records.append(record)


class CsvReader(LineReader):
    """A record of comma-separated values (RFC 4180), below a header that names the columns. A quoted field may hold
    line feeds: a record's number is that of its first line.
    """

    form: Form = "csv"
    dialect: dict[str, Any] = {"strict": True}  # noqa: RUF012 - never changed

    def _at(self, start: Position) -> Lines:
        csv.field_size_limit(MAX_LINE_BYTES)
        lines = Lines(self.source.stream)
        self._lines = lines
        self._taken: list[bytes] = []
        self._wrong: str | None = None
        self._csv = csv.reader(iter(self._decoded, None), **self.dialect)
        try:
            self.names = next(self._csv, [])
        except csv.Error as error:
            raise InputError(f"{self.source.name}: line 1: {error}; its first line must name the columns") from error
        self._check_header()
        self.header = b"".join(self._taken)
        if start != START:
            self.source.skip_to(start.offset - (0 if self._seeks else lines.offset))
            lines.offset, lines.number = start
        return lines

    @property
    def _seeks(self) -> bool:
        return self.source.is_file and not self.source.is_compressed

    def _check_header(self) -> None:
        if self._wrong is not None:
            raise InputError(f"{self.source.name}: line 1: {self._wrong}")
        if not self.names and self._lines.offset == 0:
            return  # nothing at all: no rows
        if self.column not in self.names:
            raise InputError(
                f"{self.source.name} has no column {self.column!r}; its first line names "
                f"{', '.join(self.names) or 'none'}: choose one with --column"
            )
        if len(set(self.names)) < len(self.names):
            raise InputError(f"{self.source.name}: two columns have the same name; rename one of them")
        self._index = self.names.index(self.column)

    def _decoded(self) -> str | None:
        line = self._lines.read()
        if line == b"":
            return None
        self._taken.append(line or b"")
        if line is None:
            self._wrong = TOO_LONG
            return "\n"
        if len(self._taken) == 1 and self._lines.offset == len(line):
            line = line.removeprefix(BOM)
        try:
            return line.decode("utf-8")
        except UnicodeDecodeError as error:
            self._wrong = NOT_UTF8.format(error.reason)
            return line.decode("utf-8", "replace")

    def _take(self, lines: Lines, block: Block) -> bool:
        self._taken, self._wrong = [], None
        values: list[str] = []
        try:
            values = next(self._csv)
        except StopIteration:
            return False
        except csv.Error as error:
            self._wrong = self._wrong or f"not CSV ({error})"
        block.raw.append(b"".join(self._taken))
        if self._wrong is None and len(values) != len(self.names):
            self._wrong = f"{len(values)} fields, the header has {len(self.names)}"
        if self._wrong is not None:
            block.refuse(self._wrong)
            return True
        block.texts.append(values[self._index])
        if block.records is not None:
            block.records.append(dict(zip(self.names, values, strict=True)))
        return True


class TsvReader(CsvReader):
    """Tab-separated values as IANA's text/tab-separated-values has them: no quotes, a record is a line."""

    form: Form = "tsv"
    dialect: dict[str, Any] = {"delimiter": "\t", "quoting": csv.QUOTE_NONE}  # noqa: RUF012 - never changed


READERS: dict[Form, type[LineReader]] = {"txt": LineReader, "jsonl": JsonReader, "csv": CsvReader, "tsv": TsvReader}


def open_reader(source: Source, form: Form, column: str, *, keep: bool, rows: int = BLOCK_ROWS) -> Reader:
    """A reader of this source.

    keep: whether the columns beside the text are wanted. rows: the most of a block.
    Raises InputError if the source cannot be read in this form.
    """
    if form == "parquet":
        from gramvec.tables.parquet import ParquetReader

        return ParquetReader(source, column, keep=keep, rows=rows)
    return READERS[form](source, column, keep=keep, rows=rows)
