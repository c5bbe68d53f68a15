"""Progress of work that takes longer than a moment, task after task."""

from __future__ import annotations


class Progress:
    """Progress without a display; a subclass shows it."""

    def start(self, task: str, total: int | None = None, unit: str = "rows", done: int = 0) -> None:
        """Begin a task, which ends the one before.

        Args:
            task: what is done, such as "comparing pairs".
            total: the number of units; None where it is not known.
            unit: what is counted; "B" are bytes.
            done: units that were done before.
        """

    def advance(self, count: int, detail: str = "") -> None:
        """Take note that `count` more units of the task are done; `detail` is shown beside them."""

    def close(self) -> None:
        """End the task."""


NO_PROGRESS = Progress()
