"""HTTP/1.1 connection of a client: parses bytes into requests and answers them in order."""

from __future__ import annotations

import asyncio
import select
from typing import Any

from gramvec.server.http1.connections import Connections
from gramvec.server.http1.cycle import RequestResponse
from gramvec.server.http1.limits import (
    LINGER_SECONDS,
    MOST_DISCARDED_BYTES,
    REQUESTS_A_TURN,
    UNCOUNTED_BYTES,
    FlowControl,
    Timeouts,
)
from gramvec.server.http1.parser import CHUNKED, Chunked, Counted, HeadReader, Refused, RequestBody, RequestHead

ASGI = {"version": "3.0", "spec_version": "2.3"}


class Connection(asyncio.Protocol):
    """A connection. A request is read once the one before it is answered; what is sent ahead stays bytes until then.

    Args:
        connections: all connections of the server.
    """

    __slots__ = (
        "_ahead", "_body", "_client", "_connections", "_deaf", "_discarded", "_fresh", "_half_closed", "_head", "_held",
        "_loop", "_reading", "_request", "_secured", "_server", "_timeouts", "flow", "transport",
    )  # fmt: skip

    def __init__(self, connections: Connections) -> None:
        self._connections = connections
        self._loop = asyncio.get_running_loop()
        self._timeouts = Timeouts(connections.limits, self._loop.time())
        self._head: HeadReader | None = None  # of a request that has begun to arrive
        self._request: RequestResponse | None = None  # that is being read or answered
        self._body: RequestBody | None = None  # of that request, until it has ended
        self._ahead = b""  # bytes behind that request
        self._held = 0  # bytes of the head or ahead that all connections count
        self._discarded = 0  # bytes of a body that arrived after the answer
        self._fresh = True
        self._reading = self._deaf = self._half_closed = False

    def connection_made(self, transport: Any) -> None:
        """Accept the connection, or answer that there are too many."""
        self.transport: asyncio.Transport = transport
        self.flow = FlowControl(transport)
        self._secured = transport.get_extra_info("sslcontext") is not None
        self._server, self._client = (_address(transport.get_extra_info(f"{end}name")) for end in ("sock", "peer"))
        self._connections.members.add(self)
        most = self._connections.limits.connections
        if len(self._connections) > 2 * most:
            self._deaf = True
            transport.abort()
        elif len(self._connections) > most:
            sentence = "the service has as many connections as it takes; try again later, or use one for many requests"
            self._refuse(Refused(503, sentence, error_type="unhealthy", retry=1))

    def data_received(self, data: bytes) -> None:
        """Parse what has arrived, or keep it for later."""
        self._timeouts.heard = self._loop.time()
        if self._deaf:
            return
        if self._ahead or (self._request is not None and self._body is None):
            self._keep(self._ahead + data)
        else:
            self._read_on(data)

    def eof_received(self) -> bool:
        """Return True to keep our side open for a complete request, though the client has closed its side."""
        self.flow.end_reading()
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
        self._deaf = True
        self._connections.members.discard(self)
        self._count(0)
        self._ahead, self._head = b"", None
        self.flow.resume_writing()
        if self._request is not None:
            self._request.disconnect()

    def pause_writing(self) -> None:
        """Note that the client is slow to take an answer."""
        self.flow.pause_writing()

    def resume_writing(self) -> None:
        """Note that the client has taken most of it."""
        self.flow.resume_writing()

    # For `Connections`

    @property
    def in_flight(self) -> bool:
        """Return True while a request has begun and is not answered."""
        return self._request is not None and not self._request.complete

    @property
    def is_new(self) -> bool:
        """Return True until the first request arrives."""
        return self._fresh and not self._deaf

    @property
    def unsent(self) -> int:
        """Bytes of answers that the client has yet to take."""
        return self.transport.get_write_buffer_size()

    def sweep(self, now: float) -> None:
        """Close the connection if a timeout of its client is over."""
        timeouts, closing, limits = self._timeouts, self.transport.is_closing(), self._connections.limits
        if timeouts.takes_nothing(self.unsent, now) or (self._half_closed and not closing and self._is_reset()):
            self.transport.abort()
        elif self._deaf or closing:
            pass
        elif self.flow.read_paused or (self._request is not None and self._body is None):
            timeouts.restart(now)
        elif self._request is None and self._head is None:
            if timeouts.is_idle(now):
                self._part()
        elif self._body is None:
            if timeouts.is_slow_head(now):
                self._refuse(
                    Refused(408, f"the headers did not arrive within {limits.head:g} s; send the request again")
                )
        elif timeouts.is_slow_body(now):
            self._refuse(Refused(408, f"the body did not arrive within {limits.body:g} s or so; send it again, faster"))

    def shut_down(self) -> None:
        """Close the connection, at once or with the answer that is in flight."""
        if self._request is None or self._request.complete:
            self.transport.close()
        else:
            self._request.keep_alive = False

    # Reading

    def _read_on(self, data: bytes) -> None:
        self._reading = True
        self._ahead = data
        begun = 0
        while self._ahead and not self._deaf:
            data, self._ahead = self._ahead, b""
            if self._body is not None:
                self._read_body(data)
            elif self._request is not None:
                self._keep(data)
                break
            elif begun < REQUESTS_A_TURN:
                self._read_head(data)
                begun += 1
            else:
                self._keep(data)
                self._loop.call_soon(self._read_kept)
                break
        self._reading = False

    def _keep(self, data: bytes) -> None:
        self._ahead = data
        self.flow.pause_reading(FlowControl.AHEAD)
        self._count(len(data))

    def _read_kept(self) -> None:
        if self._request is None and not self._deaf:
            self._count(0)
            self._read_on(self._ahead)
            if not self._ahead:
                self.flow.resume_reading(FlowControl.AHEAD)

    def _read_head(self, data: bytes) -> None:
        reader, connections = self._head, self._connections
        whole = reader is None
        if reader is None:
            known = connections.known_heads.find(data)
            if known is not None:
                head, size = known
                self._begin(head, data[size:])
                return
            data = data.lstrip(b"\r\n")  # RFC 9112, 2.2: empty lines before a request
            if not data:
                return
            reader = self._head = HeadReader(connections.limits)
            self._timeouts.begin()
        try:
            found = reader.feed(data)
        except Refused as refusal:
            self._refuse(refusal)
            return
        if found is None:
            self._count(reader.size)
            return
        head, size = found
        self._head = None
        self._count(0)
        if whole:
            connections.known_heads.add(data[:size], head)
        self._begin(head, data[size:])

    def _begin(self, head: RequestHead, rest: bytes) -> None:
        self._fresh = False
        request = self._request = RequestResponse(
            self._scope(head), head, self.transport, self.flow, self._connections.date, self._answered
        )
        if self._connections.retiring:
            request.keep_alive = False
        length = head.length
        if 0 <= length <= len(rest):
            request.body_arrived(rest[:length], more=False)
            self._ahead = rest[length:]
        else:
            self._body = Chunked(self._connections.limits) if length == CHUNKED else Counted(length)
            self._discarded = 0
            self._timeouts.begin()
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
            content, rest = body.feed(data)
        except Refused as refusal:
            self._refuse(refusal)
            return
        self._timeouts.body_bytes += len(data)
        if request.complete:
            self._discarded += len(content)
        if rest is None:
            request.body_arrived(content, more=True)
            if self._discarded > MOST_DISCARDED_BYTES:
                self._part()
            elif body.held_up:
                self.flow.pause_reading(FlowControl.TURN)
                self._loop.call_soon(self._read_held_up)
            return
        self._body = None
        self._ahead = rest
        request.body_arrived(content, more=False)
        if request.complete:
            self._settle()

    def _read_held_up(self) -> None:
        if self._body is not None and not self._deaf:
            self.flow.resume_reading(FlowControl.TURN)
            self._reading = True
            self._read_body(b"")
            self._reading = False
            if self._ahead:
                self._read_on(self._ahead)

    def _scope(self, head: RequestHead) -> dict[str, Any]:
        path, raw_path, query = head.target
        return {
            "type": "http",
            "asgi": ASGI,
            "http_version": head.version,
            "server": self._server,
            "client": self._client,
            "scheme": "https" if self._secured else "http",
            "root_path": "",
            "method": head.method,
            "path": path,
            "raw_path": raw_path,
            "query_string": query,
            "headers": head.headers.copy(),
        }

    def _count(self, size: int) -> None:
        """Count the bytes of this connection that belong to no request yet."""
        counted = max(0, size - UNCOUNTED_BYTES)
        if counted != self._held:
            more, self._held = counted - self._held, counted
            if not self._connections.hold(more):
                most = self._connections.limits.unread_bytes
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
        self.flow.resume_reading(FlowControl.BODY)
        if self._body is None:
            self._settle()

    def _settle(self) -> None:
        self._request = None
        self._timeouts.begin()
        if self._ahead and not self._reading:
            self._read_kept()

    def _refuse(self, refusal: Refused) -> None:
        """Read no more of this connection. A complete request is answered first."""
        self._deaf = True
        request, url = self._request, b"" if self._head is None else self._head.url
        self._ahead, self._head = b"", None
        self._count(0)
        if request is None or not (request.started or self._body is None):
            begun = request is not None and request.begun
            if request is not None:
                url = request.url
                request.disconnect()
            self._connections.app.count_unread(refusal.status, begun=begun)
            self.transport.write(refusal.answer(url))
            self._part()
        elif request.complete:
            self._part()
        else:
            request.keep_alive = False

    def _part(self) -> None:
        """Close our side now, and the connection after a while (RFC 9112, 9.6).

        What a client sends until it hears of the end would otherwise reset the connection, and lose the answer.
        """
        self._deaf = True
        if not self.transport.is_closing():
            self.flow.resume_reading(FlowControl.ALL)
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
