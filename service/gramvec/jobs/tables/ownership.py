"""Marks of files that gramvec wrote: an extended attribute, with the size and time that the file had.

A file that was made by another program, or changed since gramvec wrote it, is not gramvec's own. On a file system
without extended attributes no file is, so that nothing is replaced unasked there.
"""

from __future__ import annotations

import os
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import orjson

ATTRIBUTE = "user.gramvec"
MAX_MARK_BYTES = 1024


class Mark(NamedTuple):
    """Contents of a mark: the digest of the job that made it, "" for none, and its rows."""

    job: str
    rows: int


def digest_of(job: dict[str, Any] | None) -> str:
    """Return a SHA-256 of what decides an output's bytes, "" for None."""
    return "" if job is None else sha256(orjson.dumps(job, option=orjson.OPT_SORT_KEYS)).hexdigest()


def mark(file: BinaryIO, job: str = "", rows: int = 0) -> None:
    """Mark a file, which is written to its end and flushed, as gramvec's own, if the file system can."""
    status = os.fstat(file.fileno())
    value = orjson.dumps([status.st_size, status.st_mtime_ns, job, rows])
    with suppress(OSError, AttributeError):  # only Linux has the function
        os.setxattr(file.fileno(), ATTRIBUTE, value)


def mark_of(path: Path) -> Mark | None:
    """Return the mark of a file that gramvec wrote and that is unchanged since, else None."""
    try:
        value = os.getxattr(path, ATTRIBUTE)
        status = path.stat()
        size, time, job, rows = orjson.loads(value[:MAX_MARK_BYTES])
        if (size, time) == (status.st_size, status.st_mtime_ns):
            return Mark(str(job), int(rows))
    except (OSError, AttributeError, ValueError, TypeError):
        pass
    return None
