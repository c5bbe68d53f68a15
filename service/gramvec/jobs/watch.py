"""Watchers of jobs, which show the progress and the messages, and the clock of a report."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import gramvec
from gramvec.errors import printable
from gramvec.jobs.bars import progress_bar
from gramvec.progress import Progress


class JobWatch(Progress):
    """Watcher of a job that shows nothing; a subclass shows the progress and the messages.

    Attributes:
        command: the command line that runs the job, for its report; None in a Python program.
    """

    command: str | None = None

    def report(self, message: str) -> None:
        """Take a message of one sentence."""


class TerminalWatch(JobWatch):
    """Watcher that shows progress bars, one at a time, and messages on standard error.

    Args:
        command: the command line that runs the job, for its report.
    """

    def __init__(self, command: str | None = None) -> None:
        self.command = command
        self._bar: Any = None

    def start(self, task: str, total: int | None = None, unit: str = "rows", done: int = 0) -> None:
        """Show the bar of a task."""
        self.close()
        self._bar = progress_bar(task, total, unit if unit == "B" else f" {unit}", initial=done)

    def advance(self, count: int, detail: str = "") -> None:
        """Advance the bar, with the detail behind it."""
        if self._bar is not None:
            if detail:
                self._bar.set_postfix_str(detail, refresh=False)
            self._bar.update(count)

    def report(self, message: str) -> None:
        """Print a message; a text in it cannot move the cursor."""
        self.close()
        sys.stderr.write(f"{printable(message)}\n")

    def close(self) -> None:
        """End the bar that is shown."""
        if self._bar is not None:
            self._bar.close()
        self._bar = None


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
