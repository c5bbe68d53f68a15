"""The head of a request: read by httptools as its bytes arrive, and checked for what two readers could take for two."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple
from urllib.parse import unquote

import httptools

from gramvec.server.http1.limits import Limits
from gramvec.server.http1.refusals import Refused, ambiguous, large_head, many_lines, not_http
from gramvec.server.responses import Headers

END = b"\r\n\r\n"
# The body comes in chunks, see `Head.length`.
CHUNKED = -1
# Of two of these, whoever stands before us may heed the other one (RFC 9112, 3.2 and 6.3).
SINGLE = frozenset({b"host", b"content-length", b"transfer-encoding", b"authorization"})
# The request's own line, and the empty one.
OTHER_LINES = 2
# A connection mostly asks for one thing. Longer ones are not kept.
SHORT_TARGET = 128


class Target(NamedTuple):
    """What a request line asks for, as ASGI has it."""

    url: bytes
    path: str
    raw_path: bytes
    query: bytes

    @classmethod
    def of(cls, url: bytes) -> Target:
        """Raises httptools.HttpParserInvalidURLError."""
        raw_path, _, query = url.partition(b"?")
        if raw_path[:1] != b"/" or raw_path[:2] == b"//" or b"#" in url:
            parsed = httptools.parse_url(url)
            raw_path, query = parsed.path or b"/", parsed.query or b""  # "http://host" has none
        path = raw_path.decode("ascii")
        return cls(url, unquote(path) if "%" in path else path, raw_path, query)


_cached_target = lru_cache(256)(Target.of)


class Head:
    """What a head says; all but `url` once it has ended.

    version: "1.0" or "1.1". headers: by lower-case name. length: bytes of the body, CHUNKED where it tells itself.
    waits: the client sends it when it is asked to. url: of the target, as much as has come.
    """

    __slots__ = ("complete", "headers", "keep_alive", "length", "method", "target", "url",
                 "version", "waits")  # fmt: skip

    method: str
    target: Target
    version: str
    length: int
    keep_alive: bool
    waits: bool

    def __init__(self) -> None:
        self.url = b""
        self.headers: Headers = []
        self.complete = False

    # What the parser calls

    def on_url(self, url: bytes) -> None:
        """A part of the target."""
        self.url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        """A whole header."""
        self.headers.append((name.lower(), value))

    def on_headers_complete(self) -> None:
        """The empty line."""
        self.complete = True

    def finish(self, parser: httptools.HttpRequestParser) -> None:
        """Look through what has come. Raises Refused."""
        known = dict(self.headers)
        if len(known) < len(self.headers):
            self._check_single()
        self.method, self.version = parser.get_method().decode("ascii"), parser.get_http_version()
        if self.version != "1.1" and self.version != "1.0":
            raise not_http()
        if self.method == "CONNECT":
            raise ambiguous("CONNECT asks for a tunnel, and this is no proxy; use one of the methods that /docs lists")
        if b"host" not in known and self.version == "1.1":
            raise ambiguous("the request has no Host header, which HTTP/1.1 wants; send one")
        try:
            self.target = (_cached_target if len(self.url) < SHORT_TARGET else Target.of)(self.url)
        except httptools.HttpParserError:
            raise not_http() from None
        self.keep_alive = self.version == "1.1" and not (b"connection" in known and _asks_to_close(self.headers))
        self.waits = b"expect" in known and self.version == "1.1" and known[b"expect"].lower() == b"100-continue"
        self.length = int(known.get(b"content-length", b"0"))  # the parser has refused what is no number
        if b"transfer-encoding" in known:
            # RFC 9112, 6.1: we know no other coding, and two lengths of a body are one too many.
            if known[b"transfer-encoding"].strip().lower() != b"chunked" or b"content-length" in known:
                raise ambiguous("the body's transfer-encoding is not chunked alone; send the body as it is")
            self.length = CHUNKED

    def _check_single(self) -> None:
        names = [name for name, _ in self.headers if name in SINGLE]
        for name in names:
            if names.count(name) > 1:
                raise ambiguous(f"the request has more than one header named {name.decode()}; send one")


def _asks_to_close(headers: Headers) -> bool:
    tokens = b",".join(value for name, value in headers if name == b"connection").lower().split(b",")
    return b"close" in map(bytes.strip, tokens)


class HeadReader:
    """One head, in as many pieces as it comes in. What is refused does not depend on the pieces.

    `size` are its bytes so far. (The parser refers to the head, and not the head to it: no cycle is left to collect.)
    """

    __slots__ = ("_lines", "_most_bytes", "_most_lines", "_parser", "_tail", "head", "size")

    def __init__(self, limits: Limits) -> None:
        self._most_bytes = limits.header_bytes
        self._most_lines = limits.header_lines + OTHER_LINES
        self.head = Head()
        self.size = 0
        self._lines = 0
        self._tail = b""  # the last three bytes, in which its end may have begun
        self._parser = httptools.HttpRequestParser(self.head)

    def feed(self, data: bytes) -> int:
        """Read on: how many of these bytes are the head's, if it ends in them, else 0. Raises Refused."""
        tail = self._tail
        place = (tail + data).find(END) if tail else data.find(END)
        size = place + len(END) - len(tail) if place >= 0 else len(data)
        if refusal := self._parse(data, size):
            raise refusal
        self.size += size
        if self.head.complete != (place >= 0):
            raise not_http()
        if place >= 0:
            self.head.finish(self._parser)
            return size
        self._tail = (tail + data)[1 - len(END) :]
        return 0

    def _parse(self, data: bytes, size: int) -> Refused | None:
        """Parse the first bytes, up to a limit; what is wrong with them."""
        refusal: Refused | None = None
        lines = data.count(b"\n", 0, size)
        if self._lines + lines > self._most_lines:
            size = _end_of_line(data, self._most_lines + 1 - self._lines)
            refusal = many_lines(self._most_lines - OTHER_LINES)
        if self.size + size > self._most_bytes:
            size, refusal = self._most_bytes - self.size, large_head(self._most_bytes)
        self._lines += lines
        try:
            self._parser.feed_data(data if size == len(data) else data[:size])
        except httptools.HttpParserUpgrade:
            pass  # RFC 9110, 7.8: a server may ignore the offer. What follows the head is read as if there were none.
        except httptools.HttpParserError:
            return not_http()
        return refusal


def _end_of_line(data: bytes, number: int) -> int:
    """Where so many lines end."""
    end = 0
    for _ in range(number):
        end = data.index(b"\n", end) + 1
    return end
