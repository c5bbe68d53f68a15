"""What every request passes: the key, the limit on the body, the headers, the counting, the last resort.

Pure ASGI. The routes that carry the traffic are answered here, the rest by the application behind: FastAPI costs
more than a short text does, its own middleware decorator alone 205 us a request.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from contextlib import suppress
from itertools import count

from starlette.datastructures import State
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from gramvec.errors import GramvecError
from gramvec.server.contract import HttpError, error_reply, reason_of, too_large_body, unhealthy
from gramvec.server.middleware.access import log_request
from gramvec.server.middleware.cors import Cors
from gramvec.server.middleware.exchange import CLIENT_GONE, Exchange
from gramvec.server.middleware.keys import Keys
from gramvec.server.middleware.spans import record_span
from gramvec.server.routes import DOCS_PATHS, REASON, RESERVE, Route, embedding, openai, probes
from gramvec.server.state import Service, aside
from gramvec.server.telemetry import UNKNOWN_ROUTE, Spans, check_tracing

HOT_ROUTES: Mapping[str, Route] = {
    "/embed": embedding.embed_texts,
    "/similarity": embedding.compare_texts,
    "/v1/embeddings": openai.create_embeddings,
    "/": embedding.embed_or_compare,
}
# Probes have no key to show, and the page that explains how to send one must open without it.
PROBES: Mapping[str, Route] = {"/health": probes.health, "/ready": probes.ready}
PUBLIC_PATHS = DOCS_PATHS | {"/health", "/ready", "/"}
# What is left of spans when the server ends may take so long; whoever takes them may be gone.
LAST_SPANS_SECONDS = 2.0
BUG = HttpError(500, "backend", "the service failed on this request; its log says why")


class FrontDoor:
    """The whole ASGI application.

    Args:
        behind: answers every request that is none of a hot route, and is told when the server starts and ends.
        service: what the routes share.
        routes: the hot routes, by path; all are POST.
        probes: more of them, which are GET: an orchestrator asks them every second and needs no more than is here.
    """

    def __init__(
        self,
        behind: ASGIApp,
        service: Service,
        routes: Mapping[str, Route] = HOT_ROUTES,
        probes: Mapping[str, Route] = PROBES,
    ) -> None:
        self.behind = behind
        self.state = State({"service": service})
        self._service = service
        self._routes = {"POST": routes, "GET": probes}
        # A POST there runs our own code up to its first pause, so that it may be begun without a task.
        self.prompt_paths = frozenset(routes)
        self._limit = service.settings.max_body_bytes
        keys = Keys(key.get_secret_value() for key in service.settings.api_key)
        self._keys = keys if keys else None
        self._public = PUBLIC_PATHS | ({"/metrics"} if service.settings.metrics != "key" else set())
        self._cors = Cors(service.settings.cors_origins) if service.settings.cors_origins else None
        self._log_all = service.settings.access_log == "on"
        if service.settings.tracing == "on":
            check_tracing()
        self._spans: Spans | None = None
        self._number = count()
        self._id_prefix = _random_prefix()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection's request; anything but HTTP goes straight through."""
        if scope["type"] != "http":
            # The server starts: another process, perhaps, than the one that made this application.
            self._id_prefix = _random_prefix()
            await self._live(scope, receive, send)
            return
        # 16 random digits and a counter: as unique as a UUID, which costs 3 us.
        new_id = b"%b%08x" % (self._id_prefix, next(self._number))
        exchange = Exchange(self._service, scope, dict(scope["headers"]), receive, send, new_id)
        try:
            if self._cors is not None and await self._preflighted(self._cors, scope, exchange):
                return
            await self._serve(scope, exchange)
        except ClientDisconnect:
            exchange.status = CLIENT_GONE  # the framework behind takes it for a bug, and answers nobody
        except asyncio.CancelledError:
            if not self._service.stopping:
                raise
            # The grace time is over: the server cancels what a stalled client still holds open.
            if not exchange.started:
                exchange.reason = "shutting_down"
                await exchange.reply(error_reply(unhealthy(self._service.last_words), scope["path"]))
        except Exception as error:
            exchange.error = error
            if not exchange.started:
                await exchange.reply(error_reply(BUG, scope["path"]))
            elif not exchange.complete:
                raise
        finally:
            exchange.release()
            self._record(scope, exchange)

    async def _live(self, scope: Scope, receive: Receive, send: Send) -> None:
        spans = self._spans = Spans() if self._service.settings.tracing == "on" else None

        async def sent(message: Message) -> None:
            if spans is not None and message["type"] == "lifespan.shutdown.complete":
                with suppress(TimeoutError):
                    await aside(spans.close, seconds=LAST_SPANS_SECONDS)
            await send(message)

        await self.behind(scope, receive, sent)

    def count_unread(self, status: int, *, begun: bool) -> None:
        """Count what the protocol below has refused by itself; see `Metrics.count_unread`."""
        self._service.metrics.count_unread(status, begun=begun)

    def _record(self, scope: Scope, exchange: Exchange) -> None:
        """Count the request, and log it if it failed or if all are."""
        route = exchange.route
        if route is None:
            # What the router found; never the path, of which there is no end.
            route = exchange.route = getattr(scope.get("route"), "path", UNKNOWN_ROUTE)
            exchange.reason = exchange.reason or scope.get(REASON)
        if not exchange.started:
            exchange.seconds = exchange.age
        metrics = self._service.metrics
        status = exchange.status
        metrics.observe_request(route, status, exchange.seconds, exchange.encode_seconds, exchange.usage)
        reason = exchange.reason
        if reason is not None:
            metrics.reject(reason)
        if self._log_all or exchange.error is not None or (reason is None and (status >= 500 or status == 424)):
            log_request(scope["method"], exchange)
        if self._spans is not None:
            record_span(self._spans, scope, exchange)

    async def _preflighted(self, cors: Cors, scope: Scope, exchange: Exchange) -> bool:
        exchange.cors = cors.headers(exchange.headers)
        reply = cors.preflight(scope["method"], exchange.headers)
        if reply is None:
            return False
        exchange.route = "preflight"
        await exchange.reply(reply)
        return True

    async def _serve(self, scope: Scope, exchange: Exchange) -> None:
        known = self._routes.get(scope["method"])
        route = known.get(scope["path"]) if known is not None else None
        if route is not None:
            exchange.route = scope["path"]
        try:
            self._check(scope, exchange)
            if route is not None:
                reply = await route(self._service, exchange)
        except (HttpError, GramvecError) as error:
            exchange.reason = reason_of(error, stopping=self._service.stopping)
            reply = error_reply(error, scope["path"])
        else:
            if route is None:
                scope[RESERVE] = exchange.reserve
                await self.behind(scope, exchange.receive, exchange.send)
                return
        if not exchange.reply_at_once(reply):
            await exchange.reply(reply)

    def _check(self, scope: Scope, exchange: Exchange) -> None:
        headers = exchange.headers
        # A public path is so for those who read it: POST / embeds.
        if self._keys is not None and not (scope["path"] in self._public and scope["method"] in ("GET", "HEAD")):
            self._keys.check(headers.get(b"authorization", b""))
        length = headers.get(b"content-length", b"")
        if len(length) > 4 and length.isdigit():
            size = int(length)
            if size > self._limit:
                raise too_large_body(self._limit)
            exchange.reserve(size)


def _random_prefix() -> bytes:
    return os.urandom(8).hex().encode()
