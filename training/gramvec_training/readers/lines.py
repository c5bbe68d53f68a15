"""Lines of text files, plain or compressed or from a pipe, and an account of the rows that cannot be used."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sized
from pathlib import Path
from typing import Any, BinaryIO

from gramvec.errors import InputError
from gramvec.jobs.common.bad_rows import BadRows
from gramvec.jobs.tables.inputs import STDIN, UTF_8, FileFormat, Source
from gramvec.jobs.tables.readers import open_reader
from gramvec_training.sections import OnBad, TableFormat
from gramvec_training.shared import write_atomically

_SHOWN_LINES = 5
NOT_UTF_8 = "not UTF-8"
_ENCODING = "give its encoding, such as cp1252, with --encoding, or convert it"
_DETAILS = re.compile(r"[;(]")  # where the remedy of a reason begins, or what differs from row to row


def shorten_path(path: Path) -> Path:
    """Return the path relative to the working folder, if it lies below it."""
    here = Path.cwd()
    return path.relative_to(here) if path.is_relative_to(here) else path


class SkippedRows(BadRows):
    """Bad rows of a file of training data, by reason.

    Args:
        path: the file.
        on_bad: "refuse" ends the run at a bad row, "skip" counts it.
        remedy: what to do about a bad row that ends the run.
        given: the file's format.

    Attributes:
        lines: numbers of the rows by reason.
        notes: on how the file was read, a sentence each: its header, its scores.
    """

    def __init__(self, path: Path, on_bad: OnBad, remedy: str, given: TableFormat | None = None) -> None:
        super().__init__("stop" if on_bad == "refuse" else "skip", where=f"{shorten_path(path)} ")
        self.path = path
        self.remedy = remedy
        self._given = given or TableFormat()
        self.lines: dict[str, list[int]] = {}

    @property
    def format(self) -> FileFormat:
        """Return the format of the file. Raises InputError where neither its ending nor an option names one."""
        return self._given.for_path(self.path)

    @property
    def encoding(self) -> str:
        """Return the encoding of the file."""
        return self._given.encoding

    def add(self, number: int, why: str) -> None:
        """Count a row. Raises InputError, which names file and line, if the run ends at a bad row."""
        self._remedy = f"; {self._find_remedy([why])}"
        super().add(number, why)
        self.lines.setdefault(why, []).append(number)

    def require(self, rows: Sized, layout: str = "") -> None:
        """Raise InputError where there are no rows; the message has the layout that the file was read as, if any."""
        if not rows:
            read_as = f" when read as {layout}" if layout else ""
            skipped = f" ({self.summary(of_file=False)})" if self.count else ""
            raise InputError(
                f"{shorten_path(self.path)}: no usable row{read_as}{skipped}; {self._find_remedy([*self.lines])}"
            )

    def _find_remedy(self, reasons: list[str]) -> str:
        return _ENCODING if {*reasons} == {NOT_UTF_8} else self.remedy

    def add_note(self, sentence: str) -> None:
        """Add a note, without the file's name, to `notes`."""
        self.notes.append(f"{shorten_path(self.path)}: {sentence}")

    def sentences(self) -> list[str]:
        """Return all lines for the user: `notes`, and the summary where rows were skipped."""
        return [*self.notes, *([self.summary()] if self.count else [])]

    def summary(self, *, of_file: bool = True) -> str:
        """Return a line such as "my.tsv: 3 rows skipped: 2 one column (lines 4, 9), 1 not UTF-8 (line 7)".

        Without `of_file` it begins with the number of rows.
        """
        name = f"{shorten_path(self.path)}: " if of_file else ""
        if not self.count:
            return f"{name}no row skipped"
        parts = []
        for reason, numbers in sorted(self.lines.items()):
            shown = ", ".join(str(number) for number in numbers[:_SHOWN_LINES])
            more = ", ..." if len(numbers) > _SHOWN_LINES else ""
            parts.append(f"{len(numbers):,} {reason} ({self.unit}{'s' if len(numbers) > 1 else ''} {shown}{more})")
        return f"{name}{self.count:,} row{'s' if self.count > 1 else ''} skipped: {', '.join(parts)}"


class RowsRead:
    """Rows of a file that were read before a run begins, and its bad rows; they are handed over once and not kept."""

    def __init__(self, rows: list[Any], bad: SkippedRows) -> None:
        self._read: tuple[list[Any], SkippedRows] | None = (rows, bad)

    def take(self) -> tuple[list[Any], SkippedRows] | None:
        """Return the rows and the bad rows; None where they were taken before."""
        read, self._read = self._read, None
        return read


def check_exists(path: Path) -> None:
    """Raise InputError where a file is missing."""
    if path != STDIN and not path.exists():
        raise InputError(f"{path}: no such file; check the path, or the folder given as --data")


def short_reason(why: str) -> str:
    """Return why a reader of `gramvec.jobs.tables` gives a row up, such as "not UTF-8", without details and remedy."""
    return _DETAILS.split(why, maxsplit=1)[0].rstrip()


def read_lines(path: Path, encoding: str = UTF_8) -> Iterator[tuple[int, str, str | None]]:
    r"""Yield (line number from 1, text, None or why it cannot be read) for every line, split only on "\n".

    One "\r" at the end of a line and a byte-order mark at the start of the file are dropped; UTF-16 with such a mark is
    read, too. Raises InputError where the file is missing or no text, or its compressed data is damaged.
    """
    check_exists(path)
    source = Source(path)
    try:
        for block in open_reader(source, FileFormat("txt", encoding=encoding), None, keep=False).blocks():
            reasons: list[str | None] = [None] * len(block.texts)
            for place, why in block.bad.items():
                reasons[place] = short_reason(why)
            yield from zip(block.numbers, block.texts, reasons, strict=True)
    finally:
        source.close()


def number_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield (line number from 1, text) for every line; raise InputError for a line that cannot be read."""
    for number, text, why in read_lines(path):
        if why is not None:
            raise InputError(f"{shorten_path(path)} line {number}: {why}; correct the file")
        yield number, text


def read_rows(path: Path, *, columns: int) -> Iterator[tuple[int, list[str]]]:
    """Yield (line number from 1, values separated by tabs) for every line that is not empty.

    Raises:
        InputError: At the line: one with fewer than `columns` values, and what `number_lines` raises.
    """
    for number, text in number_lines(path):
        if not text:
            continue
        values = text.split("\t")
        if len(values) < columns:
            raise InputError(f"{path} line {number}: {len(values)} of {columns} columns, which tabs divide")
        yield number, values


def read_texts(path: Path) -> Iterator[str]:
    """Yield one stripped text a line; blank lines and lines that cannot be read are left out."""
    for _, line, why in read_lines(path):
        if why is None and (text := line.strip()):
            yield text


MAX_BYTES = 4 << 30  # of a pipe, as it comes, plain or gzip
_PART = 1 << 20


def is_piped(path: Path) -> bool:
    """Return whether the path is "-" or another input that can be read only once, such as <(zcat my.tsv.gz)."""
    return path == STDIN or (path.exists() and not path.is_file() and not path.is_dir())


def spool(path: Path, target: Path) -> None:
    """Copy a pipe to the file `target`, whole or not at all.

    Raises:
        InputError: More than 4 GiB.
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
        taken += len(part)
        if taken > MAX_BYTES:
            raise InputError(f"{name}: gives more than {MAX_BYTES >> 30} GiB; write it to a file, and give that")
        file.write(part)
