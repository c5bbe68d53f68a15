"""Elements of a JSON array, cut out of a stream without parsing them: what `Lines` is for a file of lines."""

from __future__ import annotations

import re
from typing import BinaryIO

from gramvec.errors import InputError
from gramvec.jobs.tables.decoding import UTF_8_MARK
from gramvec.jobs.tables.inputs import MAX_LINE_BYTES

CHUNK_BYTES = 1 << 18
MAX_DEPTH = 1000

_STRING = rb'"(?:[^"\\]++|\\.)*+"'
# Up to the next bracket outside of strings; up to the end of a number, a word or a string.
_to_bracket = re.compile(rb'(?:[^"\[\]{}]++|' + _STRING + rb")*+([\[\]{}])", re.DOTALL).match
_scalar = re.compile(rb'(?:[^"\[\]{},\s]++|' + _STRING + rb")++(?=[,\]\s])", re.DOTALL).match
_space = re.compile(rb"\s*+").match


class JsonElements:
    """Elements of an array, each on one line. `offset` and `number` (from 1) are those of the next one.

    Args:
        stream: of the file; it may begin after an element.
        name: of the file, for messages.
        offset: of the stream's position, 0 for the beginning of the array.
        number: of the next element.
    """

    def __init__(self, stream: BinaryIO, name: str, offset: int = 0, number: int = 1) -> None:
        self.offset = offset
        self.number = number
        self._stream, self._name = stream, name
        self._buffer = b""
        self._at = 0  # in the buffer: where `offset` is
        self._ended = False

    def read(self) -> bytes:
        """Return the next element with a line feed; b"" after the last one.

        Raises InputError for what is no array, is cut off, or has an element of more than 16 MiB or 1,000 levels.
        """
        if self.offset == 0:
            if self._next() == b"":
                return b""  # an empty file has no rows
            if self._take() != b"[":
                raise InputError(f"{self._name}: is no JSON array of objects; give [{{...}}, {{...}}], or JSON lines")
            if self._next() == b"]":
                return self._last()
        else:
            separator = self._next()
            if separator == b"]":
                return self._last()
            if separator != b",":
                raise self._wrong("has no comma after it" if separator else "is the last one, and no ] comes after it")
            self._take()
            self._next()
        begin = self._at
        end = self._end()
        element = self._buffer[begin:end]
        self._at = end
        self.offset += end - begin
        self.number += 1
        return element.replace(b"\n", b" ").replace(b"\r", b" ") + b"\n"

    def _last(self) -> bytes:
        self._take()
        if self._next():
            raise self._wrong("is the last one, and something comes after the array")
        self.offset, self._ended = max(self.offset, 1), True
        self._buffer, self._at = b"]", 0  # another call finds the end again
        return b""

    def _wrong(self, what: str) -> InputError:
        return InputError(f"{self._name}: row {self.number - 1}: {what}; the array is damaged or cut off")

    def _fill(self) -> bool:
        """Read more; return False at the end. What lies before `_at` is dropped."""
        if self._ended:
            return False
        # Twice as much for an element that is long already, so that a search from its begin stays linear.
        chunk = self._stream.read(max(CHUNK_BYTES, len(self._buffer) - self._at))
        self._ended = not chunk
        self._buffer, self._at = self._buffer[self._at :] + chunk, 0
        return bool(chunk)

    def _next(self) -> bytes:
        """Skip spaces (and a byte order mark) and return the next byte, which is not taken; b"" at the end."""
        while True:
            if self.offset == 0 and self._buffer.startswith(UTF_8_MARK):
                self._skip(len(UTF_8_MARK))
            found = _space(self._buffer, self._at)
            assert found is not None
            self._skip(found.end() - self._at)
            if self._at < len(self._buffer):
                return self._buffer[self._at : self._at + 1]
            if not self._fill():
                return b""

    def _skip(self, size: int) -> None:
        self._at += size
        self.offset += size

    def _take(self) -> bytes:
        self._skip(1)
        return self._buffer[self._at - 1 : self._at]

    def _end(self) -> int:
        """Return where the element ends that begins at `_at`."""
        opens = self._buffer[self._at : self._at + 1] in (b"{", b"[")
        place, depth = self._at, 0
        while place - self._at <= MAX_LINE_BYTES:
            found = _to_bracket(self._buffer, place) if opens else _scalar(self._buffer, place)
            if found is None:
                before = place - self._at
                if len(self._buffer) - self._at > 2 * MAX_LINE_BYTES:
                    break
                if not self._fill():
                    raise InputError(f"{self._name}: row {self.number}: no JSON, or cut off; write the file again")
                place = before + self._at
                continue
            place = found.end()
            depth += 0 if not opens else 1 if found[1] in (b"{", b"[") else -1
            if depth == 0 and place - self._at <= MAX_LINE_BYTES:
                return place
            if depth > MAX_DEPTH:
                raise InputError(f"{self._name}: row {self.number}: nested deeper than {MAX_DEPTH:,} levels; flatten")
        raise InputError(f"{self._name}: row {self.number}: longer than {MAX_LINE_BYTES >> 20} MiB; split it")
