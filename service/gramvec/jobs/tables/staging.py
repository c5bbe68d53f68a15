"""Staged output: files that are written beside their place and moved there when they are whole.

`whole` is for files that are written at once, by way of .OUTPUT.new; `output_file` also takes pipes and devices. Jobs
that can be resumed have gramvec.jobs.common.stage.

A link, a folder or a special file in a stage file's place is refused: another user may have put it there.
"""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
import stat
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from gramvec.errors import InputError
from gramvec.jobs.tables.inputs import STDIN, nameless_file
from gramvec.jobs.tables.ownership import mark, mark_of

MAX_MANIFEST_BYTES = 16 << 20

BUSY = "{}: another run is writing it; wait for that one, or choose another `output`"


def partial_of(output: Path) -> Path:
    """Return the path of an output's stage file."""
    return output.with_name(f".{output.name}.partial")


def journal_of(output: Path) -> Path:
    """Return the path of an output's journal."""
    return output.with_name(f".{output.name}.journal")


def new_of(output: Path) -> Path:
    """Return the path under which `whole` writes a file."""
    return output.with_name(f".{output.name}.new")


def check_place(path: Path) -> None:
    """Raise InputError where `whole` cannot write a file: no folder, something other than a file, a planted stage."""
    if not path.absolute().parent.is_dir():
        raise InputError(f"{path}: there is no folder {path.parent}; make it first")
    if path.exists() and not path.is_file():
        raise InputError(f"{path}: is not a regular file; write to another place")
    check_plain(new_of(path))


def check_plain(path: Path) -> None:
    """Raise InputError for anything but a regular file with one name; nothing there is good."""
    with suppress(FileNotFoundError):
        os.close(open_plain(path, os.O_RDONLY))


def open_plain(path: Path, flags: int) -> int:
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


def open_alone(path: Path, output: Path) -> BinaryIO:
    """Open a stage file, with the bytes that it has. Raises InputError where another run is writing it."""
    file = os.fdopen(open_plain(path, os.O_RDWR | os.O_CREAT), "r+b")
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
    with open_alone(stage, path) as file:  # locked until it has its place
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
                " replace it with `overwrite=True`"
            )


def _model_or_index(folder: Path) -> str:
    """Return "a model" or "an index" where a folder has the manifest of one, else ""."""
    with suppress(OSError), (folder / "manifest.json").open("rb") as file:
        manifest = file.read(MAX_MANIFEST_BYTES)
        return "a model" if b'"gramvec-bundle"' in manifest else "an index" if b'"generation"' in manifest else ""
    return ""


def check_no_input(output: Path, inputs: Sequence[Path | None]) -> None:
    """Raise InputError if an output, or a file that is written beside it for a while, is one of the inputs."""
    for source in inputs:
        if source is None or source == STDIN or not source.exists():
            continue
        if source.is_dir() and output.absolute().parent.resolve() == source.resolve():
            raise InputError(f"{output}: is in the folder {source}, which is read; write to another place")
        for written in (output, partial_of(output), journal_of(output), new_of(output)):
            if written.exists() and written.samefile(source):
                what = "is read by this command" if output == source else f"would replace {source}, which is read"
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


@contextmanager
def output_at_once(path: Path) -> Iterator[BinaryIO]:
    """Open what a command's option names as `output_file` does, but - gets all when the block ends, or nothing."""
    if path != STDIN:
        with output_file(path) as file:
            yield file
        return
    with nameless_file() as (file, _), output_file(None) as out:
        yield file
        file.seek(0)
        shutil.copyfileobj(file, out)


def is_stream(path: Path) -> bool:
    """Return True for a pipe, a device or a socket."""
    return path.exists() and not path.is_file() and not path.is_dir()
