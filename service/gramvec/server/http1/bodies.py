"""Where a request's body ends: after as many bytes as its head says, or with its last chunk."""

from __future__ import annotations

import re
from typing import NamedTuple, Protocol

from gramvec.server.http1.limits import CHUNKS_A_TURN, Limits
from gramvec.server.http1.refusals import large_extensions, large_trailer, not_http

NEW_LINE = b"\r\n"
# The size of a chunk, of 64 bits at most, and its extensions; behind another chunk the end of that one stands before.
# No group is possessive: CPython before 3.11.5 goes on behind what a group's last try has read (gh-106052), and takes
# "1;" for a size with its extensions. No two alternatives begin alike, so trying again ends at once.
_TOKEN = rb"[!#$%&'*+.^_`|~0-9A-Za-z-]++"
_QUOTED = rb'"(?:[\t \x21\x23-\x5b\x5d-\x7e\x80-\xff]++|\\[\t \x21-\x7e\x80-\xff])*"'
_LINE = rb"([0-9A-Fa-f]{1,16})((?:;" + _TOKEN + rb"(?:=(?:" + _TOKEN + rb"|" + _QUOTED + rb"))?)*)\r\n"
_first_chunk = re.compile(_LINE).match
_next_chunk = re.compile(NEW_LINE + _LINE).match
_size = re.compile(rb"[0-9A-Fa-f]{1,16}(?=[;\r]|$)").match
_field = re.compile(_TOKEN + rb":[^\x00-\x08\x0a-\x1f\x7f]*+").fullmatch


class Piece(NamedTuple):
    """What was in some bytes: of the body, and what lies behind its end; None while there is more to come."""

    content: bytes
    rest: bytes | None


class Body(Protocol):
    """A body that is on its way. `held_up`: it has bytes that it has not looked at; `feed` it with none to go on."""

    @property
    def held_up(self) -> bool:
        """See above."""
        ...

    def feed(self, data: bytes) -> Piece:
        """Read on. Raises Refused."""
        ...


class Counted:
    """A body of a length that its head has told (RFC 9112, 6.2)."""

    __slots__ = ("_left",)

    held_up = False

    def __init__(self, length: int) -> None:
        self._left = length

    def feed(self, data: bytes) -> Piece:
        """Read on."""
        left = self._left
        if len(data) < left:
            self._left = left - len(data)
            return Piece(data, None)
        return Piece(data[:left], data[left:])


class Chunked:
    """A body in chunks (RFC 9112, 7.1), read strictly; extensions and trailer are dropped.

    Time is linear in what arrives, and nothing is held but a line that has not ended. What is refused does not depend
    on the pieces.
    """

    __slots__ = (
        "_extension_bytes",
        "_in_trailer",
        "_left",
        "_limits",
        "_line",
        "_read_chunk",
        "_trailer_bytes",
        "held_up",
    )

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._line = b""
        self._left = 0  # of this chunk
        self._read_chunk = _first_chunk
        self._in_trailer = self.held_up = False
        self._extension_bytes = self._trailer_bytes = 0

    def feed(self, data: bytes) -> Piece:
        """Read on. Raises Refused."""
        if self._line:
            data, self._line = self._line + data, b""
        contents: list[bytes] = []
        at, left, read_chunk = 0, self._left, self._read_chunk
        for _ in range(CHUNKS_A_TURN):
            if self._in_trailer:
                break
            if left:
                content = data[at : at + left]
                contents.append(content)
                left -= len(content)
                if left:
                    break
                at += len(content)
            line = read_chunk(data, at)
            if line is None:
                break
            size, extension = line.groups()
            if extension:
                self._count_extension(len(extension))
            at, left, read_chunk = line.end(), int(size, 16), _next_chunk
            self._in_trailer = not left
        else:
            self._left, self._read_chunk = left, read_chunk
            self._line, self.held_up = data[at:], True
            return Piece(b"".join(contents), None)
        self._left, self._read_chunk, self.held_up = left, read_chunk, False
        if self._in_trailer:
            return Piece(b"".join(contents), self._read_trailer(data, at))
        if not left:
            self._keep_line(data[at:])
        return Piece(b"".join(contents), None)

    def _count_extension(self, size: int) -> None:
        if self._extension_bytes + size > self._limits.extension_bytes:
            raise large_extensions(self._limits.extension_bytes)
        self._extension_bytes += size

    def _keep_line(self, line: bytes) -> None:
        """The beginning of a chunk's line, or of the end of the chunk before it."""
        begin = len(NEW_LINE) if self._read_chunk is _next_chunk else 0
        if not NEW_LINE.startswith(line[:begin]):
            raise not_http()
        if len(line) > begin:
            size = _size(line, begin)
            if size is None:
                raise not_http()
            end = line.find(b"\n", begin)
            extension = line[size.end() : end if end > 0 else None]
            if self._extension_bytes + len(extension) - extension.endswith(b"\r") > self._limits.extension_bytes:
                raise large_extensions(self._limits.extension_bytes)
            if end > 0:
                raise not_http()
        self._line = line

    def _read_trailer(self, data: bytes, at: int) -> bytes | None:
        """What lies behind the trailer, None while that has not ended."""
        while (end := data.find(NEW_LINE, at)) != at:
            size = (end + len(NEW_LINE) if end > 0 else len(data)) - at
            if self._trailer_bytes + size > self._limits.trailer_bytes:
                raise large_trailer(self._limits.trailer_bytes)
            if end < 0:
                self._line = data[at:]
                return None
            if not _field(data, at, end):
                raise not_http()
            self._trailer_bytes += size
            at = end + len(NEW_LINE)
        return data[at + len(NEW_LINE) :]
