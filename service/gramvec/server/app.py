"""The FastAPI application: the routes around one `Service`, and its life."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any

from fastapi import APIRouter, FastAPI
from starlette.applications import Starlette
from starlette.middleware.cors import CORSMiddleware
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from gramvec import __version__
from gramvec.embed.embedder import Embedder
from gramvec.errors import GramvecError
from gramvec.server.dialects import cohere, ollama, openai, orchestrators, tei
from gramvec.server.job_routes import classify, search
from gramvec.server.model_route import ModelRoute, answer_error, answer_no_route
from gramvec.server.openapi import complete
from gramvec.server.routes import compare, embed, operations, pages, rank
from gramvec.server.settings import Settings, settings_from_environment
from gramvec.server.state.background import run_in_background
from gramvec.server.state.models import check_aliases, check_names, open_attached_files
from gramvec.server.state.service import PROCESS, Service
from gramvec.server.telemetry.tracing import check_tracing

# Routes for texts and for operators, which a user's application may have below a prefix of its own.
ROUTERS = (
    *(embed.router, compare.router, openai.embeddings, openai.router, embed.root, operations.probes),
    *(rank.rerank, rank.router, rank.v1, search.router, classify.router, operations.router),
    *(tei.router, cohere.router, ollama.router, openai.deployments, orchestrators.probes, orchestrators.invocations),
)
# FastAPI has OpenTelemetry built in and on by default, with queries and the messages of exceptions in it.
NO_TELEMETRY: Any = dict.fromkeys(("tracing", "metrics", "logs", "operation_spans", "auto_configure"), False)
# Seconds for the export of the last spans when the server stops; their receiver may be gone.
LAST_SPANS_SECONDS = 2.0

ANY_PORT = ":*"
CORS_METHODS = ("GET", "POST", "OPTIONS")
CORS_RESPONSE_HEADERS = (
    *("retry-after", "www-authenticate", "x-compute-characters", "x-dtype", "x-empty-inputs", "x-ignored-fields"),
    "x-inference-time",
    *("x-model", "x-queue-time", "x-request-id", "x-shape", "x-total-time", "x-unknown-inputs"),
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
    for router in ROUTERS:
        made.include_router(router)
    return made


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

    A request for a model goes to its route at once, past five middlewares and the search for the route, which would
    cost a third of a short request more; it goes the way of FastAPI where anything was added that it has to see.

    Args:
        service: shared by all handlers.
        loads: load the models of the settings at the start.

    Attributes:
        lifespan_state: the state that the server gives with the lifespan (ASGI), and requests have.
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
        for router in (*ROUTERS, pages.router):
            self.include_router(router)
        self.router.default = answer_no_route
        self.add_exception_handler(GramvecError, answer_error)  # of a user's route; our routes have it anywhere
        if service.settings.cors_origins:
            self.add_middleware(
                CORSMiddleware,
                allow_origins=[origin for origin in service.settings.cors_origins if not origin.endswith(ANY_PORT)],
                allow_origin_regex=_origins_of_any_port(service.settings.cors_origins),
                allow_methods=CORS_METHODS,
                allow_headers=["*"],
                expose_headers=CORS_RESPONSE_HEADERS,
                max_age=CORS_MAX_AGE_SECONDS,
            )
        routes = [
            route for router in (*ROUTERS, pages.router) for route in router.routes if isinstance(route, ModelRoute)
        ]
        self._hot = {route.path: route for route in routes if route.body is not None and not route.param_convertors}
        self._operations = {route.unique_id for route in routes}
        self._own_routes = [*self.router.routes]
        self._own_handlers = {**self.exception_handlers}
        self._plain_stack: ASGIApp | None = None
        self.lifespan_state: dict[str, Any] = {}
        self._completed: dict[str, Any] | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request, or the lifespan of the application (ASGI)."""
        if scope["type"] == "lifespan":
            self.lifespan_state = scope.setdefault("state", {})
            await super().__call__(scope, receive, self._shorten_failures(send))
            return
        if self.lifespan_state and "state" not in scope:
            scope["state"] = {**self.lifespan_state}
        if scope["type"] == "http" and scope["method"] == "POST":
            route = self._hot.get(scope["path"])
            if route is not None and self._is_unchanged(scope):
                scope["app"] = self
                await route.answer(self._service, scope, receive, send)
                return
        await super().__call__(scope, receive, send)

    def build_middleware_stack(self) -> ASGIApp:
        """Return the middlewares around the router; from then on none is added (Starlette)."""
        stack = super().build_middleware_stack()
        # What patches the classes themselves has to see all requests.
        patched = any(kind.__call__.__globals__["__name__"] != kind.__module__ for kind in (Starlette, FastAPI))
        limited = getattr(self, "max_body_size", None) is not None
        if not (self.user_middleware or patched or limited) and self.exception_handlers == self._own_handlers:
            self._plain_stack = stack
        return stack

    def _is_unchanged(self, scope: Scope) -> bool:
        """Return True unless a user has added anything that the request of a hot route would pass."""
        stack, routes = self._plain_stack, self.router.routes
        return (
            stack is not None
            and self.middleware_stack is stack
            and not (self.dependency_overrides or self.root_path or scope.get("root_path"))
            and (routes == self._own_routes or routes[: len(self._own_routes)] == self._own_routes)
        )

    def openapi(self) -> dict[str, Any]:
        """Return the OpenAPI document (FastAPI), with the headers and examples of our routes."""
        document = super().openapi()
        if document is not self._completed:
            complete(document, self._operations, self._service.settings)
            self._completed = document
        return document

    def _shorten_failures(self, send: Send) -> Send:
        """Return `send` for a lifespan; that the models cannot be loaded is one sentence instead of a traceback."""

        async def send_shortened(message: Message) -> None:
            failure = self._service.failure
            if message["type"] == "lifespan.startup.failed" and failure is not None:
                message = {**message, "message": failure}
            await send(message)

        return send_shortened


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
        service.begin(app.lifespan_state.get(PROCESS) if isinstance(app, Application) else None)
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
