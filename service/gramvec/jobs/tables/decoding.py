"""Files as other programs save them, read as UTF-8 with line feeds: UTF-16, and lines that end with only a CR."""

from __future__ import annotations

import codecs
import io
from collections.abc import Callable
from typing import BinaryIO, cast

from gramvec.errors import InputError, quote

UTF_16_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
UTF_16 = ("utf-16", "utf-16-le", "utf-16-be")
UTF_8_MARK = codecs.BOM_UTF8
CHUNK_BYTES = 1 << 16
ZIP, PARQUET = b"PK\x03\x04", b"PAR1"

Translate = Callable[[bytes, bool], bytes]


class TranslatedStream(io.RawIOBase):
    """Stream of what a function makes of another stream's bytes, chunk by chunk."""

    def __init__(self, stream: BinaryIO, translate: Translate) -> None:
        self._stream, self._translate = stream, translate
        self._waiting = b""
        self._ended = False

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, target: bytearray) -> int:  # type: ignore[override]
        """Fill a part of `target`, and return how many bytes; 0 at the end."""
        while not self._waiting and not self._ended:
            chunk = self._stream.read(CHUNK_BYTES)
            self._ended = not chunk
            self._waiting = self._translate(chunk, self._ended)
        taken = self._waiting[: len(target)]
        target[: len(taken)] = taken
        self._waiting = self._waiting[len(taken) :]
        return len(taken)


def translate_stream(stream: BinaryIO, translate: Translate) -> BinaryIO:
    """Return a buffered stream of the translated bytes."""
    return cast(BinaryIO, io.BufferedReader(TranslatedStream(stream, translate), CHUNK_BYTES))


def from_utf_16(encoding: str, name: str) -> Translate:
    """Return a function that makes UTF-8 of UTF-16. It raises InputError, with the file's name, for what is neither."""
    decoder = codecs.getincrementaldecoder(encoding)()

    def translate(data: bytes, final: bool) -> bytes:
        try:
            return decoder.decode(data, final).encode()
        except UnicodeError as error:  # a missing byte order mark, too
            raise InputError(f"{name}: is not {encoding.upper()} throughout ({quote(error)}); save again") from error

    return translate


def with_line_feeds(data: bytes, final: bool) -> bytes:
    """Return bytes with line feeds where carriage returns are."""
    return data.replace(b"\r", b"\n")


def ends_lines_with_cr(head: bytes) -> bool:
    """Return True where the first bytes of a file have carriage returns and no line feed."""
    return b"\r" in head.rstrip(b"\r") and b"\n" not in head


def what_it_is(head: bytes) -> str | None:
    """Return what to say of a file whose first bytes are not text in an encoding that has ASCII, else None."""
    if head.startswith(ZIP) and b"\0" in head:
        return 'is a zip file, as .xlsx and .ods are; give it that ending, or `input_format="xlsx"`'
    if head.startswith(PARQUET) and b"\0" in head:
        return 'is Parquet; give it that ending, or `input_format="parquet"`'
    pairs = len(head) // 2
    if pairs >= 4 and not head.startswith(UTF_8_MARK):
        for place, encoding in ((1, "utf-16-le"), (0, "utf-16-be")):
            if head[place::2].count(0) > 0.6 * pairs and head[1 - place :: 2].count(0) < 0.1 * pairs:
                return f'looks like UTF-16 without a byte order mark; give `encoding="{encoding}"`'
    return None
