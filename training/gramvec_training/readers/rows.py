"""Rows of text files, plain or gzip, with an account of the rows that cannot be used."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from gramvec.errors import InputError
from gramvec_training.configuration import OnBad

_GZIP_MAGIC = b"\x1f\x8b"
_BOM = b"\xef\xbb\xbf"
_SHOWN_LINES = 5


def near(path: Path) -> Path:
    """The path from the working folder, where it lies below it."""
    here = Path.cwd()
    return path.relative_to(here) if path.is_relative_to(here) else path


@dataclass
class BadRows:
    """The rows of one file that were not used: reason -> line numbers, counted from 1."""

    path: Path
    lines: dict[str, list[int]] = field(default_factory=dict)

    def note(self, line: int, reason: str, *, on_bad: OnBad, remedy: str) -> None:
        """Count one bad row; raises InputError naming file and line where `on_bad` is "refuse"."""
        if on_bad == "refuse":
            raise InputError(f"{near(self.path)} line {line}: {reason}; {remedy}")
        self.lines.setdefault(reason, []).append(line)

    @property
    def total(self) -> int:
        """The number of bad rows."""
        return sum(len(numbers) for numbers in self.lines.values())

    def summary(self, *, of_file: bool = True) -> str:
        """One line for people, such as "my.tsv: 3 rows skipped: 2 one column (lines 4, 9), 1 not UTF-8 (line 7)".

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


def open_binary(path: Path) -> BinaryIO:
    """The bytes of a plain or gzip file; gzip is known by its first two bytes, not by its name.

    Raises InputError, naming the path, where there is no such file or it cannot be read.
    """
    try:
        with path.open("rb") as handle:
            packed = handle.read(2) == _GZIP_MAGIC
        return gzip.open(path, "rb") if packed else path.open("rb")  # type: ignore[return-value]
    except FileNotFoundError:
        raise InputError(f"There is no file {path}; check the path, or the folder given as --data.") from None
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}.") from error


def numbered_lines(path: Path) -> Iterator[tuple[int, bytes]]:
    r"""(line number from 1, bytes) of every line, split on "\n" alone.

    One "\r" at the end of a line and a byte-order mark at the start of the file are dropped. Raises InputError where
    the file is missing or its gzip data is damaged.
    """
    with open_binary(path) as handle:
        number = 0
        try:
            for number, line in enumerate(handle, start=1):
                if number == 1:
                    line = line.removeprefix(_BOM)
                yield number, line.removesuffix(b"\n").removesuffix(b"\r")
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise InputError(f"{path} is damaged after line {number} ({error}); fetch or pack it again.") from error


def read_rows(path: Path, *, columns: int) -> Iterator[tuple[int, list[str]]]:
    """(line number from 1, values) of every line that is not empty; values are divided by tabs.

    Raises InputError, naming the line, for one with fewer than `columns` values and one that is not UTF-8, and what
    `numbered_lines` raises.
    """
    for number, raw in numbered_lines(path):
        if not raw:
            continue
        try:
            values = raw.decode("utf-8").split("\t")
        except UnicodeDecodeError:
            raise InputError(f"{path} line {number} is not UTF-8; convert the file.") from None
        if len(values) < columns:
            raise InputError(f"{path} line {number}: {len(values)} of {columns} columns, which tabs divide.")
        yield number, values


def read_texts(path: Path) -> Iterator[str]:
    """Raw text, one a line: stripped, blank lines and lines that are not UTF-8 left out."""
    for _, raw in numbered_lines(path):
        try:
            text = raw.decode("utf-8").strip()
        except UnicodeDecodeError:
            continue
        if text:
            yield text
