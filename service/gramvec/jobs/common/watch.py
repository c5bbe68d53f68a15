"""Watcher of a job, which receives the progress and the messages, and the clock of a report."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path

import gramvec
from gramvec.progress import Progress


class JobWatch(Progress):
    """Watcher of a job that shows nothing; a subclass shows the progress and the messages.

    Attributes:
        command: the command line that runs the job, for its report; None in a Python program.
    """

    command: str | None = None

    def report(self, message: str) -> None:
        """Take a message of one sentence."""


NO_WATCH = JobWatch()


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
