"""Lines of a file in batches, and a sentence for what a disk refused."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from itertools import islice
from typing import BinaryIO

from gramvec.errors import InputError

NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def read_lines(source: BinaryIO, batch_size: int) -> Iterator[tuple[int, list[str]]]:
    """Batches of lines, split at line feeds alone, each with the number of its first line, from 1.

    A carriage return at the end of a line is dropped.

    Raises InputError, with the line's number, for a line that is not UTF-8.
    """
    numbered = enumerate(source, start=1)
    while batch := list(islice(numbered, batch_size)):
        yield batch[0][0], [_decoded(number, line) for number, line in batch]


def _decoded(number: int, line: bytes) -> str:
    try:
        return line.removesuffix(b"\n").removesuffix(b"\r").decode("utf-8")
    except UnicodeDecodeError as error:
        raise InputError(f"line {number}: not UTF-8 ({error.reason}); convert the file, e.g. with iconv") from error


def why_not_written(error: OSError) -> str:
    """A sentence for what the system refused while a command wrote its results."""
    where = f"{error.filename}: " if error.filename else ""
    remedy = "make room or choose another place; no part of a file was left" if error.errno in NO_ROOM else "look there"
    return f"{where}{error.strerror or error}; {remedy}"
