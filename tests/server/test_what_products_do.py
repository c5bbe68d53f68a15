"""Sentry's SDK and middlewares that others publish around the application: its answers stay as they are."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from fastapi import FastAPI, Request
from fastapi.responses import Response
from fastapi.testclient import TestClient
from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from gramvec import Embedder
from gramvec.server import create_app, router
from gramvec.server.settings import Settings

WRONG: list[tuple[str, Any]] = [
    ("/embed", {"inputs": 5}),
    ("/embed", {"inputs": "x" * 70_000}),
    ("/v1/embeddings", {"input": 5}),
    ("/v1/embeddings", {"input": "a", "model": "other"}),
    ("/v2/embed", {}),
    ("/api/show", {"name": "other"}),
    ("/health", {}),
]
SENTRY = """
import json, sys, sentry_sdk
seen = []
sentry_sdk.init(dsn="http://k@127.0.0.1:9/1", transport=lambda event: None, traces_sample_rate=1.0,
                before_send_transaction=lambda event, hint: seen.append(event["transaction"]) or None)
import gramvec.server
from fastapi import FastAPI
from fastapi.testclient import TestClient
for included in (False, True):
    app = gramvec.server.create_app() if not included else FastAPI()
    if included:
        app.include_router(gramvec.server.router())
    with TestClient(app) as client:
        for path, body in json.loads(sys.argv[1]):
            answer = client.post(path, json=body)
            print(json.dumps([answer.status_code, answer.json()]))
        seen.clear()
        assert client.post("/embed", json={"inputs": "a"}).status_code == 200
        assert client.get("/info").status_code == 200
    print(json.dumps(seen))
"""


@pytest.mark.slow
def test_errors_keep_their_shapes_under_sentry(small: Embedder) -> None:
    """Its SDK finds FastAPI by itself, and wraps what answers exceptions."""
    pytest.importorskip("sentry_sdk")
    environment = {**os.environ, "GRAMVEC_MODEL": str(small.bundle.path)}
    command = [sys.executable, "-W", "ignore", "-c", SENTRY, json.dumps(WRONG)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment, timeout=100)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    with TestClient(create_app(Settings(), small)) as client:
        expected = [[answer.status_code, answer.json()] for answer in (client.post(p, json=b) for p, b in WRONG)]
    for half in (lines[: len(WRONG) + 1], lines[len(WRONG) + 1 :]):
        *answers, seen = half
        assert answers == expected
        assert len(seen) == 2, seen  # the hot route as well as the other


class AppendingAnId:
    """As asgi-correlation-id does."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_with_id(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).append("x-request-id", "theirs")
            await send(message)

        await self._app(scope, receive, send_with_id)


def test_a_response_has_one_id(small: Embedder) -> None:
    app = create_app(Settings(), small)
    app.add_middleware(AppendingAnId)
    with TestClient(app) as client:
        for path, body in (("/embed", {"inputs": "a"}), *WRONG):
            assert client.post(path, json=body).headers.get_list("x-request-id") == ["theirs"]
    with TestClient(create_app(Settings(), small)) as client:
        answer = client.post("/embed", json={"inputs": "a"}, headers={"x-request-id": "a-1"})
        assert answer.headers.get_list("x-request-id") == ["a-1"]


def test_a_route_of_a_dependency_that_sets_the_id(small: Embedder) -> None:
    app = FastAPI()

    @app.middleware("http")
    async def passed(request: Request, call_next: Callable[[Request], Awaitable[Response]]) -> Response:
        answer = await call_next(request)
        answer.headers["x-request-id"] = "theirs"
        return answer

    app.include_router(router(Settings(), small))
    with TestClient(app) as client:
        assert client.post("/embed", json={"inputs": "a"}).headers.get_list("x-request-id") == ["theirs"]


def test_below_a_mount_errors_have_the_shape_of_the_path_there(small: Embedder) -> None:
    inner = create_app(Settings(), small)
    outer = FastAPI(lifespan=lambda _: inner.router.lifespan_context(inner))
    outer.mount("/g", inner)
    with TestClient(outer) as client:
        assert client.post("/g/v1/nothing").json()["error"]["type"] == "invalid_request_error"
        assert client.post("/g/nothing").json()["error_type"] == "not_found"
