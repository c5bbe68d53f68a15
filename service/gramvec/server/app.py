"""The ASGI application: one table of routes around one `Service`."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable, Sequence
from contextlib import suppress
from itertools import count

from starlette.datastructures import State
from starlette.requests import ClientDisconnect
from starlette.types import Receive, Scope, Send

from gramvec.embed.embedder import Embedder
from gramvec.errors import GramvecError
from gramvec.server.errors import HttpError, reason_of, too_large_body, unhealthy, unknown_route, wrong_method
from gramvec.server.middleware import Auth, Cors, log_request, record_span
from gramvec.server.request import CLIENT_GONE, Request, Route
from gramvec.server.responses import error_response
from gramvec.server.routes.table import ROUTES
from gramvec.server.settings import Settings, settings_from_environment
from gramvec.server.state.background import in_background
from gramvec.server.state.models import check_aliases, check_names, open_attached
from gramvec.server.state.service import Service
from gramvec.server.telemetry.tracing import Spans, check_tracing

BUG = HttpError(500, "backend", "the service failed on this request; its log says why")
# Seconds for the export of the last spans when the server stops; their receiver may be gone.
LAST_SPANS_SECONDS = 2.0


def create_app(settings: Settings | None = None, embedder: Embedder | Sequence[Embedder] | None = None) -> Application:
    """Return an ASGI application; its `state.service` holds the models and says whether it is ready.

    Args:
        settings: None for those of the environment variables, so that `uvicorn --factory gramvec.server.app:create_app`
            works.
        embedder: a loaded model to serve, or several, which the caller closes; None loads `settings.model` when the
            application starts, before the server listens. An empty sequence serves no model at all.

    Raises:
        BundleError: two of the models have one name, or an alias names none of them.
        InputError: with models, an index or a head of the settings is unavailable.
    """
    given = embedder if isinstance(embedder, Sequence) else [embedder] if embedder is not None else []
    settings = settings or settings_from_environment()
    check_names(given)
    if given:
        check_aliases(settings, given)
    service = Service(settings, given, open_attached(settings, given) if given else ())
    return Application(service, ROUTES, loads=embedder is None)


class Application:
    """Answers every request by the table of routes, counts it, and is the last resort for its failures.

    A new check of every request is a step of `_check`, before the body is read.

    Args:
        service: shared by all handlers.
        routes: the table.
        loads: load the models of the settings at the start.
    """

    def __init__(self, service: Service, routes: Iterable[Route] = ROUTES, *, loads: bool = False) -> None:
        self.state = State({"service": service})
        self.routes = tuple(routes)
        self._service = service
        self._loads = loads
        self._exact = {(route.method, route.path): route for route in self.routes if "{" not in route.path}
        self._prefixed = [(route.path.partition("{")[0], route) for route in self.routes if "{" in route.path]
        settings = service.settings
        self._limit = settings.max_body_bytes
        keys = [key.get_secret_value() for key in settings.api_key]
        self._auth = Auth(keys) if keys else None
        public = {route.path for route in self.routes if route.public}
        self._public = public | ({"/metrics"} if settings.metrics != "key" else set())
        self._cors = Cors(settings.cors_origins) if settings.cors_origins else None
        self._log_all = settings.access_log == "on"
        if settings.tracing == "on":
            check_tracing()
        self._spans: Spans | None = None
        self._number = count()
        self._id_prefix = _random_prefix()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request, or the lifespan of the application (ASGI)."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._live(receive, send)
            return
        # 16 random digits and a counter are as unique as a UUID, which costs 3 us.
        new_id = b"%b%08x" % (self._id_prefix, next(self._number))
        request = Request(self._service, scope, receive, send, new_id)
        try:
            await self._serve(request)
        except ClientDisconnect:
            request.status = CLIENT_GONE
        except asyncio.CancelledError:
            if not self._service.stopping:
                raise
            # The grace time is over: the server cancels what a stalled client still holds open.
            if not request.started:
                request.reason = "shutting_down"
                await request.respond(error_response(unhealthy(self._service.last_words), scope["path"]))
        except Exception as error:
            request.error = error
            if not request.started:
                await request.respond(error_response(BUG, scope["path"]))
            elif not request.complete:
                raise
        finally:
            request.release()
            self._record(request)

    async def _serve(self, request: Request) -> None:
        scope = request.scope
        if self._cors is not None:
            request.cors = self._cors.headers(request.headers)
            if (preflight := self._cors.preflight(scope["method"], request.headers)) is not None:
                request.template = "preflight"
                await request.respond(preflight)
                return
        route = self._exact.get((scope["method"], scope["path"]))
        try:
            if route is None:
                route = self._parametrized(request)
            if route is not None:
                request.route, request.template = route, route.path
            self._check(request)
            if route is None:
                raise self._unrouted(request)
            response = await route.handler(request, await request.read(route))
        except (HttpError, GramvecError) as error:
            request.reason = reason_of(error, stopping=self._service.stopping)
            response = error_response(error, scope["path"])
        await request.respond(response)

    def _check(self, request: Request) -> None:
        headers, scope = request.headers, request.scope
        # A public path is public only for reading: POST / embeds.
        if self._auth is not None and not (scope["path"] in self._public and scope["method"] in ("GET", "HEAD")):
            self._auth.check(headers.get(b"authorization", b""))
        length = headers.get(b"content-length", b"")
        if len(length) > 4 and length.isdigit():
            size = int(length)
            if size > self._limit:
                raise too_large_body(self._limit)
            request.reserve(size)

    def _parametrized(self, request: Request) -> Route | None:
        path = request.scope["path"]
        for prefix, route in self._prefixed:
            if path.startswith(prefix) and route.method == request.scope["method"]:
                request.path_parameter = path[len(prefix) :]
                return route
        return None

    def _unrouted(self, request: Request) -> HttpError:
        path = request.scope["path"]
        same = [route for route in self.routes if path == route.path]
        same += [route for prefix, route in self._prefixed if path.startswith(prefix)]
        if not same:
            return unknown_route(path)
        request.template = same[0].path
        return wrong_method(path, request.scope["method"], ", ".join(sorted({route.method for route in same})))

    def _record(self, request: Request) -> None:
        """Count the request, and log it if it failed or if all are logged."""
        if not request.started:
            request.seconds = request.age
        metrics = self._service.metrics
        status, reason = request.status, request.reason
        metrics.observe_request(request.template, status, request.seconds, request.encode_seconds, request.usage)
        if reason is not None:
            metrics.reject(reason)
        failed = request.error is not None or (reason is None and (status >= 500 or status == 424))
        if failed or self._log_all:
            log_request(request, failed=failed)
        if self._spans is not None:
            record_span(self._spans, request, failed=failed)

    async def _live(self, receive: Receive, send: Send) -> None:
        # The process may be another one than that which made the application.
        self._id_prefix = _random_prefix()
        service = self._service
        self._spans = Spans() if service.settings.tracing == "on" else None
        await receive()
        loading: asyncio.Task[None] | None = None
        if service.given:
            service.attach(*service.given, attached=service.given_attached)
        elif self._loads:
            loading = asyncio.create_task(service.load())
            if not service.listens_while_loading:
                await asyncio.wait([loading])
                if service.failure is not None:
                    await send({"type": "lifespan.startup.failed", "message": service.failure})
                    return
        await send({"type": "lifespan.startup.complete"})
        await receive()
        service.stop()
        if loading is not None:
            loading.cancel()  # it may read for a long time yet
            await asyncio.wait([loading])
        await service.close()
        if self._spans is not None:
            with suppress(TimeoutError):
                await in_background(self._spans.close, seconds=LAST_SPANS_SECONDS)
        await send({"type": "lifespan.shutdown.complete"})


def _random_prefix() -> bytes:
    return os.urandom(8).hex().encode()
