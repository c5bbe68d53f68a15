"""The service as FastAPI's documentation has applications: with routers, dependencies, middlewares and handlers of a
user's, below a prefix of theirs, in their TestClient. No fast path may pass what they have added."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Annotated, Any

import pytest
from fastapi import (
    APIRouter,
    BackgroundTasks,
    Depends,
    FastAPI,
    Header,
    HTTPException,
    Request,
    WebSocket,
    WebSocketDisconnect,
)
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, PlainTextResponse, Response
from fastapi.testclient import TestClient
from starlette.exceptions import HTTPException as StarletteHTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from gramvec import Embedder, GramvecError, InputError
from gramvec.server import create_app, router
from gramvec.server.app import Application
from gramvec.server.settings import Settings
from support.errors import refused

TEXT = {"inputs": "vehicals"}
# One of each kind: a body, a body of two shapes, token ids, a path with a parameter, a probe.
ASKED: list[tuple[str, str, Any]] = [
    ("POST", "/embed", TEXT),
    ("POST", "/", TEXT),
    ("POST", "/v1/embeddings", {"input": "vehicals"}),
    ("GET", "/v1/models/paragram-phrase", None),
    ("GET", "/health", None),
]
WRONG: list[tuple[str, Any]] = [
    ("/embed", {"inputs": 5}),
    ("/embed", {"inputs": ["a", "b"], "color": 1}),
    ("/embed", {"input": "a"}),
    ("/embed", [1]),
    ("/embed", {"inputs": []}),
    ("/embed", {"inputs": [""] * 20_000}),
    ("/embed", {"inputs": [5] * 20_000}),
    ("/", {"inputs": {"left": ["a"], "right": 5}}),
    ("/api/embed", {"input": "a", "model": "other"}),
    ("/v1/embeddings", {"input": [1, 2]}),
    ("/rerank", {"query": "a", "texts": "b"}),
    ("/predict", {"inputs": "a"}),
    ("/nowhere", {}),
    ("/health", {}),
]


class Seeing:
    """A middleware that does nothing but note the paths."""

    def __init__(self, app: ASGIApp, seen: list[str]) -> None:
        self._app = app
        self._seen = seen

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            self._seen.append(scope["path"])
        await self._app(scope, receive, send)


def answered(client: TestClient, method: str, path: str, body: Any, **options: Any) -> Any:
    """What is the same in two answers to the same request: all but times and ids."""
    answer = client.request(method, path, json=body, **options)
    times = (f"x-{name}-time" for name in ("compute", "total", "tokenization", "queue", "inference"))
    varies = ("x-request-id", "server-timing", *times)
    assert all(name in answer.headers for name in varies), (path, answer.headers)
    return answer.status_code, [one for one in answer.headers.items() if one[0] not in varies], answer.content


@pytest.fixture(scope="module")
def plain(small: Embedder) -> Iterator[TestClient]:
    with TestClient(create_app(Settings(), small)) as client:
        yield client


def test_it_is_an_application_of_fastapi(small: Embedder) -> None:
    app = create_app(Settings(), small)
    assert isinstance(app, FastAPI)
    assert isinstance(router(Settings(), small), APIRouter)
    with TestClient(app) as client:
        assert client.post("/embed", json=TEXT).json()[0] == pytest.approx(small.embed(["vehicals"])[0].tolist())


@pytest.mark.parametrize(("method", "path", "body"), [*ASKED, *(("POST", *one) for one in WRONG)])
def test_both_ways_give_the_same_answer(small: Embedder, plain: TestClient, method: str, path: str, body: Any) -> None:
    seen: list[str] = []
    app = create_app(Settings(), small)
    app.add_middleware(Seeing, seen=seen)
    with TestClient(app) as client:
        for options in ({}, {"headers": {"content-type": "text/plain"}}):
            assert answered(client, method, path, body, **options) == answered(plain, method, path, body, **options)
    assert seen == [path] * 2


def test_a_router_beside_ours(small: Embedder) -> None:
    mine = APIRouter(prefix="/mine", tags=["mine"])

    @mine.get("/{number}")
    async def double(number: int) -> int:
        return 2 * number

    @mine.get("/missing/{name}")
    async def missing(name: str) -> None:
        raise HTTPException(404, f"no {name}")

    @mine.post("/embed")
    async def bad(request: Request) -> None:
        raise InputError("inputs: too many")

    app = create_app(Settings(), small)
    app.include_router(mine)
    with TestClient(app) as client:
        assert client.get("/mine/21").json() == 42
        # Theirs have FastAPI's shapes, but for the errors of this package.
        assert client.get("/mine/x").json()["detail"][0]["loc"] == ["path", "number"]
        assert (client.get("/mine/missing/a").status_code, client.get("/mine/missing/a").json()) == (
            404,
            {"detail": "no a"},
        )
        assert client.post("/mine/embed").json() == {"error": "inputs: too many", "error_type": "validation"}
        assert client.post("/embed", json=TEXT).status_code == 200
        document = client.get("/openapi.json").json()
    assert document["paths"]["/mine/{number}"]["get"]["tags"] == ["mine"]
    assert "422" in document["paths"]["/mine/{number}"]["get"]["responses"]
    assert "x-request-id" not in str(document["paths"]["/mine/{number}"])
    assert document["components"]["schemas"].keys() >= {"HTTPValidationError", "EmbedRequest"}


def test_a_route_before_ours_is_asked_first(small: Embedder) -> None:
    app = create_app(Settings(), small)
    with TestClient(app) as client:
        assert client.post("/embed", json=TEXT).status_code == 200

        @app.post("/embed")
        async def late() -> str:
            return "theirs"

        assert client.post("/embed", json=TEXT).json() != "theirs"  # the first that matches, as always
        app.router.routes.insert(0, app.router.routes.pop())
        assert client.post("/embed", json=TEXT).json() == "theirs"


def login(token: Annotated[str, Header(alias="x-token")]) -> str:
    if token != "right":
        raise HTTPException(403, "wrong token")
    return token


@pytest.mark.parametrize("place", ["include", "router", "application"])
def test_ours_in_theirs_with_a_prefix_and_a_dependency(small: Embedder, place: str) -> None:
    guard = [Depends(login)]
    app = FastAPI(dependencies=guard if place == "application" else [])
    ours = router(Settings(), small)
    if place == "router":
        outer = APIRouter(prefix="/text", dependencies=guard)
        outer.include_router(ours)
        app.include_router(outer)
    else:
        app.include_router(ours, prefix="/text", dependencies=guard if place == "include" else [])
    with TestClient(app) as client:
        for method, path, body in ASKED:
            bare = client.request(method, f"/text{path}", json=body)
            wrong = client.request(method, f"/text{path}", json=body, headers={"x-token": "wrong"})
            right = client.request(method, f"/text{path}", json=body, headers={"x-token": "right"})
            invalid = 400 if "/v1/" in path else 422
            assert (bare.status_code, wrong.status_code, right.status_code) == (invalid, 403, 200), path
            assert all("x-request-id" in one.headers for one in (bare, wrong, right))
            assert ("error_type" in bare.json()) == ("/v1/" not in path)
            assert wrong.json() == {"detail": "wrong token"}
        for path, body in (("/embed", {"inputs": 5}), ("/v1/embeddings", {"input": 5})):
            error = client.post(f"/text{path}", json=body, headers={"x-token": "right"}).json()["error"]
            assert isinstance(error, str) == (path == "/embed")
        app.dependency_overrides[login] = lambda: "anybody"
        assert client.post("/text/embed", json=TEXT).status_code == 200
        assert client.put("/text/embed", json=TEXT).headers["allow"] == "OPTIONS, POST"
        assert client.get("/nowhere").json() == {"detail": "Not Found"}
        document = client.get("/openapi.json").json()
    assert "/text/embed" in document["paths"]
    assert any(one["name"] == "x-token" for one in document["paths"]["/text/embed"]["post"]["parameters"])


def test_below_a_prefix_or_a_mount_with_a_parameter_of_theirs(small: Embedder) -> None:
    app = FastAPI()
    app.include_router(router(Settings(), small), prefix="/of/{tenant}")
    inner = create_app(Settings(), small)
    outer = FastAPI(lifespan=lambda _: inner.router.lifespan_context(inner))
    outer.mount("/of/{tenant}", inner)
    for one in (app, outer):
        with TestClient(one) as client:
            for method, path, body in ASKED:
                assert client.request(method, f"/of/me{path}", json=body).status_code == 200, path


def test_a_dependency_may_read_the_body_too_and_is_told_of_errors(small: Embedder) -> None:
    told: list[Any] = []

    async def audited(request: Request) -> AsyncIterator[None]:
        told.append(await request.json())
        try:
            yield
        except GramvecError as error:
            told.append(type(error))
            raise

    app = FastAPI()
    app.include_router(router(Settings(), small), dependencies=[Depends(audited)])
    with TestClient(app) as client:
        assert client.post("/embed", json=TEXT).status_code == 200
        assert told == [TEXT]
        assert client.post("/embed", json={"inputs": "x" * 70_000}).status_code == 422
    assert told[-1] is InputError


def test_a_dependency_with_a_body_of_its_own_is_beside_ours(small: Embedder) -> None:
    """As FastAPI has two bodies: each under its name."""
    app = FastAPI()

    async def second(extra: dict[str, int]) -> None:
        assert extra == {"a": 1}

    app.include_router(router(Settings(), small), dependencies=[Depends(second)])
    with TestClient(app) as client:
        assert client.post("/embed", json={"body": TEXT, "extra": {"a": 1}}).status_code == 200
        for one in ({"body": TEXT}, TEXT):
            assert client.post("/embed", json=one).status_code == 422


def test_what_a_dependency_leaves_for_later_is_done(small: Embedder) -> None:
    done: list[str] = []

    def later(tasks: BackgroundTasks) -> None:
        tasks.add_task(done.append, "done")

    app = FastAPI()
    app.include_router(router(Settings(), small), dependencies=[Depends(later)])
    with TestClient(app) as client:
        assert client.post("/embed", json=TEXT).status_code == 200
        assert client.get("/health").status_code == 200
    assert done == ["done", "done"]


@pytest.mark.parametrize(
    ("path", "body"),
    [("/embed", TEXT), ("/explain", {"inputs": {"source_sentence": "cars", "target_sentence": "car"}})],
)
def test_what_a_dependency_does_after_the_response_is_done_behind_a_middleware(
    small: Embedder, path: str, body: Any
) -> None:
    """Starlette's BaseHTTPMiddleware cancels the task that waits in its `receive` when the response is sent."""
    done: list[str] = []

    async def waiting(name: str) -> None:
        for _ in range(5):
            await asyncio.sleep(0.001)
        done.append(name)

    async def later(tasks: BackgroundTasks) -> AsyncIterator[None]:
        tasks.add_task(waiting, "task")
        yield
        await waiting("end")

    app = FastAPI()
    app.include_router(router(Settings(), small), dependencies=[Depends(later)])

    @app.middleware("http")
    async def passed(request: Request, call_next: Callable[[Request], Awaitable[Response]]) -> Response:
        return await call_next(request)

    with TestClient(app) as client:
        for _ in range(3):
            assert client.post(path, json=body).status_code == 200
    assert done == ["task", "end"] * 3


def test_websockets_of_theirs_and_none_of_ours(small: Embedder) -> None:
    app = create_app(Settings(), small)

    @app.websocket("/mine")
    async def mine(socket: WebSocket) -> None:
        await socket.accept()
        await socket.send_text("hello")

    with TestClient(app) as client:
        with client.websocket_connect("/mine") as socket:
            assert socket.receive_text() == "hello"
        with pytest.raises(WebSocketDisconnect), client.websocket_connect("/nowhere"):
            pass


def model_name() -> str:
    return "theirs"


def test_overrides_of_dependencies_of_ours_and_theirs(small: Embedder) -> None:
    app = create_app(Settings(), small)

    @app.get("/name")
    async def name(given: Annotated[str, Depends(model_name)]) -> str:
        return given

    with TestClient(app) as client:
        assert client.get("/name").json() == "theirs"
        app.dependency_overrides[model_name] = lambda: "overridden"
        assert client.get("/name").json() == "overridden"
        assert client.post("/embed", json=TEXT).status_code == 200


def test_every_kind_of_middleware(small: Embedder) -> None:
    app = create_app(Settings(), small)

    @app.middleware("http")
    async def stamped(request: Request, call_next: Callable[[Request], Awaitable[Response]]) -> Response:
        answer = await call_next(request)
        answer.headers["x-stamp"] = request.url.path
        return answer

    with TestClient(app) as client:
        for method, path, body in (*ASKED, ("POST", "/embed", {"inputs": 5}), ("GET", "/nowhere", None)):
            assert client.request(method, path, json=body).headers["x-stamp"] == path


def test_a_client_that_goes_is_no_failure_behind_a_middleware(small: Embedder) -> None:
    """Starlette's own raises "No response returned" where a route sends nothing."""
    app = create_app(Settings(), small)

    @app.middleware("http")
    async def passed(request: Request, call_next: Callable[[Request], Awaitable[Response]]) -> Response:
        return await call_next(request)

    scope = {
        "type": "http", "method": "POST", "path": "/embed", "raw_path": b"/embed", "query_string": b"",
        "headers": [(b"content-type", b"application/json")], "http_version": "1.1", "scheme": "http",
    }  # fmt: skip
    messages: list[Message] = [{"type": "http.request", "body": b'{"inputs":', "more_body": True}]

    async def receive() -> Message:
        return messages.pop() if messages else {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        """Drop what nobody receives, as uvicorn does."""

    async def ask() -> None:
        async with app.router.lifespan_context(app):
            await app(scope, receive, send)

    asyncio.run(ask())
    assert 'route="/embed",status="499"} 1.0' in TestClient(app).get("/metrics").text


def test_the_stack_may_be_wrapped_as_instrumentation_does(small: Embedder) -> None:
    seen: list[str] = []
    app = create_app(Settings(), small)
    build = app.build_middleware_stack
    app.build_middleware_stack = lambda: Seeing(build(), seen)  # type: ignore[method-assign]
    with TestClient(app) as client:
        client.post("/embed", json=TEXT)
        app.middleware_stack = Seeing(app.middleware_stack, seen)  # type: ignore[arg-type]
        client.post("/embed", json=TEXT)
    assert seen == ["/embed"] * 3


def test_a_class_that_was_patched_is_called(small: Embedder, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []
    call = FastAPI.__call__

    async def watching(self: FastAPI, scope: Scope, receive: Receive, send: Send) -> None:
        seen.append(scope["type"])
        await call(self, scope, receive, send)

    monkeypatch.setattr(FastAPI, "__call__", watching)
    with TestClient(create_app(Settings(), small)) as client:
        client.post("/embed", json=TEXT)
    assert "http" in seen


@pytest.mark.parametrize(
    ("kind", "path", "body"),
    [
        (RequestValidationError, "/embed", {"inputs": 5}),
        (InputError, "/embed", {"inputs": "x" * 70_000}),
        (GramvecError, "/embed", {"inputs": "x" * 70_000}),
        (StarletteHTTPException, "/api/embed", {"input": "a", "model": "other"}),
        (StarletteHTTPException, "/nowhere", {}),
        (StarletteHTTPException, "/health", {}),
        (404, "/api/embed", {"input": "a", "model": "other"}),
        (404, "/nowhere", {}),
        (405, "/health", {}),
    ],
)
@pytest.mark.parametrize("ours", [True, False])
def test_an_exception_handler_of_theirs(small: Embedder, kind: Any, path: str, body: Any, ours: bool) -> None:
    app: FastAPI = create_app(Settings(), small) if ours else FastAPI()
    if not ours:
        app.include_router(router(Settings(), small))

    @app.exception_handler(kind)
    async def handled(request: Request, error: Exception) -> Response:
        return PlainTextResponse("handled", 418)

    with TestClient(app) as client:
        assert (client.post(path, json=body).status_code, client.post(path, json=body).text) == (418, "handled")
        assert client.post("/embed", json=TEXT).status_code == 200


@pytest.mark.parametrize("registered", [True, False])
def test_an_unforeseen_exception(small: Embedder, monkeypatch: pytest.MonkeyPatch, registered: bool) -> None:
    app = create_app(Settings(), small)
    if registered:
        app.add_exception_handler(Exception, lambda request, error: JSONResponse({"theirs": True}, 500))
    with TestClient(app, raise_server_exceptions=False) as client:
        monkeypatch.setattr(app.state.gramvec.served.batcher, "submit", lambda *_: 1 / 0)
        answer = client.post("/embed", json=TEXT)
    assert answer.status_code == 500
    assert answer.json() == {"theirs": True} or answer.json()["error_type"] == "backend"
    assert ("theirs" in answer.json()) == registered


def test_states_of_lifespans_reach_requests(small: Embedder) -> None:
    @asynccontextmanager
    async def living(app: FastAPI) -> AsyncIterator[dict[str, str]]:
        yield {"mine": "from the lifespan"}

    app = create_app(Settings(), small)
    more = APIRouter(lifespan=living)

    @more.get("/state")
    async def state(request: Request) -> str:
        return str(request.state.mine)

    app.include_router(more)
    theirs = FastAPI(lifespan=living)
    theirs.include_router(router(Settings(), small))
    theirs.get("/state")(state)
    for one in (app, theirs):
        with TestClient(one) as client:
            assert client.get("/state").json() == "from the lifespan"
            assert client.post("/embed", json=TEXT).status_code == 200


def test_a_mounted_application_whose_lifespan_is_run_by_the_outer_one(small: Embedder) -> None:
    inner = create_app(Settings(), small)

    @asynccontextmanager
    async def living(app: FastAPI) -> AsyncIterator[None]:
        async with inner.router.lifespan_context(inner):
            yield

    for lifespan in (None, living):
        outer = FastAPI(lifespan=lifespan)
        outer.mount("/text", inner)
        with TestClient(outer) as client:
            answer = client.post("/text/embed", json=TEXT)
            assert answer.status_code == (503 if lifespan is None else 200)
            if lifespan is None:
                assert "lifespan" in answer.json()["error"]
            else:
                assert client.get("/text/docs").status_code == 200
                assert client.post("/text/nowhere").json()["error_type"] == "not_found"


@pytest.mark.parametrize("kind", ["given", "loaded", "router"])
def test_an_application_lives_once_more_in_each_test_of_its_user(small: Embedder, kind: str) -> None:
    """As FastAPI's documentation tests: one application of a module, a TestClient in each test."""
    settings = Settings(model=(str(small.bundle.path),))
    app = create_app(settings, small if kind == "given" else None) if kind != "router" else FastAPI()
    if kind == "router":
        app.include_router(router(settings))
    texts = {"inputs": {"source_sentence": "cars", "target_sentence": "car"}}
    for _ in range(3):
        with TestClient(app) as client:
            assert client.get("/ready").json() == {"status": "ready"}
            assert client.post("/embed", json=TEXT).status_code == 200
            assert client.post("/explain", json=texts).status_code == 200
            assert client.get("/openapi.json").status_code == 200
        assert client.post("/embed", json=TEXT).status_code == 503


def test_an_application_that_could_not_begin_begins_later(small: Embedder, tmp_path: Path) -> None:
    app = create_app(Settings(model=(str(tmp_path / "model"),)))
    with pytest.raises(GramvecError), TestClient(app):
        pass
    (tmp_path / "model").symlink_to(small.bundle.path)
    with TestClient(app) as client:
        assert client.post("/embed", json=TEXT).status_code == 200


def test_a_lifespan_of_theirs_that_fails_ends_ours(small: Embedder) -> None:
    app = create_app(Settings(model=(str(small.bundle.path),)))
    theirs: list[bool] = [True, False]

    @asynccontextmanager
    async def living(_: FastAPI) -> AsyncIterator[None]:
        async with app.router.lifespan_context(app):
            if theirs.pop(0):
                raise OSError("no database")
            yield

    outer = FastAPI(lifespan=living)
    outer.mount("/text", app)
    with pytest.raises(OSError, match="no database"), TestClient(outer):
        pass
    assert app.state.gramvec.stopping
    with pytest.raises(GramvecError, match="closed"):
        app.state.gramvec.served.embedder.embed(["a"])
    with TestClient(outer) as client:
        assert client.post("/text/embed", json=TEXT).status_code == 200


def test_a_router_without_its_lifespan_says_so(small: Embedder) -> None:
    app = FastAPI()
    app.include_router(router(Settings(), small))
    answer = TestClient(app).post("/embed", json=TEXT)
    assert (answer.status_code, "lifespan" in answer.text) == (503, True)


def test_two_routers_in_one_application_are_refused(small: Embedder) -> None:
    app = FastAPI()
    for prefix in ("/a", "/b"):
        app.include_router(router(Settings(), small), prefix=prefix)
    with refused(GramvecError, "router"), TestClient(app):
        pass


def test_keys_are_asked_for_by_our_routes_and_not_by_theirs(small: Embedder) -> None:
    app = create_app(Settings.model_validate({"api_key": ["k"]}), small)

    @app.get("/mine")
    async def mine() -> int:
        return 1

    with TestClient(app) as client:
        assert client.post("/embed", json=TEXT).status_code == 401
        assert client.post("/embed", json=TEXT, headers={"authorization": "Bearer k"}).status_code == 200
        assert client.get("/mine").json() == 1
        document = client.get("/openapi.json").json()
    assert document["paths"]["/mine"]["get"]["security"] == []
    assert document["security"] == [{"bearer": []}]


def test_a_body_is_bounded_in_both_ways(small: Embedder) -> None:
    for add in (False, True):
        app = create_app(Settings(max_body_bytes=1024), small)
        if add:
            app.add_middleware(Seeing, seen=[])
        with TestClient(app) as client:
            answer = client.post(
                "/embed",
                content=iter([b'{"inputs": "', b"a" * 2_000, b'"}']),
                headers={"content-type": "application/json"},
            )
            assert (answer.status_code, answer.json()["error_type"]) == (413, "too_large")


@pytest.mark.skipif(not hasattr(FastAPI(), "max_body_size"), reason="an older FastAPI has no limit")
@pytest.mark.parametrize("place", ["application", "include", "router", "mount", "ours"])
def test_a_limit_of_theirs_on_bodies_holds(small: Embedder, place: str, caplog: pytest.LogCaptureFixture) -> None:
    """FastAPI's own, of bodies with and without a length; it is no failure of ours."""
    app: FastAPI
    if place == "ours":
        app = create_app(Settings(), small)
        app.max_body_size = 1000
    elif place == "mount":
        inner = create_app(Settings(), small)
        app = FastAPI(max_body_size=1000, lifespan=lambda _: inner.router.lifespan_context(inner))
        app.mount("/text", inner)
    else:
        app = FastAPI(max_body_size=1000 if place == "application" else None)
        outer = APIRouter(max_body_size=1000 if place == "router" else None)
        outer.include_router(router(Settings(), small), max_body_size=1000 if place == "include" else None)
        app.include_router(outer)
    path = "/text/embed" if place == "mount" else "/embed"
    with TestClient(app) as client:
        assert client.post(path, json=TEXT).status_code == 200
        for body in (b'{"inputs": "' + b"a" * 2_000 + b'"}', iter([b'{"inputs": "', b"a" * 2_000, b'"}'])):
            answer = client.post(path, content=body, headers={"content-type": "application/json"})
            assert (answer.status_code, "Content Too Large" in answer.text) == (413, True)
        assert client.post(path, json=TEXT).status_code == 200
    assert not [one for one in caplog.records if one.name.startswith("gramvec") and one.levelname == "ERROR"]


def test_the_document_is_made_of_the_routes(small: Embedder) -> None:
    app = create_app(Settings(), small)
    assert isinstance(app, Application)
    document = app.openapi()
    assert app.openapi() is document
    body = document["paths"]["/embed"]["post"]["requestBody"]["content"]["application/json"]["schema"]
    assert body == {"$ref": "#/components/schemas/EmbedRequest"}
