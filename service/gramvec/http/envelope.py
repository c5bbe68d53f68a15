"""What every request passes on its way in and out: the key, the limit on the body, the headers, the last resort.

Pure ASGI: FastAPI's own middleware decorator costs 205 us a request.
"""

from __future__ import annotations

import asyncio
import hmac
import logging
import re
import time
import uuid
from collections.abc import MutableMapping

from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from gramvec.http.errors import HttpError, error_response, too_large_body, unhealthy
from gramvec.http.service import USAGE, Service, Usage

log = logging.getLogger("gramvec.http")

# Probes have no key to show, and the page that explains how to send one must open without it.
PUBLIC_PATHS = frozenset({"/health", "/ready", "/docs", "/docs/oauth2-redirect", "/openapi.json"})
# A client that is refused while it still sends would lose the answer if the connection were closed under it.
LINGER_SECONDS = 1.0
NO_USAGE = Usage(0, 0.0, 0.0)
REQUEST_ID = re.compile(rb"[\x21-\x7e]{1,128}")


class Envelope:
    """ASGI middleware around the whole application."""

    def __init__(self, app: ASGIApp, service: Service) -> None:
        self._app = app
        self._service = service
        self._limit = service.settings.max_body_bytes
        self._keys = [b"Bearer " + key.get_secret_value().encode() for key in service.settings.api_key]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection's request; anything but HTTP goes straight through."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = dict(scope["headers"])
        exchange = _Exchange(self._service, scope, receive, send, headers.get(b"x-request-id", b""), self._limit)
        try:
            refusal = self._refusal(scope, headers)
            if refusal is not None:
                await error_response(refusal)(scope, exchange.receive, exchange.send)
            else:
                await self._app(scope, exchange.receive, exchange.send)
        except ClientDisconnect:
            pass
        except asyncio.CancelledError:
            if not self._service.stopping:
                raise
            # The grace time is over: the server cancels what a stalled client still holds open.
            if not exchange.started:
                exchange.linger_seconds = 0.0
                cut_off = unhealthy("the service is shutting down")
                await error_response(cut_off)(scope, exchange.receive, exchange.send)
        except Exception:
            log.exception("request %s failed", exchange.request_id.decode())
            if exchange.started:
                raise
            bug = HttpError(500, "backend", "the service failed on this request; its log says why")
            await error_response(bug)(scope, exchange.receive, exchange.send)

    def _refusal(self, scope: Scope, headers: MutableMapping[bytes, bytes]) -> HttpError | None:
        if self._keys and scope["path"] not in PUBLIC_PATHS and not self._knows(headers.get(b"authorization", b"")):
            return HttpError(
                401,
                "unauthorized",
                "the API key is missing or wrong; send it as 'Authorization: Bearer KEY'",
                {"WWW-Authenticate": "Bearer"},
            )
        length = headers.get(b"content-length", b"")
        if length.isdigit() and int(length) > self._limit:
            return too_large_body(self._limit)
        return None

    def _knows(self, authorization: bytes) -> bool:
        scheme, _, key = authorization.partition(b" ")
        given = scheme.title() + b" " + key.strip()
        # Every key is compared, in constant time, so that the time taken says nothing about any of them.
        return any([hmac.compare_digest(given, known) for known in self._keys])


class _Exchange:
    """One request and its answer, as the application sees them."""

    def __init__(
        self, service: Service, scope: Scope, receive: Receive, send: Send, request_id: bytes, limit: int
    ) -> None:
        self._service = service
        self._scope = scope
        self._receive = receive
        self._send = send
        self._limit = limit
        self._began = time.perf_counter()
        self._received = 0
        self._body_complete = False
        self._closing = False
        self.linger_seconds = LINGER_SECONDS
        self.started = False
        self.request_id = request_id if REQUEST_ID.fullmatch(request_id) else uuid.uuid4().hex.encode()

    async def receive(self) -> Message:
        message = await self._receive()
        if message["type"] == "http.request":
            self._received += len(message.get("body", b""))
            self._body_complete = not message.get("more_body", False)
            if self._received > self._limit:
                raise too_large_body(self._limit)
        else:
            self._body_complete = True
        return message

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.started = True
            message["headers"] = [*message.get("headers", ()), *self._headers()]
            self._closing = any(
                name.lower() == b"connection" and value.lower() == b"close" for name, value in message["headers"]
            )
        elif self._closing and not self._body_complete and not message.get("more_body", False):
            await self._send({**message, "more_body": True})
            await self._drain()
            message = {"type": "http.response.body", "body": b"", "more_body": False}
        await self._send(message)

    def _headers(self) -> list[tuple[bytes, bytes]]:
        usage: Usage = self._scope.get(USAGE, NO_USAGE)
        total_ms = (time.perf_counter() - self._began) * 1e3
        headers = [
            (b"x-request-id", self.request_id),
            (b"x-compute-characters", b"%d" % usage.characters),
            (b"x-total-time", b"%.3f" % total_ms),
            (b"x-queue-time", b"%.3f" % usage.queue_ms),
            (b"x-inference-time", b"%.3f" % usage.inference_ms),
        ]
        if self._service.served is not None:
            headers.append((b"x-model", self._service.served.label.encode()))
        if self._service.stopping:
            headers.append((b"connection", b"close"))
        return headers

    async def _drain(self) -> None:
        try:
            async with asyncio.timeout(self.linger_seconds):
                more = True
                while more:
                    message = await self._receive()
                    more = message["type"] == "http.request" and bool(message.get("more_body", False))
        except TimeoutError:
            pass
