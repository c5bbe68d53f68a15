"""Columns of a table as lists of texts: the one way to name them, to count bad rows and to stop at the first.

`read_columns` reads every row of a file; `TableRows` gives row after row, bad ones too. A column is named by the header
of CSV, TSV and Parquet, or by a member of JSON lines. A file of tab-separated lines may have no header where the caller
says which columns come in which order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple

from gramvec.errors import InputError
from gramvec.tables.batches import MISSING, BadLines, Block, Reader, bad_row, named, value_at
from gramvec.tables.decoding import UTF_8_MARK
from gramvec.tables.inputs import FileFormat, Form, Source, form_of
from gramvec.tables.lines import LineReader
from gramvec.tables.readers import DELIMITED, open_reader
from gramvec.tables.writers import records_of

OnError = Literal["stop", "skip"]

MOST_ROWS = 1_000_000


class TableRow(NamedTuple):
    """Row of a table: its line's number from 1 (Parquet: the row's), its columns by name, and why it is bad, if so."""

    number: int
    record: dict[str, Any]
    why: str | None = None


class TableRows:
    """Rows of a file, read as they are asked for. A context manager.

    Args:
        path: a file, plain or compressed, or - for standard input.
        format: form, delimiter and encoding; None goes by the file's ending.
        positional: names of the columns of tab-separated lines (.txt, .tsv) that have no header. Their first line is a
            header if it names one of these; the last column has the rest of the line.
        name: of the file, for messages; None for its own.

    Attributes:
        name: of the file, for messages.
        unit: what row numbers count, "line" or "row".
        names: the header's columns; `positional` without a header; None for JSON lines.

    Raises:
        InputError: the file cannot be read, or its header is unusable.
    """

    def __init__(
        self,
        path: Path,
        format: FileFormat | Form | None = None,  # noqa: A002 - the field's word
        *,
        positional: Sequence[str] = (),
        name: str | None = None,
    ) -> None:
        given = format if isinstance(format, FileFormat) else FileFormat(format or form_of(path))
        self.source = Source(path)
        self.name = name or self.source.name
        try:
            header = not positional or given.form not in ("txt", "tsv") or self._names_one(given, positional)
            self._split = [] if header else list(positional)
            form = "txt" if self._split else "tsv" if given.form == "txt" and positional else given.form
            self.reader = open_reader(self.source, replace(given, form=form), None, keep=True)
            if isinstance(self.reader, LineReader) and self._split:
                self.reader.skips_blank = True
            self.names = self._split or (["text"] if form == "txt" else self.reader.names)
        except BaseException:
            self.source.close()
            raise
        self.unit = self.reader.unit

    def _names_one(self, given: FileFormat, positional: Sequence[str]) -> bool:
        """Return True if the first line names a column; do not consume the line."""
        encoding = self.source.translate(given.encoding)
        lines = self.source.peek().removeprefix(UTF_8_MARK).split(b"\n")
        first = next(filter(bytes.strip, lines), b"").decode(encoding, "replace")
        return any(name.strip().strip('"').casefold() in positional for name in first.split("\t"))

    def __enter__(self) -> TableRows:
        return self

    def __exit__(self, *_: object) -> None:
        self.source.close()

    def blocks(self) -> Iterator[Block]:
        """Yield blocks of rows with their records. Raises InputError for damaged bytes."""
        for block in self.reader.blocks():
            if names := self._split:
                cells = (text.split("\t", len(names) - 1) for text in block.texts)
                block.records = [
                    {} if at in block.bad else dict(zip(names, row, strict=False)) for at, row in enumerate(cells)
                ]
            yield block

    def __iter__(self) -> Iterator[TableRow]:
        for block in self.blocks():
            for at, (number, record) in enumerate(zip(block.numbers, records_of(block), strict=True)):
                yield TableRow(number, record, block.bad.get(at))


@dataclass
class Columns:
    """Columns of a file.

    values: the text of each row by the column's name, "" where a row has none. numbers: of the rows, see TableRow.
    bad: the rows that were left out. found: names of all columns seen.
    """

    name: str
    unit: str
    values: dict[str, list[str]]
    numbers: list[int] = field(default_factory=list)
    bad: BadLines = field(default_factory=BadLines)
    found: dict[str, None] = field(default_factory=dict)


def read_columns(
    path: Path,
    columns: Sequence[str],
    *,
    format: FileFormat | Form | None = None,  # noqa: A002 - the field's word
    options: dict[str, str] | None = None,
    optional: Sequence[str] = (),
    positional: bool = False,
    filled: bool = False,
    on_error: OnError = "stop",
    most: int = MOST_ROWS,
    watch: Callable[[Reader, int], None] = lambda reader, rows: None,
    as_text: Callable[[Any], str] | None = None,
    why_bad: Callable[[str], str | None] | None = None,
    name: str | None = None,
) -> Columns:
    """Read columns of a file.

    Args:
        path: a file that `gramvec embed` reads.
        columns: their names, each of which must be there.
        format: form, delimiter and encoding; None goes by the file's ending.
        options: the command's option that names a column, by the column; for messages.
        optional: names of columns that may be missing; they are "" then.
        positional: tab-separated lines without a header have these columns, in this order.
        filled: a row without a text in one of `columns` is bad.
        on_error: "stop" at a bad row or "skip" it.
        most: rows that are accepted.
        watch: called with the reader and the number of rows after each block.
        as_text: makes a text of a value; None for `text_of`.
        why_bad: says of a text why its row is bad, None if it is not; None accepts all.
        name: of the file, for messages; None for its own.

    Raises:
        InputError: naming file and line, for a bad row if `on_error` is "stop", a missing column, and too many rows.
    """
    wanted = list(dict.fromkeys([*columns, *optional]))
    with TableRows(path, format, positional=columns if positional else (), name=name) as rows:
        table = Columns(rows.name, rows.unit, {column: [] for column in wanted})
        table.found.update(dict.fromkeys(rows.names or ()))
        if rows.names:
            _check_named(table, columns, options, rows.reader)
        table.bad.notes = rows.reader.notes
        for block in rows.blocks():
            table.bad.blank += block.blank
            for at, (number, record) in enumerate(zip(block.numbers, records_of(block), strict=True)):
                why = block.bad.get(at) or (_find_unfilled(record, columns) if filled else None)
                cells = [value_at(record, column) for column in table.values]
                if (why := why or _why_refused(cells, why_bad)) is None:
                    table.found.update(dict.fromkeys(record))
                    table.numbers.append(number)
                    for (column, values), found in zip(table.values.items(), cells, strict=True):
                        if found is not MISSING:
                            table.found.setdefault(column)
                        values.append((as_text or text_of)(found))
                elif on_error == "stop":
                    raise bad_row(rows.unit, number, why, f"{rows.name}: ")
                else:
                    table.bad.add(number, why)
            if len(table.numbers) > most:
                raise InputError(f"{rows.name}: has more than {most:,} rows; give it in parts")
            watch(rows.reader, len(table.numbers))
    if table.numbers:
        _check_named(table, columns, options, None)
    return table


def read_records(path: Path, format: FileFormat, numbers: Iterable[int]) -> dict[int, dict[str, Any]]:  # noqa: A002
    """Return the columns of the rows of some numbers, see TableRow, by these numbers.

    Raises InputError if the file has no such row: it was changed since its numbers were read.
    """
    wanted = set(numbers)
    with TableRows(path, format) as rows:
        found = {row.number: row.record for row in rows if row.number in wanted and row.why is None}
    if missing := wanted - found.keys():
        raise InputError(f"{path}: {rows.unit} {min(missing)} was there and is not any more; leave the file as it is")
    return found


def count_cells(path: Path, format: FileFormat) -> dict[int, int]:  # noqa: A002
    """Return how many cells of each row hold a text, by the row's number."""
    with TableRows(path, format) as rows:
        return {row.number: sum(bool(text_of(cell).strip()) for cell in row.record.values()) for row in rows}


def value_or_none(record: Mapping[str, Any], name: str) -> Any:
    """Return the value of a column, None where a record lacks it."""
    found = value_at(record, name)
    return None if found is MISSING else found


def text_of(value: Any) -> str:
    """Return a column's value as text; "" for None, and for MISSING."""
    return value if isinstance(value, str) else "" if value is None or value is MISSING else str(value)


def _why_refused(cells: Sequence[Any], why_bad: Callable[[str], str | None] | None) -> str | None:
    return next(filter(None, map(why_bad, map(text_of, cells))), None) if why_bad else None


def _find_unfilled(record: dict[str, Any], columns: Sequence[str]) -> str | None:
    return next((f"no {name!r}" for name in columns if not text_of(value_at(record, name)).strip()), None)


def _check_named(
    table: Columns, columns: Sequence[str], options: dict[str, str] | None, reader: Reader | None
) -> None:  # fmt: skip
    for name in columns:
        if reader is not None and (name in table.found or "." in name):
            try:
                reader.check_column(name)
                continue
            except InputError:
                if name in table.found:
                    raise
        if name not in table.found:
            option = (options or {}).get(name, "--column")
            form = reader.format.form if reader is not None else None
            separated = DELIMITED if form in ("csv", "tsv") and len(table.found) == 1 else ""
            there = f"has {named(table.found)}: choose one with {option}{separated}"
            if form == "txt":
                there = "is read as lines of text: say which form it has, such as csv"
            raise InputError(f"{table.name}: has no column {name!r}; it {there}")
