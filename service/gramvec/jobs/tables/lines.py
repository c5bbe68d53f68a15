"""Readers of files in which a line is a row: .txt, .jsonl and .json; blocks of rows with the numbers of their lines."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

import orjson

from gramvec.errors import InputError, quote
from gramvec.jobs.tables.batches import MISSING, START, Block, Position, list_names, value_at
from gramvec.jobs.tables.decoding import UTF_8_MARK, UTF_16_MARKS
from gramvec.jobs.tables.inputs import MAX_LINE_BYTES, UTF_8, FileFormat, Lines, Source, readable
from gramvec.jobs.tables.json_elements import JsonElements
from gramvec.text import json_bounds

# A block of long texts or of many values ends early, so that memory is a few blocks.
BLOCK_BYTES = 4 << 20
VALUE_BYTES = 64  # at least what a parsed value takes
LINE_ENDS = b"\r\n"
TOO_LONG = f"longer than {MAX_LINE_BYTES >> 20} MiB; split it"
IS_UTF_16 = "{} is UTF-16; save it as UTF-8, e.g. with iconv -f UTF-16 -t UTF-8"
_LATIN = "cp1252"


def not_in_encoding(line: bytes, error: UnicodeDecodeError, *, marked: bool) -> str:
    """Return why a line cannot be decoded, and which --encoding would decode it where no byte order mark names one."""
    if marked:
        return f"not UTF-8 ({error.reason}), though the file begins with its byte order mark; convert the file"
    if error.encoding.replace("-", "") != "utf8":
        return f"not {error.encoding} ({error.reason}); give another `encoding`"
    why = f"not UTF-8 ({error.reason})"
    begin = max(error.start - 10, 0)
    try:
        text = line[begin : error.end + 10].decode(_LATIN)
        found = line[error.start : error.start + 1].decode(_LATIN)
    except UnicodeDecodeError:
        return f"{why}; give its `encoding`, or convert the file"
    # A sign such as a euro's stands by itself; in other encodings bytes over 127 come in rows.
    single = all(byte < 128 for byte in line[max(error.start - 1, 0) : error.start] + line[error.start + 1 :][:1])
    if not (found.isalpha() or (found.isprintable() and single)):
        return f"{why}; give its `encoding`, or convert the file"
    return f'{why}; it looks like Latin-1 ({text.strip()[:24]!r}): give `encoding="{_LATIN}"`, or convert the file'


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
            if line is None or not self.skips_blank or line.strip(LINE_ENDS + b" \t"):
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
            # Whatever encoding is given: no text in another encoding begins like this.
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
        if block.numbers == [1] and _is_whole_frame(record):
            raise InputError(
                f"{self.source.name}: is an object of columns, as DataFrame.to_json() writes it, and rows are wanted; "
                "write it with orient='records'"
            )
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
            wrong = f"is missing; there is {list_names(record)}: choose one with `column`"
        block.refuse(f"{self.column!r} {wrong}")
        if block.records is not None:
            block.records[-1] = record

    def _record(self, value: Any) -> Any:
        """Return the columns of a parsed value."""
        return value

    def _not_json(self, error: orjson.JSONDecodeError, block: Block) -> str:
        """Return why a row is bad that cannot be parsed."""
        return f"not JSON ({quote(error)})"


def _is_whole_frame(record: Any) -> bool:
    """Return True for a frame of pandas in one object: by columns, by the index, split, or as a table with a schema.

    Of the first two, only those that number the rows from 0 are told from a row whose cells are objects.
    """
    if not isinstance(record, dict) or not record:
        return False
    if record.keys() == {"columns", "index", "data"}:
        return all(isinstance(cell, list) for cell in record.values())
    if record.keys() == {"schema", "data"}:
        return isinstance(record["data"], list) and isinstance(record["schema"], dict) and "fields" in record["schema"]
    names = [cell.keys() for cell in record.values() if isinstance(cell, dict)]
    numbers = [{*map(str, range(len(keys)))} for keys in (record, names[0] if names else ())]
    same = len(names) == len(record) and all(keys == names[0] for keys in names)
    return same and bool(names[0]) and (names[0] == numbers[1] or record.keys() == numbers[0])


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
