"""The tables that match reads: options that name columns and formats, and the rows of both files."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from pathlib import Path
from typing import Any, NamedTuple

import click

from gramvec.bulk.embed_file import COLUMN
from gramvec.cli.jobs.embed import progress
from gramvec.jobs.bad_rows import OnError
from gramvec.matching.inputs import MatchTable, read_table
from gramvec.tables.inputs import FORMS, UTF_8, FileFormat, Form, form_of

ComparedColumns = tuple[tuple[str, str, float], ...]
TABLE = click.Path(path_type=Path, exists=True, dir_okay=False)
TABLE_OR_STDIN = click.Path(path_type=Path, exists=True, dir_okay=False, allow_dash=True)


class ColumnChoice(click.ParamType):  # type: ignore[type-arg] # click 8.1 takes no argument here
    """LEFT[=RIGHT][:WEIGHT] as (left column, right column, weight)."""

    name = "COLUMN"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, str, float]:
        """Return the left column, the right column and the weight."""
        if isinstance(value, tuple):
            return value
        names, colon, weight = value.rpartition(":")
        try:
            number = float(weight) if colon else 1.0
        except ValueError:  # a column's name may have a colon
            names, colon, number = value, "", 1.0
        left, equals, right = (names if colon else value).partition("=")
        if not left or (equals and not right) or not 0 < number < float("inf"):
            self.fail(f"{value!r}: is not COLUMN, COLUMN=OTHER or COLUMN:WEIGHT with a weight above 0", param, ctx)
        return left, right or left, number


on_option = click.option(
    "--on", type=ColumnChoice(), multiple=True, metavar="COLUMN[=OTHER][:WEIGHT]",
    help="Compare this column, called OTHER in RIGHT; with --labels, by WEIGHT (1); repeatable.  "
    f"[default: {COLUMN}]",
)  # fmt: skip
block_option = click.option(
    "--block", metavar="COLUMN[=OTHER]", help="Compare only rows with the same value here, except for case and spaces."
)
id_option = click.option(
    "--id", "id_column", metavar="COLUMN[=OTHER]",
    help='Column of the ids; none: the rows\' numbers. ["id" if there is one, else the number]',
)  # fmt: skip


class TableFormats(NamedTuple):
    """Formats of both files."""

    left: Form | None
    right: Form | None
    delimiter: str | None
    encodings: tuple[str, str]
    sheets: tuple[str | None, str | None]

    def of(self, side: int, path: Path) -> FileFormat:
        """Return the format of the left (0) or the right file (1). Raises InputError for an ending that has none."""
        form = (self.left, self.right)[side] or form_of(path, ("--left-format", "--right-format")[side])
        return FileFormat(form, self.delimiter, self.encodings[side], self.sheets[side])


def table_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add options of the formats of both tables, which the command receives as `formats`."""

    @click.option("--left-format", type=click.Choice(FORMS), help="[by LEFT's ending, or txt]")
    @click.option("--right-format", type=click.Choice(FORMS), help="[by RIGHT's ending, or txt]")
    @click.option(
        "--delimiter", help="Character between the columns of CSV tables, such as ';' or tab.  [by the header]"
    )
    @click.option("--encoding", default=UTF_8, show_default=True, metavar="TEXT[=OTHER]",
                  help="Encoding of both tables, such as cp1252; of RIGHT, if it differs, OTHER.")  # fmt: skip
    @click.option("--sheet", metavar="TEXT[=OTHER]", help="Sheet of .xlsx and .ods; of RIGHT, if it differs, OTHER.")
    @wraps(command)
    def with_formats(
        *,
        left_format: Form | None,
        right_format: Form | None,
        delimiter: str | None,
        encoding: str,
        sheet: str | None,
        **options: Any,
    ) -> None:
        sheets = split_names("--sheet", sheet) if sheet else (None, None)
        formats = TableFormats(left_format, right_format, delimiter, split_names("--encoding", encoding), sheets)
        command(formats=formats, **options)

    return with_formats


def read_tables(
    paths: tuple[Path, Path],
    formats: TableFormats,
    columns: ComparedColumns,
    blocks: tuple[str, str] | None,
    ids: Sequence[str | None],
    on_error: OnError,
) -> tuple[MatchTable, MatchTable]:
    """Read the compared columns of both tables, and those of their ids and blocks, with a bar for each file.

    Raises InputError as `read_table` does.
    """
    tables = []
    for side, path in enumerate(paths):
        names = [column[:2][side] for column in columns] + ([blocks[side]] if blocks else [])
        with progress(f"reading {path.name}") as watch:
            given = formats.of(side, path)
            tables.append(read_table(path, given, names, ids[side], on_error=on_error, watch=watch))
    return tables[0], tables[1]


def split_names(option: str, value: str) -> tuple[str, str]:
    """Return the names of NAME[=OTHER] in the left and the right table. Raises UsageError for anything else."""
    left, equals, right = value.partition("=")
    if not left or (equals and not right):
        raise click.UsageError(f"{option} {value!r} is not COLUMN or COLUMN=OTHER")
    return left, right or left
