"""The front door beside FastAPI behind it: the same answers; and what a large answer leaves to others."""

from __future__ import annotations

import asyncio
import base64
import io
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from test_http import bodies

from gramvec import Embedder
from gramvec.server.app import create_app
from gramvec.server.contract import answers
from gramvec.server.middleware.front_door import HOT_ROUTES, PROBES, FrontDoor
from gramvec.server.settings.settings import Settings
from http_support import PATIENCE, post_bytes, read_all, running, running_app

LIMITS = {"max_texts": 50, "max_body_bytes": 100_000, "queue_texts": 60}
JSON_TYPE = {"content-type": "application/json"}
KEY = {"authorization": "Bearer the-key"}
OF_ONE_ANSWER = {"date", "x-request-id", "x-total-time", "x-queue-time", "x-inference-time"}


class Both:
    """Clients of two servers: one with the front door, one where the same requests reach FastAPI."""

    def __init__(self, front: httpx.Client, behind: httpx.Client) -> None:
        self.front = front
        self.behind = behind

    def ask(self, *arguments: Any, **options: Any) -> httpx.Response:
        """The answer of both, which must be the same."""
        one, other = (client.request(*arguments, **options) for client in (self.front, self.behind))
        assert seen(one) == seen(other)
        return one


def seen(answer: httpx.Response) -> tuple[int, bytes, list[tuple[str, str]]]:
    headers = sorted((name, value) for name, value in answer.headers.multi_items() if name not in OF_ONE_ANSWER)
    return answer.status_code, answer.content, headers


@pytest.fixture(scope="module", params=[None, "the-key"])
def both(embedder: Embedder, request: pytest.FixtureRequest) -> Iterator[Both]:
    chosen = Settings.model_validate({**LIMITS, "api_key": [request.param] if request.param else []})
    front, other = create_app(chosen, embedder), create_app(chosen, embedder)
    through = FrontDoor(other.behind, other.state.service, routes={}, probes={})
    with (
        running_app(front) as first,
        running_app(through) as second,
        httpx.Client(base_url=first.url, timeout=PATIENCE, headers=KEY) as one,
        httpx.Client(base_url=second.url, timeout=PATIENCE, headers=KEY) as another,
    ):
        yield Both(one, another)


EMBED = {"inputs": ["a fast car", "", "ripe bananas \N{GRINNING FACE}"]}
MATRIX = {"inputs": {"left": ["a", "b"], "right": ["c", "d", "e"]}}
UNKNOWN = "\N{EGYPTIAN HIEROGLYPH A001}"
LONG = "x" * 65_537


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("/embed", EMBED, 200),
        ("/embed", {"inputs": "one"}, 200),
        ("/embed", {"inputs": "one", "normalize": False, "dimensions": 5, "model": None}, 200),
        ("/embed", {"inputs": LONG, "truncate": True, "truncation_direction": "left"}, 200),
        ("/similarity", {"inputs": {"source_sentence": "a", "sentences": ["b", UNKNOWN]}}, 200),
        ("/similarity", {"inputs": {"pairs": [["a", "b"], ["c", "d"]]}}, 200),
        ("/similarity", MATRIX, 200),
        ("/similarity", {**MATRIX, "top_k": 2}, 200),
        ("/embed", {"inputs": 5}, 422),
        ("/embed", {"inputs": ["a", None]}, 422),
        ("/embed", {"inputs": []}, 422),
        ("/embed", {"inputs": "a", "normalise": True}, 422),
        ("/embed", {"inputs": ["a", "\ud800"]}, 422),
        ("/embed", {"inputs": ["a"] * 51}, 413),
        ("/embed", {"inputs": LONG}, 422),
        ("/embed", {"inputs": "a" * 100_000}, 413),
        ("/embed", {"inputs": "a", "dimensions": 0}, 422),
        ("/embed", {"inputs": "a", "dimensions": 100_000}, 422),
        ("/embed", {"inputs": "a", "model": "other"}, 404),
        ("/similarity", {"inputs": {"pairs": [["a"]]}}, 422),
        ("/similarity", {"inputs": {"pairs": [["a", "b"]]}, "top_k": 1}, 422),
        ("/similarity", {"inputs": {"pairs": [["a", "b"]] * 26}}, 413),
        ("/similarity", {"inputs": {"left": ["\udfff"], "right": ["a"]}}, 422),
        ("/v1/embeddings", {"input": ["a fast car", "", UNKNOWN]}, 200),
        ("/v1/embeddings", {"input": "one", "encoding_format": "base64", "dimensions": 5, "user": None}, 200),
        ("/v1/embeddings", {"input": [1, 2]}, 400),
        ("/v1/embeddings", {"input": "one", "model": "other"}, 404),
        ("/v1/embeddings", {"input": ["a"] * 51}, 413),
        ("/v1/embeddings", {"input": ["a", LONG]}, 422),
        ("/v1/embeddings", {"inputs": "a"}, 422),
        ("/v1/embeddings", {"input": []}, 422),
        ("/", {"inputs": "one", "precision": "int8"}, 200),
        ("/", MATRIX, 200),
        ("/", {"inputs": {"left": ["a"]}}, 422),
        ("/", [], 422),
    ],
)
def test_every_body_has_the_same_answer_of_both(both: Both, path: str, body: Any, status: int) -> None:
    assert both.ask("POST", path, content=json.dumps(body), headers=JSON_TYPE).status_code == status


@pytest.mark.parametrize(
    ("content", "headers", "status"),
    [
        (b"", JSON_TYPE, 400),
        (b"{", JSON_TYPE, 400),
        (b'{"inputs": "\xff"}', JSON_TYPE, 400),
        (b'{"inputs": "x"}', {}, 415),
        (b'{"inputs": "x"}', {"content-type": "text/plain"}, 415),
        (b'{"inputs": "x"}', {"content-type": "application/vnd.api+json"}, 200),
        (b'{"inputs": "x"}', {"content-type": "Application/JSON; charset=utf-8"}, 200),
        (b"\x1f\x8b", {**JSON_TYPE, "content-encoding": "gzip"}, 415),
        (b'{"inputs": "x"}', {**JSON_TYPE, "accept": "application/octet-stream"}, 200),
        (b'{"inputs": "x"}', {**JSON_TYPE, "accept": "application/x-npy;q=0.5, */*;q=0.1"}, 200),
        (b'{"inputs": "x"}', {**JSON_TYPE, "accept": "application/json; encoding=base64"}, 200),
        (b'{"inputs": "x"}', {**JSON_TYPE, "accept": ";;q=,\xe9".encode("latin-1")}, 200),
    ],
)
def test_every_header_has_the_same_answer_of_both(
    both: Both, content: bytes, headers: dict[str, str], status: int
) -> None:
    for path in ("/embed", "/similarity"):
        answer = both.ask("POST", path, content=content, headers=headers)
        assert path == "/similarity" or answer.status_code == status


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(body=bodies)
def test_any_json_has_the_same_answer_of_both(both: Both, body: Any) -> None:
    for path in HOT_ROUTES:
        both.ask("POST", path, content=json.dumps(body), headers=JSON_TYPE)


def test_a_body_in_chunks_has_the_same_answer_of_both(both: Both) -> None:
    for path, text, status in (("/embed", "x" * 20_000, 200), ("/embed", "x" * 120_000, 413)):
        body = json.dumps({"inputs": text}).encode()
        answers_of_both = [
            client.post(path, content=iter([body[:9_000], body[9_000:]]), headers=JSON_TYPE)
            for client in (both.front, both.behind)
        ]
        assert seen(answers_of_both[0]) == seen(answers_of_both[1])
        assert answers_of_both[0].status_code == status


def test_other_methods_and_a_wrong_key_have_the_same_answer_of_both(both: Both) -> None:
    for method, path in (("GET", "/embed"), ("PUT", "/similarity"), ("POST", "/embed/"), ("OPTIONS", "/embed")):
        assert both.ask(method, path).status_code in (404, 405)
    for headers in ({"authorization": "Bearer wrong"}, {"authorization": ""}):
        assert both.ask("POST", "/embed", json=EMBED, headers=headers).status_code in (200, 401)


def test_a_bug_has_the_same_answer_of_both(embedder: Embedder, caplog: pytest.LogCaptureFixture) -> None:
    class Broken:
        def prepare(self, *_: object, **__: object) -> list[str]:
            raise ZeroDivisionError

        def __getattr__(self, name: str) -> Any:
            return getattr(embedder, name)

    found = []
    for hot in (HOT_ROUTES, {}):
        app = create_app(Settings(), Broken())  # type: ignore[arg-type]
        with running_app(FrontDoor(app.behind, app.state.service, routes=hot)) as server:
            found.append(httpx.post(f"{server.url}/embed", json={"inputs": ["x"]}, headers={"x-request-id": "bug"}))
    assert seen(found[0]) == seen(found[1])
    assert found[0].status_code == 500
    assert caplog.text.count("request bug failed") == 2


@pytest.mark.parametrize("path", [*PROBES, "/health?x=1", "/ready/"])
@pytest.mark.parametrize("method", ["GET", "HEAD", "POST", "OPTIONS"])
def test_probes_are_answered_alike(both: Both, path: str, method: str) -> None:
    both.ask(method, path)
    both.ask(method, path, headers={"authorization": ""})


def test_fastapi_comes_with_the_first_request_for_it_alone() -> None:
    script = (
        "import sys, httpx\n"
        "from gramvec.server.app import create_app\n"
        "import gramvec\n"
        "from http_support import running_app\n"
        "from concurrent.futures import ThreadPoolExecutor\n"
        "def loaded(): return 'fastapi' in sys.modules\n"
        "with running_app(create_app(embedder=gramvec.load('sif'))) as server:\n"
        "    found = [httpx.get(server.url + path).status_code for path in ('/health', '/ready')]\n"
        "    found += [httpx.post(server.url + '/embed', json={'inputs': 'x'}).status_code, loaded()]\n"
        "    with ThreadPoolExecutor(8) as pool:\n"
        "        found += pool.map(lambda _: httpx.get(server.url + '/info').status_code, range(8))\n"
        "    print(found, loaded())\n"
    )
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[1])}
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == f"{[200, 200, 200, False] + 8 * [200]} True\n"


def test_hot_requests_do_not_reach_the_application_behind(embedder: Embedder) -> None:
    reached: list[tuple[str, str]] = []
    app = create_app(Settings(), embedder)
    behind = app.behind

    async def watch(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            reached.append((scope["method"], scope["path"]))
        await behind(scope, receive, send)

    app.behind = watch
    with running_app(app) as server, httpx.Client(base_url=server.url) as client:
        assert client.post("/embed", json=EMBED).status_code == 200
        assert client.post("/similarity", json=MATRIX).status_code == 200
        assert client.get("/health").json() == {"status": "alive"}
        assert client.get("/ready").status_code == 200
        assert reached == []
        assert client.get("/embed").status_code == 405
        assert client.get("/info").status_code == 200
        assert reached == [("GET", "/embed"), ("GET", "/info")]
        document = client.get("/openapi.json").json()
    assert {path for path, operations in document["paths"].items() if "post" in operations} >= set(HOT_ROUTES)
    assert {path for path, operations in document["paths"].items() if "get" in operations} >= set(PROBES)


def test_large_answers_are_the_same_bytes_in_every_form(embedder: Embedder) -> None:
    texts = [f"text number {number}" for number in range(700)]
    expected = embedder.embed(texts, dimensions=200).astype("<f4")
    assert expected.size > answers.PIECE_NUMBERS
    forms = ["application/json", "application/octet-stream", "application/x-npy", "application/json; encoding=base64"]
    with running(Settings(), embedder) as server, httpx.Client(base_url=server.url, timeout=PATIENCE) as client:
        found = [client.post("/embed", json={"inputs": texts, "dimensions": 200}, headers={"accept": a}) for a in forms]
    as_json, raw, npy, in_base64 = found
    for answer in found:
        assert answer.status_code == 200
        assert int(answer.headers["content-length"]) == len(answer.content)
    for answer in (raw, npy, in_base64):
        assert answer.headers["x-shape"] == "700,200"
    assert np.array(as_json.json(), "<f4").tobytes() == expected.tobytes()
    assert raw.content == expected.tobytes()
    assert np.load(io.BytesIO(npy.content), allow_pickle=False).tobytes() == expected.tobytes()
    assert b"".join(map(base64.b64decode, in_base64.json())) == expected.tobytes()


def test_a_large_matrix_and_its_best_are_the_same_in_pieces(embedder: Embedder) -> None:
    left, right = [f"left {number}" for number in range(350)], [f"right {number}" for number in range(320)]
    assert len(left) * len(right) > answers.PIECE_NUMBERS
    with running(Settings(), embedder) as server, httpx.Client(base_url=server.url, timeout=PATIENCE) as client:
        matrix = client.post("/similarity", json={"inputs": {"left": left, "right": right}}).json()
        best = client.post("/similarity", json={"inputs": {"left": left, "right": right}, "top_k": 2}).json()
    scores = embedder.similarity(left, right)
    assert np.array(matrix, np.float32).tobytes() == scores.tobytes()
    assert [row[0]["index"] for row in best] == scores.argmax(axis=1).tolist()
    assert all(len(row) == 2 for row in best)


async def request_in_process(app: FrontDoor, path: str, body: Any) -> int:
    messages = [{"type": "http.request", "body": json.dumps(body).encode(), "more_body": False}]
    sent: list[Any] = []

    async def receive() -> Any:
        return messages.pop() if messages else await asyncio.Event().wait()

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {"type": "http", "method": "POST", "path": path, "headers": [(b"content-type", b"application/json")]}
    await app(scope, receive, send)
    return int(sent[0]["status"])


def test_others_are_answered_between_the_pieces_of_a_large_answer(
    embedder: Embedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    events: list[str] = []

    def watched(rows: Any) -> bytes:
        events.append("piece" if len(rows) > 1 else "other")
        return answers.to_json(rows)

    monkeypatch.setitem(answers.ENCODERS, "application/json", watched)

    async def work() -> None:
        app = create_app(Settings(), embedder)
        app.state.service.attach(embedder)
        large = asyncio.create_task(request_in_process(app, "/embed", {"inputs": ["x"] * 2_048}))
        while not large.done():
            assert await request_in_process(app, "/embed", {"inputs": "y"}) == 200
        assert large.result() == 200
        await app.state.service.close()

    asyncio.run(asyncio.wait_for(work(), PATIENCE))
    pieces = [place for place, event in enumerate(events) if event == "piece"]
    assert len(pieces) == -(-2_048 // (answers.PIECE_NUMBERS // embedder.dimension))
    # Not one at least between any two: a short request takes a few turns of the loop.
    assert events[pieces[0] : pieces[-1]].count("other") >= 2


def test_an_http_1_0_client_gets_a_large_answer_whole(embedder: Embedder) -> None:
    body = json.dumps({"inputs": ["x"] * 700}).encode()
    request = post_bytes(body).replace(b"HTTP/1.1", b"HTTP/1.0")
    with running(Settings(), embedder) as server, server.connect() as connection:
        connection.sendall(request)
        head, _, content = read_all(connection).partition(b"\r\n\r\n")
    assert b"transfer-encoding" not in head.lower()
    assert len(json.loads(content)) == 700
