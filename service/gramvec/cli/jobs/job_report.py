"""The option --report of the jobs: a page of HTML that shows what a job did, and with what."""

from __future__ import annotations

from pathlib import Path

import click

ENDING = ".html"


def _check_ending(context: click.Context, parameter: click.Parameter, path: Path | None) -> Path | None:
    if path is not None and path.suffix.lower() != ENDING:
        raise click.BadParameter(f"{path}: a report is a page of HTML; name a file that ends in {ENDING}")
    return path


report_option = click.option(
    "--report", type=click.Path(path_type=Path, dir_okay=False), callback=_check_ending, metavar="FILE.html",
    help="Write a page that shows what was done, with the scores and the texts to look at.",
)  # fmt: skip
