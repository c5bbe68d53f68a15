"""Lines in, vectors out: files of any length in bounded memory, written whole or not at all."""

from __future__ import annotations

import errno
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import IO, BinaryIO

import numpy as np
import orjson
from numpy.lib import format as npy
from numpy.typing import NDArray

from gramvec.errors import InputError

Vectors = NDArray[np.float32]

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


@contextmanager
def replacing(path: Path) -> Iterator[IO[bytes]]:
    """A new file that takes the place of `path` when the block ends well, and disappears when it does not.

    What is no file (/dev/null, a pipe) is written to as it is. Raises InputError if the folder cannot be written.
    """
    if path.exists() and not path.is_file():
        with path.open("wb") as device:
            yield device
        return
    try:
        file = NamedTemporaryFile(  # noqa: SIM115 - closed below, after which it is renamed
            prefix=f".{path.name}.", dir=path.parent, delete=False
        )
    except OSError as error:
        raise InputError(f"{path}: cannot be written ({error.strerror}); choose another --output") from error
    stage = Path(file.name)
    try:
        with file:
            yield file
        stage.chmod(0o644)
        stage.rename(path)
    finally:
        stage.unlink(missing_ok=True)


def why_not_written(error: OSError) -> str:
    """A sentence for what the system refused while a command wrote its results."""
    where = f"{error.filename}: " if error.filename else ""
    remedy = "make room or choose another place; no part of a file was left" if error.errno in NO_ROOM else "look there"
    return f"{where}{error.strerror or error}; {remedy}"


def write_jsonl(path: Path | None, batches: Iterable[tuple[list[str], Vectors]]) -> None:
    """Write {"text": ..., "embedding": [...]} a line to `path`, or to stdout for None."""
    if path is None:
        _jsonl(sys.stdout.buffer, batches)
        sys.stdout.buffer.flush()
        return
    with replacing(path) as file:
        _jsonl(file, batches)


def _jsonl(file: IO[bytes], batches: Iterable[tuple[list[str], Vectors]]) -> None:
    option = orjson.OPT_SERIALIZE_NUMPY | orjson.OPT_APPEND_NEWLINE
    for texts, vectors in batches:
        for text, vector in zip(texts, vectors, strict=True):
            file.write(orjson.dumps({"text": text, "embedding": vector}, option=option))


def write_npy(path: Path, batches: Iterable[Vectors], *, columns: int) -> None:
    """Write a .npy file of float32[total, columns] without holding it in memory.

    The header is written twice: numpy pads it so that a growing first dimension needs no more room.
    """
    with replacing(path) as file:
        rows = 0
        _npy_header(file, (rows, columns))
        for vectors in batches:
            file.write(np.ascontiguousarray(vectors, "<f4").tobytes())
            rows += len(vectors)
        file.seek(0)
        _npy_header(file, (rows, columns))


def _npy_header(file: IO[bytes], shape: tuple[int, int]) -> None:
    npy.write_array_header_1_0(file, {"descr": "<f4", "fortran_order": False, "shape": shape})
