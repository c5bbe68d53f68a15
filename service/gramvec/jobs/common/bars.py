"""Progress of jobs that take longer than a moment: a bar in a terminal, lines in a log."""

from __future__ import annotations

import sys
import time
from typing import Any

from tqdm import tqdm

from gramvec.errors import printable
from gramvec.jobs.common.watch import JobWatch

# Between two lines of a log, and before the first.
LINE_SECONDS = 10


def progress_bar(title: str, total: int | None = None, unit: str = " rows", **options: Any) -> tqdm[Any]:
    """Return a bar of tqdm on stderr, with the rate and the time left.

    In a notebook, which tqdm knows, it is the notebook's, on a terminal it is drawn over itself, elsewhere it is a line
    every ten seconds.

    Args:
        title: what is done.
        total: the number of units; None where it is not known.
        unit: what is counted.
        options: other arguments of tqdm.
    """
    from tqdm import auto  # brings asyncio, which the command line has no other use for
    from tqdm.autonotebook import tqdm as detected

    arguments: dict[str, Any] = {
        "desc": title, "total": total, "unit": unit, "unit_scale": True, "file": sys.stderr,
        # The rate of all that is done: that of the last step says hours of a pause of minutes.
        "smoothing": 0,
    }  # fmt: skip
    arguments |= options
    if detected is not tqdm:
        return auto.tqdm(**arguments)
    return tqdm(**arguments, dynamic_ncols=True) if sys.stderr.isatty() else _Lines(**arguments)


class _Lines(tqdm):  # type: ignore[type-arg]
    """A bar that writes lines."""

    def __init__(self, **options: Any) -> None:
        self._next = time.monotonic() + LINE_SECONDS
        super().__init__(**options, ncols=0, mininterval=LINE_SECONDS / 10, delay=LINE_SECONDS)
        self.sp = None  # so that nothing is cleared at the end

    def display(self, msg: str | None = None, pos: int | None = None) -> None:
        """Write a line, if the last one is long enough ago."""
        now = time.monotonic()
        if now >= self._next:
            self._next = now + LINE_SECONDS
            print(self, file=self.fp, flush=True)


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
