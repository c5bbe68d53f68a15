"""Options of match and review that name the tables, their columns and their formats."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from gramvec.errors import InputError
from gramvec.jobs.bulk.embed_file import COLUMN
from gramvec.jobs.matching.on import ComparedColumn, parse_column
from gramvec.jobs.tables.inputs import FORMS, UTF_8

TABLE = click.Path(path_type=Path, exists=True, dir_okay=False)
TABLE_OR_STDIN = click.Path(path_type=Path, exists=True, dir_okay=False, allow_dash=True)


class ColumnChoice(click.ParamType):  # type: ignore[type-arg] # click 8.1 takes no argument here
    """LEFT[=RIGHT][:WEIGHT] as a compared column."""

    name = "COLUMN"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> ComparedColumn:
        """Return the compared column."""
        if isinstance(value, ComparedColumn):
            return value
        try:
            return parse_column(value)
        except InputError as error:
            self.fail(str(error), param, ctx)


on_option = click.option(
    "--on", type=ColumnChoice(), multiple=True, metavar="COLUMN[=OTHER][:WEIGHT]",
    help="Compare this column, called OTHER in RIGHT; with --labels, by WEIGHT (1); repeatable.  "
    f"[default: {COLUMN}]",
)  # fmt: skip
block_option = click.option(
    "--block", metavar="COLUMN[=OTHER]", help="Compare only rows with the same value here, except for case and spaces."
)
id_option = click.option(
    "--id", metavar="COLUMN[=OTHER]",
    help='Column of the ids; none: the lines\' numbers. ["id" if there is one, else the number]',
)  # fmt: skip


def table_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add options of the formats of both tables."""
    for option in reversed(_FORMAT_OPTIONS):
        command = option(command)
    return command


def label_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add options of labels and of a matcher."""
    for option in reversed(_LABEL_OPTIONS):
        command = option(command)
    return command


_LABEL_OPTIONS = (
    click.option("--labels", type=TABLE, multiple=True, metavar="FILE",
                 help="Learn from pairs: columns left, right (ids) and match (1 or 0); repeatable."),
    click.option("--labels-delimiter", metavar="TEXT", help="As --delimiter, of --labels.  [by the header]"),
    click.option("--labels-encoding", default=UTF_8, show_default=True, help="As --encoding, of --labels."),
    click.option("--matcher", type=TABLE, metavar="FILE",
                 help="Score by a matcher that --save-matcher of match, or a review, wrote."),
)  # fmt: skip
_FORMAT_OPTIONS = (
    click.option("--left-format", type=click.Choice(FORMS), help="[by LEFT's ending, or txt]"),
    click.option("--right-format", type=click.Choice(FORMS), help="[by RIGHT's ending, or txt]"),
    click.option("--delimiter", help="Character between the columns of CSV tables, such as ';' or tab.  "
                 "[by the header]"),
    click.option("--encoding", default=UTF_8, show_default=True, metavar="TEXT[=OTHER]",
                 help="Encoding of both tables, such as cp1252; of RIGHT, if it differs, OTHER."),
    click.option("--sheet", metavar="TEXT[=OTHER]", help="Sheet of .xlsx and .ods; of RIGHT, if it differs, OTHER."),
)  # fmt: skip
