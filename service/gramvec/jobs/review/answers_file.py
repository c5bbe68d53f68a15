"""The file of answers: a CSV to which each answer is added, and is on disk before the next question is shown.

One process writes it at a time. A line that a kill left half written is removed when the file is opened again.
"""

from __future__ import annotations

import csv
import fcntl
import io
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from gramvec.errors import InputError
from gramvec.jobs.tables.writers import csv_line

# A review takes hours at most; a file far larger is another one.
MAX_BYTES = 256 << 20


class AnswersFile:
    """An open file of answers, locked against a second review.

    Args:
        path: the file; it is made if it is not there.
        columns: the names of its columns. A file with other columns is refused and stays as it is.
        older: other columns that are taken, of a file that an earlier version began; it keeps them.

    Attributes:
        columns: those of the file.
        answers: the rows below the header.

    Raises:
        InputError: the file has other columns, is too large or not UTF-8, or another review has it open.
    """

    def __init__(self, path: Path, columns: Sequence[str], older: Sequence[str] = ()) -> None:
        self.path = path
        self.columns, self._older = list(columns), list(older)
        try:
            self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o666)
        except OSError as error:
            raise InputError(f"{path}: cannot be opened for answers: {error.strerror}") from error
        try:
            self._lock()
            self.answers = self._read()
        except BaseException:
            os.close(self._file)
            raise
        self._lengths: list[int] = []
        self._time = os.fstat(self._file).st_mtime_ns

    def _lock(self) -> None:
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise InputError(
                f"{self.path}: another review has it open; close that one, or give `labels` another file"
            ) from error

    def _read(self) -> list[list[str]]:
        size = os.fstat(self._file).st_size
        if size > MAX_BYTES:
            raise InputError(f"{self.path}: has {size:,} bytes, a file of answers at most {MAX_BYTES:,}")
        data = os.pread(self._file, size, 0)
        if self._older and data.startswith(before := csv_line(self._older).encode()) and len(data) >= len(before):
            self.columns = self._older
        header = csv_line(self.columns).encode()
        if not data or (len(data) < len(header) and header.startswith(data)):
            os.ftruncate(self._file, 0)
            self._end = self._write(header, 0)
            return []
        if not data.startswith(header):
            raise InputError(f"{self.path}: is no file of answers; its first line must be {header.decode().strip()!r}")
        self._end = data.rfind(b"\n") + 1
        if self._end < size:
            os.ftruncate(self._file, self._end)
        return list(self._rows(data[len(header) : self._end]))

    def _rows(self, data: bytes) -> Iterator[list[str]]:
        try:
            text = data.decode()
            for row in csv.reader(io.StringIO(text, newline=""), strict=True):
                if len(row) != len(self.columns):
                    raise InputError(f"{self.path}: a row has {len(row)} columns, and {len(self.columns)} are wanted")
                yield row
        except (UnicodeDecodeError, csv.Error) as error:
            raise InputError(f"{self.path}: cannot be read as a file of answers: {error}") from error

    def _write(self, data: bytes, place: int) -> int:
        while data:
            written = os.pwrite(self._file, data, place)
            data, place = data[written:], place + written
        os.fsync(self._file)
        return place

    def check_unchanged(self) -> None:
        """Raise InputError where another program has replaced, removed or changed the file since the last answer."""
        try:
            there = self.path.stat(follow_symlinks=False)
        except OSError:
            there = None
        own = os.fstat(self._file)
        if there is None or (there.st_dev, there.st_ino, there.st_size, there.st_mtime_ns) != (
            own.st_dev, own.st_ino, self._end, self._time,
        ):  # fmt: skip
            raise InputError(
                f"{self.path}: another program has replaced or changed it, so nothing more is written; stop the review"
                " and start it again: it goes on with the answers that the file has"
            )

    def add(self, answer: Sequence[str]) -> None:
        """Write an answer; it is on disk when this returns.

        Raises:
            InputError: another program has replaced or changed the file; the answer is not among those that it has.
            OSError: the disk is full; nothing is written.
        """
        self.check_unchanged()
        before = self._end
        try:
            self._end = self._write(csv_line(answer).encode(), before)
        except OSError:
            os.ftruncate(self._file, before)
            self._note_time()
            raise
        self._note_time()
        self.check_unchanged()  # a file that was put in its place meanwhile does not have the answer
        self._lengths.append(self._end - before)
        self.answers.append(list(answer))

    def undo(self) -> list[str] | None:
        """Take back the last answer of this review and return it; None if there is none. Raises InputError as `add`."""
        if not self._lengths:
            return None
        self.check_unchanged()
        end = self._end - self._lengths[-1]
        os.ftruncate(self._file, end)
        os.fsync(self._file)
        self._note_time()
        self._end = end
        self._lengths.pop()
        return self.answers.pop()

    def _note_time(self) -> None:
        """Remember when this review changed the file last: a change of another time is another program's."""
        self._time = os.fstat(self._file).st_mtime_ns

    def close(self) -> None:
        """Close the file, so that another review may open it. A second call does nothing."""
        if self._file >= 0:
            os.close(self._file)
        self._file = -1
