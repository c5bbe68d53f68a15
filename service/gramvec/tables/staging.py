"""The file that grows beside the output until it is whole, and the journal that says how far it is good.

OUTPUT's vectors go to .OUTPUT.partial, and .OUTPUT.journal (JSON) is replaced after 16 MiB or more: what was made from
what, where in the input to go on, and at which byte of the stage file. Both are gone when OUTPUT is there.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

import orjson

from gramvec.errors import InputError
from gramvec.tables.bad_rows import BadLines
from gramvec.tables.batches import START, Position
from gramvec.tables.writers import Writes

JOURNAL_VERSION = 1
CHECKPOINT_BYTES = 16 << 20
CHECKPOINT_SECONDS = 2.0

BUSY = "{}: another run is writing it; wait for that one, or choose another --output"

Job = dict[str, Any]


@dataclass
class Progress:
    """How far a job is: where the input goes on, the rows done, the bytes of the stage file, the bad lines."""

    position: Position = START
    rows: int = 0
    bytes: int = 0
    bad: BadLines = field(default_factory=BadLines)


class Stage:
    """A stage file that is open for writing, locked against a second run."""

    def __init__(self, output: Path, job: Job | None, file: BinaryIO, progress: Progress) -> None:
        self.output = output
        self.path = partial_of(output)
        self.progress = progress
        self.file = file
        self._job = job
        self.journalled = progress.rows
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="gramvec-journal")
        self._syncing: Future[None] | None = None
        self._written = progress.bytes
        self._time = time.monotonic()

    def append(self, data: bytes) -> None:
        """Write and count bytes; OSError if the disk is full."""
        self.file.write(data)
        self.progress.bytes += len(data)

    def checkpoint_if_due(self) -> None:
        """`checkpoint` in the background after each 16 MiB or 2 seconds, if the disk is done with the last one.

        All that was appended must be counted in `progress`.
        """
        is_much = self.progress.bytes - self._written >= CHECKPOINT_BYTES
        if not is_much and time.monotonic() - self._time < CHECKPOINT_SECONDS:
            return
        if self._syncing is None or self._syncing.done():
            self._checkpoint()

    def _checkpoint(self) -> None:
        self._settle()
        self._written, self._time = self.progress.bytes, time.monotonic()
        if self._job is None:
            return
        self.file.flush()
        progress = self.progress
        journal = {
            "version": JOURNAL_VERSION,
            "job": self._job,
            "position": list(progress.position),
            "rows": progress.rows,
            "bytes": progress.bytes,
            "bad": progress.bad.as_json(),
        }
        text = orjson.dumps(journal, option=orjson.OPT_INDENT_2) + b"\n"
        self._syncing = self._thread.submit(self._write_journal, text, progress.rows)

    def _write_journal(self, text: bytes, rows: int) -> None:
        os.fdatasync(self.file.fileno())  # the journal must never be ahead of what it speaks of, even if power fails
        with whole(journal_of(self.output)) as file:
            file.write(text)
        self.journalled = rows

    def _settle(self) -> None:
        """Wait for the last checkpoint. Raises what the disk said to it."""
        syncing, self._syncing = self._syncing, None
        if syncing is not None:
            syncing.result()

    def finish(self, form: Writes, rows: int) -> None:
        """Put the output in its place: the stage file itself, or what the form makes of it."""
        if form.in_place:
            self._settle()
            form.finish(self.file, self.file, rows)
            self.file.flush()
            os.fsync(self.file.fileno())
            self.path.replace(self.output)
        else:
            self._checkpoint()
            self._settle()
            with whole(self.output) as out:
                form.finish(self.file, out, rows)
            self.path.unlink()
        journal_of(self.output).unlink(missing_ok=True)
        self.close()

    def discard(self) -> None:
        """Leave nothing behind."""
        self._thread.shutdown()
        self.path.unlink(missing_ok=True)
        journal_of(self.output).unlink(missing_ok=True)
        self.close()

    def close(self) -> None:
        """Close the file and let go of the lock."""
        self._thread.shutdown()
        with suppress(OSError):  # what a full disk refused once, it may refuse again
            self.file.close()


def partial_of(output: Path) -> Path:
    """The stage file of an output."""
    return output.with_name(f".{output.name}.partial")


def journal_of(output: Path) -> Path:
    """The journal of an output."""
    return output.with_name(f".{output.name}.journal")


def open_stage(output: Path, job: Job | None, *, resume: bool) -> Stage:
    """The stage file of an output: what an earlier run left of the same job if `resume`, else a new one.

    job: what decides the bytes, as JSON has it; None for a job without a journal.
    Raises InputError if another run is at it, if what is left is of another job, or if the folder cannot be written.
    """
    path = partial_of(output)
    try:
        file = os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT, 0o644), "r+b")
    except OSError as error:
        raise InputError(f"{output}: cannot be written ({error.strerror}); choose another --output") from error
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        file.close()
        raise InputError(BUSY.format(output)) from error
    except OSError:
        pass  # a file system without locks
    if not path.exists() or path.stat().st_ino != os.fstat(file.fileno()).st_ino:
        file.close()  # the other run has just finished, and this file is its output
        raise InputError(BUSY.format(output))
    progress = _left(output, job, os.fstat(file.fileno()).st_size) if resume and job is not None else Progress()
    if progress.bytes == 0:
        journal_of(output).unlink(missing_ok=True)
    file.truncate(progress.bytes)
    file.seek(progress.bytes)
    return Stage(output, job, file, progress)


def _left(output: Path, job: Job, size: int) -> Progress:
    path = journal_of(output)
    try:
        journal = orjson.loads(path.read_bytes())
        progress = Progress(
            Position(*journal["position"]), journal["rows"], journal["bytes"], BadLines.from_json(journal["bad"])
        )
        version, former = journal["version"], journal["job"]
    except FileNotFoundError:
        return Progress()
    except (orjson.JSONDecodeError, KeyError, TypeError, ValueError) as error:
        raise InputError(f"{path}: damaged; start again without --resume") from error
    if version != JOURNAL_VERSION:
        raise InputError(f"{path}: written by another version of gramvec; start again without --resume")
    job = orjson.loads(orjson.dumps(job))
    if other := sorted(key for key in job.keys() | former.keys() if job.get(key) != former.get(key)):
        raise InputError(
            f"{output}: what is left of it was made with another {', '.join(other)}; "
            "call with the former one, or start again without --resume"
        )
    if size < progress.bytes:
        raise InputError(f"{partial_of(output)}: shorter than its journal says; start again without --resume")
    return progress


@contextmanager
def whole(path: Path) -> Iterator[BinaryIO]:
    """A file that takes the place of `path` when the block ends well, and disappears when it does not."""
    stage = path.with_name(f".{path.name}.new")
    try:
        with stage.open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        stage.replace(path)
    finally:
        stage.unlink(missing_ok=True)
