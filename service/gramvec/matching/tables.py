"""Tables to be matched: an id and the wanted columns of each row of a file."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from gramvec.errors import InputError
from gramvec.tables.batches import Reader
from gramvec.tables.columns import MOST_ROWS, Columns, OnError, read_columns
from gramvec.tables.inputs import FileFormat, Form


@dataclass
class Table:
    """ids: of each row, as text. columns: name -> the text of each row, "" where it has none."""

    name: str
    ids: list[str]
    columns: dict[str, list[str]]


def read_table(
    path: Path,
    form: Form | FileFormat,
    columns: Sequence[str],
    id_column: str | None,
    *,
    on_error: OnError = "stop",
    most: int = MOST_ROWS,
    watch: Callable[[Reader, int], None] = lambda reader, rows: None,
) -> Table:
    """Read the rows of a table.

    Args:
        path: a file that `gramvec embed` reads.
        form: its form, or its whole format.
        columns: the columns to be compared.
        id_column: whose values name the rows; None for "id" if there is one, else the rows' numbers from 1.
        on_error: "stop" at a bad row, or "skip" it.
        most: rows that are accepted.
        watch: called with the reader and the number of rows after each block.

    Raises:
        InputError: naming file and line, for a bad line, a column that is not there, an id that is missing or occurs
            twice, a file without rows, and too many of them.
    """
    names = list(dict.fromkeys(columns))
    wanted = [*names, id_column] if id_column else names
    options = dict.fromkeys(names, "--on") | ({id_column: "--id"} if id_column else {})
    optional = [] if id_column else ["id"]
    found = read_columns(
        path, wanted, format=form, options=options, optional=optional, on_error=on_error, most=most, watch=watch
    )
    if not found.numbers:
        raise InputError(f"{path}: has no rows; nothing can be matched")
    ids = found.values[id_column or "id"]
    if id_column is None and "id" not in found.found:
        ids = [str(row) for row in range(1, len(found.numbers) + 1)]
    _check_ids(found, ids)
    return Table(str(path), ids, {name: found.values[name] for name in names})


def _check_ids(table: Columns, ids: Sequence[str]) -> None:
    first: dict[str, int] = {}
    for number, one in zip(table.numbers, ids, strict=True):
        if not one:
            raise InputError(f"{table.name}: {table.unit} {number}: has no id; name another column with --id")
        if one in first:
            raise InputError(
                f"{table.name}: {table.unit}s {first[one]} and {number} have the same id {one[:100]!r}; "
                "make them different, or name another column with --id"
            )
        first[one] = number
