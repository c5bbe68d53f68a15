"""The option --report of the jobs: a page of HTML that shows what a job did, and with what."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path

import click

from gramvec import __version__
from gramvec.cli.options import printable
from gramvec.cli.terminal import COMMAND_LINE
from gramvec.report import JobReport, write_page

ENDING = ".html"


def _check_ending(context: click.Context, parameter: click.Parameter, path: Path | None) -> Path | None:
    if path is not None and path.suffix.lower() != ENDING:
        raise click.BadParameter(f"{path}: a report is a page of HTML; name a file that ends in {ENDING}")
    return path


report_option = click.option(
    "--report", type=click.Path(path_type=Path, dir_okay=False), callback=_check_ending, metavar="FILE.html",
    help="Write a page that shows what was done, with the scores and the texts to look at.",
)  # fmt: skip


class JobClock:
    """Clock of a job, which starts when this is made, and what its report says of the run."""

    def __init__(self) -> None:
        self._began = time.monotonic()

    def facts(self, model: tuple[str, str], rows: Mapping[Path, int]) -> list[tuple[str, str]]:
        """Return what was done and with what, as names and values.

        Args:
            model: what scored, as a name and a value.
            rows: the inputs, with the number of their rows.
        """
        context = click.get_current_context()
        return [
            ("command", context.meta.get(COMMAND_LINE, context.command_path)),
            ("version", f"gramvec {__version__}"),
            model,
            ("rows", "; ".join(f"{count:,} of {path}" for path, count in rows.items())),
            ("time", f"{time.monotonic() - self._began:.1f} s"),
        ]


def write_report(report: JobReport, path: Path) -> None:
    """Write a report and say where it is. Raises as `write_page` does."""
    write_page(report, path)
    click.echo(f"{printable(str(path))} shows what was done: open it in a browser", err=True)
