"""Heads of requests that were read before: a client sends the same bytes again and again, but for the body's length.

To read a short request's head through the parser and its eight callbacks takes 2 us of 36.
"""

from __future__ import annotations

from typing import NamedTuple
from urllib.parse import unquote

import httptools

from gramvec.http.reply import Headers

# 1,000 heads of 200 bytes, as most are; a client that numbers its requests fills this with what never comes again.
MOST_HEADS = 1_000
LONGEST_HEAD = 2_048
END = b"\r\n\r\n"


class Target(NamedTuple):
    """What a request line asks for, as ASGI has it."""

    url: bytes
    path: str
    raw_path: bytes
    query: bytes

    @classmethod
    def of(cls, url: bytes, root_path: str) -> Target:
        """Raises httptools.HttpParserInvalidURLError."""
        raw_path, _, query = url.partition(b"?")
        if raw_path[:1] != b"/" or raw_path[:2] == b"//" or b"#" in url:
            parsed = httptools.parse_url(url)
            raw_path, query = parsed.path, parsed.query or b""
        path = raw_path.decode("ascii")
        return cls(
            url, root_path + (unquote(path) if "%" in path else path), root_path.encode("ascii") + raw_path, query
        )


NO_TARGET = Target(b"", "", b"", b"")


class Head(NamedTuple):
    """A head of a POST in HTTP/1.1 on a connection that stays open, with a body of known length."""

    target: Target
    headers: Headers
    head_bytes: int
    body_bytes: int


class Heads:
    """Those that a server's connections have read. Only heads that the parser has taken are remembered."""

    def __init__(self) -> None:
        self._known: dict[bytes, Head] = {}

    def find(self, data: bytes) -> Head | None:
        """The head of a request that is the whole of `data`, if it is known."""
        end = data.find(END, 0, LONGEST_HEAD)
        head = self._known.get(data[: end + len(END)]) if end > 0 else None
        return head if head is not None and head.head_bytes + head.body_bytes == len(data) else None

    def remember(self, data: bytes, target: Target, headers: Headers) -> None:
        """Take in the head that `data` begins with, if it is one of those and no longer than it has to be.

        The parser reads it as a POST of this target and these headers, and keeps the connection open. Another spelling,
        with more spaces, say, or bare line feeds, is not remembered, so that there is no doubt where the head ends.
        """
        end = data.find(END, 0, LONGEST_HEAD) + len(END)
        shortest = (
            len(b"POST  HTTP/1.1\r\n\r\n")
            + len(target.url)
            + sum(len(name) + len(value) + 4 for name, value in headers)
        )
        lengths = [value for name, value in headers if name == b"content-length"]
        special = any(name in (b"expect", b"upgrade", b"transfer-encoding") for name, _ in headers)
        if end != shortest or len(lengths) != 1 or special or not (lengths[0].isdigit() and len(lengths[0]) < 8):
            return
        if len(self._known) >= MOST_HEADS:
            self._known.clear()
        self._known[data[:end]] = Head(target, headers, end, int(lengths[0]))
