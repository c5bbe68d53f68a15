"""uvicorn's protocol of HTTP/1.1 with limits: what a client may send, hold and delay on a connection.

Any uvicorn takes it: `uvicorn --http gramvec.server.edge.protocol:LimitedProtocol APPLICATION`. llhttp parses, uvicorn
has the application answer; here are bounds on heads, bodies and their framing, requests sent ahead, readers,
connections and waits, refusal of what two readers could understand in two ways, and an end that loses no answer.
"""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from http import HTTPStatus
from typing import Any, ClassVar, NamedTuple

import httptools
from uvicorn._types import ASGI3Application
from uvicorn.config import Config
from uvicorn.protocols.http.flow_control import HIGH_WATER_LIMIT, FlowControl
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle
from uvicorn.server import ServerState

from gramvec.server.batching.queue import HAS_GONE
from gramvec.server.errors import ErrorType, HttpError
from gramvec.server.request_ids import new_request_id
from gramvec.server.responses import Headers, error_response

# A body, or an answer that is taken, below this many bytes a second is too slow, once its timeout is over.
MIN_RATE = 500
# This much is read and dropped of a body whose request was answered before it had arrived; more closes the connection.
MAX_DISCARDED_BYTES = 256 * 1024
# A client that is refused while it still sends would lose the answer if the connection were closed at once.
LINGER_SECONDS = 1.0
SWEEP_SECONDS = 0.5
# So much is parsed at a time where the end of a request is not known: few requests that are sent ahead become objects.
PIECE_BYTES = 2 * 1024
# Beside its content, for each chunk of a body: its size and two line ends.
CHUNK_LINE_BYTES = 20
# A chunk costs as much as a kilobyte, so the more there are, the larger they have to be.
FREE_CHUNKS, MIN_CHUNK_BYTES = 256, 64
# Escapes in the path of a target, which Python decodes one by one.
MAX_ESCAPES = 1_000
# A connection beyond the limit has this long to ask for a probe.
PROBE_SECONDS = 1.0
# A client that has closed its side may wait for its answer, as `nc -N` does, or have gone. Without an answer for this
# long the second is supposed, and nothing more is computed for it.
HALF_CLOSED_SECONDS = 5.0
# Bytes of unfinished heads and of requests sent ahead that a connection holds without being counted.
UNCOUNTED_BYTES = 4 * 1024
# As many as 2**64 has; Python refuses to read thousands of them.
MAX_LENGTH_DIGITS = 20
# TLS encrypts a write as a whole and hands it on, unless its socket is full. Only what it has kept counts as unsent, so
# a large answer is written in pieces.
TLS_PIECE_BYTES = 64 * 1024
# For a socket (struct linger): on, for no second.
NO_LINGERING = struct.pack("ii", 1, 0)
# Headers that may occur only once: a proxy in front may heed the other of two (RFC 9112, 3.2 and 6.3).
SINGLE = (b"host", b"content-length", b"transfer-encoding", b"authorization", b"api-key", b"content-encoding")
# What a full service still answers: one whose probes fail is started anew, which helps nobody.
PROBES = frozenset({b"/health", b"/ready", b"/ping", b"/v2/health/live", b"/v2/health/ready"})


class Limits(NamedTuple):
    """Limits of connections, as the settings of the same names.

    Attributes:
        connections: more are answered 503.
        header_bytes, header_lines: of a head.
        framing_bytes: of a body's chunk extensions and trailer together.
        unread_bytes: of unfinished heads and of requests sent ahead, of all connections.
        header_seconds, body_seconds, send_seconds: waits for a head, more of a body, and a client that reads.
        keep_alive_seconds: until an idle connection is closed. Longer than the 60 s that most load balancers keep one:
            the side that reuses it must be first to close it.
    """

    connections: int = 4096
    header_bytes: int = 64 * 1024
    header_lines: int = 100
    framing_bytes: int = 16 * 1024
    unread_bytes: int = 16 * 1024 * 1024
    header_seconds: float = 20.0
    body_seconds: float = 30.0
    send_seconds: float = 60.0
    keep_alive_seconds: float = 75.0


class Refusal(HttpError):
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

    def answer(self, target: bytes, request_id: bytes) -> bytes:
        """Return the whole answer with an id, in OpenAI's shape if the target of the request is below /v1."""
        refusal = error_response(self, target.partition(b"?")[0].decode("latin-1"))
        first = f"HTTP/1.1 {self.status} {HTTPStatus(self.status).phrase}".encode()
        headers = [(b"x-request-id", request_id), *refusal.raw_headers]
        return b"\r\n".join([first, *(b"%b: %b" % header for header in headers), b"", *refusal.parts])


def non_http_refusal() -> Refusal:
    """Return the refusal of bytes that are not HTTP/1.1."""
    return Refusal(400, "the request is not HTTP/1.1; send it again over another connection")


def full_refusal() -> Refusal:
    """Return the refusal of a connection beyond the limit."""
    sentence = "the service has as many connections as it takes; try again later, or use one for many requests"
    return Refusal(503, sentence, error_type="unhealthy", retry=1)


def large_head_refusal(limit: int) -> Refusal:
    """Return the refusal of a head of too many bytes."""
    return Refusal(431, f"the request line and headers are larger than the limit of {limit} bytes; send less in them")


class Guard:
    """Limits of a server's connections, and what is counted and watched of all of them.

    Args:
        limits: of each connection, and on their number.
        count_refused: takes the status of an answer that the application never gave, whether it has seen the request,
            and the id that the answer has.

    Attributes:
        draining: each connection is closed with its next answer.
        members: the open connections.
        unread_bytes: that they hold of unfinished heads and of requests sent ahead.
    """

    def __init__(self, limits: Limits, count_refused: Callable[..., object] = lambda *_, **__: None) -> None:
        self.limits = limits
        self.count_refused = count_refused
        self.draining = False
        self.members: set[LimitedProtocol] = set()
        self.unread_bytes = 0
        self._sweeping = False

    def watch(self, connection: LimitedProtocol) -> None:
        """Close this connection once one of its waits is over."""
        self.members.add(connection)
        if not self._sweeping:
            self._sweeping = True
            connection.loop.call_later(SWEEP_SECONDS, self._sweep, connection.loop)

    def _sweep(self, loop: asyncio.AbstractEventLoop) -> None:
        self._sweeping = bool(self.members)
        if self._sweeping:
            loop.call_later(SWEEP_SECONDS, self._sweep, loop)
        now = loop.time()
        for connection in list(self.members):
            connection.sweep(now)

    def drain(self) -> None:
        """Close each connection with its last answer."""
        self.draining = True
        for connection in self.members:
            connection.close_after_answer()

    @property
    def busy(self) -> bool:
        """Return True while a request is in flight."""
        return any(connection.in_flight for connection in self.members)

    def unsent_bytes(self) -> int:
        """Return the bytes of answers that clients have yet to take."""
        return sum(connection.unsent for connection in self.members)


class GuardedTransport:
    """A connection's transport as uvicorn sees it: it closes without losing an answer, and resumes what was kept."""

    def __init__(self, connection: LimitedProtocol, transport: Any) -> None:
        self.raw = transport
        self.written = 0
        self.get_extra_info = transport.get_extra_info
        self.close = connection.close_own_side
        self.resume_reading = connection.read_on
        self._paused = False
        self.parted = False
        self._is_encrypted = transport.get_extra_info("sslcontext") is not None

    def write(self, data: bytes) -> None:
        """Write a part of an answer, and count it."""
        size = len(data)
        self.written += size
        if self._is_encrypted and size > TLS_PIECE_BYTES:
            whole = memoryview(data)
            for at in range(0, size, TLS_PIECE_BYTES):
                self.raw.write(whole[at : at + TLS_PIECE_BYTES])
        else:
            self.raw.write(data)

    def reset(self) -> None:
        """Close the connection, and have the system drop what it still holds for the client."""
        connection = self.raw.get_extra_info("socket")
        if connection is not None:
            with suppress(OSError):
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, NO_LINGERING)
        self.raw.abort()

    def is_closing(self) -> bool:
        """Return whether nothing more is answered."""
        return self.parted or self.raw.is_closing()

    def pause_reading(self) -> None:
        """Stop reading."""
        if not self._paused:
            self._paused = True
            self.raw.pause_reading()

    def resume(self) -> None:
        """Read again."""
        if self._paused:
            self._paused = False
            if not self.raw.is_closing():
                self.raw.resume_reading()


class LimitedProtocol(HttpToolsProtocol):
    """A connection with the limits of `guard`; see uvicorn's class for the rest."""

    guard: ClassVar[Guard] = Guard(Limits())

    transport: Any

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        # When the last bytes arrived, when the current phase (idle, head, body) began, and its bytes of a body.
        self._heard = self._since = self._unsent_since = self.loop.time()
        self._answer_since: float | None = None  # since when some of an answer is unsent
        self._body_bytes = 0
        self._unsent = 0  # bytes of answers, at the last look
        self._taken_before = 0  # bytes of answers that were taken by then
        self._ended_at: float | None = None  # when the client has closed its side
        self._is_extra = False  # beyond the limit on connections
        self._chunks = self._trailer_lines = 0  # of a body
        self._in_head = self._in_body = self._is_offer = self._ignores_input = self._scheduled = False
        self._head_bytes = 0  # of an unfinished head, in whole pieces
        self._left = 0  # bytes of a body whose length is known
        self._content = 0  # bytes of all bodies, and of the lines that each of their chunks needs
        self._framing_bytes = 0
        self._discarded = 0  # bytes of a body that arrived after the answer
        self._ahead = b""  # bytes that are not parsed yet
        self._held = 0  # bytes that the guard counts
        self._running: RequestResponseCycle | None = None
        self._last: RequestResponseCycle | None = None  # whose answer closes the connection, because of a drain
        self._refusal: Refusal | None = None  # after the answers that are due
        self._checked: tuple[str, Headers] | None = None
        self._length = self._size = 0  # of the body that the checked headers announce, and of these themselves

    def connection_made(self, transport: Any) -> None:
        """Accept the connection, or answer that there are too many."""
        super().connection_made(transport)
        self.transport = GuardedTransport(self, transport)
        self.flow = FlowControl(self.transport)
        self.guard.watch(self)
        limit = self.guard.limits.connections
        if len(self.guard.members) > 2 * limit:
            self._ignores_input = True
            transport.abort()
        elif len(self.guard.members) > limit:
            self._is_extra = True

    def connection_lost(self, exc: Exception | None) -> None:
        """Release everything, and wake those who wait for the client."""
        self.guard.members.discard(self)
        self._ignores_input, self._ahead = True, b""
        self._count_held(0)
        self.pipeline.clear()
        self.transport.parted = True
        self._disconnect()
        super().connection_lost(exc)

    def eof_received(self) -> bool:  # type: ignore[override]
        """Answer what has arrived whole, though the client sends no more; a torn request is forgotten."""
        if self._in_body and self.pipeline and self.pipeline[0][0] is self.cycle:
            self.pipeline.popleft()
        elif self._in_body and self._running is self.cycle:
            self._disconnect()
        self._ended_at = self.loop.time() if self._ended_at is None else self._ended_at
        # TLS has no half of a connection.
        return self.scheme == "http" and bool(self.in_flight or self.pipeline or self._ahead)

    def _disconnect(self) -> None:
        running = self._running
        if running is not None and not running.response_complete:
            running.disconnected = True
            running.message_event.set()

    # What a sweep and a drain ask

    @property
    def in_flight(self) -> bool:
        """Return True while a request has begun and is not answered."""
        running = self._running
        return running is not None and not (running.response_complete or running.disconnected)

    @property
    def unsent(self) -> int:
        """Bytes of answers that the client has yet to take."""
        return int(self.transport.raw.get_write_buffer_size())

    def close_after_answer(self) -> None:
        """Close the connection with the answer to the last request that has arrived."""
        if self.in_flight and self.cycle.keep_alive:
            self._last, self.cycle.keep_alive = self.cycle, False

    def sweep(self, now: float) -> None:
        """Close the connection if a wait for its client is over."""
        limits = self.guard.limits
        if self._is_read_too_slowly(now) or self._seems_gone(now):
            self.transport.reset()
        elif self._ignores_input or self.transport.is_closing():
            pass
        elif self._ahead or self.flow.read_paused or (self.in_flight and not self._in_body):
            self._since = self._heard = now  # the server caused the delay
        elif self._is_extra and now - self._since > PROBE_SECONDS:
            self._refuse(full_refusal())
        elif self._in_body:
            limit = limits.body_seconds
            if now - self._heard > limit or now - self._since > limit + self._body_bytes / MIN_RATE:
                self._refuse(Refusal(408, f"the body did not arrive within {limit:g} s or so; send it again, faster"))
        elif self._in_head:
            limit = limits.header_seconds
            if now - self._since > limit:
                self._refuse(Refusal(408, f"the headers did not arrive within {limit:g} s; send the request again"))
        elif now - self._since > limits.keep_alive_seconds:
            self.close_own_side(may_send=True)

    def _is_read_too_slowly(self, now: float) -> bool:
        """Return True for a client that takes nothing of its answers for too long, or too little of them."""
        limit, unsent, written = self.guard.limits.send_seconds, self.unsent, self.transport.written
        if unsent != self._unsent:
            self._unsent, self._unsent_since = unsent, now
        if not unsent:
            self._answer_since = None
            return False
        if self._answer_since is None:  # what the system has taken until now, no client has
            self._answer_since, self._taken_before = now, written - unsent
        taken = written - unsent - self._taken_before
        return now - self._unsent_since > limit or now - self._answer_since > limit + taken / MIN_RATE

    def _seems_gone(self, now: float) -> bool:
        """Return True for a client that has closed its side, and has waited for an answer for long."""
        if self._ended_at is None or now - self._ended_at <= HALF_CLOSED_SECONDS:
            return False
        return self.in_flight and self._running is not None and not self._running.response_started

    # Reading

    def data_received(self, data: bytes) -> None:
        """Parse what has arrived, or keep it for later."""
        self._heard = self.loop.time()
        if self._ignores_input:
            return
        if self._ahead:
            self._ahead += data
        else:
            self._feed(data)
        if self._in_head or self._ahead or self._held:
            self._count_unread()

    def read_on(self) -> None:
        """Read again, first what was kept, once others have had their turn."""
        if not self._ahead:
            self.transport.resume()
        elif not self._scheduled:
            self._scheduled = True
            self.loop.call_soon(self._read_kept)

    def _read_kept(self) -> None:
        self._scheduled = False
        if not (self._ignores_input or self.flow.read_paused):
            data, self._ahead = self._ahead, b""
            self._feed(data)
            self._count_unread()
            if not (self._ahead or self.flow.read_paused):
                self.transport.resume()

    def _count_unread(self) -> None:
        """Count the bytes of this connection that belong to no request yet, and refuse more than all may hold."""
        self._count_held(max(0, len(self._ahead) + self._head_bytes * self._in_head - UNCOUNTED_BYTES))
        max_bytes = self.guard.limits.unread_bytes
        if self._held and self.guard.unread_bytes > max_bytes and not self._ignores_input:
            sentence = f"unfinished heads and requests sent ahead hold more than {max_bytes} bytes; try again later"
            self._refuse(Refusal(503, sentence, error_type="unhealthy", retry=1))

    def _count_held(self, size: int) -> None:
        self.guard.unread_bytes += size - self._held
        self._held = size

    def _feed(self, data: bytes) -> None:
        """Parse as much as is due now, and keep the rest."""
        at, size = 0, len(data)
        while at < size and not self._ignores_input:
            if self.pipeline or self.flow.read_paused:
                self._ahead = data[at:]
                self.flow.pause_reading()
                return
            end = at + max(self._left, PIECE_BYTES)
            piece = data if at == 0 and end >= size else data[at:end]
            was_in_head = self._in_head
            content = self._content
            try:
                self.parser.feed_data(piece)
            except httptools.HttpParserUpgrade as offer:
                data = self._drop_offer() + data[at + offer.args[0] :]
                at, size = 0, len(data)
                continue
            except httptools.HttpParserError as error:
                reason = error.__context__
                self._refuse(reason if isinstance(reason, Refusal) else non_http_refusal())
                return
            at = end
            if self._in_head:
                self._head_bytes += len(piece) if was_in_head else 0
                if self._head_bytes > self.guard.limits.header_bytes:
                    self._refuse(large_head_refusal(self.guard.limits.header_bytes))
            elif self._in_body and not self._left:  # in chunks; what came before them in this piece counts, too
                self._framing_bytes += len(piece) - (self._content - content)
                max_bytes = self.guard.limits.framing_bytes
                if self._framing_bytes > max_bytes:
                    sentence = f"the chunks' extensions and trailer are larger than the limit of {max_bytes} bytes"
                    self._refuse(Refusal(431, f"{sentence}; leave them out"))

    def _drop_offer(self) -> bytes:
        """Return the head without its offer of another protocol, and read it with a new parser.

        A server may ignore the offer (RFC 9110, 7.8); llhttp would take what follows for the other protocol.
        """
        line = b"%b %b HTTP/%b\r\n" % (self.parser.get_method(), self.url, self.parser.get_http_version().encode())
        kept = b"".join(b"%b: %b\r\n" % header for header in self.headers if header[0] != b"upgrade")
        self._is_offer = False
        self.parser = httptools.HttpRequestParser(self)
        self.parser.set_dangerous_leniencies(lenient_data_after_close=True)
        return line + kept + b"\r\n"

    # Callbacks of httptools

    def on_message_begin(self) -> None:
        """Begin a head."""
        super().on_message_begin()
        self._in_head, self._head_bytes, self._since = True, 0, self._heard

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a line of a head, or drop one of a trailer. Raises Refusal for one too many."""
        max_lines = self.guard.limits.header_lines
        if self._in_body:
            self._trailer_lines += 1
            if self._trailer_lines > max_lines:
                raise Refusal(431, f"the body's trailer has more than {max_lines} lines; leave it out")
            return
        if len(self.headers) == max_lines:
            raise Refusal(431, f"the request has more than {max_lines} header lines; send fewer")
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Check the head, and have the application answer. Raises Refusal."""
        self._in_head = False
        parser, headers = self.parser, self.headers
        version = parser.get_http_version()
        if parser.should_upgrade():
            if parser.get_method() == b"CONNECT":
                sentence = "CONNECT asks for a tunnel, and this is no proxy; use one of the methods that /docs lists"
                raise Refusal(400, sentence)
            self._is_offer = True
            return
        if self._checked is None or self._checked != (version, headers):
            self._length = self._check(version, headers)
            self._checked = version, headers
        if self._size + len(self.url) > self.guard.limits.header_bytes:
            raise large_head_refusal(self.guard.limits.header_bytes)
        self._check_target()
        before = self.cycle
        super().on_headers_complete()
        self.scope["extensions"] = {HAS_GONE: {"ask": partial(getattr, self.cycle, "disconnected")}}
        self._in_body, self._left = True, self._length
        self._body_bytes = self._framing_bytes = self._discarded = self._chunks = self._trailer_lines = 0
        if self._is_extra:
            self.cycle.keep_alive = False
        if self.guard.draining and self.cycle.keep_alive:
            if before is not None and before is self._last and not before.response_started:
                before.keep_alive = True
            self._last, self.cycle.keep_alive = self.cycle, False

    def _check_target(self) -> None:
        """Raise Refusal for a path that costs too much, or is none of a probe where only these are answered."""
        path = self.url.partition(b"?")[0]
        if path.count(b"%") > MAX_ESCAPES:
            raise Refusal(414, f"the path has more than {MAX_ESCAPES} escaped characters; shorten it")
        if self._is_extra and path not in PROBES:
            raise full_refusal()
        if path[:1] != b"/" and httptools.parse_url(self.url).path is None:
            self.url = b"/"  # "http://host" has none

    def _check(self, version: str, headers: Headers) -> int:
        """Return the length of the body that the headers give, 0 for chunks. Raises Refusal."""
        known = self._index_headers(headers)
        if version == "1.0":
            self.expect_100_continue = False
        elif version != "1.1":
            raise non_http_refusal()
        elif b"host" not in known:
            raise Refusal(400, "the request has no Host header, which HTTP/1.1 wants; send one")
        if b"transfer-encoding" in known:
            # RFC 9112, 6.1: no other coding is known here, and two lengths of a body are one too many.
            if known[b"transfer-encoding"].lower() != b"chunked" or b"content-length" in known:
                raise Refusal(400, "the body's transfer-encoding is not only chunked; send the body as it is")
            return 0
        length = known.get(b"content-length", b"0")
        if len(length) > MAX_LENGTH_DIGITS or not length.isdigit():
            raise non_http_refusal()
        return int(length)

    def _index_headers(self, headers: Headers) -> dict[bytes, bytes]:
        """Return the headers by name. Raises Refusal for two that may come once."""
        self._size = sum(len(name) + len(value) + len(": \r\n") for name, value in headers)
        known = dict(headers)
        if len(known) < len(headers):
            names = [name for name, _ in headers]
            for name in SINGLE:
                if names.count(name) > 1:
                    raise Refusal(400, f"the request has more than one header named {name.decode()}; send one")
        return known

    def on_chunk_header(self) -> None:
        """Count the line of a chunk. Raises Refusal for many of few bytes."""
        self._content += CHUNK_LINE_BYTES
        self._chunks += 1
        if self._body_bytes < MIN_CHUNK_BYTES * (self._chunks - FREE_CHUNKS):
            sentence = f"the body comes in chunks of less than {MIN_CHUNK_BYTES} bytes, more than {FREE_CHUNKS} of them"
            raise Refusal(431, f"{sentence}; send larger ones, or the body's length")

    def on_body(self, body: bytes) -> None:
        """Take a part of the body, or drop it where the answer was given."""
        cycle, size = self.cycle, len(body)
        self._body_bytes += size
        self._content += size
        if self._left:
            self._left -= size
        if cycle.response_complete:
            self._discarded += size
            if self._discarded > MAX_DISCARDED_BYTES:
                self.close_own_side()
            return
        cycle.body += body
        if len(cycle.body) > HIGH_WATER_LIMIT:
            self.flow.pause_reading()
        cycle.message_event.set()

    def on_message_complete(self) -> None:
        """End the body."""
        if not self._is_offer:
            self._in_body, self._since = False, self._heard
            super().on_message_complete()

    # Answers

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: ASGI3Application) -> None:
        self._running = cycle
        super()._start_asgi_task(cycle, app)

    def on_response_complete(self) -> None:
        """Continue with the next request."""
        self.server_state.total_requests += 1
        if self.transport.is_closing():
            return
        self._since = self._heard = self.loop.time()
        if self._ended_at is not None:
            self._ended_at = self._since
        if self.pipeline:
            self._start_asgi_task(*self.pipeline.pop())
        elif self._refusal is not None:
            self._send_refusal(self._refusal, begun=False)
            return
        if not self.pipeline:
            self.flow.resume_reading()
            if self._ended_at is not None and not (self._ahead or self.in_flight):
                self.close_own_side()

    def shutdown(self) -> None:
        """Close the connection, at once or with the answer that is in flight."""
        if self.in_flight:
            self.cycle.keep_alive = False
        else:
            self.close_own_side()

    def _refuse(self, refusal: Refusal) -> None:
        """Read no more of this connection. Requests that have arrived are answered first."""
        self._ignores_input, self._ahead = True, b""
        cycle, begun = self._running, False
        if self._in_body and self.pipeline and self.pipeline[0][0] is self.cycle:
            self.pipeline.popleft()
        elif self._in_body and cycle is self.cycle and cycle is not None:
            if cycle.response_complete:
                self.close_own_side()
                return
            if cycle.response_started:
                cycle.keep_alive = False
                return
            begun = True
            self._disconnect()
        if self.in_flight:
            self._refusal = refusal
        else:
            self._send_refusal(refusal, begun=begun)

    def _send_refusal(self, refusal: Refusal, *, begun: bool) -> None:
        self._in_body = True  # whatever the client still sends is dropped
        request_id = new_request_id()
        self.guard.count_refused(refusal.status, begun=begun, request_id=request_id)
        self.transport.write(refusal.answer(getattr(self, "url", b""), request_id))
        self.close_own_side()

    def close_own_side(self, *, may_send: bool = False) -> None:
        """Close our side now, and the connection after a while where the client is still sending (RFC 9112, 9.6).

        What it sends until it hears of the end would otherwise reset the connection, and lose the answer.

        Args:
            may_send: the client may be about to send, though nothing of a request has arrived.
        """
        raw = self.transport.raw
        sends = may_send or self._in_body or self._ahead or self.pipeline
        self._ignores_input, self._ahead = True, b""
        self.pipeline.clear()
        if self.transport.parted or raw.is_closing():
            return
        self.transport.parted = True
        if not sends:
            raw.close()
            return
        self.transport.resume()
        if self.scheme != "https":
            raw.write_eof()
        self.loop.call_later(LINGER_SECONDS, raw.close)


def limit_protocol(guard: Guard) -> type[LimitedProtocol]:
    """Return the protocol with the limits of this guard."""
    return type("LimitedProtocol", (LimitedProtocol,), {"guard": guard})
