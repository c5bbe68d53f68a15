"""HTTP/1.1 as uvicorn reads it (httptools), with what a server that strangers reach needs besides."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

import httptools
from starlette.types import Receive, Scope, Send
from uvicorn.protocols.http.flow_control import HIGH_WATER_LIMIT
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from gramvec.batching import Steps
from gramvec.http.cycle import LINGER_SECONDS, Cycle
from gramvec.http.errors import HttpError
from gramvec.http.heads import NO_TARGET, Heads, Target
from gramvec.http.reply import Reply, error_reply

# A request line and its headers: eight times what proxies let through.
MAX_HEAD_BYTES = 64 * 1024
NOT_HTTP = "the request is not HTTP/1.1; send it anew on another connection"
LARGE_HEAD = f"the request line and headers are larger than the limit of {MAX_HEAD_BYTES} bytes; send less in them"
OF_AN_UPGRADE = frozenset({b"upgrade", b"http2-settings"})
REASONS = {400: b"Bad Request", 408: b"Request Timeout", 431: b"Request Header Fields Too Large"}


class Protocol(HttpToolsProtocol):
    """One connection, and how far along its client is, for those who wait for it.

    Where uvicorn's would, this one does not: collect a head of any size; lose the body of a request that offers to
    upgrade to HTTP/2 (Java's client does, and curl --http2); answer a good request with the 400 of what follows it; go
    on answering pipelined requests of a client that has gone.
    """

    def __init__(self, *arguments: Any, heads: Heads, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._heads = heads
        self._piece = b""  # what arrived with the beginning of a request, and perhaps all of it
        self._begun = False  # of the head, some has arrived
        self._in_body = False
        self._since = self._heard = self.loop.time()  # the beginning of this stage, the last bytes
        self._head_bytes = 0  # of the head, without the piece that it began in
        self._body_bytes = self._piece_bytes = self._first_bytes = 0
        self._upgrades = False
        self._deaf = False
        self._answering: RequestResponseCycle | None = None
        # An application whose coroutines may be begun without a task says for which paths.
        self._prompt_paths: frozenset[str] = getattr(self.app, "prompt_paths", frozenset())
        self._due: RequestResponseCycle | None = None  # to be begun when all that arrived is read
        self._target = NO_TARGET

    def data_received(self, data: bytes) -> None:
        """Parse what arrived."""
        self._heard = self.loop.time()
        if self._deaf:
            return
        if self._takes_whole(data):
            return
        self._piece_bytes = size = len(data)
        if self._in_body:
            self._body_bytes += size
        else:
            self._head_bytes += size
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserError:
            if not self._deaf:
                self._refuse(400, NOT_HTTP)
        except httptools.HttpParserUpgrade as upgrade:
            self._go_on_without_upgrade(data[upgrade.args[0] :])
        else:
            if not self._in_body and self._head_bytes > MAX_HEAD_BYTES:
                self._refuse(431, LARGE_HEAD)
        if self._due is not None:
            self._start_due(self._due)

    def _takes_whole(self, data: bytes) -> bool:
        """Begin to answer a whole request of which the parser need not hear: what it would say of its head is known."""
        last = self.cycle
        if self._begun or self._in_body or not (last is None or (last.response_complete and last.keep_alive)):
            return False
        head = self._heads.find(data)
        if head is None:
            self._piece = data
            return False
        super().on_message_begin()
        self.url, self.headers, self._since = head.target.url, head.headers, self._heard
        self.scope["headers"] = list(head.headers)
        cycle = self.cycle = self._answering = self._cycle("POST", head.target, keep_alive=True)
        cycle.body += data[head.head_bytes :]
        cycle.more_body = False
        self._start_due(cycle)
        return True

    def on_message_begin(self) -> None:
        """A request line has begun."""
        super().on_message_begin()
        self._begun, self._in_body, self._since, self._head_bytes = True, False, self._heard, 0
        self._first_bytes = self._piece_bytes

    def on_headers_complete(self) -> None:
        """Start to answer, unless the head is too large or has to be read again."""
        # The piece that it began in may be the end of another request, too: that is counted once more, without it.
        if self._first_bytes + self._head_bytes > MAX_HEAD_BYTES and self._size_of_head() > MAX_HEAD_BYTES:
            self._refuse(431, LARGE_HEAD)
            raise ValueError("too large")  # what the parser has to hear, so that it stops
        self._in_body, self._since, self._body_bytes = True, self._heard, 0
        self._upgrades = self.parser.should_upgrade() and self.parser.get_method() != b"CONNECT"
        if not self._upgrades:
            self._begin_cycle()

    def on_body(self, body: bytes) -> None:
        """A piece of the body is there."""
        cycle = self.cycle
        if self._upgrades or cycle.response_complete:
            return
        cycle.body += body
        if len(cycle.body) > HIGH_WATER_LIMIT:
            self.flow.pause_reading()
        cycle.message_event.set()

    def on_message_complete(self) -> None:
        """The body is there."""
        self._begun, self._in_body, self._since, self._head_bytes = False, False, self._heard, 0
        self._piece = b""
        cycle = self.cycle
        if not (self._upgrades or cycle.response_complete):
            cycle.more_body = False
            cycle.message_event.set()

    def _begin_cycle(self) -> None:
        # As uvicorn's on_headers_complete does it, which has no place for another class of cycle.
        scope, version = self.scope, self.parser.get_http_version()
        if version != "1.1":
            scope["http_version"] = version
        if self.url != self._target.url:  # a connection mostly asks for one thing
            self._target = Target.of(self.url, self.root_path)
        before, keep_alive = self.cycle, version != "1.0" and self.parser.should_keep_alive()
        self.cycle = self._cycle(self.parser.get_method().decode("ascii"), self._target, keep_alive=keep_alive)
        if before is None or before.response_complete:
            if scope["path"] in self._prompt_paths and scope["method"] == "POST":
                self._due = self._answering = self.cycle
                if self._piece and keep_alive and version == "1.1":
                    self._heads.remember(self._piece, self._target, self.headers)
            else:
                self._start_asgi_task(self.cycle, self.app)
        else:
            self.flow.pause_reading()
            self.pipeline.appendleft((self.cycle, self.app))

    def _cycle(self, method: str, target: Target, *, keep_alive: bool) -> Cycle:
        scope = self.scope
        scope["method"] = method
        _, scope["path"], scope["raw_path"], scope["query_string"] = target
        return Cycle(  # not by name, which takes half a microsecond
            scope,
            self.transport,
            self.flow,
            self.logger,
            self.access_logger,
            self.access_log,
            self.server_state.default_headers,
            asyncio.Event(),
            self.expect_100_continue,
            keep_alive,
            self.on_response_complete,
        )

    @property
    def under_way(self) -> bool:
        """Whether the last request that was read has yet to be answered."""
        return self.cycle is not None and not self.cycle.response_complete

    @property
    def is_new(self) -> bool:
        """Whether no request has been read yet."""
        return not (self._deaf or self.cycle is not None)

    def connection_lost(self, exc: Exception | None) -> None:
        """Tell the request that is being answered; uvicorn tells the last one that was read."""
        if self._answering is not None:
            self._answering.disconnected = True
            self._answering.message_event.set()
        super().connection_lost(exc)

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        self._answering = cycle
        super()._start_asgi_task(cycle, app)

    def _start_due(self, cycle: RequestResponseCycle) -> None:
        self._due = None
        if cycle.more_body or cycle.disconnected:
            self._start_asgi_task(cycle, self.app)
        else:
            Steps(cycle.run_asgi(self.app), self._make_task)()

    def _make_task(self, rest: Coroutine[Any, Any, None]) -> None:
        task = self.loop.create_task(rest)
        task.add_done_callback(self.tasks.discard)
        self.tasks.add(task)

    def _size_of_head(self) -> int:
        return len(self.url) + sum(len(name) + len(value) + 4 for name, value in self.headers)

    def _go_on_without_upgrade(self, rest: bytes) -> None:
        # RFC 9110, 7.8: a server may ignore the offer. The parser takes what follows the head for another protocol,
        # so a new one is given the head without the offer.
        head = [b"%b %b HTTP/%b\r\n" % (self.parser.get_method(), self.url, self.parser.get_http_version().encode())]
        for name, value in self.headers:
            if name == b"connection":
                kept = [token for token in value.split(b",") if token.strip().lower() not in OF_AN_UPGRADE]
                value = b",".join(kept)
            if name not in OF_AN_UPGRADE and value:
                head.append(b"%b: %b\r\n" % (name, value))
        self._upgrades = False
        self.parser = httptools.HttpRequestParser(self)
        self.parser.set_dangerous_leniencies(lenient_data_after_close=True)
        self.data_received(b"".join([*head, b"\r\n", rest]))

    def _refuse(self, status: int, sentence: str) -> None:
        """Read no more from this connection. Requests that were complete are answered, then it is closed."""
        self._deaf = True
        last = self.cycle
        under_way = self.under_way
        if under_way and not self._in_body:
            last.keep_alive = False
        elif self.pipeline:
            # The last request's body is broken; what it is told has to wait for the answers before it.
            last.keep_alive = last.more_body = False
            self.pipeline[0] = (last, _saying(_refusal(status, sentence, self.url)))
            self.app.count_unread(status, begun=False)
        elif self.transport.is_closing() or (last is not None and last.response_started and self._in_body):
            self.transport.close()
        else:
            if under_way:
                last.disconnected = True
                last.message_event.set()
            self.app.count_unread(status, begun=under_way)
            refusal = _refusal(status, sentence, self.url)
            head = [b"HTTP/1.1 %d %b" % (status, REASONS[status]), *(b"%b: %b" % header for header in refusal.headers)]
            self.transport.write(b"\r\n".join([*head, b"", *refusal.body]))
            self._part()

    def _part(self) -> None:
        # RFC 9112, 9.6: what the client sends until it hears of the end would otherwise reset the connection.
        self._deaf = True
        self.transport.write_eof()
        self.loop.call_later(LINGER_SECONDS, self.transport.close)


def _refusal(status: int, sentence: str, target: bytes) -> Reply:
    path = target.partition(b"?")[0].decode("latin-1")
    return error_reply(HttpError(status, "validation", sentence, {"Connection": "close"}), path)


def _saying(refusal: Reply) -> Any:
    async def refuse(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": refusal.status, "headers": refusal.headers})
        await send({"type": "http.response.body", "body": b"".join(refusal.body)})

    return refuse
