"""One client's connection: its bytes -> requests, one after the other, and what they are answered."""

from __future__ import annotations

import asyncio
import select
from typing import Any

from gramvec.server.batching.task_free import TaskFree
from gramvec.server.http1.bodies import Body, Chunked, Counted
from gramvec.server.http1.flow import FlowControl, Reason
from gramvec.server.http1.head import CHUNKED, Head, HeadReader
from gramvec.server.http1.limits import LINGER_SECONDS, MOST_DISCARDED_BYTES, REQUESTS_A_TURN, UNCOUNTED_BYTES
from gramvec.server.http1.patience import Patience
from gramvec.server.http1.refusals import Refused, many_connections, much_unread
from gramvec.server.http1.registry import Connections
from gramvec.server.http1.request_response import RequestResponse

ASGI = {"version": "3.0", "spec_version": "2.3"}


class Connection(asyncio.Protocol):
    """Reads a request when the one before it is answered; what a client sends ahead stays bytes until then.

    Args:
        connections: those that it is one of.
    """

    __slots__ = (
        "_ahead", "_body", "_client", "_connections", "_deaf", "_discarded", "_fresh", "_half_closed",
        "_head", "_held", "_loop", "_patience", "_reading", "_request", "_secured", "_server", "flow", "transport",
    )  # fmt: skip

    def __init__(self, connections: Connections) -> None:
        self._connections = connections
        self._loop = asyncio.get_running_loop()
        self._patience = Patience(connections.limits, self._loop.time())
        self._head: HeadReader | None = None  # of a request that has begun to arrive
        self._request: RequestResponse | None = None  # that is being read or answered
        self._body: Body | None = None  # of that request, until it has ended
        self._ahead = b""  # what has come behind that request
        self._held = 0  # bytes of the head or of what has come ahead, as all connections count them
        self._discarded = 0  # bytes of a body that came after the answer
        self._fresh = True
        self._reading = self._deaf = self._half_closed = False

    def connection_made(self, transport: Any) -> None:
        """Take the connection, or say that there are too many."""
        self.transport: asyncio.Transport = transport
        self.flow = FlowControl(transport)
        self._secured = transport.get_extra_info("sslcontext") is not None
        self._server, self._client = (_address(transport.get_extra_info(f"{end}name")) for end in ("sock", "peer"))
        self._connections.add(self)
        most = self._connections.limits.connections
        if len(self._connections) > 2 * most:
            self._deaf = True
            transport.abort()
        elif len(self._connections) > most:
            self._refuse(many_connections())

    def data_received(self, data: bytes) -> None:
        """Read what has arrived, or keep it for later."""
        self._patience.heard = self._loop.time()
        if self._deaf:
            return
        if self._ahead or (self._request is not None and self._body is None):
            self._keep(self._ahead + data)
        else:
            self._read_on(data)

    def eof_received(self) -> bool:
        """The client has closed its side. True keeps ours open: a request that is there as a whole is answered."""
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
        """Let go of everything, and tell who waits for the client."""
        self._deaf = True
        self._connections.discard(self)
        self._count(0)
        self._ahead, self._head = b"", None
        self.flow.resume_writing()
        if self._request is not None:
            self._request.disconnect()

    def pause_writing(self) -> None:
        """The client is slow to take an answer."""
        self.flow.pause_writing()

    def resume_writing(self) -> None:
        """It has taken most of it."""
        self.flow.resume_writing()

    # What all connections are asked

    @property
    def under_way(self) -> bool:
        """Whether a request has begun and is not answered yet."""
        return self._request is not None and not self._request.complete

    @property
    def is_new(self) -> bool:
        """Whether nothing has been asked yet."""
        return self._fresh and not self._deaf

    @property
    def unsent(self) -> int:
        """Bytes of answers that the client has yet to take."""
        return self.transport.get_write_buffer_size()

    def sweep(self, now: float) -> None:
        """Close the connection if its client has been waited for too long."""
        patience, closing = self._patience, self.transport.is_closing()
        if patience.takes_nothing(self.unsent, now) or (self._half_closed and not closing and self._is_reset()):
            self.transport.abort()
        elif self._deaf or closing:
            pass
        elif self.flow.read_paused or (self._request is not None and self._body is None):
            patience.restart(now)
        elif self._request is None and self._head is None:
            if patience.is_idle(now):
                self._part()
        elif refusal := patience.slow_head(now) if self._body is None else patience.slow_body(now):
            self._refuse(refusal)

    def shut_down(self) -> None:
        """Close the connection, at once or with the answer that is under way."""
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
                self._loop.call_soon(self._go_on)
                break
        self._reading = False

    def _keep(self, data: bytes) -> None:
        self._ahead = data
        self.flow.pause_reading(Reason.AHEAD)
        self._count(len(data))

    def _go_on(self) -> None:
        """Read what was kept."""
        if self._request is None and not self._deaf:
            self._count(0)
            self._read_on(self._ahead)
            if not self._ahead:
                self.flow.resume_reading(Reason.AHEAD)

    def _read_head(self, data: bytes) -> None:
        reader = self._head
        whole = reader is None
        if reader is None:
            known = self._connections.known_heads.find(data)
            if known is not None:
                head, size = known
                self._begin(head, data[size:])
                return
            data = data.lstrip(b"\r\n")  # RFC 9112, 2.2: empty lines before a request
            if not data:
                return
            reader = self._head = HeadReader(self._connections.limits)
            self._patience.begin()
        try:
            size = reader.feed(data)
        except Refused as refusal:
            self._refuse(refusal)
            return
        if not size:
            self._count(reader.size)
            return
        self._head = None
        if self._held:
            self._count(0)
        if whole:
            self._connections.known_heads.remember(data, size, reader.head)
        self._begin(reader.head, data[size:])

    def _begin(self, head: Head, rest: bytes) -> None:
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
            self._patience.begin()
            if rest:
                self._read_body(rest)
        if not request.disconnected:
            request.begun = True
            self._start(request)

    def _start(self, request: RequestResponse) -> None:
        app, start = self._connections.app, self._connections.start
        scope = request.scope
        running = request.run(app)
        if not request.more_body and scope["method"] == "POST" and scope["path"] in app.prompt_paths:
            TaskFree(running, start)()
        else:
            start(running)

    def _read_body(self, data: bytes) -> None:
        assert self._body is not None
        assert self._request is not None
        try:
            content, rest = self._body.feed(data)
        except Refused as refusal:
            self._refuse(refusal)
            return
        request = self._request
        self._patience.body_bytes += len(data)
        if request.complete:
            self._discarded += len(content)
        if rest is None:
            request.body_arrived(content, more=True)
            if self._discarded > MOST_DISCARDED_BYTES:
                self._part()
            elif self._body.held_up:
                self.flow.pause_reading(Reason.TURN)
                self._loop.call_soon(self._read_held_up)
            return
        self._body = None
        self._ahead = rest
        request.body_arrived(content, more=False)
        if request.complete:
            self._settle()

    def _read_held_up(self) -> None:
        """Go on with a body that has taken its turn."""
        if self._body is not None and not self._deaf:
            self.flow.resume_reading(Reason.TURN)
            self._reading = True
            self._read_body(b"")
            self._reading = False
            if self._ahead:
                self._read_on(self._ahead)

    def _scope(self, head: Head) -> dict[str, Any]:
        _, path, raw_path, query = head.target
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
        """So many bytes of this connection are part of no request yet."""
        counted = max(0, size - UNCOUNTED_BYTES)
        if counted != self._held:
            more, self._held = counted - self._held, counted
            if not self._connections.hold(more):
                self._refuse(much_unread(self._connections.limits.unread_bytes))

    # Ends

    def _answered(self) -> None:
        """The answer is written."""
        request = self._request
        assert request is not None
        if not request.keep_alive:
            if self._body is not None or self._ahead:
                self._part()
            else:
                self.transport.close()
            return
        # What nobody has taken of the body is dropped, and what is left of it is read, so that the next one is found.
        self.flow.resume_reading(Reason.BODY)
        if self._body is None:
            self._settle()

    def _settle(self) -> None:
        """The request was read and answered: on to the next one."""
        self._request = None
        self._patience.begin()
        if self._ahead and not self._reading:
            self._go_on()

    def _refuse(self, refusal: Refused) -> None:
        """Read no more of this connection. A request that is there as a whole is answered, then it is closed."""
        self._deaf = True
        request, url = self._request, b"" if self._head is None else self._head.head.url
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
        """Close our side, and theirs after a while (RFC 9112, 9.6).

        What a client sends until it hears of the end would otherwise reset the connection, and take the answer with it.
        """
        self._deaf = True
        if not self.transport.is_closing():
            self.flow.resume_reading(*Reason)
            if not self._secured:
                self.transport.write_eof()
            self._loop.call_later(LINGER_SECONDS, self.transport.close)

    def _is_reset(self) -> bool:
        """Whether a client that has closed its side has in fact gone: nothing is read that would tell."""
        poll = select.poll()
        poll.register(self.transport.get_extra_info("socket").fileno(), 0)
        return bool(poll.poll(0))


def _address(found: Any) -> tuple[str, int] | None:
    return (found[0], found[1]) if isinstance(found, tuple) else None
