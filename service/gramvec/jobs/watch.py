"""Watchers of jobs, which show the progress and the messages, and the clock of a report."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import gramvec
from gramvec.errors import printable
from gramvec.progress import progress_bar
from gramvec.tables.batches import Reader

ReadWatch = Callable[[Reader, int], None]
# Units that the bars of tasks count, where these are not rows.
UNITS = {
    "comparing": " pairs",
    "comparing with the index": " texts",
    "embedding": " texts",
    "learning": " steps",
    "learning curve": " heads",
}


class JobWatch:
    """Watcher of a job that shows nothing; a subclass shows the progress and the messages.

    Attributes:
        command: the command line that runs the job, for its report; None in a Python program.
    """

    command: str | None = None

    def advance(self, task: str, done: int, total: int) -> None:
        """Take note that `done` more of `total` units of a task are done."""

    @contextmanager
    def reading(self, task: str) -> Iterator[ReadWatch]:
        """Watch a file that is read: the context is called with its reader and the rows done so far."""
        yield lambda reader, rows: None

    def report(self, message: str) -> None:
        """Take a message of one sentence."""

    def close(self) -> None:
        """End the task that is shown."""


class TerminalWatch(JobWatch):
    """Watcher that shows progress bars, one at a time, and messages on standard error.

    Args:
        command: the command line that runs the job, for its report.
    """

    def __init__(self, command: str | None = None) -> None:
        self.command = command
        self._bar: Any = None
        self._task: str | None = None

    def advance(self, task: str, done: int, total: int) -> None:
        """Advance the bar of a task by `done` of `total` rows, or of the unit that UNITS has for the task."""
        if task != self._task:
            self.close()
            self._task, self._bar = task, progress_bar(task, total, UNITS.get(task, " rows"))
        self._bar.update(done)

    @contextmanager
    def reading(self, task: str) -> Iterator[ReadWatch]:
        """Show a bar by the bytes or rows of the input if they are known, with the rows a second."""
        self.close()
        with progress_bar(task, unit_scale=False) as bar:
            start: tuple[float, int] | None = None

            def watch(reader: Reader, rows: int) -> None:
                nonlocal start
                if start is None:
                    start = time.monotonic(), rows
                    bar.unit, bar.unit_scale, bar.total = reader.total_unit, reader.total_unit == "B", reader.total
                    bar.initial = bar.n = reader.done
                done = reader.done if reader.total is not None else rows
                seconds = time.monotonic() - start[0]
                if seconds > 0 and reader.total is not None:
                    bar.set_postfix_str(f"{rows:,} rows, {(rows - start[1]) / seconds:,.0f}/s", refresh=False)
                bar.update(done - bar.n)

            yield watch

    def report(self, message: str) -> None:
        """Print a message; a text in it cannot move the cursor."""
        self.close()
        sys.stderr.write(f"{printable(message)}\n")

    def close(self) -> None:
        """End the bar that is shown."""
        if self._bar is not None:
            self._bar.close()
        self._bar = self._task = None


class JobClock:
    """Clock of a job, which starts when this is made, and the facts of the run for its report.

    Args:
        command: the command line that runs the job; None in a Python program.
    """

    def __init__(self, command: str | None = None) -> None:
        self._command, self._start = command, time.monotonic()

    def facts(self, model: tuple[str, str], rows: Mapping[Path, int]) -> list[tuple[str, str]]:
        """Return what was done and with what, as names and values.

        Args:
            model: what scored, as a name and a value.
            rows: the inputs, with the number of their rows.
        """
        return [
            *([("command", self._command)] if self._command is not None else []),
            ("version", f"gramvec {gramvec.__version__}"),
            model,
            ("rows", "; ".join(f"{count:,} of {path}" for path, count in rows.items())),
            ("time", f"{time.monotonic() - self._start:.1f} s"),
        ]
