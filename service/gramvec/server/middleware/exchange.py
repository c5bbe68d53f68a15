"""One request and its answer on their way through the front door."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping

from starlette.requests import ClientDisconnect
from starlette.types import Message, Receive, Scope, Send

from gramvec.server.contract import NO_USAGE, Headers, Reply, Usage, too_large_body
from gramvec.server.http1 import RequestResponse
from gramvec.server.routes import USAGE
from gramvec.server.state import UNCOUNTED_BYTES, Service

CLOSE = (b"connection", b"close")
# What is counted where nobody waited for an answer; never sent.
CLIENT_GONE = 499

# Each value is formatted into its place: half of what it takes to make a list of pairs, and lines of that.
OWN_LINES = (
    b"x-request-id: %b\r\nx-compute-characters: %d\r\nx-total-time: %.3f\r\nx-queue-time: %.3f\r\n"
    b"x-inference-time: %.3f\r\n"
)

_line = b"%b: %b\r\n".__mod__
_is_sane = re.compile(rb"[\x21-\x7e]{1,128}").fullmatch


class Exchange:
    """A request whose body is kept under the limit, and an answer that gets the headers which every answer has."""

    __slots__ = (
        "_began",
        "_body_complete",
        "_limit",
        "_receive",
        "_received",
        "_request",
        "_reserved",
        "_scope",
        "_send",
        "_service",
        "complete",
        "cors",
        "encode_seconds",
        "error",
        "headers",
        "reason",
        "request_id",
        "route",
        "seconds",
        "started",
        "status",
        "usage",
    )

    def __init__(
        self,
        service: Service,
        scope: Scope,
        headers: Mapping[bytes, bytes],
        receive: Receive,
        send: Send,
        new_id: bytes,
    ) -> None:
        self._began = time.perf_counter()
        self._service = service
        self._scope = scope
        self._receive = receive
        self._send = send
        self._request = RequestResponse.of(receive)
        self._limit = service.settings.max_body_bytes
        self._received = self._reserved = 0
        self._body_complete = False
        self.headers = headers
        self.started = False
        self.complete = False
        self.cors: Headers = []
        # For the metrics and the access log: the route's template, why the request was refused, a bug.
        self.route: str | None = None
        self.reason: str | None = None
        self.error: Exception | None = None
        self.status = CLIENT_GONE
        self.seconds = self.encode_seconds = 0.0
        self.usage = NO_USAGE
        given = headers.get(b"x-request-id")
        self.request_id = given if given is not None and _is_sane(given) else new_id

    @property
    def age(self) -> float:
        """Seconds since the request's head was read."""
        return time.perf_counter() - self._began

    @property
    def gone(self) -> bool:
        """Whether the server has seen the client go."""
        return self._request is not None and self._request.disconnected

    def reserve(self, size: int) -> None:
        """Count so many bytes as held by this request, until `release`. Raises Overloaded."""
        if size > UNCOUNTED_BYTES:
            self._service.traffic.reserve(size)
            self._reserved += size

    def release(self) -> None:
        """The request holds nothing any more."""
        if self._reserved:
            self._service.traffic.release(self._reserved)
            self._reserved = 0

    async def receive(self) -> Message:
        """The next message of the request; HttpError 413 once the body is over the limit, Overloaded over all's."""
        message = await self._receive()
        if message["type"] == "http.request":
            self._received += len(message.get("body", b""))
            self._body_complete = not message.get("more_body", False)
            if self._received > self._limit:
                raise too_large_body(self._limit)
            self.reserve(self._received - self._reserved)
        else:
            self._body_complete = True
        return message

    async def body(self) -> bytes:
        """The whole body. Raises HttpError 413, or ClientDisconnect if it never comes."""
        if self._request is not None and not self._received and (whole := self._request.take_body()) is not None:
            self._body_complete = True
            if len(whole) > self._limit:
                raise too_large_body(self._limit)
            return whole
        body = b""
        parts: list[bytes] = []
        while not self._body_complete:
            message = await self.receive()
            if message["type"] == "http.disconnect":
                raise ClientDisconnect
            body = message.get("body", b"")
            parts.append(body)
        return body if len(parts) == 1 else b"".join(parts)

    def reply_at_once(self, reply: Reply) -> bool:
        """Send the whole answer straight to the server; False, and nothing is sent, where it has to be `reply`."""
        status, described, body, usage = reply
        request = self._request
        if request is None or status != 200 or len(body) > 1 or not self._body_complete or self._service.stopping:
            return False
        lines = (*map(_line, described), self._own_lines(usage), *map(_line, self.cors))
        if not request.respond(lines, body[0]):
            return False
        self.status = status
        self.started = self.complete = True
        return True

    async def reply(self, reply: Reply) -> None:
        """Send the whole answer."""
        status, described, body, usage = reply
        self.started = True
        self.status = status
        headers = [*described, *self._pairs(self._own_lines(usage))]
        # With the body read there is no more to do than to add headers.
        send = self.send if not self._body_complete else self._send
        await self._send({"type": "http.response.start", "status": status, "headers": headers})
        *parts, last = body
        for part in parts:
            await send({"type": "http.response.body", "body": part, "more_body": True})
        await send({"type": "http.response.body", "body": last})
        self.complete = True

    async def send(self, message: Message) -> None:
        """Send a part of the application's answer, its start with the headers added."""
        if message["type"] == "http.response.start":
            self.started = True
            self.status = message["status"]
            lines = self._own_lines(self._scope.get(USAGE, NO_USAGE))
            message["headers"] = [*message.get("headers", ()), *self._pairs(lines)]
        elif not message.get("more_body", False):
            self.complete = True
        await self._send(message)

    def _own_lines(self, usage: Usage) -> bytes:
        characters, queue_ms, inference_ms, label, _, answered = self.usage = usage
        now = time.perf_counter()
        self.seconds = now - self._began
        self.encode_seconds = now - answered
        lines = OWN_LINES % (self.request_id, characters, self.seconds * 1e3, queue_ms, inference_ms)
        if label := label or self._service.default_label:
            lines += b"x-model: %b\r\n" % label
        return lines

    def _pairs(self, lines: bytes) -> Headers:
        headers = [(name, value) for name, _, value in (line.partition(b": ") for line in lines.split(b"\r\n")[:-1])]
        if self._service.stopping:
            headers.append(CLOSE)
        headers += self.cors
        return headers
