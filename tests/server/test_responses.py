"""Responses of every form and size, and what is imported only when it is asked for."""

from __future__ import annotations

import asyncio
import base64
import io
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gramvec import Embedder
from gramvec.server import responses
from gramvec.server.app import Application, create_app
from gramvec.server.routes import embed
from gramvec.server.settings import Settings
from support.http import PATIENCE, RunningServer, asking, post_bytes, read_all


@pytest.mark.parametrize("count", [3, 700])
def test_answers_are_the_same_bytes_in_every_form(embedder: Embedder, count: int) -> None:
    texts = ["", "\n\t \N{GRINNING FACE}", *(f"text number {number}" for number in range(2, count))]
    expected = embedder.embed(texts, dimensions=200).astype("<f4")
    assert (expected.size > responses.PIECE_NUMBERS) == (count == 700)
    forms = ["application/json", "application/octet-stream", "application/x-npy", "application/json; encoding=base64"]
    with asking(Settings(), embedder) as client:
        found = [client.post("/embed", json={"inputs": texts, "dimensions": 200}, headers={"accept": a}) for a in forms]
    as_json, raw, npy, in_base64 = found
    for answer, form in zip(found, forms, strict=True):
        assert (answer.status_code, answer.headers["content-type"]) == (200, form)
        assert int(answer.headers["content-length"]) == len(answer.content)
    for answer in (raw, npy, in_base64):
        assert (answer.headers["x-shape"], answer.headers["x-dtype"]) == (f"{count},200", "float32")
    assert np.array(as_json.json(), "<f4").tobytes() == expected.tobytes()
    assert raw.content == expected.tobytes()
    assert np.load(io.BytesIO(npy.content), allow_pickle=False).tobytes() == expected.tobytes()
    assert b"".join(map(base64.b64decode, in_base64.json())) == expected.tobytes()


def test_a_large_matrix_and_its_best_are_the_same_in_pieces(embedder: Embedder) -> None:
    left, right = [f"left {number}" for number in range(350)], [f"right {number}" for number in range(320)]
    assert len(left) * len(right) > responses.PIECE_NUMBERS
    with asking(Settings(), embedder) as client:
        matrix = client.post("/similarity", json={"inputs": {"left": left, "right": right}}).json()
        best = client.post("/similarity", json={"inputs": {"left": left, "right": right}, "top_k": 2}).json()
    scores = embedder.similarity(left, right)
    assert np.array(matrix, np.float32).tobytes() == scores.tobytes()
    assert [row[0]["index"] for row in best] == scores.argmax(axis=1).tolist()
    assert all(len(row) == 2 for row in best)


def test_what_is_not_asked_for_is_not_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    """Prometheus's library is imported by the first request for metrics, OpenTelemetry's SDK and bars never."""
    script = """
import sys, httpx
from concurrent.futures import ThreadPoolExecutor
import gramvec
from gramvec.server.app import create_app
from support.http import running_app
def told(*paths):
    with ThreadPoolExecutor(8) as pool:
        statuses = set(pool.map(lambda path: httpx.get(server.url + path).status_code, paths))
    late = {"opentelemetry.sdk", "prometheus_client", "tqdm", "twisted", "aiohttp", "django"}
    print(*statuses, *sorted(late & sys.modules.keys()))
with running_app(create_app(embedder=gramvec.load("sif"))) as server:
    print(httpx.post(server.url + "/embed", json={"inputs": "x"}).status_code)
    told("/health", "/ready")
    told("/metrics")
    told(*["/openapi.json"] * 8)
"""
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[1]))
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["200", "200", "200 prometheus_client", "200 prometheus_client"]


async def request_in_process(app: Application, path: str, body: Any) -> int:
    messages = [{"type": "http.request", "body": json.dumps(body).encode(), "more_body": False}]
    sent: list[Any] = []

    async def receive() -> Any:
        return messages.pop() if messages else await asyncio.Event().wait()

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {
        "type": "http",
        "method": "POST",
        "path": path,
        "query_string": b"",
        "headers": [(b"content-type", b"application/json")],
    }
    await app(scope, receive, send)
    return int(sent[0]["status"])


def test_others_are_answered_between_the_pieces_of_a_large_answer(
    embedder: Embedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    events: list[str] = []

    def watched(rows: Any) -> bytes:
        events.append("piece")
        return responses.to_json(rows)

    monkeypatch.setitem(embed.ENCODERS, "application/json", watched)

    async def work() -> None:
        app = create_app(Settings(), embedder)
        app.state.gramvec.attach(embedder)
        large = asyncio.create_task(request_in_process(app, "/embed", {"inputs": ["x"] * 2_048}))
        while not large.done():
            assert await request_in_process(app, "/embed", {"inputs": "y"}) == 200
            events.append("other")
        assert large.result() == 200
        await app.state.gramvec.close()

    asyncio.run(asyncio.wait_for(work(), PATIENCE))
    pieces = [place for place, event in enumerate(events) if event == "piece"]
    assert len(pieces) == -(-2_048 // (responses.PIECE_NUMBERS // embedder.dimension))
    # Not one at least between any two: a short request takes a few turns of the loop.
    assert events[pieces[0] : pieces[-1]].count("other") >= 2


def test_an_http_1_0_client_gets_a_large_answer_whole(plain_server: RunningServer) -> None:
    body = json.dumps({"inputs": ["x"] * 700}).encode()
    request = post_bytes(body).replace(b"HTTP/1.1", b"HTTP/1.0")
    with plain_server.connect() as connection:
        connection.sendall(request)
        head, _, content = read_all(connection).partition(b"\r\n\r\n")
    assert b"transfer-encoding" not in head.lower()
    assert len(json.loads(content)) == 700


SPACES = "".join(character for code in range(0x3001) if (character := chr(code)).isspace())


@given(
    st.lists(st.text(st.sampled_from(f"{SPACES}aé\0\x7f") | st.characters(codec="ascii")), max_size=4), st.booleans()
)
def test_words_are_those_of_split(texts: list[str], in_pieces: bool) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(responses, "PIECE_CHARACTERS", 3 if in_pieces else 1_000_000)
        assert asyncio.run(responses.count_words(texts)) == sum(len(text.split()) for text in texts)
