"""The FastAPI application: the routes around one `Service`, and its life."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any

from fastapi import APIRouter, FastAPI
from starlette.middleware.cors import CORSMiddleware
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from gramvec import __version__
from gramvec.embed.embedder import Embedder
from gramvec.errors import GramvecError
from gramvec.server.dialects import cohere, ollama, openai, orchestrators, tei
from gramvec.server.job_routes import changes, classify, search
from gramvec.server.model_route import ModelRoute, answer_error, answer_no_route
from gramvec.server.openapi import complete
from gramvec.server.routes import compare, embed, operations, pages, rank
from gramvec.server.settings import Settings, settings_from_environment
from gramvec.server.state.background import run_in_background
from gramvec.server.state.models import check_aliases, check_names, open_attached_files
from gramvec.server.state.service import Service
from gramvec.server.telemetry.tracing import check_tracing

# Routes for texts and for operators, which a user's application may have below a prefix of its own. A request is
# compared with them in this order, so those that are asked for most often come first.
ROUTERS = (
    *(embed.router, openai.embeddings, compare.router, rank.router, search.router, classify.router),
    changes.router,
    *(operations.probes, rank.v1, openai.router, operations.router),
    *(tei.router, cohere.router, ollama.router, openai.deployments, orchestrators.probes, orchestrators.invocations),
)
# What a router adds to the options of its routes by itself.
OF_ROUTERS = {"dependency_overrides_provider", "strict_content_type"}
# FastAPI has OpenTelemetry built in and on by default, with queries and the messages of exceptions in it.
NO_TELEMETRY: Any = dict.fromkeys(("tracing", "metrics", "logs", "operation_spans", "auto_configure"), False)
# Seconds for the export of the last spans when the server stops; their receiver may be gone.
LAST_SPANS_SECONDS = 2.0

ANY_PORT = ":*"
CORS_METHODS = ("GET", "POST", "OPTIONS")
CORS_RESPONSE_HEADERS = (
    *("retry-after", "server-timing", "www-authenticate"),
    *("x-compute-characters", "x-compute-time", "x-compute-tokens", "x-compute-type", "x-dtype"),
    *("x-empty-inputs", "x-ignored-fields", "x-inference-time", "x-model", "x-queue-time"),
    *("x-request-id", "x-shape", "x-tokenization-time", "x-total-time", "x-unknown-inputs"),
)
# Chromium keeps a preflight for at most two hours.
CORS_MAX_AGE_SECONDS = 7200


def create_app(settings: Settings | None = None, embedder: Embedder | Sequence[Embedder] | None = None) -> Application:
    """Return a FastAPI application that serves models; its `state.gramvec` holds them and shows whether it is ready.

    Args:
        settings: None for those of the environment variables, so that `uvicorn --factory gramvec.server.app:create_app`
            works.
        embedder: a loaded model to serve, or several, which the caller closes; None loads `settings.model` when the
            application starts, before the server listens. An empty sequence serves no model at all.

    Raises:
        BundleError: two of the models have one name, or an alias names no model.
        InputError: with models, an index or a head of the settings is unavailable.
    """
    return Application(*_service(settings, embedder))


def router(settings: Settings | None = None, embedder: Embedder | Sequence[Embedder] | None = None) -> APIRouter:
    """Return a router with the routes of this service, for `include_router` of another application.

    Its lifespan, which FastAPI runs with that of the application, loads the models. An application has at most one.

    Args:
        settings: as for `create_app`.
        embedder: as for `create_app`.

    Raises:
        BundleError, InputError: as `create_app`.
    """
    made = APIRouter(lifespan=_lifespan(*_service(settings, embedder)))
    _add_routes(made, ROUTERS)
    return made


def _add_routes(router: APIRouter, routers: Sequence[APIRouter]) -> None:
    """Add the routes of these routers to one, each by itself: to find it in an inclusion would take twice as long."""
    for added in routers:
        for route in added.routes:
            assert isinstance(route, ModelRoute)
            options = {name: value for name, value in route.options.items() if name not in OF_ROUTERS}
            router.add_api_route(route.path, route.endpoint, route_class_override=type(route), **options)


def _service(settings: Settings | None, embedder: Embedder | Sequence[Embedder] | None) -> tuple[Service, bool]:
    """Return the service of these models, and whether they are to be loaded."""
    given = embedder if isinstance(embedder, Sequence) else [embedder] if embedder is not None else []
    settings = settings or settings_from_environment()
    check_names(given)
    if given:
        check_aliases(settings, given)
    if settings.tracing == "on":
        check_tracing()
    return Service(settings, given, open_attached_files(settings, given) if given else ()), embedder is None


class Application(FastAPI):
    """The application of this service, to which routers, dependencies, middlewares and handlers may be added.

    Args:
        service: shared by all handlers.
        loads: load the models of the settings at the start.

    Attributes:
        first_handlers: the exception handlers that it had before a user has added any.
    """

    def __init__(self, service: Service, loads: bool = False) -> None:
        super().__init__(
            title="gramvec",
            version=__version__,
            description="Sentence embeddings from character n-grams and words, in the shapes of Text Embeddings"
            " Inference and of OpenAI.",
            lifespan=_lifespan(service, loads),
            openapi_url=None,
            redirect_slashes=False,
            telemetry=NO_TELEMETRY,
        )
        self._service = self.state.gramvec = service
        _add_routes(self.router, (*ROUTERS, pages.router))
        self._operations = {route.unique_id for route in self.router.routes if isinstance(route, ModelRoute)}
        self.router.default = answer_no_route
        self.router.lifespan = self._shorten_failures(self.router.lifespan)  # type: ignore[method-assign,assignment]
        self.add_exception_handler(GramvecError, answer_error)  # of a user's route; our routes have it anywhere
        self.first_handlers = {**self.exception_handlers}
        if service.settings.cors_origins:
            self.add_middleware(
                CORSMiddleware,
                allow_origins=[origin for origin in service.settings.cors_origins if not origin.endswith(ANY_PORT)],
                allow_origin_regex=_origins_of_any_port(service.settings.cors_origins),
                allow_methods=CORS_METHODS,
                allow_headers=["*"],
                expose_headers=CORS_RESPONSE_HEADERS,
                max_age=CORS_MAX_AGE_SECONDS,
                # A page that is named may ask for a service in its network; every page may not (Fetch's "private
                # network access").
                allow_private_network="*" not in service.settings.cors_origins,
            )
        self._own_middlewares = len(self.user_middleware)
        self._completed: dict[str, Any] | None = None

    def build_middleware_stack(self) -> ASGIApp:
        """Return the middlewares around the router; one that gives requests an id of its own is heeded."""
        stack = super().build_middleware_stack()
        return OneRequestId(stack) if len(self.user_middleware) > self._own_middlewares else stack

    def openapi(self) -> dict[str, Any]:
        """Return the OpenAPI document (FastAPI), with the headers and examples of our routes."""
        document = super().openapi()
        if document is not self._completed:
            complete(document, self._operations, self._service.settings)
            self._completed = document
        return document

    def _shorten_failures(self, lifespan: ASGIApp) -> ASGIApp:
        """Return a lifespan of a router; that the models cannot be loaded is one sentence instead of a traceback."""

        async def shortened(scope: Scope, receive: Receive, send: Send) -> None:
            async def send_shortened(message: Message) -> None:
                failure = self._service.failure
                if message["type"] == "lifespan.startup.failed" and failure is not None:
                    message = {**message, "message": failure}
                await send(message)

            await lifespan(scope, receive, send_shortened)

        return shortened


class OneRequestId:
    """A middleware around all others, by which a response has one x-request-id: that of the outermost."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on (ASGI)."""

        async def send_once(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = [*message.get("headers", ())]
                ids = [header for header in headers if header[0].lower() == b"x-request-id"]
                if len(ids) > 1:
                    others = [header for header in headers if header[0].lower() != b"x-request-id"]
                    message = {**message, "headers": [*others, ids[-1]]}
            await send(message)

        await self._app(scope, receive, send_once)


def _origins_of_any_port(origins: Sequence[str]) -> str | None:
    """Return a pattern of the origins that are given for any port; None if there are none."""
    any_port = [
        re.escape(origin.removesuffix(ANY_PORT)) + r"(:\d{1,5})?" for origin in origins if origin.endswith(ANY_PORT)
    ]
    return "|".join(any_port) or None


def _lifespan(service: Service, loads: bool) -> Callable[[FastAPI], Any]:
    """Return a lifespan of an application that loads the models, and releases them at the end."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        if getattr(app.state, "gramvec", service) is not service:
            raise GramvecError("this application has a gramvec router already; mount an application for another one")
        app.state.gramvec = service
        service.begin()
        loading: asyncio.Task[None] | None = None
        if service.given:
            service.attach(*service.given, attached=service.given_attached)
        elif loads:
            loading = asyncio.create_task(service.load())
            if not service.process.listens_while_loading:
                await asyncio.wait([loading])
                if service.failure is not None:
                    raise GramvecError(service.failure)
        try:
            yield
        finally:
            service.stop()
            if loading is not None:
                loading.cancel()  # it may read for a long time yet
                await asyncio.wait([loading])
            await service.close()
            if service.spans is not None:
                with suppress(TimeoutError):
                    await run_in_background(service.spans.close, seconds=LAST_SPANS_SECONDS)

    return lifespan
