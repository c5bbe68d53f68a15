"""Columns of a file, read whole as lists of texts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gramvec.errors import InputError
from gramvec.jobs.common.account import Account, BlockRows
from gramvec.jobs.common.bad_rows import BadRows, OnError
from gramvec.jobs.tables.batches import MISSING, Reader, list_names, suggest_columns, value_at
from gramvec.jobs.tables.columns import TableRows, text_of
from gramvec.jobs.tables.inputs import FileFormat, Form
from gramvec.jobs.tables.readers import DELIMITED
from gramvec.jobs.tables.writers import records_of
from gramvec.progress import NO_PROGRESS, Progress

MAX_ROWS = 1_000_000


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
    bad: BadRows = field(default_factory=BadRows)
    found: dict[str, None] = field(default_factory=dict)


def read_columns(
    path: Path,
    columns: Sequence[str],
    *,
    format: FileFormat | Form | None = None,  # noqa: A002 - the field's word
    options: dict[str, str] | None = None,
    optional: Sequence[str] = (),
    positional: bool = False,
    filled: Sequence[str] = (),
    on_error: OnError = "stop",
    max_rows: int = MAX_ROWS,
    progress: Progress = NO_PROGRESS,
    task: str = "reading",
    as_text: Callable[[Any], str] | None = None,
    why_bad: Callable[[str], str | None] | None = None,
    name: str | None = None,
) -> Columns:
    """Read columns of a file.

    Args:
        path: a file that `gramvec embed` reads.
        columns: their names, each of which must be there.
        format: form, delimiter and encoding; None goes by the file's ending.
        options: the field that names a column, by the column; for messages.
        optional: names of columns that may be missing; they are "" then.
        positional: tab-separated lines without a header have these columns, in this order.
        filled: columns without a text in which a row is bad.
        on_error: "stop" at a bad row or "skip" it.
        max_rows: rows that are accepted.
        progress: shows the reading.
        task: how that is called.
        as_text: makes a text of a value; None for `text_of`.
        why_bad: returns the reason why a text makes its row bad, else None; None accepts all.
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
        account = Account.of(rows.reader, on_error, progress, task, where=f"{rows.name}: ")
        for block in rows.blocks():
            bad = dict(block.bad)
            for at, (number, record) in enumerate(zip(block.numbers, records_of(block), strict=True)):
                why = bad.get(at) or _find_unfilled(record, filled)
                cells = [value_at(record, column) for column in table.values]
                if why := why or _why_refused(cells, why_bad):
                    bad[at] = why
                    continue
                table.found.update(dict.fromkeys(record))
                table.numbers.append(number)
                for (column, values), found in zip(table.values.items(), cells, strict=True):
                    if found is not MISSING:
                        table.found.setdefault(column)
                    values.append((as_text or text_of)(found))
            account.add(BlockRows.of(block, bad))
            if len(table.numbers) > max_rows:
                raise InputError(f"{rows.name}: has more than {max_rows:,} rows; give it in parts")
        table.bad = account.close(rows.reader).bad
    if table.numbers:
        _check_named(table, columns, options, None)
    return table


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
            option = (options or {}).get(name, "column")
            form = reader.format.form if reader is not None else None
            separated = DELIMITED if form in ("csv", "tsv") and len(table.found) == 1 else ""
            there = f"has {list_names(table.found)}: choose one with `{option}`{separated}"
            if form == "txt":
                there = "is read as lines of text: say which form it has, such as csv"
            elif option == "on" and (suggested := suggest_columns(name, table.found, option)):
                there = f"has {list_names(table.found)}: {suggested}"
            raise InputError(f"{table.name}: has no column {name!r}; it {there}")
