"""Outputs of long jobs, which a stopped job continues.

OUTPUT's bytes go to .OUTPUT.partial, and .OUTPUT.journal (JSON) is replaced after each 16 MiB or more; it records
what the output is made of, where in the input to resume, and at which byte of the stage file. Both are removed when
OUTPUT is complete.
"""

from __future__ import annotations

import logging
import os
import time
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

import orjson

from gramvec.errors import InputError
from gramvec.jobs.common.account import Account
from gramvec.jobs.common.bad_rows import whole_number
from gramvec.jobs.common.outcome import JobSettings, check_same_job
from gramvec.jobs.tables.ownership import digest_of, mark
from gramvec.jobs.tables.staging import check_plain, journal_of, new_of, open_alone, open_plain, partial_of, whole
from gramvec.jobs.tables.writers import Writes

JOURNAL_VERSION = 1
CHECKPOINT_BYTES = 16 << 20
CHECKPOINT_SECONDS = 2.0
MAX_JOURNAL_BYTES = 16 << 20

log = logging.getLogger("gramvec.jobs.common")


class Stage:
    """An open stage file, locked against a second run.

    Attributes:
        account: the rows of the input that are in the file.
        bytes: of the file.
        journalled: rows that the journal has.
    """

    def __init__(
        self, output: Path, job: JobSettings | None, file: BinaryIO, account: Account, length: int = 0
    ) -> None:  # fmt: skip
        self.output = output
        self.path = partial_of(output)
        self.account, self.bytes = account, length
        self.file = file
        self._job = job
        self.journalled = account.rows
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="gramvec-journal")
        self._syncing: Future[None] | None = None
        self._written = length
        self._time = time.monotonic()

    def append(self, data: bytes) -> None:
        """Write and count bytes. Raises OSError if the disk is full."""
        self.file.write(data)
        self.bytes += len(data)

    def checkpoint_if_due(self) -> None:
        """Write the journal in the background, after 16 MiB or 2 seconds and once the last one is on disk.

        `account` must count everything that was appended.
        """
        is_much = self.bytes - self._written >= CHECKPOINT_BYTES
        if not is_much and time.monotonic() - self._time < CHECKPOINT_SECONDS:
            return
        if self._syncing is None or self._syncing.done():
            self._checkpoint()

    def _checkpoint(self) -> None:
        self._settle()
        self._written, self._time = self.bytes, time.monotonic()
        if self._job is None:
            return
        self.file.flush()
        journal = {"version": JOURNAL_VERSION, "job": self._job, "bytes": self.bytes, **self.account.as_json()}
        text = orjson.dumps(journal, option=orjson.OPT_INDENT_2) + b"\n"
        self._syncing = self._thread.submit(self._write_journal, text, self.account.rows)

    def _write_journal(self, text: bytes, rows: int) -> None:
        os.fdatasync(self.file.fileno())  # the journal must never be ahead of what it speaks of, even if power fails
        with whole(journal_of(self.output)) as file:
            file.write(text)
        self.journalled = rows

    def _settle(self) -> None:
        """Wait for the last checkpoint. Raises its OSError."""
        syncing, self._syncing = self._syncing, None
        if syncing is not None:
            syncing.result()

    def finish(self, form: Writes) -> None:
        """Move the stage file, or what the form makes of it, to the output's place."""
        rows = self.account.rows
        if form.in_place:
            self._settle()
            form.finish(self.file, self.file, rows)
            self.file.flush()
            mark(self.file, digest_of(self._job), rows)
            os.fsync(self.file.fileno())
            self.path.replace(self.output)
        else:
            self._checkpoint()
            self._settle()
            with whole(self.output, digest_of(self._job), rows) as out:
                form.finish(self.file, out, rows)
            self.path.unlink()
        journal_of(self.output).unlink(missing_ok=True)
        self.close()

    def stop(self, *, keep: bool) -> int:
        """Close the file of a job that does not end; return how many rows are kept, without `keep` none."""
        self.close()
        if keep and self.journalled:
            return self.journalled
        self.path.unlink(missing_ok=True)
        journal_of(self.output).unlink(missing_ok=True)
        return 0

    def close(self) -> None:
        """Close the file and release the lock."""
        self._thread.shutdown()
        with suppress(OSError):  # what a full disk refused once, it may refuse again
            self.file.close()


def open_stage(output: Path, job: JobSettings | None, account: Account, *, resume: bool) -> Stage:
    """Open the stage file of an output.

    Args:
        output: the file to be written.
        job: what decides its bytes, as JSON has it; None for a job without a journal.
        account: of the job, which has done nothing yet; it becomes that of the run that is resumed.
        resume: continue what an earlier run of the same job left, if anything.

    Raises:
        InputError: another run is writing it, an earlier run had another job, or the folder cannot be written.
    """
    try:
        for name in (journal_of(output), new_of(journal_of(output)), new_of(output)):
            check_plain(name)
        file = open_alone(partial_of(output), output)
    except OSError as error:
        raise InputError(f"{output}: cannot be written ({error.strerror}); choose another `output`") from error
    try:
        length = _restore(output, job, account, os.fstat(file.fileno()).st_size) if resume and job is not None else 0
    except InputError:
        file.close()
        raise
    if length == 0:
        _say_what_is_dropped(output, resume=resume)
        journal_of(output).unlink(missing_ok=True)
    file.truncate(length)
    file.seek(length)
    return Stage(output, job, file, account, length)


def _say_what_is_dropped(output: Path, *, resume: bool) -> None:
    """Log that a run which begins anew drops what a stopped one had done."""
    with suppress(OSError, orjson.JSONDecodeError, KeyError, TypeError, InputError):
        with os.fdopen(open_plain(journal_of(output), os.O_RDONLY), "rb") as file:
            rows = int(orjson.loads(file.read(MAX_JOURNAL_BYTES))["rows"])
        if rows and not resume:
            log.warning(
                "%s: began anew; the first %s rows of a stopped run, which `resume` continues, were dropped",
                output, f"{rows:,}",
            )  # fmt: skip


def _restore(output: Path, job: JobSettings, account: Account, size: int) -> int:
    """Continue an account from the journal of an output; return how many bytes of the stage file it covers."""
    path = journal_of(output)
    try:
        with os.fdopen(open_plain(path, os.O_RDONLY), "rb") as file:
            journal = orjson.loads(file.read(MAX_JOURNAL_BYTES))
        account.restore(journal)
        length, version, former = whole_number(journal["bytes"]), journal["version"], dict(journal["job"])
    except FileNotFoundError:
        return 0
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise InputError(f"{path}: damaged; start again without `resume`") from error
    if version != JOURNAL_VERSION:
        raise InputError(f"{path}: written by another version of gramvec; start again without `resume`")
    check_same_job(output, orjson.loads(orjson.dumps(job)), former)
    if size < length:
        raise InputError(f"{partial_of(output)}: shorter than in its journal; start again without `resume`")
    return length
