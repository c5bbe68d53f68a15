"""Staged output: files that are written beside their place and moved there when they are whole.

`whole` is for files that are written at once, by way of .OUTPUT.new; `output_file` also takes pipes and devices.
`open_stage` is for long jobs that can be resumed: OUTPUT's bytes go to .OUTPUT.partial, and .OUTPUT.journal (JSON) is
replaced after each 16 MiB or more; it says what the output is made of, where in the input to resume, and at which byte
of the stage file. Both are removed when OUTPUT is complete.

A link, a folder or a special file in a stage file's place is refused: somebody else may have put it there.
"""

from __future__ import annotations

import errno
import fcntl
import logging
import os
import stat
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

import orjson

from gramvec.errors import InputError
from gramvec.tables.batches import START, BadLines, Position, whole_number
from gramvec.tables.inputs import STDIN
from gramvec.tables.ownership import digest_of, mark, mark_of
from gramvec.tables.writers import Writes

JOURNAL_VERSION = 1
CHECKPOINT_BYTES = 16 << 20
CHECKPOINT_SECONDS = 2.0
MAX_JOURNAL_BYTES = 16 << 20

log = logging.getLogger("gramvec.tables")

BUSY = "{}: another run is writing it; wait for that one, or choose another --output"

JobSettings = dict[str, Any]


@dataclass
class Progress:
    """Progress of a job: the input's position, the rows done, the bytes of the stage file, and the bad rows."""

    position: Position = START
    rows: int = 0
    bytes: int = 0
    bad: BadLines = field(default_factory=BadLines)


class Stage:
    """An open stage file, locked against a second run."""

    def __init__(self, output: Path, job: JobSettings | None, file: BinaryIO, progress: Progress) -> None:
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
        """Write and count bytes. Raises OSError if the disk is full."""
        self.file.write(data)
        self.progress.bytes += len(data)

    def checkpoint_if_due(self) -> None:
        """Write the journal in the background, after 16 MiB or 2 seconds and once the last one is on disk.

        `progress` must count everything that was appended.
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
        """Wait for the last checkpoint. Raises its OSError."""
        syncing, self._syncing = self._syncing, None
        if syncing is not None:
            syncing.result()

    def finish(self, form: Writes, rows: int) -> None:
        """Move the stage file, or what the form makes of it, to the output's place."""
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

    def discard(self) -> None:
        """Remove the stage file and its journal."""
        self._thread.shutdown()
        self.path.unlink(missing_ok=True)
        journal_of(self.output).unlink(missing_ok=True)
        self.close()

    def close(self) -> None:
        """Close the file and release the lock."""
        self._thread.shutdown()
        with suppress(OSError):  # what a full disk refused once, it may refuse again
            self.file.close()


def partial_of(output: Path) -> Path:
    """Return the path of an output's stage file."""
    return output.with_name(f".{output.name}.partial")


def journal_of(output: Path) -> Path:
    """Return the path of an output's journal."""
    return output.with_name(f".{output.name}.journal")


def new_of(output: Path) -> Path:
    """Return the path under which `whole` writes a file."""
    return output.with_name(f".{output.name}.new")


def open_stage(output: Path, job: JobSettings | None, *, resume: bool) -> Stage:
    """Open the stage file of an output.

    Args:
        output: the file to be written.
        job: what decides its bytes, as JSON has it; None for a job without a journal.
        resume: continue what an earlier run of the same job left, if anything.

    Raises:
        InputError: another run is writing it, an earlier run had another job, or the folder cannot be written.
    """
    try:
        for name in (journal_of(output), new_of(journal_of(output)), new_of(output)):
            _check_plain(name)
        file = _open_alone(partial_of(output), output)
    except OSError as error:
        raise InputError(f"{output}: cannot be written ({error.strerror}); choose another --output") from error
    try:
        progress = _left(output, job, os.fstat(file.fileno()).st_size) if resume and job is not None else Progress()
    except InputError:
        file.close()
        raise
    if progress.bytes == 0:
        _say_what_is_dropped(output, resume=resume)
        journal_of(output).unlink(missing_ok=True)
    file.truncate(progress.bytes)
    file.seek(progress.bytes)
    return Stage(output, job, file, progress)


def _say_what_is_dropped(output: Path, *, resume: bool) -> None:
    """Log that a run which begins anew drops what a stopped one had done."""
    with suppress(OSError, orjson.JSONDecodeError, KeyError, TypeError, InputError):
        with os.fdopen(_open_plain(journal_of(output), os.O_RDONLY), "rb") as file:
            rows = int(orjson.loads(file.read(MAX_JOURNAL_BYTES))["rows"])
        if rows and not resume:
            log.warning(
                "%s: began anew; the first %s rows of a stopped run, which --resume continues, were dropped",
                output, f"{rows:,}",
            )  # fmt: skip


def check_place(path: Path) -> None:
    """Raise InputError where `whole` cannot write a file: no folder, something other than a file, a planted stage."""
    if not path.absolute().parent.is_dir():
        raise InputError(f"{path}: there is no folder {path.parent}; make it first")
    if path.exists() and not path.is_file():
        raise InputError(f"{path}: is not a regular file; write to another place")
    _check_plain(new_of(path))


def _check_plain(path: Path) -> None:
    """Raise InputError for anything but a regular file with one name; nothing there is good."""
    with suppress(FileNotFoundError):
        os.close(_open_plain(path, os.O_RDONLY))


def _open_plain(path: Path, flags: int) -> int:
    """Open a stage file. Raises InputError for anything but a regular file with one name."""
    not_plain = InputError(f"{path}: is a link or not a regular file; remove it, or write to another place")
    try:
        found = os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o666)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENXIO, errno.EISDIR):
            raise not_plain from error
        raise
    status = os.fstat(found)
    if not stat.S_ISREG(status.st_mode) or status.st_nlink > 1:
        os.close(found)
        raise not_plain
    return found


def _open_alone(path: Path, output: Path) -> BinaryIO:
    """Open a stage file, with the bytes that it has. Raises InputError where another run is writing it."""
    file = os.fdopen(_open_plain(path, os.O_RDWR | os.O_CREAT), "r+b")
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
    return file


def _left(output: Path, job: JobSettings, size: int) -> Progress:
    path = journal_of(output)
    try:
        with os.fdopen(_open_plain(path, os.O_RDONLY), "rb") as file:
            journal = orjson.loads(file.read(MAX_JOURNAL_BYTES))
        offset, number = map(whole_number, journal["position"])
        rows, length = whole_number(journal["rows"]), whole_number(journal["bytes"])
        progress = Progress(Position(offset, number), rows, length, BadLines.from_json(journal["bad"]))
        version, former = journal["version"], dict(journal["job"])
    except FileNotFoundError:
        return Progress()
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise InputError(f"{path}: damaged; start again without --resume") from error
    if version != JOURNAL_VERSION:
        raise InputError(f"{path}: written by another version of gramvec; start again without --resume")
    check_same_job(output, orjson.loads(orjson.dumps(job)), former)
    if size < progress.bytes:
        raise InputError(f"{partial_of(output)}: shorter than its journal says; start again without --resume")
    return progress


@contextmanager
def whole(path: Path, job: str = "", rows: int = 0) -> Iterator[BinaryIO]:
    """Open a file that takes the place of `path` when the block ends, and is removed if the block raises.

    Args:
        path: its place.
        job: digest of what decides its bytes, for its mark (see `ownership`).
        rows: its rows, for its mark.

    Raises:
        InputError: `check_place` refuses `path`, or another run is writing it.
    """
    check_place(path)
    stage = new_of(path)
    with _open_alone(stage, path) as file:  # locked until it has its place
        try:
            file.truncate()
            yield file
            file.flush()
            mark(file, job, rows)
            os.fsync(file.fileno())
            stage.replace(path)
        except BaseException:
            stage.unlink(missing_ok=True)
            raise


def check_outputs(*paths: Path | None, inputs: Sequence[Path | None] = (), overwrite: bool = False) -> None:
    """Raise InputError where an output cannot be written, or would take the place of what must stay.

    A pipe or a device is written to as it is; None and - are standard output, or input.

    Args:
        paths: outputs of one call; no two may be one file.
        inputs: what the call reads, files and folders.
        overwrite: replace a file that gramvec did not write.
    """
    outputs = [path for path in paths if path is not None and path != STDIN and not is_stream(path)]
    for place, path in enumerate(outputs):
        check_place(path)
        check_no_input(path, inputs)
        if holder := _model_or_index(path.absolute().parent):
            raise InputError(f"{path}: is in the folder of {holder}; write to another place")
        if any(path.absolute() == other.absolute() for other in outputs[:place]):
            raise InputError(f"{path}: is named as two outputs; give each a file of its own")
        if path.exists() and path.stat().st_size and not overwrite and mark_of(path) is None:
            raise InputError(
                f"{path}: exists, and gramvec did not write it, or it was changed since; choose another place, or"
                " replace it with --overwrite"
            )


def _model_or_index(folder: Path) -> str:
    """Return "a model" or "an index" where a folder's manifest says that it is one, else ""."""
    with suppress(OSError), (folder / "manifest.json").open("rb") as file:
        manifest = file.read(MAX_JOURNAL_BYTES)
        return "a model" if b'"gramvec-bundle"' in manifest else "an index" if b'"generation"' in manifest else ""
    return ""


def check_no_input(output: Path, inputs: Sequence[Path | None]) -> None:
    """Raise InputError if an output, or a file that is written beside it for a while, is one of the inputs."""
    for one in inputs:
        if one is None or one == STDIN or not one.exists():
            continue
        if one.is_dir() and output.absolute().parent.resolve() == one.resolve():
            raise InputError(f"{output}: is in the folder {one}, which is read; write to another place")
        for written in (output, partial_of(output), journal_of(output), new_of(output)):
            if written.exists() and written.samefile(one):
                what = "is read by this command" if output == one else f"would replace {one}, which is read"
                raise InputError(f"{output}: {what}; write to another file")


@contextmanager
def output_file(path: Path | None) -> Iterator[BinaryIO]:
    """Open what a command's option names: a file as `whole` does, a pipe or a device as it is, None or - as stdout."""
    if path is None or path == STDIN:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    with path.open("wb") if is_stream(path) else whole(path) as file:
        yield file


def is_stream(path: Path) -> bool:
    """Return True for a pipe, a device or a socket."""
    return path.exists() and not path.is_file() and not path.is_dir()


def check_same_job(output: Path, job: JobSettings, former: JobSettings) -> None:
    """Raise InputError where what is left of an output was made by a job with other settings."""
    if other := sorted(key for key in job.keys() | former.keys() if job.get(key) != former.get(key)):
        raise InputError(
            f"{output}: what is left of it was made with another {', '.join(other)}; "
            "call with the former one, or start again without --resume"
        )
