"""What comes through a pipe, which can be read once, put into a file, which is read several times."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import BinaryIO

from gramvec.errors import InputError
from gramvec.tables.inputs import STDIN
from gramvec_training.files import write_atomically
from gramvec_training.readers.rows import check_head

MOST_BYTES = 4 << 30  # of a pipe, as it comes, plain or gzip
_PART = 1 << 20


def is_piped(path: Path) -> bool:
    """Whether it is "-", for standard input, or no file that could be read again, such as bash's <(zcat my.tsv.gz)."""
    return path == STDIN or (path.exists() and not path.is_file() and not path.is_dir())


def spool(path: Path, target: Path) -> None:
    """Write all that the pipe gives to the file `target`, whole or not at all.

    Raises InputError for more than 4 GiB, and, as soon as it is seen, for UTF-16 and what is no text.
    """
    name = "standard input" if path == STDIN else str(path)
    if path == STDIN:
        write_atomically(target, lambda file: _copy(sys.stdin.buffer, file, name))
        return
    try:
        pipe = path.open("rb")
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}.") from error
    with pipe:
        write_atomically(target, lambda file: _copy(pipe, file, name))


def _copy(source: BinaryIO, file: BinaryIO, name: str) -> None:
    taken = 0
    while part := source.read(_PART):
        if not taken:
            check_head(name, part)
        taken += len(part)
        if taken > MOST_BYTES:
            raise InputError(f"{name} gives more than {MOST_BYTES >> 30} GiB; write it to a file, and give that.")
        file.write(part)
