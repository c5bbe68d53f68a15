"""Parsing of requests: a head once it has arrived, by httptools and by checks of its meaning, and the end of a body.

Whatever two readers could understand in two ways is refused, and what is refused does not depend on the pieces in which
a request arrives.
"""

from __future__ import annotations

import re
from http import HTTPStatus
from typing import Any
from urllib.parse import unquote

import httptools

from gramvec.server.errors import ErrorType, HttpError
from gramvec.server.responses import Headers, error_response
from gramvec.server.settings import Settings

END = b"\r\n\r\n"
NEW_LINE = b"\r\n"
# The length of a body in chunks, see `Head.length`.
CHUNKED = -1
# Of two of these, a proxy in front may heed the other one (RFC 9112, 3.2 and 6.3).
SINGLE = frozenset({b"host", b"content-length", b"transfer-encoding", b"authorization"})
# The request line and the empty line.
OTHER_LINES = 2
# As many as 2**64 has.
MOST_LENGTH_DIGITS = 20
# Chunks of a body that are read before other connections have their turn.
CHUNKS_A_TURN = 4096

_bad_line_end = re.compile(rb"\r[^\n]|[^\r]\n").search


class Refused(HttpError):
    """A request that is answered without the application; the connection is closed afterwards.

    Args:
        status: of the answer.
        sentence: of the answer.
        error_type: of the answer.
        retry: seconds of its Retry-After, 0 for none.
    """

    def __init__(self, status: int, sentence: str, *, error_type: ErrorType = "validation", retry: int = 0) -> None:
        later = {"Retry-After": str(retry)} if retry else {}
        super().__init__(status, error_type, sentence, {"Connection": "close", **later})

    def answer(self, target: bytes = b"") -> bytes:
        """Return the whole answer, in OpenAI's shape if the target of the request is below /v1."""
        refusal = error_response(self, target.partition(b"?")[0].decode("latin-1"))
        first = f"HTTP/1.1 {self.status} {HTTPStatus(self.status).phrase}".encode()
        return b"\r\n".join([first, *(b"%b: %b" % header for header in refusal.raw_headers), b"", *refusal.parts])


def not_http() -> Refused:
    """Return the refusal of bytes that are not HTTP/1.1."""
    return Refused(400, "the request is not HTTP/1.1; send it again over another connection")


class RequestHead:
    """A parsed head.

    Attributes:
        url: the target as it was sent.
        headers: with lower-case names.
        scope: the method, version and parts of the target as ASGI has them.
        length: bytes of the body, CHUNKED if it is in chunks.
        waits: the client sends its body only after a 100 (Continue).
    """

    scope: dict[str, Any]
    length: int
    keep_alive: bool
    waits: bool

    def __init__(self) -> None:
        self.url = b""
        self.headers: Headers = []
        self.complete = False

    @classmethod
    def parse(cls, raw: bytes, settings: Settings) -> RequestHead:
        """Parse a head with its empty line. Raises Refused."""
        if _is_malformed(raw):
            raise not_http()
        if raw.count(b"\n") > settings.max_header_lines + OTHER_LINES:
            raise Refused(431, f"the request has more than {settings.max_header_lines} header lines; send fewer")
        head = cls()
        parser = httptools.HttpRequestParser(head)
        try:
            parser.feed_data(raw)
        except httptools.HttpParserUpgrade:
            pass  # RFC 9110, 7.8: a server may ignore the offer
        except httptools.HttpParserError:
            raise not_http() from None
        if not head.complete:
            raise not_http()
        head._finish(parser)
        return head

    # Callbacks of httptools

    def on_url(self, url: bytes) -> None:
        """Take a part of the target."""
        self.url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a whole header."""
        self.headers.append((name.lower(), value))

    def on_headers_complete(self) -> None:
        """Take the empty line."""
        self.complete = True

    def _finish(self, parser: httptools.HttpRequestParser) -> None:
        known = dict(self.headers)
        if len(known) < len(self.headers):
            self._check_single()
        method, version = parser.get_method().decode("ascii"), parser.get_http_version()
        if version not in ("1.1", "1.0"):
            raise not_http()
        if method == "CONNECT":
            sentence = "CONNECT asks for a tunnel, and this is no proxy; use one of the methods that /docs lists"
            raise Refused(400, sentence)
        if b"host" not in known and version == "1.1":
            raise Refused(400, "the request has no Host header, which HTTP/1.1 wants; send one")
        self.scope = {"method": method, "http_version": version, **_target(self.url)}
        self.keep_alive = version == "1.1" and not (b"connection" in known and _asks_to_close(self.headers))
        self.waits = b"expect" in known and version == "1.1" and known[b"expect"].lower() == b"100-continue"
        length = known.get(b"content-length", b"0")  # httptools has refused whatever is not a number below 2**64
        if len(length) > MOST_LENGTH_DIGITS:  # zeros in front of it, and Python refuses to read thousands of them
            raise not_http()
        self.length = int(length)
        if b"transfer-encoding" in known:
            # RFC 9112, 6.1: no other coding is known here, and two lengths of a body are one too many.
            if known[b"transfer-encoding"].strip().lower() != b"chunked" or b"content-length" in known:
                raise Refused(400, "the body's transfer-encoding is not chunked alone; send the body as it is")
            self.length = CHUNKED

    def _check_single(self) -> None:
        names = [name for name, _ in self.headers if name in SINGLE]
        for name in names:
            if names.count(name) > 1:
                raise Refused(400, f"the request has more than one header named {name.decode()}; send one")


def _target(url: bytes) -> dict[str, Any]:
    """Return the parts of a target as ASGI has them. Raises Refused."""
    raw_path, _, query = url.partition(b"?")
    if raw_path[:1] != b"/" or raw_path[:2] == b"//" or b"#" in url:
        try:
            parsed = httptools.parse_url(url)
        except httptools.HttpParserError:
            raise not_http() from None
        raw_path, query = parsed.path or b"/", parsed.query or b""  # "http://host" has none
    path = raw_path.decode("ascii")
    return {"path": unquote(path) if "%" in path else path, "raw_path": raw_path, "query_string": query}


def _asks_to_close(headers: Headers) -> bool:
    tokens = b",".join(value for name, value in headers if name == b"connection").lower().split(b",")
    return b"close" in map(bytes.strip, tokens)


def _is_malformed(raw: bytes | bytearray, start: int = 0) -> bool:
    """Return whether this cannot become a head: it begins with no method, or a line ends in CR or LF alone."""
    return not raw[:1].isalpha() or _bad_line_end(raw, start) is not None


class HeadReader:
    """A head that arrives in pieces. It is parsed once it has ended; until then it is only bounded."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._raw = bytearray()

    @property
    def size(self) -> int:
        """Bytes so far."""
        return len(self._raw)

    @property
    def url(self) -> bytes:
        """The target, as far as it has arrived."""
        line = bytes(self._raw[: self._settings.max_header_bytes]).partition(b"\r")[0]
        return line.partition(b" ")[2].partition(b" ")[0]

    def feed(self, data: bytes) -> tuple[RequestHead, int] | None:
        """Return the head and how many of these bytes are its last ones; None if it has not ended. Raises Refused."""
        raw, before, most = self._raw, len(self._raw), self._settings.max_header_bytes
        raw += data[: most - before + 1]
        place = raw.find(END, max(0, before - len(END) + 1))
        size = place + len(END)
        if place >= 0 and size <= most:
            return RequestHead.parse(bytes(raw[:size]), self._settings), size - before
        if _is_malformed(raw, max(0, before - 1)):
            raise not_http()
        if len(raw) > most:
            raise Refused(
                431, f"the request line and headers are larger than the limit of {most} bytes; send less in them"
            )
        return None


# The size of a chunk, of 64 bits at most, and its extensions; the line end of the chunk before stands in front.
# No group is possessive: CPython before 3.11.5 goes on behind what a group's last try has read (gh-106052), and takes
# "1;" for a size with its extensions. No two alternatives begin alike, so backtracking ends at once.
_TOKEN = rb"[!#$%&'*+.^_`|~0-9A-Za-z-]++"
_QUOTED = rb'"(?:[\t \x21\x23-\x5b\x5d-\x7e\x80-\xff]++|\\[\t \x21-\x7e\x80-\xff])*"'
_LINE = rb"([0-9A-Fa-f]{1,16})((?:;" + _TOKEN + rb"(?:=(?:" + _TOKEN + rb"|" + _QUOTED + rb"))?)*)\r\n"
_first_chunk = re.compile(_LINE).match
_next_chunk = re.compile(NEW_LINE + _LINE).match
_field = re.compile(_TOKEN + rb":[^\x00-\x08\x0a-\x1f\x7f]*+").fullmatch
MOST_DIGITS = 16


# Parsed bytes of a body: its content, what lies behind, and whether that is behind its end.
Piece = tuple[bytes, bytes, bool]


class Counted:
    """A body whose head gives its length (RFC 9112, 6.2)."""

    def __init__(self, length: int) -> None:
        self._left = length

    def feed(self, data: bytes) -> Piece:
        """Parse more bytes."""
        left = self._left
        self._left = left - len(data)
        return data[:left], data[left:], len(data) >= left


class Chunked:
    """A body in chunks (RFC 9112, 7.1), read strictly; extensions and trailer are dropped.

    The time is linear in what arrives, and only an unfinished line is held.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._line = b""
        self._left = 0  # of this chunk
        self._read_chunk = _first_chunk
        self._in_trailer = False
        self._extension_bytes = self._trailer_bytes = 0

    def feed(self, data: bytes) -> Piece:
        """Parse more bytes, up to so many chunks that others have to have their turn. Raises Refused."""
        data, self._line = self._line + data, b""
        contents: list[bytes] = []
        at, left = 0, self._left
        for _ in range(CHUNKS_A_TURN):
            if self._in_trailer:
                rest = self._read_trailer(data, at)
                return b"".join(contents), rest or b"", rest is not None
            content = data[at : at + left]
            contents.append(content)
            left -= len(content)
            at += len(content)
            if left:
                break
            line = self._read_chunk(data, at)
            if line is None:
                self._keep_line(data[at:])
                at = len(data)
                break
            size, extension = line.groups()
            if extension:
                self._check_extension(len(extension))
                self._extension_bytes += len(extension)
            at, left, self._read_chunk = line.end(), int(size, 16), _next_chunk
            self._in_trailer = not left
        self._left = left
        return b"".join(contents), data[at:], False

    def _check_extension(self, size: int) -> None:
        most = self._settings.max_extension_bytes
        if self._extension_bytes + size > most:
            raise Refused(
                431, f"the extensions of the body's chunks are larger than the limit of {most} bytes; leave them out"
            )

    def _keep_line(self, line: bytes) -> None:
        """Keep the beginning of a chunk's line, behind the line end of the chunk before."""
        begin = len(NEW_LINE) if self._read_chunk is _next_chunk else 0
        size, mark, extension = line[begin:].partition(NEW_LINE)[0].partition(b";")
        if not NEW_LINE.startswith(line[:begin]) or len(size.removesuffix(b"\r")) > MOST_DIGITS:
            raise not_http()
        self._check_extension(len(mark) + len(extension.removesuffix(b"\r")))
        if line.find(b"\n", begin) >= 0:
            raise not_http()
        self._line = line

    def _read_trailer(self, data: bytes, at: int) -> bytes | None:
        """Return what lies behind the trailer, None if that has not ended."""
        most = self._settings.max_trailer_bytes
        while (end := data.find(NEW_LINE, at)) != at:
            size = (end + len(NEW_LINE) if end > 0 else len(data)) - at
            if self._trailer_bytes + size > most:
                raise Refused(431, f"the trailer is larger than the limit of {most} bytes; send less in it")
            if end < 0:
                self._line = data[at:]
                return None
            if not _field(data, at, end):
                raise not_http()
            self._trailer_bytes += size
            at = end + len(NEW_LINE)
        return data[at + len(NEW_LINE) :]
