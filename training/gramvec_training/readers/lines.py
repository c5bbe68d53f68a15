"""Lines of text files, plain or gzip or from a pipe, and an account of the rows that cannot be used."""

from __future__ import annotations

import gzip
import io
import sys
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from gramvec.errors import InputError
from gramvec.tables.inputs import MAX_LINE_BYTES, STDIN, Lines
from gramvec_training.sections import OnBad
from gramvec_training.shared import write_atomically

_GZIP_MAGIC = b"\x1f\x8b"
_BOM = b"\xef\xbb\xbf"
_UTF_16 = (b"\xff\xfe", b"\xfe\xff")
_HEAD_BYTES = 4096  # in which a text has no zero byte, and UTF-16 and binary files have
_SHOWN_LINES = 5
NOT_UTF8 = "not UTF-8"
TOO_LONG = f"longer than {MAX_LINE_BYTES >> 20} MiB"


def near(path: Path) -> Path:
    """Return the path relative to the working folder, if it lies below it."""
    here = Path.cwd()
    return path.relative_to(here) if path.is_relative_to(here) else path


@dataclass
class BadRows:
    """Unusable rows of one file: reason -> line numbers from 1.

    remarks: on how the file was read, a sentence each: its header, its scores.
    """

    path: Path
    lines: dict[str, list[int]] = field(default_factory=dict)
    remarks: list[str] = field(default_factory=list)

    def note(self, line: int, reason: str, *, on_bad: OnBad, remedy: str) -> None:
        """Count one bad row, or refuse it where `on_bad` is "refuse".

        Raises:
            InputError: `on_bad` is "refuse"; the message names file and line.
        """
        if on_bad == "refuse":
            raise InputError(f"{near(self.path)} line {line}: {reason}; {remedy}")
        self.lines.setdefault(reason, []).append(line)

    def add_remark(self, sentence: str) -> None:
        """Add a remark, without the file's name, to `remarks`."""
        self.remarks.append(f"{near(self.path)}: {sentence}")

    def notes(self) -> list[str]:
        """Return all lines for the user: `remarks`, and the summary where rows were skipped."""
        return [*self.remarks, *([self.summary()] if self.total else [])]

    @property
    def total(self) -> int:
        """Return the number of bad rows."""
        return sum(len(numbers) for numbers in self.lines.values())

    def summary(self, *, of_file: bool = True) -> str:
        """Return a line such as "my.tsv: 3 rows skipped: 2 one column (lines 4, 9), 1 not UTF-8 (line 7)".

        Without `of_file` it begins with the number of rows.
        """
        name = f"{near(self.path)}: " if of_file else ""
        if not self.total:
            return f"{name}no row skipped"
        parts = []
        for reason, numbers in sorted(self.lines.items()):
            shown = ", ".join(str(number) for number in numbers[:_SHOWN_LINES])
            more = ", ..." if len(numbers) > _SHOWN_LINES else ""
            parts.append(f"{len(numbers):,} {reason} (line{'s' if len(numbers) > 1 else ''} {shown}{more})")
        return f"{name}{self.total:,} row{'s' if self.total > 1 else ''} skipped: {', '.join(parts)}"


class RowsRead:
    """Rows of a file that were read before a run begins, and its bad rows; they are handed over once and not kept."""

    def __init__(self, rows: list[Any], bad: BadRows) -> None:
        self._read: tuple[list[Any], BadRows] | None = (rows, bad)

    def take(self) -> tuple[list[Any], BadRows] | None:
        """Return the rows and the bad rows; None where they were taken before."""
        read, self._read = self._read, None
        return read


def open_binary(path: Path) -> io.BufferedReader:
    """Open a plain or gzip file for reading; gzip is recognized by its first two bytes, not by its name.

    Raises:
        InputError: At the path: there is no such file or it cannot be read.
    """
    try:
        with path.open("rb") as handle:
            packed = handle.read(2) == _GZIP_MAGIC
        return io.BufferedReader(gzip.GzipFile(path)) if packed else path.open("rb")
    except FileNotFoundError:
        raise InputError(f"{path}: no such file; check the path, or the folder given as --data") from None
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}") from error


def split_lines(path: Path) -> Iterator[tuple[int, bytes | None]]:
    r"""Yield (line number from 1, bytes) for every line, split only on "\n"; None for a line longer than 16 MiB.

    One "\r" at the end of a line and a byte-order mark at the start of the file are dropped. Raises InputError where
    the file is missing, UTF-16 or no text, or its gzip data is damaged.
    """
    with open_binary(path) as handle:
        lines = Lines(handle)
        try:
            _check_text(near(path), handle.peek(_HEAD_BYTES)[:_HEAD_BYTES])
            while (line := lines.read()) != b"":
                if line is not None:
                    line = line.removeprefix(_BOM) if lines.number == 2 else line
                    line = line.removesuffix(b"\n").removesuffix(b"\r")
                yield lines.number - 1, line
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            after = lines.number - 1
            raise InputError(f"{path}: damaged after line {after} ({error}); fetch or pack it again") from error


def check_head(name: str, head: bytes) -> None:
    """Refuse data that begins like UTF-16, or like neither text nor gzip, with InputError."""
    if not head.startswith(_GZIP_MAGIC):
        _check_text(name, head[:_HEAD_BYTES])


def _check_text(name: Path | str, head: bytes) -> None:
    if head.startswith(_UTF_16):
        raise InputError(f"{name}: UTF-16; save it as UTF-8, for instance with iconv -f UTF-16 -t UTF-8")
    if 0 in head:
        raise InputError(
            f"{name}: not a text file, byte {head.index(0) + 1:,} is zero; give UTF-8, plain or gzip, and convert "
            "UTF-16, spreadsheets and Parquet first"
        )


def number_lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """Yield the lines of `split_lines`, and raise InputError for a line longer than 16 MiB."""
    for number, line in split_lines(path):
        if line is None:
            raise InputError(f"{near(path)} line {number}: {TOO_LONG}; split it")
        yield number, line


def read_rows(path: Path, *, columns: int) -> Iterator[tuple[int, list[str]]]:
    """Yield (line number from 1, values separated by tabs) for every line that is not empty.

    Raises:
        InputError: At the line: one with fewer than `columns` values and one that is not UTF-8, and what
            `number_lines` raises.
    """
    for number, raw in number_lines(path):
        if not raw:
            continue
        try:
            values = raw.decode("utf-8").split("\t")
        except UnicodeDecodeError:
            raise InputError(f"{path} line {number}: not UTF-8; convert the file") from None
        if len(values) < columns:
            raise InputError(f"{path} line {number}: {len(values)} of {columns} columns, which tabs divide")
        yield number, values


def read_texts(path: Path) -> Iterator[str]:
    """Yield one stripped text a line; blank lines and lines that are not UTF-8 are left out."""
    for _, raw in number_lines(path):
        try:
            text = raw.decode("utf-8").strip()
        except UnicodeDecodeError:
            continue
        if text:
            yield text


MAX_BYTES = 4 << 30  # of a pipe, as it comes, plain or gzip
_PART = 1 << 20


def is_piped(path: Path) -> bool:
    """Return whether the path is "-" or another input that can be read only once, such as <(zcat my.tsv.gz)."""
    return path == STDIN or (path.exists() and not path.is_file() and not path.is_dir())


def spool(path: Path, target: Path) -> None:
    """Copy a pipe to the file `target`, whole or not at all.

    Raises:
        InputError: More than 4 GiB, and, as soon as it is seen, for UTF-16 and what is no text.
    """
    name = "standard input" if path == STDIN else str(path)
    if path == STDIN:
        write_atomically(target, lambda file: _copy(sys.stdin.buffer, file, name))
        return
    try:
        pipe = path.open("rb")
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}") from error
    with pipe:
        write_atomically(target, lambda file: _copy(pipe, file, name))


def _copy(source: BinaryIO, file: BinaryIO, name: str) -> None:
    taken = 0
    while part := source.read(_PART):
        if not taken:
            check_head(name, part)
        taken += len(part)
        if taken > MAX_BYTES:
            raise InputError(f"{name}: gives more than {MAX_BYTES >> 30} GiB; write it to a file, and give that")
        file.write(part)
