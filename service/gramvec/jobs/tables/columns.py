"""Rows of a table, one after another, with their columns by name.

A column is named by the header of CSV, TSV and Parquet, or by a member of JSON lines. A file of tab-separated lines may
have no header where the caller gives the columns in their order.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from gramvec.errors import InputError
from gramvec.jobs.tables.batches import MISSING, Block, value_at
from gramvec.jobs.tables.decoding import UTF_8_MARK
from gramvec.jobs.tables.inputs import FileFormat, Form, Source, form_of
from gramvec.jobs.tables.lines import LineReader
from gramvec.jobs.tables.readers import open_reader
from gramvec.jobs.tables.writers import records_of


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
        file_format = format if isinstance(format, FileFormat) else FileFormat(format or form_of(path))
        self.source = Source(path, file_format)
        self.name = name or self.source.name
        try:
            header = (
                not positional or file_format.form not in ("txt", "tsv") or self._names_one(file_format, positional)
            )
            self._split = [] if header else list(positional)
            form = "txt" if self._split else "tsv" if file_format.form == "txt" and positional else file_format.form
            self.reader = open_reader(self.source, replace(file_format, form=form), None, keep=True)
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
