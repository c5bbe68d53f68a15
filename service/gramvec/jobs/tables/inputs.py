"""Inputs: files or standard input, plain or compressed, read as bytes or as lines of bounded length."""

from __future__ import annotations

import codecs
import errno
import gzip
import io
import os
import shutil
import stat
import sys
import tempfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Literal, cast, get_args

from gramvec.errors import InputError, import_extra, quote
from gramvec.jobs.tables.decoding import (
    UTF_8_MARK,
    UTF_16,
    UTF_16_MARKS,
    Translate,
    ends_lines_with_cr,
    from_utf_16,
    translate_stream,
    what_it_is,
    with_line_feeds,
)

Form = Literal["txt", "jsonl", "json", "csv", "tsv", "parquet", "xlsx", "ods"]
SPREADSHEETS = ("xlsx", "ods")

# Forms whose end is read first.
WHOLE_FILES = ("parquet", *SPREADSHEETS)

FORMS = get_args(Form)
STDIN = Path("-")
COMPRESSED = (".gz", ".zst")
GZIP, ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
UTF_8 = "utf-8"
# The longest line, so that memory is bounded for a file without any line feed.
MAX_LINE_BYTES = 16 << 20
SKIP_BYTES = 1 << 20
# Bytes of a file that are read to detect its format.
HEAD_BYTES = 1 << 16
ALIASES: dict[str, Form] = {"ndjson": "jsonl", "pq": "parquet", "text": "txt", "tab": "tsv", "": "txt"}
_DELIMITERS = {"tab": "\t", "\\t": "\t"}


@dataclass(frozen=True)
class FileFormat:
    """Format of a table's file.

    Args:
        form: its kind.
        delimiter: what separates the columns of CSV; None recognizes a comma, semicolon, tab or pipe by the header.
        encoding: of text: utf-16, or any codec of Python in which ASCII characters are their own bytes.
        sheet: of a spreadsheet; None for its first.

    Raises:
        InputError: the delimiter or the encoding cannot be used, or the form has no sheets.
    """

    form: Form
    delimiter: str | None = None
    encoding: str = UTF_8
    sheet: str | None = None

    def __post_init__(self) -> None:
        delimiter = _DELIMITERS.get(self.delimiter or "", self.delimiter)
        if delimiter is not None and (len(delimiter) != 1 or delimiter in '"\r\n' or not delimiter.isascii()):
            raise InputError(
                f"delimiter: must be one ASCII character such as ';' or 'tab', got {quote(self.delimiter)}"
            )
        if self.sheet is not None and self.form not in SPREADSHEETS:
            raise InputError(f"sheet: a file in the form {self.form} has none, only .xlsx and .ods have; leave it out")
        object.__setattr__(self, "delimiter", delimiter)
        object.__setattr__(self, "encoding", codec_name(self.encoding))


def codec_name(encoding: str) -> str:
    """Return Python's name of an encoding.

    Raises InputError for one that is unknown, or neither UTF-16 nor a superset of ASCII.
    """
    ascii_characters = "".join(map(chr, range(128)))
    try:
        name = codecs.lookup(encoding).name
        usable = name in UTF_16 or ascii_characters.encode(encoding) == ascii_characters.encode("ascii")
    except (LookupError, ValueError, TypeError):
        usable, name = False, ""
    if not usable or name == "utf-7":
        raise InputError(
            f"encoding: {quote(encoding)} is unknown or not a superset of ASCII; "
            "give utf-8, utf-16, cp1252 or latin-1, or convert the file to UTF-8"
        )
    return UTF_8 if name == "ascii" else name


def form_of(path: Path, option: str = "input_format") -> Form:
    """Return the form that a file's ending names, also before .gz or .zst; "txt" without an ending.

    Raises InputError, which names the field that gives the form, for an ending that no reader has.
    """
    name = path.name.lower()
    for ending in COMPRESSED:
        name = name.removesuffix(ending)
    ending = Path(name).suffix.removeprefix(".")
    found = next((form for form in FORMS if form == ending), ALIASES.get(ending))
    if found is None:
        known = ", ".join(f".{form}" for form in FORMS)
        raise InputError(
            f"{path}: nothing is read as .{ending}; rename it to what it is ({known}), or give `{option}`,"
            f' such as `{option}="txt"`'
        )
    return found


class Source:
    """An open input, decompressed where its ending or its first bytes say gzip or Zstandard.

    `size` is the file's in bytes, None for a pipe.

    Args:
        path: the input; - is standard input.
        form: of the input. One that is read from a plain file alone refuses a pipe before it waits for a writer.
    """

    def __init__(self, path: Path, form: Form | FileFormat | None = None) -> None:
        self.path = path
        known = form.form if isinstance(form, FileFormat) else form
        if known in WHOLE_FILES and path != STDIN and path.exists() and not path.is_file() and not path.is_dir():
            raise InputError(f"{path}: .{known} is read from a plain file, and this is none; save it to one")
        self.name = "standard input" if path == STDIN else str(path)
        self._raw: BinaryIO = sys.stdin.buffer if path == STDIN else _open(path)
        status = None
        with suppress(OSError):  # a test's standard input may be in memory
            status = os.fstat(self._raw.fileno())
        self.is_file = status is not None and stat.S_ISREG(status.st_mode)
        self.size = status.st_size if status is not None and self.is_file else None
        self.mtime_ns = status.st_mtime_ns if status is not None else 0
        ending = path.suffix.lower()
        head = self._head()
        self.is_compressed = ending in COMPRESSED or head.startswith((GZIP, ZSTD))
        if ending == ".gz" or head.startswith(GZIP):
            self.stream: BinaryIO = io.BufferedReader(gzip.GzipFile(fileobj=self._raw))
        elif ending == ".zst" or head.startswith(ZSTD):
            self.stream = _open_zstd(self._raw)
        else:
            self.stream = self._raw
        self.is_translated = False
        self.also_closed: list[Callable[[], None]] = []

    def translate(self, encoding: str) -> str:
        """Make an unread stream one of UTF-8 with line feeds where it is not; return the encoding that it has then.

        Raises InputError for bytes that are no text at all.
        """
        head = self.peek()
        if head.startswith(UTF_8_MARK):
            encoding = UTF_8
        elif head.startswith(UTF_16_MARKS) and encoding not in UTF_16:
            encoding = "utf-16"
        elif encoding not in UTF_16 and (found_format := what_it_is(head)) is not None:
            raise InputError(f"{self.name}: {found_format}")
        if encoding in UTF_16:
            self._translate(from_utf_16(encoding, self.name))
            encoding, head = UTF_8, self.peek()
        if self.is_file and ends_lines_with_cr(head):
            self._translate(with_line_feeds)
        return encoding

    def _translate(self, by: Translate) -> None:
        self.stream, self.is_translated = translate_stream(self.stream, by), True

    @property
    def can_seek(self) -> bool:
        """Return True if the stream can go to any byte; others are read up to it."""
        return self.is_file and not self.is_compressed and not self.is_translated

    def _head(self) -> bytes:
        if not self.is_file or self.path == STDIN:
            return b""
        head = self._raw.read(len(ZSTD))
        self._raw.seek(0)
        return head

    @property
    def done(self) -> int:
        """Bytes of the file that have been read."""
        return self._raw.tell() if self.is_file else 0

    def peek(self) -> bytes:
        """Return bytes that are read next, of an unread file its first 64 KiB; b"" if the stream cannot look ahead."""
        stream: Any = self.stream
        if self.can_seek and self.path != STDIN:
            head: bytes = self._raw.read(HEAD_BYTES)
            self._raw.seek(-len(head), os.SEEK_CUR)
            return head
        with readable(self):
            found: bytes = getattr(stream, "peek", lambda _: b"")(HEAD_BYTES)
        return found

    def skip_to(self, offset: int) -> None:
        """Move an unread (decompressed) stream to this byte. Raises InputError if it ends before."""
        if self.can_seek:
            rest = max(offset - (self.size or 0), 0)
            self.stream.seek(offset - rest)
        else:
            rest = offset
            while rest > 0 and (taken := self.stream.read(min(rest, SKIP_BYTES))):
                rest -= len(taken)
        if rest:
            raise InputError(f"{self.name}: ends before the place where a run was stopped; start without `resume`")

    def close(self) -> None:
        """Close the file, and call what `also_closed` holds; standard input stays open."""
        for close in self.also_closed:
            close()
        if self.path != STDIN:
            self.stream.close()
            self._raw.close()


def _open(path: Path) -> BinaryIO:
    if path.is_dir():
        raise InputError(f"{path}: is a folder; give a file")
    try:
        return path.open("rb")
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror}); give a file, or - for standard input") from error


def _open_zstd(raw: BinaryIO) -> BinaryIO:
    """Return a stream of the decompressed bytes of a .zst file."""
    pa = import_extra("pyarrow", "bulk", "zstd")
    return io.BufferedReader(cast(io.RawIOBase, pa.CompressedInputStream(pa.PythonFile(raw, mode="r"), "zstd")))


class Lines:
    """Lines of a stream, split at line feeds only. `offset` and `number` (from 1) are those of the next line."""

    def __init__(self, stream: BinaryIO, offset: int = 0, number: int = 1) -> None:
        self.offset = offset
        self.number = number
        self._readline = stream.readline

    def read(self) -> bytes | None:
        """Return the next line with its line feed; b"" at the end, None for a line longer than 16 MiB."""
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
    """Turn the errors of a decompressor into InputError."""
    try:
        yield
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise InputError(f"{source.name}: damaged or cut off ({quote(error)}); compress it again") from error
    except OSError as error:
        if error.errno is not None:  # the system's own, which names its file
            raise
        raise InputError(f"{source.name}: damaged or cut off ({quote(error)}); compress it again") from error


NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def read_lines(source: BinaryIO) -> Iterator[str]:
    """Yield lines, split only at line feeds, without a carriage return at the end.

    Raises InputError, with the line's number, for a line that is not UTF-8.
    """
    for number, line in enumerate(source, start=1):
        try:
            yield line.removesuffix(b"\n").removesuffix(b"\r").decode("utf-8")
        except UnicodeDecodeError as error:
            raise InputError(f"line {number}: not UTF-8 ({error.reason}); convert the file, e.g. with iconv") from error


def why_not_written(error: OSError) -> str:
    """Return one sentence for what the system refused while a command wrote its results."""
    where = f"{error.filename}: " if error.filename else ""
    remedy = "make room or choose another place; no part of a file was left" if error.errno in NO_ROOM else "look there"
    if error.errno in (errno.EMFILE, errno.ENFILE):
        remedy = "raise the limit (ulimit -n)"
    return f"{where}{error.strerror or error}; {remedy}"


@contextmanager
def nameless_file() -> Iterator[tuple[BinaryIO, Path]]:
    """Open a temporary file that no folder lists, so that a kill leaves nothing, and give a path that opens it again.

    The path is good for this process and those that it starts, as long as the file is open.
    """
    descriptors = Path(f"/proc/{os.getpid()}/fd")
    if not descriptors.is_dir():  # on macOS, where a file without a name cannot be opened again
        with tempfile.NamedTemporaryFile(prefix="gramvec-") as named:
            yield cast(BinaryIO, named), Path(named.name)
        return
    with tempfile.TemporaryFile() as file:
        yield cast(BinaryIO, file), descriptors / str(file.fileno())


@contextmanager
def readable_twice(path: Path) -> Iterator[Path]:
    """Give a file that can be read more than once: the file itself, or a copy of all that standard input gives."""
    if path != STDIN:
        yield path
        return
    with nameless_file() as (file, copy):
        shutil.copyfileobj(sys.stdin.buffer, file)
        file.flush()
        yield copy
