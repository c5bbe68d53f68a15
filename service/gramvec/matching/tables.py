"""Tables from files: an id and the wanted columns of each row."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gramvec.errors import InputError
from gramvec.tables.batches import Block, Reader
from gramvec.tables.inputs import Form, Source
from gramvec.tables.readers import open_reader

MOST_ROWS = 1_000_000


@dataclass
class Table:
    """ids: of each row, as text. columns: name -> the text of each row, "" where it has none."""

    name: str
    ids: list[str]
    columns: dict[str, list[str]]


def read_table(
    path: Path,
    form: Form,
    columns: Sequence[str],
    id_column: str | None,
    *,
    most: int = MOST_ROWS,
    watch: Callable[[Reader, int], None] = lambda reader, rows: None,
) -> Table:
    """The rows of a file that `gramvec embed` reads.

    id_column: whose values name the rows; None for "id" if there is one, else the rows' numbers from 1.
    Raises InputError, naming file and line, for a bad line, a column that is not there, an id that is missing or occurs
    twice, a file without rows, and more than `most` rows.
    """
    names = list(dict.fromkeys(columns))
    table = Table(str(path), [], {name: [] for name in names})
    found: set[str] = set()
    numbers: list[int] = []
    with closing(Source(path)) as source:
        try:
            reader = open_reader(source, form, names[0], keep=True)
            for block in reader.blocks():
                for number, record in _records(block, reader):
                    found.update(record)
                    numbers.append(number)
                    for name, values in table.columns.items():
                        values.append(text_of(record.get(name)))
                    table.ids.append(text_of(record.get(id_column or "id")))
                if len(numbers) > most:
                    raise InputError(f"has more than {most:,} rows; match it in parts")
                watch(reader, len(numbers))
        except InputError as error:
            said = str(error).replace("--column", "--on").removeprefix(f"{source.name}: ").removeprefix(source.name)
            raise InputError(f"{source.name}: {said.strip()}") from error
    if not numbers:
        raise InputError(f"{path}: has no rows; nothing can be matched")
    _check_columns(table, found, names, id_column)
    if id_column is None and "id" not in found:
        table.ids = [str(row) for row in range(1, len(numbers) + 1)]
    _check_ids(table, numbers, reader.unit)
    return table


def _records(block: Block, reader: Reader) -> Iterator[tuple[int, dict[str, Any]]]:
    records = block.batch.to_pylist() if block.batch is not None else block.records or []
    for at, (number, record) in enumerate(zip(block.numbers, records, strict=True)):
        # A row whose text is missing or null resembles nothing; that is no reason to stop.
        if at in block.bad and not (record and record.get(reader.column) is None):
            raise InputError(f"{reader.unit} {number}: {block.bad[at]}")
        yield number, record


def text_of(value: Any) -> str:
    """A value of a column as text; "" for None."""
    return value if isinstance(value, str) else "" if value is None else str(value)


def _check_columns(table: Table, found: set[str], names: Sequence[str], id_column: str | None) -> None:
    for option, name in [*(("--on", name) for name in names), ("--id", id_column)]:
        if name is not None and name not in found:
            there = ", ".join(sorted(found)[:20])
            raise InputError(f"{table.name}: has no column {name!r}; it has {there}: choose one with {option}")


def _check_ids(table: Table, numbers: Sequence[int], unit: str) -> None:
    first: dict[str, int] = {}
    for number, one in zip(numbers, table.ids, strict=True):
        if not one:
            raise InputError(f"{table.name}: {unit} {number}: has no id; name another column with --id")
        if one in first:
            raise InputError(
                f"{table.name}: {unit}s {first[one]} and {number} have the same id {one[:100]!r}; "
                "make them different, or name another column with --id"
            )
        first[one] = number
