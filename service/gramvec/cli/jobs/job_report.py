"""The option --report of the jobs: a page of HTML that shows what a job did, and with what."""

from __future__ import annotations

from pathlib import Path

import click

from gramvec.cli.jobs.run import command_line
from gramvec.jobs.watch import JobClock, TerminalWatch
from gramvec.report import JobReport, write_report

ENDING = ".html"


def _check_ending(context: click.Context, parameter: click.Parameter, path: Path | None) -> Path | None:
    if path is not None and path.suffix.lower() != ENDING:
        raise click.BadParameter(f"{path}: a report is a page of HTML; name a file that ends in {ENDING}")
    return path


report_option = click.option(
    "--report", type=click.Path(path_type=Path, dir_okay=False), callback=_check_ending, metavar="FILE.html",
    help="Write a page that shows what was done, with the scores and the texts to look at.",
)  # fmt: skip


def start_clock() -> JobClock:
    """Return a clock of the running command, which starts now."""
    return JobClock(command_line())


def show_report(report: JobReport, path: Path) -> None:
    """Write a report and print where it is. Raises as `write_page` does."""
    write_report(report, path, TerminalWatch())
