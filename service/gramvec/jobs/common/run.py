"""What every run of a job begins and ends with: its clock, the check of its outputs, and its page."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Protocol

import gramvec
from gramvec.jobs.common.file_job import FileJob
from gramvec.jobs.common.watch import JobWatch
from gramvec.jobs.report import JobReport, write_page
from gramvec.jobs.tables.outputs import TABLE_FORMS, TableForm, check_mark, form_to_write
from gramvec.jobs.tables.staging import check_outputs


class MakesPage(Protocol):
    """Maker of a page, called at the end of a run with what was done and with what."""

    def __call__(self, *, facts: Sequence[tuple[str, str]]) -> JobReport:
        """Return the page."""


class JobRun:
    """One run of a job; its time counts from here.

    Args:
        watch: receives the progress and the messages, and knows the command.
    """

    def __init__(self, watch: JobWatch) -> None:
        self._watch, self._start = watch, time.monotonic()

    def write_report(
        self,
        path: Path | None,
        make_page: MakesPage,
        find_model: Callable[[], tuple[str, str]],
        rows: Mapping[Path, int],
    ) -> None:
        """Write the page of the run, if one is wanted, and tell the watcher where it is.

        Args:
            path: a file of HTML; None writes no page, and makes none.
            make_page: makes it from the facts of the run.
            find_model: returns what scored, as a name and a value.
            rows: the inputs, with the number of their rows.
        """
        if path is None:
            return
        write_page(make_page(facts=self._list_facts(find_model(), rows)), path)
        self._watch.report(f"{path} shows what was done: open it in a browser")

    def _list_facts(self, model: tuple[str, str], rows: Mapping[Path, int]) -> list[tuple[str, str]]:
        """Return what was done and with what, as names and values."""
        command = self._watch.command
        return [
            *([("command", command)] if command is not None else []),
            ("version", f"gramvec {gramvec.__version__}"),
            model,
            ("rows", "; ".join(f"{count:,} of {path}" for path, count in rows.items())),
            ("time", f"{time.monotonic() - self._start:.1f} s"),
        ]


class ReportedJob(FileJob):
    """Options of a job that writes a page beside its result.

    Attributes:
        report: write a page of HTML that shows what was done.
        overwrite: replace an output that gramvec did not write.
    """

    report: Path | None = None
    overwrite: bool = False

    def begin_run(self, watch: JobWatch, *outputs: Path | None, inputs: Sequence[Path | None]) -> JobRun:
        """Start the clock of a run, and check that its outputs and its page can be written.

        Args:
            watch: receives the progress and the messages.
            outputs: what the run writes beside the page.
            inputs: what it reads.

        Raises:
            InputError: an output cannot be written, or would take the place of what must stay.
        """
        run = JobRun(watch)
        check_outputs(*outputs, self.report, inputs=inputs, overwrite=self.overwrite)
        return run


class TableOutput(ReportedJob):
    """Options of a job that writes a table.

    Attributes:
        output: a .csv, .tsv, .jsonl, .parquet or .xlsx file; - is standard output; None writes no table.
        format: of the output; None goes by its ending.
        safe_cells: write a cell of CSV or TSV that a spreadsheet would take for a formula as a text, with ' before it.
        bom: begin CSV and TSV with a byte order mark, by which Excel knows UTF-8.
    """

    output: Path | None = None
    format: TableForm | None = None
    safe_cells: bool = False
    bom: bool = False

    def output_form(self, unnamed: TableForm = "csv") -> TableForm:
        """Return the form of the output. Raises InputError for an ending that no form has, or a form without a mark."""
        form = form_to_write(self.output, TABLE_FORMS, self.format, unnamed)
        check_mark(form, bom=self.bom)
        return form
