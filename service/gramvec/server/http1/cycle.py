"""ASGI cycle of a request and its answer, with a shortcut for a whole answer, and the flow control of a connection."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Callable, Iterable
from http import HTTPStatus
from typing import Any

from starlette.types import ASGIApp, Message, Scope

from gramvec.server.http1.parser import RequestHead

log = logging.getLogger("gramvec.server")

# Up to here a body is copied behind its head, which costs less than a second write.
SMALL_BYTES = 16 * 1024
# A body that the application does not take stops the reading at this size.
HIGH_WATER_BYTES = 64 * 1024
STATUS_LINES = {status.value: f"HTTP/1.1 {status.value} {status.phrase}\r\n".encode() for status in HTTPStatus}
CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
CLOSE = b"connection: close\r\n"
GONE: Message = {"type": "http.disconnect"}
# Instead of the bytes that are left of an answer.
IN_CHUNKS, UNTIL_CLOSED = -1, -2

_bad_name = re.compile(rb"[^!#$%&'*+.^_`|~0-9A-Za-z-]").search
_bad_value = re.compile(rb"[\x00-\x08\x0a-\x1f\x7f]").search


class FlowControl(asyncio.Protocol):
    """Pauses of one connection, so that neither side fills our memory.

    Reading pauses for any of two reasons: the application does not take a BODY, or bytes AHEAD are not read yet: the
    client has sent further requests, or other connections have their turn.

    Attributes:
        ended: reading never goes on, because the client has closed its side.
        write_paused: the client is slow to take what was written.
    """

    BODY, AHEAD, ALL = 1, 2, 3

    transport: asyncio.Transport

    def __init__(self) -> None:
        self._paused = 0
        self._writable: asyncio.Future[None] | None = None
        self.ended = self.write_paused = False

    @property
    def read_paused(self) -> bool:
        """Return True while the connection is not read."""
        return self._paused != 0

    def pause_reading(self, reason: int) -> None:
        """Stop reading."""
        if not self._paused:
            self.transport.pause_reading()
        self._paused |= reason

    def resume_reading(self, reasons: int) -> None:
        """Read again, unless another reason is left."""
        if self._paused:
            self._paused &= ~reasons
            if not self._paused and not self.ended:
                self.transport.resume_reading()

    def pause_writing(self) -> None:
        """Make `drain` wait."""
        self.write_paused = True

    def resume_writing(self) -> None:
        """End the wait of `drain`: the client has taken most of the answer, or has gone."""
        self.write_paused = False
        if self._writable is not None and not self._writable.done():
            self._writable.set_result(None)

    async def drain(self) -> None:
        """Wait until more may be written."""
        while self.write_paused:
            self._writable = asyncio.get_running_loop().create_future()
            await self._writable


class RequestResponse:
    """A request whose body may still arrive, and its answer.

    Args:
        scope: ASGI's.
        head: of the request.
        flow: of its connection.
        date: returns the Date header line.
        answered: called once the whole answer is written.

    Attributes:
        begun: the application has seen the request.
        disconnected: the client has gone, or is not read any more.
        started, complete: of the answer.
    """

    def __init__(
        self,
        scope: Scope,
        head: RequestHead,
        flow: FlowControl,
        date: Callable[[], bytes],
        answered: Callable[[], None],
    ) -> None:
        self.scope = scope
        self.url = head.url
        self.begun = False
        self.keep_alive = head.keep_alive
        self.disconnected = False
        self.more_body = True
        self.started = self.complete = False
        self._waits = head.waits
        self._transport = flow.transport
        self._flow = flow
        self._date = date
        self._answered = answered
        self._body: bytes | bytearray = b""  # what the application has yet to take
        self._end_told = False
        self._heard: asyncio.Future[None] | None = None
        self._bodiless = False
        self._left = 0  # bytes of the answer that were announced and not sent yet, or IN_CHUNKS, UNTIL_CLOSED

    @staticmethod
    def of(receive: Any) -> RequestResponse | None:
        """Return the object whose `receive` this is; None under another server."""
        owner = getattr(receive, "__self__", None)
        return owner if isinstance(owner, RequestResponse) else None

    # From the connection

    def body_arrived(self, content: bytes, *, more: bool) -> None:
        """Take a part of the body."""
        self.more_body = more
        if not self.complete:
            if not self._body:
                self._body = content
            elif isinstance(self._body, bytearray):
                self._body += content
            else:
                self._body = bytearray(self._body + content)
            if len(self._body) > HIGH_WATER_BYTES:
                self._flow.pause_reading(FlowControl.BODY)
        self._wake()

    def probe(self) -> None:
        """Send a 100 (Continue), which a client that waits discards (RFC 9110, 15.2.1).

        A client that has closed both sides of its connection looks like one that has closed its own, until something is
        sent and the connection is reset.
        """
        if not self.started and self.scope["http_version"] == "1.1":
            self._transport.write(CONTINUE)

    def disconnect(self) -> None:
        """Note that the client has gone, or is not read any more."""
        self.disconnected = True
        self._wake()

    def _wake(self) -> None:
        if self._heard is not None and not self._heard.done():
            self._heard.set_result(None)

    async def run(self, app: ASGIApp) -> None:
        """Have the application answer."""
        try:
            await app(self.scope, self.receive, self.send)
        except Exception as error:
            log.error("an answer was not finished", exc_info=error)
        finally:
            if not (self.complete or self.disconnected):
                self._transport.close()

    # To the application

    async def receive(self) -> Message:
        """Return the next part of the body; after its end, wait until the client has gone (ASGI)."""
        if self._waits and not self.disconnected:
            self._waits = False
            self._transport.write(CONTINUE)
        while not (self.disconnected or self.complete):
            if self._body or not (self.more_body or self._end_told):
                body, self._body = bytes(self._body), b""
                self._end_told = not self.more_body
                self._flow.resume_reading(FlowControl.BODY)
                return {"type": "http.request", "body": body, "more_body": self.more_body}
            self._heard = asyncio.get_running_loop().create_future()
            await self._heard
        return GONE

    def respond(self, headers: Iterable[bytes], body: bytes | memoryview) -> bool:
        """Send a whole answer with status 200 in one write; return False, and send nothing, where only `send` can.

        It takes an eighth off the CPU time of a short request.

        Args:
            headers: lines with their ends, with lower-case names and without control characters, the content-length
                among them, no connection. `send` checks all that, this does not.
            body: of the answer.
        """
        if self.started or self.disconnected or self._flow.write_paused or self.scope["method"] == "HEAD":
            return False
        head = (STATUS_LINES[200], self._date(), *headers, b"\r\n" if self.keep_alive else CLOSE + b"\r\n")
        self.started = self.complete = True
        if len(body) < SMALL_BYTES:
            self._transport.write(b"".join((*head, body)))
        else:
            self._transport.write(b"".join(head))
            self._transport.write(body)
        self._wake()
        self._answered()
        return True

    async def send(self, message: Message) -> None:
        """Send the head of the answer, then its body in one or more parts (ASGI)."""
        if self._flow.write_paused and not self.disconnected:
            await self._flow.drain()
        if self.disconnected:
            return
        if self.complete or (message["type"] == "http.response.start") == self.started:
            raise RuntimeError(f"{message['type']} cannot follow here")
        if self.started:
            self._send_body(message.get("body", b""), more=message.get("more_body", False))
        else:
            self._send_head(message["status"], message.get("headers", ()))

    def _send_head(self, status: int, headers: Iterable[tuple[bytes, bytes]]) -> None:
        lines = [STATUS_LINES.get(status) or b"HTTP/1.1 %d \r\n" % status, self._date()]
        length: int | None = None
        for name, value in headers:
            if _bad_name(name) or _bad_value(value) or name.lower() == b"transfer-encoding":
                raise RuntimeError("a header of the answer cannot be sent")
            name = name.lower()
            if name == b"content-length":
                length = int(value)
            if name == b"connection":
                self.keep_alive = self.keep_alive and value.lower() != b"close"
            else:
                lines.append(b"%b: %b\r\n" % (name, value))
        lines += self._framing(status, length)
        if not self.keep_alive:
            lines.append(CLOSE)
        self.started, self._waits = True, False
        self._transport.write(b"".join([*lines, b"\r\n"]))

    def _framing(self, status: int, length: int | None) -> list[bytes]:
        """Return header lines that say where the body ends (RFC 9112, 6.3), if the application has not sent them."""
        self._bodiless = self.scope["method"] == "HEAD" or status in (204, 304)
        self._left = 0 if self._bodiless or length is None else length
        if self._bodiless or length is not None:
            return []
        if self.scope["http_version"] == "1.0":  # knows no chunks
            self.keep_alive, self._left = False, UNTIL_CLOSED
            return []
        self._left = IN_CHUNKS
        return [b"transfer-encoding: chunked\r\n"]

    def _send_body(self, content: bytes | memoryview, *, more: bool) -> None:
        if self._left == IN_CHUNKS:
            chunk = [b"%x\r\n" % len(content), content, b"\r\n"] if content else []
            self._transport.write(b"".join(chunk if more else [*chunk, b"0\r\n\r\n"]))
        elif not self._bodiless:
            if self._left != UNTIL_CLOSED:
                self._left -= len(content)
                if self._left < 0 or (self._left and not more):
                    raise RuntimeError("the body of the answer is not as long as its head says")
            self._transport.write(content)
        if not more:
            self.complete = True
            self._wake()
            self._answered()
