"""HTTP/1.1 connections of one server: each parses bytes into requests and answers them in order; `Connections` has all.

A client may hold, send or delay only so much: the numbers are below and in the settings.
"""

from __future__ import annotations

import asyncio
import select
import sys
import time
from collections.abc import Callable, Coroutine
from email.utils import formatdate
from typing import Any

from starlette.types import ASGIApp

from gramvec.server.http1.cycle import FlowControl, RequestResponse
from gramvec.server.http1.parser import CHUNKED, END, Chunked, Counted, HeadReader, Refused, RequestHead
from gramvec.server.settings import Settings

ASGI = {"version": "3.0", "spec_version": "2.3"}

# Longer than the 60 s that load balancers keep an idle connection: the side that reuses it must be first to close it.
KEEP_ALIVE_SECONDS = 75
# A body below this many bytes a second is too slow, once `body_timeout_seconds` are over.
LEAST_RATE = 500
# This much is read and dropped of a body whose request was answered before it had arrived; more closes the connection.
MOST_DISCARDED_BYTES = 256 * 1024
# A client that is refused while it still sends would lose the answer if the connection were closed at once.
LINGER_SECONDS = 1.0
# Bytes of unfinished heads and of requests sent ahead that a connection holds without being counted.
UNCOUNTED_BYTES = 4 * 1024
# Pipelined requests that are read before other connections have their turn.
REQUESTS_A_TURN = 16
# 1,000 heads of 200 bytes, as most are; a client that numbers its requests fills this with heads that never come again.
MOST_HEADS = 1_000
LONGEST_HEAD = 2_048
# A task that begins at once spares the event loop a turn; from Python 3.12 on.
EAGER: dict[str, Any] = {"eager_start": True} if sys.version_info >= (3, 12) else {}


class Connection(FlowControl):
    """A connection. A request is read once the one before it is answered; what is sent ahead stays bytes until then.

    Args:
        connections: all connections of the server.
    """

    def __init__(self, connections: Connections) -> None:
        super().__init__()
        self._connections = connections
        self._loop = asyncio.get_running_loop()
        # When the last bytes arrived, when the current phase (idle, head, body) began, and its bytes of a body.
        self._heard = self._since = self._unsent_since = self._loop.time()
        self._body_bytes = 0
        self._unsent = 0  # bytes of answers, at the last look
        self._head: HeadReader | None = None  # of a request that has begun to arrive
        self._request: RequestResponse | None = None  # that is being read or answered
        self._body: Chunked | Counted | None = None  # of that request, until it has ended
        self._ahead = b""  # bytes that are not parsed yet
        self._held = 0  # bytes of a head or ahead that all connections count
        self._discarded = 0  # bytes of a body that arrived after the answer
        self._reading = self._deaf = self._half_closed = False

    def connection_made(self, transport: Any) -> None:
        """Accept the connection, or answer that there are too many."""
        self.transport = transport
        self._secured = transport.get_extra_info("sslcontext") is not None
        self._server, self._client = (_address(transport.get_extra_info(f"{end}name")) for end in ("sock", "peer"))
        self._connections.members.add(self)
        most = self._connections.settings.max_connections
        if len(self._connections) > 2 * most:
            self._deaf = True
            transport.abort()
        elif len(self._connections) > most:
            sentence = "the service has as many connections as it takes; try again later, or use one for many requests"
            self._refuse(Refused(503, sentence, error_type="unhealthy", retry=1))

    def data_received(self, data: bytes) -> None:
        """Parse what has arrived, or keep it for later."""
        self._heard = self._loop.time()
        if not self._deaf:
            self._read_on(self._ahead + data)

    def eof_received(self) -> bool:
        """Return True to keep our side open for a complete request, though the client has closed its side."""
        self.ended = True
        request = self._request
        if request is None or self._body is not None or request.complete or request.disconnected:
            return False
        if self._secured:
            return False  # TLS is closed on both sides at once
        self._half_closed = True
        request.keep_alive = False
        request.probe()
        return True

    def connection_lost(self, exc: Exception | None) -> None:
        """Release everything, and wake those who wait for the client."""
        self._connections.members.discard(self)
        self._end_reading()
        self.resume_writing()
        if self._request is not None:
            self._request.disconnect()

    # For `Connections`

    @property
    def in_flight(self) -> bool:
        """Return True while a request has begun and is not answered."""
        return self._request is not None and not self._request.complete

    @property
    def unsent(self) -> int:
        """Bytes of answers that the client has yet to take."""
        return self.transport.get_write_buffer_size()

    def sweep(self, now: float) -> None:
        """Close the connection if a timeout of its client is over."""
        settings, closing, unsent = self._connections.settings, self.transport.is_closing(), self.unsent
        if unsent != self._unsent:
            self._unsent, self._unsent_since = unsent, now
        takes_nothing = unsent and now - self._unsent_since > settings.send_timeout_seconds
        if takes_nothing or (self._half_closed and not closing and self._is_reset()):
            self.transport.abort()
        elif self._deaf or closing:
            pass
        elif self.read_paused or (self._request is not None and self._body is None):
            self._since = self._heard = now  # the server caused the delay
        elif self._body is not None:
            limit = settings.body_timeout_seconds
            if now - self._heard > limit or now - self._since > limit + self._body_bytes / LEAST_RATE:
                sentence = f"the body did not arrive within {limit:g} s or so; send it again, faster"
                self._refuse(Refused(408, sentence))
        elif self._head is not None:
            limit = settings.header_timeout_seconds
            if now - self._since > limit:
                self._refuse(Refused(408, f"the headers did not arrive within {limit:g} s; send the request again"))
        elif now - self._since > KEEP_ALIVE_SECONDS:
            self._part()

    def _begin_phase(self) -> None:
        """Begin to wait for a request, a head or a body: with the last bytes that arrived."""
        self._since, self._body_bytes = self._heard, 0

    def shut_down(self) -> None:
        """Close the connection, at once or with the answer that is in flight."""
        if self._request is None or self._request.complete:
            self.transport.close()
        else:
            self._request.keep_alive = False

    # Reading

    def _read_on(self, data: bytes) -> None:
        """Parse as much as is due now, and keep the rest."""
        self._reading, self._ahead = True, data
        turns = 0
        while self._ahead and not (self._deaf or (self._request is not None and self._body is None)):
            if turns == REQUESTS_A_TURN:
                self._loop.call_soon(self._read_kept)
                break
            data, self._ahead = self._ahead, b""
            turns += 1
            if self._body is None:
                self._read_head(data)
            else:
                self._read_body(data)
                if self._body is not None:  # many small chunks: the others have their turn
                    turns = REQUESTS_A_TURN
        self._reading = False
        if self._ahead:
            self.pause_reading(self.AHEAD)
        elif self.read_paused:
            self.resume_reading(self.AHEAD)
        if self._ahead or self._head is not None or self._held:
            self._count()

    def _read_kept(self) -> None:
        if self._ahead and not self._reading:
            self._read_on(self._ahead)

    def _read_head(self, data: bytes) -> None:
        reader, connections = self._head, self._connections
        whole = reader is None
        if reader is None:
            known = connections.known_head(data)
            if known is not None:
                head, size = known
                self._begin(head, data[size:])
                return
            data = data.lstrip(b"\r\n")  # RFC 9112, 2.2: empty lines before a request
            if not data:
                return
            reader = self._head = HeadReader(connections.settings)
            self._begin_phase()
        try:
            found = reader.feed(data)
        except Refused as refusal:
            self._refuse(refusal)
            return
        if found is None:
            return
        head, size = found
        self._head = None
        if whole:
            connections.keep_head(data[:size], head)
        self._begin(head, data[size:])

    def _begin(self, head: RequestHead, rest: bytes) -> None:
        request = self._request = RequestResponse(self._scope(head), head, self, self._connections.date, self._answered)
        if self._connections.retiring:
            request.keep_alive = False
        length = head.length
        if 0 <= length <= len(rest):
            request.body_arrived(rest[:length], more=False)
            self._ahead = rest[length:]
        else:
            self._body = Chunked(self._connections.settings) if length == CHUNKED else Counted(length)
            self._discarded = 0
            self._begin_phase()
            if rest:
                self._read_body(rest)
        if not request.disconnected:
            request.begun = True
            self._connections.start(request.run(self._connections.app))

    def _read_body(self, data: bytes) -> None:
        body, request = self._body, self._request
        assert body is not None
        assert request is not None
        try:
            content, self._ahead, ended = body.feed(data)
        except Refused as refusal:
            self._refuse(refusal)
            return
        self._body_bytes += len(data) - len(self._ahead)
        if ended:
            self._body = None
        elif request.complete:
            self._discarded += len(content)
        request.body_arrived(content, more=not ended)
        if self._discarded > MOST_DISCARDED_BYTES:
            self._part()
        elif ended and request.complete:
            self._settle()

    def _scope(self, head: RequestHead) -> dict[str, Any]:
        return {
            "type": "http",
            "asgi": ASGI,
            "server": self._server,
            "client": self._client,
            "scheme": "https" if self._secured else "http",
            "root_path": "",
            "headers": head.headers.copy(),
            **head.scope,
        }

    def _count(self) -> None:
        """Count the bytes of this connection that belong to no request yet."""
        size = 0 if self._head is None else self._head.size
        if self._body is None:
            size += len(self._ahead)
        counted = max(0, size - UNCOUNTED_BYTES)
        if counted != self._held:
            more, self._held = counted - self._held, counted
            if not self._connections.hold(more):
                most = self._connections.settings.max_unread_bytes
                sentence = f"unfinished heads and requests sent ahead hold more than {most} bytes; try again later"
                self._refuse(Refused(503, sentence, error_type="unhealthy", retry=1))

    # Ends

    def _answered(self) -> None:
        """Close the connection after an answer, or read the next request."""
        request = self._request
        assert request is not None
        if not request.keep_alive:
            if self._body is not None or self._ahead:
                self._part()
            else:
                self.transport.close()
            return
        # What the application did not take of the body is dropped, and the rest is read, to find the next request.
        self.resume_reading(self.BODY)
        if self._body is None:
            self._settle()

    def _settle(self) -> None:
        self._request = None
        self._begin_phase()
        self._read_kept()

    def _refuse(self, refusal: Refused) -> None:
        """Read no more of this connection. A complete request is answered first."""
        request, url = self._request, b"" if self._head is None else self._head.url
        self._end_reading()
        if request is None or not (request.started or self._body is None):
            begun = request is not None and request.begun
            if request is not None:
                url = request.url
                request.disconnect()
            self._connections.count_unread(refusal.status, begun=begun)
            self.transport.write(refusal.answer(url))
            self._part()
        elif request.complete:
            self._part()
        else:
            request.keep_alive = False

    def _end_reading(self) -> None:
        self._deaf, self._ahead, self._head = True, b"", None
        self._count()

    def _part(self) -> None:
        """Close our side now, and the connection after a while (RFC 9112, 9.6).

        What a client sends until it hears of the end would otherwise reset the connection, and lose the answer.
        """
        self._end_reading()
        if not self.transport.is_closing():
            self.resume_reading(self.ALL)
            if not self._secured:
                self.transport.write_eof()
            self._loop.call_later(LINGER_SECONDS, self.transport.close)

    def _is_reset(self) -> bool:
        """Return whether a client that has closed its side is gone: nothing is read that would tell."""
        poll = select.poll()
        poll.register(self.transport.get_extra_info("socket").fileno(), 0)
        return bool(poll.poll(0))


def _address(found: Any) -> tuple[str, int] | None:
    return (found[0], found[1]) if isinstance(found, tuple) else None


class Connections:
    """All connections of one server, on one event loop.

    Args:
        app: the application.
        count_unread: counts an answer to a request that the application never answers: its status, and whether the
            application has seen the request (`begun`).
        settings: with the limits of each connection, and of all together.

    Attributes:
        retiring: each answer closes its connection.
        tasks: requests that are being answered.
    """

    def __init__(self, app: ASGIApp, count_unread: Callable[..., None], settings: Settings) -> None:
        self.app = app
        self.count_unread = count_unread
        self.settings = settings
        self.retiring = False
        self.tasks: set[asyncio.Task[None]] = set()
        self.members: set[Connection] = set()
        self._known_heads: dict[bytes, RequestHead] = {}
        self._unread_bytes = 0
        self._second = 0
        self._date = b""

    def __len__(self) -> int:
        return len(self.members)

    def known_head(self, data: bytes) -> tuple[RequestHead, int] | None:
        """Return the head that `data` begins with if it was parsed before, and its bytes.

        A client sends the same head again and again, but for the length of the body: a request of one text takes a
        tenth less CPU time (`make bench PARTS=protocol`). A head ends with its first empty line for every reader, so
        there is no doubt where a known one ends.
        """
        size = data.find(END, 0, LONGEST_HEAD) + len(END)
        head = self._known_heads.get(data[:size])
        return None if head is None else (head, size)

    def keep_head(self, raw: bytes, head: RequestHead) -> None:
        """Keep a parsed head, unless it is long."""
        if len(raw) <= LONGEST_HEAD:
            if len(self._known_heads) >= MOST_HEADS:
                self._known_heads.clear()
            self._known_heads[raw] = head

    def hold(self, more: int) -> bool:
        """Count `more` bytes that belong to no request yet; return False if all connections hold too much."""
        self._unread_bytes += more
        return more <= 0 or self._unread_bytes <= self.settings.max_unread_bytes

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        """Run a coroutine as a task, which `tasks` keeps."""
        task = asyncio.Task(work, loop=asyncio.get_running_loop(), **EAGER)
        if not task.done():  # as one that begins at once may be
            self.tasks.add(task)
            task.add_done_callback(self.tasks.discard)

    def date(self) -> bytes:
        """Return the Date header line of an answer (RFC 9110, 6.6.1)."""
        now = int(time.time())
        if now != self._second:
            self._second, self._date = now, b"date: %b\r\n" % formatdate(now, usegmt=True).encode()
        return self._date

    @property
    def busy(self) -> bool:
        """Return True while a request is in flight."""
        return bool(self.tasks) or any(one.in_flight for one in self.members)

    def unsent_bytes(self) -> int:
        """Return the bytes of answers that clients have yet to take."""
        return sum(one.unsent for one in self.members)

    def sweep(self, now: float) -> None:
        """Close connections whose timeouts are over at `now`, the loop's time; call it twice a second."""
        for one in list(self.members):
            one.sweep(now)

    def retire(self) -> None:
        """Close each connection with the next answer that is sent over it."""
        self.retiring = True
        for one in list(self.members):
            if one.in_flight:
                one.shut_down()

    def shut_down(self) -> None:
        """Close idle connections, and the others with the answer that is in flight."""
        for one in list(self.members):
            one.shut_down()
