"""Account of a job over a file: blocks are counted in the file's order, and a stopped job goes on after the last."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from gramvec.jobs.common.bad_rows import BadRow, BadRows, OnError, whole_number
from gramvec.jobs.common.outcome import Done
from gramvec.jobs.tables.batches import START, Block, Position, Reader
from gramvec.progress import Progress


class BlockRows(NamedTuple):
    """Rows of a block that a job has worked on.

    Args:
        position: where the next block begins.
        rows: how many there are.
        last: the highest of their numbers, 0 without rows.
        blank: blank lines that were skipped.
        bad: the bad rows, in order.
    """

    position: Position = START
    rows: int = 0
    last: int = 0
    blank: int = 0
    bad: Sequence[BadRow] = ()

    @classmethod
    def of(cls, block: Block, bad: Mapping[int, str]) -> BlockRows:
        """Return the rows of a block; `bad` has the reasons of its bad rows by their index."""
        named = [(block.numbers[at], bad[at]) for at in sorted(bad)]
        return cls(block.position, len(block.numbers), max(block.numbers, default=0), block.blank, named)


class ReadProgress:
    """Progress through a file, in its bytes or rows where their number is known, with the rows a second."""

    def __init__(self, progress: Progress, task: str, reader: Reader) -> None:
        self._progress, self._task, self._reader = progress, task, reader
        self._start: tuple[float, int] | None = None
        self._done = 0

    def show(self, rows: int) -> None:
        """Show the number of rows that are done, after each block."""
        reader, known = self._reader, self._reader.total is not None
        done = reader.done if known else rows
        if self._start is None:
            self._start = time.monotonic(), rows
            self._progress.start(self._task, reader.total, reader.total_unit.strip() if known else "rows", done)
        else:
            seconds, more = time.monotonic() - self._start[0], rows - self._start[1]
            detail = f"{rows:,} rows, {more / seconds:,.0f}/s" if known and seconds > 0 else ""
            self._progress.advance(done - self._done, detail)
        self._done = done


@dataclass
class Account:
    """Rows of a file that a job has done.

    Attributes:
        bad: the bad rows.
        position: where the next block begins.
        rows: how many rows were read, bad ones too.
        progress: shows the rows; None shows nothing.
    """

    bad: BadRows = field(default_factory=BadRows)
    position: Position = START
    rows: int = 0
    progress: ReadProgress | None = None

    @classmethod
    def of(cls, reader: Reader, on_error: OnError, progress: Progress, task: str, *, where: str = "") -> Account:
        """Return the account of a job that has not begun.

        Args:
            reader: of the file.
            on_error: "stop" at a bad row, or "skip" it.
            progress: shows the rows.
            task: what the job does with the rows, such as "embedding".
            where: what the message of a bad row has before its number.
        """
        return cls(BadRows(on_error, reader.unit, where), progress=ReadProgress(progress, task, reader))

    def add(self, block: BlockRows) -> None:
        """Count the rows of the next block. Raises InputError for a bad row if the job stops at one."""
        self.rows += block.rows
        self.position = block.position
        self.bad.blank += block.blank
        for number, why in block.bad:
            self.bad.add(number, why)
        if self.progress is not None:
            self.progress.show(self.rows)

    def close(self, reader: Reader, *, resumed: int = 0) -> Done:
        """Return the result of the job; `resumed` of its rows were done by an earlier run."""
        self.bad.notes = reader.notes
        return Done(self.rows, resumed, self.bad)

    def as_json(self) -> dict[str, Any]:
        """Return what a journal holds of the job, the argument of `restore`."""
        return {"position": list(self.position), "rows": self.rows, "bad": self.bad.as_json()}

    def restore(self, value: dict[str, Any]) -> None:
        """Take what `as_json` returned. Raises as `BadRows.restore` does for anything else."""
        offset, number = map(whole_number, value["position"])
        self.position, self.rows = Position(offset, number), whole_number(value["rows"])
        self.bad.restore(value["bad"])
