"""The option --columns of match, pairs and dedupe: what a written row has of the rows that it is made of."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Literal

import click

RowColumns = Literal["none", "compared", "all"]


def columns_option(*choices: RowColumns, help: str) -> Callable[..., Any]:  # noqa: A002 - click's word
    """Return the option --columns with these choices, the default of which is "compared"."""
    return click.option("--columns", type=click.Choice(choices), default="compared", show_default=True, help=help)


def free_names(names: Iterable[str], prefix: str, taken: Iterable[str]) -> dict[str, str]:
    """Return the name that each column is written with: its own, with `prefix` as often as `taken` has it.

    Args:
        names: columns of a table, each once.
        prefix: such as "left_".
        taken: names of other columns.
    """
    found: dict[str, str] = {}
    used = {*taken}
    for name in names:
        free = name
        while free in used:
            free = prefix + free
        used.add(free)
        found[name] = free
    return found
