"""Bytes to read from: a file or standard input, as it is or decompressed, and how much of it has been read."""

from __future__ import annotations

import gzip
import io
import os
import stat
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Literal, get_args

from gramvec.errors import InputError

Form = Literal["txt", "jsonl", "csv", "tsv", "parquet"]

FORMS = get_args(Form)
STDIN = Path("-")
COMPRESSED = (".gz", ".zst")
# What one line may have: memory is bounded even for a file without any line feed.
MAX_LINE_BYTES = 16 << 20
SKIP_BYTES = 1 << 20


def form_of(path: Path) -> Form:
    """The form of a file by its ending, also before .gz or .zst; "txt" for one that says nothing."""
    name = path.name.lower()
    for ending in COMPRESSED:
        name = name.removesuffix(ending)
    ending = name.rpartition(".")[2]
    aliases: dict[str, Form] = {"ndjson": "jsonl", "pq": "parquet"}
    return next((form for form in FORMS if form == ending), aliases.get(ending, "txt"))


class Source:
    """An open input. `size` is in bytes of the file as it lies there, None for a pipe."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.name = "standard input" if path == STDIN else str(path)
        self._raw: BinaryIO = sys.stdin.buffer if path == STDIN else _opened(path)
        status = os.fstat(self._raw.fileno()) if _has_number(self._raw) else None
        self.is_file = status is not None and stat.S_ISREG(status.st_mode)
        self.size = status.st_size if status is not None and self.is_file else None
        self.mtime_ns = status.st_mtime_ns if status is not None else 0
        ending = path.suffix.lower()
        self.is_compressed = ending in COMPRESSED
        if ending == ".gz":
            self.stream: BinaryIO = io.BufferedReader(gzip.GzipFile(fileobj=self._raw))
        elif ending == ".zst":
            from gramvec.tables.arrow import zstd_stream

            self.stream = zstd_stream(self._raw)
        else:
            self.stream = self._raw

    @property
    def done(self) -> int:
        """The bytes of the file that have been taken so far."""
        return self._raw.tell() if self.is_file else 0

    def skip_to(self, offset: int) -> None:
        """Go to this byte of the (decompressed) stream, of which nothing has been read yet."""
        if not self.is_compressed and self.is_file:
            self.stream.seek(offset)
            return
        while offset > 0 and (taken := self.stream.read(min(offset, SKIP_BYTES))):
            offset -= len(taken)

    def close(self) -> None:
        """Close the file; standard input stays open."""
        if self.path != STDIN:
            self.stream.close()
            self._raw.close()


def _opened(path: Path) -> BinaryIO:
    if path.is_dir():
        raise InputError(f"{path} is a folder; give a file")
    try:
        return path.open("rb")
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror}); give a file, or - for standard input") from error


def _has_number(file: BinaryIO) -> bool:
    try:
        file.fileno()
    except OSError:  # a test's standard input may lie in memory
        return False
    return True


class Lines:
    """Lines of a stream, at line feeds alone. `offset` is the byte and `number` the line (from 1) that come next."""

    def __init__(self, stream: BinaryIO, offset: int = 0, number: int = 1) -> None:
        self.offset = offset
        self.number = number
        self._readline = stream.readline

    def read(self) -> bytes | None:
        """The next line with its line feed; b"" at the end, None for a line longer than 16 MiB."""
        line = self._readline(MAX_LINE_BYTES)
        if not line:
            return b""
        self.number += 1
        self.offset += len(line)
        if len(line) < MAX_LINE_BYTES or line.endswith(b"\n"):
            return line
        while rest := self._readline(MAX_LINE_BYTES):
            self.offset += len(rest)
            if rest.endswith(b"\n"):
                break
        return None


@contextmanager
def readable(source: Source) -> Iterator[None]:
    """Took what a decompressor raises over damaged bytes into one sentence."""
    try:
        yield
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise InputError(f"{source.name}: damaged or cut off ({error}); compress it again") from error
    except OSError as error:
        if error.errno is not None:  # the system's own, which names its file
            raise
        raise InputError(f"{source.name}: damaged or cut off ({error}); compress it again") from error
