"""The option --columns of match, pairs and dedupe: what a written row has of the rows that it is made of."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from gramvec.jobs.common.file_job import RowColumns


def columns_option(*choices: RowColumns, help: str) -> Callable[..., Any]:  # noqa: A002 - click's word
    """Return the option --columns with these choices, the default of which is "compared"."""
    return click.option("--columns", type=click.Choice(choices), default="compared", show_default=True, help=help)
