"""Standard streams of the command line: text of others cannot move a terminal's cursor, and any path can be printed."""

from __future__ import annotations

import codecs
import io
import sys
from collections.abc import Iterable
from typing import Any

from gramvec.errors import printable

# Where a command finds the line that called it, in the meta of its context.
COMMAND_LINE = "gramvec.command_line"

# A line feed ends a line and a tab separates columns; tqdm draws its bars over themselves by a carriage return.
KEPT, KEPT_IN_MESSAGES = "\n\t", "\n\t\r"


class EscapedBytes(io.RawIOBase):
    """Binary side of a stream: UTF-8 is escaped as text is."""

    def __init__(self, stream: Any, kept: str) -> None:
        self._stream, self._kept = stream, kept
        self._decoder = codecs.getincrementaldecoder("utf-8")("backslashreplace")

    def writable(self) -> bool:
        """Return True."""
        return True

    def write(self, data: Any) -> int:
        """Write UTF-8, a part of a character too."""
        self._stream.write(printable(self._decoder.decode(bytes(data)), self._kept).encode())
        return len(data)

    def flush(self) -> None:
        """Flush the stream."""
        self._stream.flush()


class EscapedText:
    """Text stream that escapes what it writes; everything else is the stream's own."""

    def __init__(self, stream: Any, kept: str) -> None:
        self._stream, self._kept = stream, kept
        self.buffer = EscapedBytes(stream.buffer, kept)

    def write(self, text: str) -> int:
        """Write text."""
        self._stream.write(printable(text, self._kept))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        """Write lines."""
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def set_up_streams() -> None:
    """Make results UTF-8 in any locale, unchanged for a program and escaped on a terminal, and escape messages."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if not hasattr(stream, "reconfigure"):  # closed, or a test's own
            continue
        # A path that is not UTF-8 has lone surrogates.
        stream.reconfigure(encoding="utf-8", errors="backslashreplace")
        if name == "stderr":
            sys.stderr = EscapedText(stream, KEPT_IN_MESSAGES)
        elif stream.isatty():
            sys.stdout = EscapedText(stream, KEPT)
