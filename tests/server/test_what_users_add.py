"""What users and products add to an application, times each hot route and a slow one: every request is seen by all."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import fastapi.routing
import numpy as np
import pytest
import starlette.exceptions
import starlette.routing
from fastapi import APIRouter, Depends, FastAPI, HTTPException, Request
from fastapi.dependencies.utils import get_parameterless_sub_dependant
from fastapi.responses import PlainTextResponse, Response
from fastapi.testclient import TestClient
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.base import BaseHTTPMiddleware
from starlette.routing import Mount
from starlette.types import ASGIApp, Receive, Scope, Send

import gramvec
from gramvec import Embedder
from gramvec.jobs.classify.head import Head
from gramvec.server import create_app, router
from gramvec.server.settings import Settings

TEXTS = {"source_sentence": "cars", "sentences": ["car"]}
PAIR = {"source_sentence": "cars", "target_sentence": "car"}
RANKED = {"query": "a", "documents": ["b"]}
MODEL = "paragram-phrase"
# The template of each route, a path of it, and a body that it answers; None where it takes GET.
ROUTES: list[tuple[str, str, Any]] = [
    ("/embed", "/embed", {"inputs": "a"}),
    ("/embed_sparse", "/embed_sparse", {"inputs": "a"}),
    ("/similarity", "/similarity", {"inputs": TEXTS}),
    ("/", "/", {"inputs": "a"}),
    ("/", "/", {"inputs": TEXTS}),
    ("/match", "/match", {"left": ["a b"], "right": ["a b"]}),
    ("/explain", "/explain", {"inputs": PAIR}),
    ("/rerank", "/rerank", {"query": "a", "texts": ["b"]}),
    ("/rerank", "/rerank", RANKED),
    ("/v1/rerank", "/v1/rerank", RANKED),
    ("/v2/rerank", "/v2/rerank", RANKED),
    ("/reranker/rerank", "/reranker/rerank", {"query": "a", "texts": ["b"]}),
    ("/search", "/search", {"queries": "a"}),
    ("/rows", "/rows", {}),
    ("/rows/add", "/rows/add", {"rows": [{"id": "a", "text": "b"}]}),
    ("/rows/remove", "/rows/remove", {"ids": ["a"]}),
    ("/predict", "/predict", {"inputs": "a"}),
    ("/tokenize", "/tokenize", {"inputs": "a"}),
    ("/v1/embeddings", "/v1/embeddings", {"input": "a"}),
    ("/embeddings", "/embeddings", {"input": "a"}),
    ("/openai/deployments/{deployment}/embeddings", f"/openai/deployments/{MODEL}/embeddings", {"input": "a"}),
    ("/v1/embed", "/v1/embed", {"texts": ["a"]}),
    ("/v2/embed", "/v2/embed", {"texts": ["a"]}),
    ("/api/embed", "/api/embed", {"model": MODEL, "input": "a"}),
    ("/api/embeddings", "/api/embeddings", {"model": MODEL, "prompt": "a"}),
    ("/api/show", "/api/show", {"model": MODEL}),
    ("/api/pull", "/api/pull", {"model": MODEL, "stream": False}),
    ("/invocations", "/invocations", {"inputs": "a"}),
    ("/admin/reload", "/admin/reload", {}),
    ("/info", "/info", None),
    ("/metrics", "/metrics", None),
    ("/v1/models", "/v1/models", None),
    ("/v1/models/{model:path}", f"/v1/models/{MODEL}", None),
    ("/reranker/info", "/reranker/info", None),
    ("/api/tags", "/api/tags", None),
    ("/api/ps", "/api/ps", None),
    ("/api/version", "/api/version", None),
    ("/health", "/health", None),
    ("/ready", "/ready", None),
    ("/ping", "/ping", None),
    ("/v2/health/live", "/v2/health/live", None),
    ("/v2/health/ready", "/v2/health/ready", None),
]
# These need nothing of the models.
WITHOUT_MODELS = {"/health", "/v2/health/live", "/api/version"}
# Without a key of their own rows are refused before a body is read.
REFUSED = {"/rows/add", "/rows/remove"}
# Without a key models are not reloaded, nor rows changed.
UNTOUCHED = [403 if path in REFUSED | {"/admin/reload"} else 200 for _, path, _ in ROUTES]

pytest.importorskip("tantivy", reason="tantivy is not installed: pip install '.[search]'")

Guards = Callable[[FastAPI, pytest.MonkeyPatch], None]


class Guard:
    """A middleware that lets nothing pass."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            await PlainTextResponse("no", 403)(scope, receive, send)
        else:
            await self._app(scope, receive, send)


async def no() -> None:
    raise HTTPException(403, "no")


async def refuse(self: Any, scope: Scope, receive: Receive, send: Send) -> None:
    await PlainTextResponse("no", 403)(scope, receive, send)


def guarded_call(original: Any) -> Any:
    async def call(self: Any, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            await refuse(self, scope, receive, send)
        else:
            await original(self, scope, receive, send)

    return call


BEFORE: dict[str, Guards] = {}
AFTER: dict[str, Guards] = {}


def before(add: Guards) -> Guards:
    BEFORE[add.__name__] = add
    return add


def at_any_time(add: Guards) -> Guards:
    BEFORE[add.__name__] = AFTER[add.__name__] = add
    return add


@before
def a_middleware(app: FastAPI, patch: pytest.MonkeyPatch) -> None:
    app.add_middleware(Guard)


@before
def a_middleware_of_a_function(app: FastAPI, patch: pytest.MonkeyPatch) -> None:
    @app.middleware("http")
    async def guard(request: Request, call_next: Callable[[Request], Awaitable[Response]]) -> Response:
        return PlainTextResponse("no", 403)


@before
def a_middleware_of_a_class_of_starlettes(app: FastAPI, patch: pytest.MonkeyPatch) -> None:
    class Base(BaseHTTPMiddleware):
        async def dispatch(self, request: Request, call_next: Any) -> Response:
            return PlainTextResponse("no", 403)

    app.add_middleware(Base)


@before
def a_class_that_builds_the_stack(app: FastAPI, patch: pytest.MonkeyPatch) -> None:
    build = FastAPI.build_middleware_stack
    patch.setattr(FastAPI, "build_middleware_stack", lambda self: Guard(build(self)))


@at_any_time
def a_stack_that_is_wrapped(app: FastAPI, patch: pytest.MonkeyPatch) -> None:
    app.middleware_stack = Guard(app.middleware_stack or app.build_middleware_stack())


@at_any_time
def a_stack_that_is_built_anew(app: FastAPI, patch: pytest.MonkeyPatch) -> None:
    app.user_middleware.insert(0, Middleware(Guard))
    app.middleware_stack = app.build_middleware_stack()


@at_any_time
def a_call_of_fastapi(app: FastAPI, patch: pytest.MonkeyPatch) -> None:
    patch.setattr(FastAPI, "__call__", guarded_call(FastAPI.__call__))


@at_any_time
def a_call_of_starlette(app: FastAPI, patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Starlette, "__call__", guarded_call(Starlette.__call__))


@at_any_time
def a_call_of_a_router(app: FastAPI, patch: pytest.MonkeyPatch) -> None:
    patch.setattr(starlette.routing.Router, "__call__", guarded_call(starlette.routing.Router.__call__))


@at_any_time
def a_handle_of_fastapis_routes(app: FastAPI, patch: pytest.MonkeyPatch) -> None:
    patch.setattr(fastapi.routing.APIRoute, "handle", refuse)


@at_any_time
def a_handle_of_starlettes_routes(app: FastAPI, patch: pytest.MonkeyPatch) -> None:
    patch.setattr(starlette.routing.Route, "handle", refuse)


@at_any_time
def a_function_that_runs_handlers(app: FastAPI, patch: pytest.MonkeyPatch) -> None:
    """As New Relic has one."""

    async def run(**given: Any) -> Response:
        return PlainTextResponse("no", 403)

    patch.setattr(fastapi.routing, "run_endpoint_function", run)


@at_any_time
def a_stack_of_the_router(app: FastAPI, patch: pytest.MonkeyPatch) -> None:
    app.router.middleware_stack = Guard(app.router.middleware_stack)  # type: ignore[assignment]


@at_any_time
def a_router_of_another_class(app: FastAPI, patch: pytest.MonkeyPatch) -> None:
    class Guarded(APIRouter):
        async def app(self, scope: Scope, receive: Receive, send: Send) -> None:
            if scope["type"] == "http":
                await PlainTextResponse("no", 403)(scope, receive, send)
            else:
                await super().app(scope, receive, send)

    app.router.__class__ = Guarded
    app.router.middleware_stack = app.router.app


@at_any_time
def an_application_of_each_route(app: FastAPI, patch: pytest.MonkeyPatch) -> None:
    for route in app.router.routes:
        route.app = Guard(route.app)  # type: ignore[attr-defined]


@at_any_time
def a_dependency_that_each_route_solves(app: FastAPI, patch: pytest.MonkeyPatch) -> None:
    for route in app.router.routes:
        assert isinstance(route, fastapi.routing.APIRoute)
        given = get_parameterless_sub_dependant(depends=Depends(no), path=route.path_format)
        route.dependant.dependencies.insert(0, given)


@at_any_time
def a_dependency_of_each_route(app: FastAPI, patch: pytest.MonkeyPatch) -> None:
    for route in app.router.routes:
        route.dependencies.append(Depends(no))  # type: ignore[attr-defined]


@at_any_time
def an_override_of_our_dependency(app: FastAPI, patch: pytest.MonkeyPatch) -> None:
    """Of the only one that all but a few routes have."""
    from gramvec.server.inference import inference

    app.dependency_overrides[inference] = no


@at_any_time
def a_route_before_ours(app: FastAPI, patch: pytest.MonkeyPatch) -> None:
    app.router.routes.insert(0, Mount("", app=Guard(app)))


@at_any_time
def a_limit_of_the_application_on_bodies(app: FastAPI, patch: pytest.MonkeyPatch) -> None:
    app.max_body_size = 1
    app.middleware_stack = None


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory, small: Embedder) -> Settings:
    """With an index and a head."""
    folder = tmp_path_factory.mktemp("added")
    index = gramvec.Index.build(folder / "things.index", ["a", "b"], model=small)
    head = Head.of(
        small.embed(["a", "b"]), np.zeros(2, np.float32), labels=("a", "b"), threshold=0.5, model=small.name,
        digest=small.digest,
    )  # fmt: skip
    head.save(folder / "x.head")
    return Settings(index=(f"things={index.path}",), head=(f"x={folder / 'x.head'}",))


@pytest.fixture(params=["ours", "included"])
def app(request: Any, settings: Settings, small: Embedder) -> FastAPI:
    if request.param == "ours":
        return create_app(settings, small)
    app = FastAPI()
    app.include_router(router(settings, small))
    return app


def statuses(client: TestClient) -> list[int]:
    return [client.request("GET" if body is None else "POST", path, json=body).status_code for _, path, body in ROUTES]


def expected(name: str) -> list[int]:
    match name:
        case "a_limit_of_the_application_on_bodies":
            return [200 if body is None else 413 for _, _, body in ROUTES]
        case "an_override_of_our_dependency":
            return [200 if path in WITHOUT_MODELS else 403 for _, path, _ in ROUTES]
    return [403] * len(ROUTES)


def test_every_route_is_in_the_table(settings: Settings, small: Embedder) -> None:
    made = router(settings, small).routes
    there = {
        (method, route.path)
        for route in made
        if isinstance(route, fastapi.routing.APIRoute)
        for method in route.methods or ()
    }
    assert there == {("GET" if body is None else "POST", template) for template, _, body in ROUTES}


# Of routes that an application has included FastAPI makes others, with a copy of what they have.
OF_ROUTES = {
    "an_application_of_each_route",
    "a_dependency_that_each_route_solves",
    "a_dependency_of_each_route",
    "a_handle_of_starlettes_routes",
}


def skip_copies(app: FastAPI, name: str) -> None:
    if name in OF_ROUTES and not hasattr(app, "first_handlers"):
        pytest.skip("FastAPI copies included routes")


@pytest.mark.parametrize("name", BEFORE)
def test_what_is_added_before_the_start_is_seen(app: FastAPI, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    skip_copies(app, name)
    BEFORE[name](app, monkeypatch)
    with TestClient(app) as client:
        assert statuses(client) == expected(name)


@pytest.mark.parametrize("name", AFTER)
def test_what_is_added_after_the_start_is_seen(app: FastAPI, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    skip_copies(app, name)
    with TestClient(app) as client:
        assert statuses(client) == UNTOUCHED
        AFTER[name](app, monkeypatch)
        assert statuses(client) == expected(name)


@pytest.mark.parametrize("place", ["ours", "included"])
def test_what_solves_in_the_place_of_fastapi_is_asked(
    settings: Settings, small: Embedder, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    """As Sentry's does, which is there before the routes of an application are made."""
    asked: list[str] = []
    get = fastapi.routing.get_request_handler

    def watched(*arguments: Any, **named: Any) -> Any:
        solve = get(*arguments, **named)

        async def watch(request: Request) -> Response:
            asked.append(request.url.path)
            return await solve(request)

        return watch

    monkeypatch.setattr(fastapi.routing, "get_request_handler", watched)
    app = create_app(settings, small) if place == "ours" else FastAPI()
    if place == "included":
        app.include_router(router(settings, small))
    with TestClient(app) as client:
        assert statuses(client) == UNTOUCHED
    assert asked == [path for _, path, _ in ROUTES if path not in REFUSED]


def of_an_inclusion(ours: APIRouter) -> FastAPI:
    app = FastAPI()
    app.include_router(ours, dependencies=[Depends(no)])
    return app


def of_an_application(ours: APIRouter) -> FastAPI:
    app = FastAPI(dependencies=[Depends(no)])
    app.include_router(ours)
    return app


def of_a_router_around(ours: APIRouter) -> FastAPI:
    around, app = APIRouter(dependencies=[Depends(no)]), FastAPI()
    around.include_router(ours)
    app.include_router(around)
    return app


@pytest.mark.parametrize("include", [of_an_inclusion, of_an_application, of_a_router_around])
def test_a_dependency_of_a_router_is_solved(
    settings: Settings, small: Embedder, include: Callable[[APIRouter], FastAPI]
) -> None:
    with TestClient(include(router(settings, small))) as client:
        assert statuses(client) == [403] * len(ROUTES)


def test_a_dependency_of_an_inclusion_that_fastapi_no_longer_names_is_solved(
    settings: Settings, small: Embedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A route that overlooks one would be open behind a login."""
    app = of_an_inclusion(router(settings, small))
    monkeypatch.setattr(fastapi.routing, "_FASTAPI_SCOPE_KEY", "another name")
    with TestClient(app) as client:
        assert statuses(client) == [403] * len(ROUTES)


def test_a_handler_of_errors_is_asked(app: FastAPI) -> None:
    @app.exception_handler(starlette.exceptions.HTTPException)
    async def answer(request: Request, error: starlette.exceptions.HTTPException) -> Response:
        return PlainTextResponse("no", 418)

    with TestClient(app) as client:
        assert {client.post(path, content=b"{").status_code for _, path, body in ROUTES if body is not None} == {418}


def test_what_is_around_a_mounted_application_is_asked(settings: Settings, small: Embedder) -> None:
    ours = create_app(settings, small)
    theirs = FastAPI(lifespan=ours.router.lifespan_context)
    theirs.add_middleware(Guard)
    theirs.mount("/below", ours)
    with TestClient(theirs, base_url="http://testserver/below") as client:
        assert statuses(client) == [403] * len(ROUTES)
