"""Watcher of a job, which receives the progress and the messages."""

from __future__ import annotations

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
