"""HTTP/1.1 as uvicorn reads it (httptools), with what a server that strangers reach needs besides."""

from __future__ import annotations

import asyncio
from typing import Any
from urllib.parse import unquote

import httptools
from starlette.types import Receive, Scope, Send
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from gramvec.http.cycle import Cycle
from gramvec.http.errors import HttpError
from gramvec.http.reply import Reply, error_reply

# A request line and its headers: eight times what proxies let through.
MAX_HEAD_BYTES = 64 * 1024
# A client that is refused while it still sends would lose the answer if the connection were closed under it.
LINGER_SECONDS = 1.0
NOT_HTTP = "the request is not HTTP/1.1; send it anew on another connection"
LARGE_HEAD = f"the request line and headers are larger than the limit of {MAX_HEAD_BYTES} bytes; send less in them"
OF_AN_UPGRADE = frozenset({b"upgrade", b"http2-settings"})
REASONS = {400: b"Bad Request", 408: b"Request Timeout", 431: b"Request Header Fields Too Large"}


class Protocol(HttpToolsProtocol):
    """One connection.

    Where uvicorn's would, this one does not: collect a head of any size; lose the body of a request that offers to
    upgrade to HTTP/2 (Java's client does, and curl --http2); answer a good request with the 400 of what follows it; go
    on answering pipelined requests of a client that has gone.
    """

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._in_head = True
        self._head_bytes = 0
        self._piece_bytes = 0
        self._upgrades = False
        self._deaf = False
        self._answering: RequestResponseCycle | None = None

    def data_received(self, data: bytes) -> None:
        """Parse what arrived."""
        if self._deaf:
            return
        self._unset_keepalive_if_required()
        self._piece_bytes = len(data)
        self._head_bytes += len(data)
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserError:
            if not self._deaf:
                self._refuse(400, NOT_HTTP)
        except httptools.HttpParserUpgrade as upgrade:
            self._go_on_without_upgrade(data[upgrade.args[0] :])
        else:
            if self._in_head and self._head_bytes > MAX_HEAD_BYTES:
                self._refuse(431, LARGE_HEAD)

    def on_message_begin(self) -> None:
        """A request line has begun."""
        super().on_message_begin()
        self._in_head = True
        self._head_bytes = 0

    def on_headers_complete(self) -> None:
        """Start to answer, unless the head is too large or has to be read again."""
        if self._head_bytes + self._piece_bytes > MAX_HEAD_BYTES and self._size_of_head() > MAX_HEAD_BYTES:
            self._refuse(431, LARGE_HEAD)
            raise ValueError("too large")  # what the parser has to hear, so that it stops
        self._in_head = False
        self._upgrades = self.parser.should_upgrade() and self.parser.get_method() != b"CONNECT"
        if not self._upgrades:
            self._begin_cycle()

    def on_message_complete(self) -> None:
        """The body is there."""
        self._in_head = True
        self._head_bytes = 0
        if not self._upgrades:
            super().on_message_complete()

    def _begin_cycle(self) -> None:
        # As uvicorn's on_headers_complete does it, which has no place for another class of cycle.
        scope, version = self.scope, self.parser.get_http_version()
        scope["method"] = self.parser.get_method().decode("ascii")
        if version != "1.1":
            scope["http_version"] = version
        raw_path, _, query = self.url.partition(b"?")
        if raw_path[:1] != b"/" or raw_path[:2] == b"//" or b"#" in self.url:
            parsed = httptools.parse_url(self.url)
            raw_path, query = parsed.path, parsed.query or b""
        path = raw_path.decode("ascii")
        scope["path"] = self.root_path + (unquote(path) if "%" in path else path)
        scope["raw_path"] = self.root_path.encode("ascii") + raw_path if self.root_path else raw_path
        scope["query_string"] = query
        before = self.cycle
        self.cycle = Cycle(
            scope=scope,
            transport=self.transport,
            flow=self.flow,
            logger=self.logger,
            access_logger=self.access_logger,
            access_log=self.access_log,
            default_headers=self.server_state.default_headers,
            message_event=asyncio.Event(),
            expect_100_continue=self.expect_100_continue,
            keep_alive=version != "1.0" and self.parser.should_keep_alive(),
            on_response=self.on_response_complete,
        )
        if before is None or before.response_complete:
            self._start_asgi_task(self.cycle, self.app)
        else:
            self.flow.pause_reading()
            self.pipeline.appendleft((self.cycle, self.app))

    def connection_lost(self, exc: Exception | None) -> None:
        """Tell the request that is being answered; uvicorn tells the last one that was read."""
        if self._answering is not None:
            self._answering.disconnected = True
            self._answering.message_event.set()
        super().connection_lost(exc)

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        self._answering = cycle
        super()._start_asgi_task(cycle, app)

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
        under_way = last is not None and not last.response_complete
        if under_way and self._in_head:
            last.keep_alive = False
        elif self.pipeline:
            # The last request's body is broken; what it is told has to wait for the answers before it.
            last.keep_alive = last.more_body = False
            self.pipeline[0] = (last, _saying(_refusal(status, sentence, self.url)))
            self.app.count_unread(status, begun=False)
        elif self.transport.is_closing() or (last is not None and last.response_started and not self._in_head):
            self.transport.close()
        else:
            if under_way:
                last.disconnected = True
                last.message_event.set()
            self.app.count_unread(status, begun=under_way)
            refusal = _refusal(status, sentence, self.url)
            head = [b"HTTP/1.1 %d %b" % (status, REASONS[status]), *(b"%b: %b" % header for header in refusal.headers)]
            self.transport.write(b"\r\n".join([*head, b"", *refusal.body]))
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
