"""How a job over a file ends: with a result, or stopped, with what it has kept for the same job to continue."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gramvec.errors import GramvecError, InputError
from gramvec.jobs.common.bad_rows import BadRows
from gramvec.jobs.common.watch import JobWatch
from gramvec.jobs.tables.inputs import STDIN

JobSettings = dict[str, Any]


class BulkError(GramvecError):
    """A run failed, and its work is kept."""


class Interrupted(BulkError):
    """A stopped run; its work is kept if it can be resumed."""


@dataclass(frozen=True)
class Done:
    """Result of a run: rows in all, those of an earlier run among them, and the bad rows.

    was_complete: nothing was done, because --resume found the output of the same job.
    """

    rows: int
    resumed: int
    bad: BadRows
    was_complete: bool = False


def report_done(done: Done, output: Path, seconds: float, watch: JobWatch) -> None:
    """Report which rows were left out and why, and how many a file or folder got in some seconds."""
    if done.was_complete:
        watch.report(f"{output}: is complete, {done.rows:,} rows; nothing was left to do")
        return
    for sentence in done.bad.report(done.rows):
        watch.report(sentence)
    if output != STDIN:
        watch.report(f"{done.rows - done.bad.count:,} rows put into {output} in {seconds:.1f} s")


def raise_stopped(error: BaseException, left: str, *, kept: int = 0) -> None:
    """Raise what KeyboardInterrupt and OSError become, and say what is left of the work.

    Args:
        error: any error; others than these two are not raised.
        left: what is left where no rows are kept.
        kept: the number of rows with which --resume continues.
    """
    if kept:
        left = f"the first {kept:,} rows are kept: the same command with `resume` continues from there"
    if isinstance(error, KeyboardInterrupt):
        raise Interrupted(f"stopped; {left}") from error
    if isinstance(error, OSError):
        raise BulkError(f"{error.strerror or error}; {left}") from error


def check_same_job(output: Path, job: JobSettings, former: JobSettings) -> None:
    """Raise InputError where what is left of an output was made by a job with other settings."""
    if other := sorted(key for key in job.keys() | former.keys() if job.get(key) != former.get(key)):
        raise InputError(
            f"{output}: what is left of it was made with another {', '.join(other)}; "
            "call with the former one, or start again without `resume`"
        )
