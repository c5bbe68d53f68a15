"""POST /explain over real HTTP."""

from __future__ import annotations

import asyncio
import json
import re
import threading
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

import gramvec
from conftest import ROOT
from gramvec.explain.contributions import explain
from gramvec.server.settings import Settings
from http_support import PATIENCE, RunningServer, running, until

TEXTS = {"source_sentence": "cheap flihgts\u0301 \U0001f642", "target_sentence": "low-cost  air fares"}


@pytest.fixture(scope="module")
def client(embedder: gramvec.Embedder) -> Iterator[httpx.Client]:
    with (
        running(Settings(), embedder) as server,
        httpx.Client(base_url=server.url, timeout=PATIENCE) as client,
    ):
        yield client


def test_the_answer_is_the_librarys(client: httpx.Client, embedder: gramvec.Embedder) -> None:
    answer = client.post("/explain", json={"inputs": TEXTS, "top_k": 7, "model": None})
    assert answer.status_code == 200
    found = answer.json()
    expected = explain(embedder, *TEXTS.values(), top_k=7)
    assert list(found) == ["score", "residual", "rest", "coverage", "features", "words", "words_rest", "characters"]
    body = {"inputs": {"source_sentence": TEXTS["source_sentence"], "sentences": [TEXTS["target_sentence"]]}}
    assert [found["score"]] == client.post("/similarity", json=body).json()
    listed = [one["contribution"] for one in found["features"]]
    assert len(listed) == 7
    assert sum(listed) + found["rest"] + found["residual"] == pytest.approx(found["score"], abs=1e-5)
    assert abs(found["residual"]) < 1e-5  # a linear model without a bias
    assert [len(one) for one in found["characters"]] == [len(text) for text in TEXTS.values()]
    for one, pair in zip(found["features"], expected.pairs, strict=True):
        assert one["source"] == pair.source._asdict()
        assert one["target"] == pair.target._asdict()
        assert one["contribution"] == pytest.approx(pair.contribution, rel=1e-6)
    for one, words in zip(found["words"], expected.words, strict=True):
        assert (one["source"], one["target"]) == (words.source._asdict(), words.target._asdict())
        assert one["contribution"] == pytest.approx(words.contribution, rel=1e-6)
    assert found["words_rest"] == pytest.approx(expected.words_rest, abs=1e-6)
    assert len(found["words"]) == 7
    assert answer.headers["x-compute-characters"] == str(sum(map(len, TEXTS.values())))
    assert answer.headers["x-model"] == f"gramvec-en@{embedder.digest[:12]}"
    assert float(answer.headers["x-inference-time"]) > 0


@pytest.mark.parametrize(
    ("body", "status", "sentence"),
    [
        ({"inputs": TEXTS, "top_k": 0}, 422, "top_k: must be at least 1, got 0"),
        ({"inputs": TEXTS, "top_k": 1001}, 422, "top_k: must be at most 1000, got 1001"),
        ({"inputs": TEXTS, "top_k": "5"}, 422, "top_k: must be a whole number, got a string"),
        ({"inputs": TEXTS, "more": 1}, 422, "more is not a known field; this route takes inputs, top_k, model"),
        ({"inputs": {"source_sentence": "a"}}, 422, "inputs.target_sentence is missing"),
        ({"inputs": {**TEXTS, "target_sentence": ["a"]}}, 422, "inputs.target_sentence: must be a string, got a list"),
        ({"inputs": "a"}, 422, "inputs: must be a JSON object, got a string"),
        ({}, 422, "inputs is missing"),
        ([], 422, "the body: must be a JSON object, got a list"),
        (
            {"inputs": {**TEXTS, "target_sentence": "x" * 4097}},
            422,
            "inputs.target_sentence has 4097 characters, and explanations take 4096: shorten it",
        ),
        ({"inputs": TEXTS, "model": "nonesuch"}, 404, "model 'nonesuch' is not served here"),
    ],
)
def test_a_bad_request_says_what_to_do(client: httpx.Client, body: Any, status: int, sentence: str) -> None:
    answer = client.post("/explain", json=body)
    assert answer.status_code == status
    assert answer.json()["error"].startswith(sentence)
    assert answer.json()["error_type"] == ("not_found" if status == 404 else "validation")


def test_what_is_no_json(client: httpx.Client) -> None:
    assert client.post("/explain", content=b"{", headers={"content-type": "application/json"}).status_code == 400
    assert client.post("/explain", content=b"{}", headers={"content-type": "text/plain"}).status_code == 415
    lone = b'{"inputs": {"source_sentence": "\\ud800", "target_sentence": "a"}}'
    answer = client.post("/explain", content=lone, headers={"content-type": "application/json"})
    assert answer.status_code == 422
    assert answer.json()["error"].startswith("inputs.source_sentence has a lone surrogate")
    assert client.get("/explain").status_code == 405


def test_it_stands_in_openapi_with_an_example_that_works(client: httpx.Client) -> None:
    document = client.get("/openapi.json").json()
    operation = document["paths"]["/explain"]["post"]
    content = operation["requestBody"]["content"]["application/json"]
    for example in content["examples"].values():
        assert client.post("/explain", json=example["value"]).status_code == 200
    answered = operation["responses"]["200"]["content"]["application/json"]["schema"]["$ref"].rpartition("/")[2]
    fields = document["components"]["schemas"][answered]["properties"]
    assert list(fields) == list(client.post("/explain", json={"inputs": TEXTS}).json())
    assert "get" in document["paths"]["/"]


def test_the_page_on_http_shows_what_is_answered(client: httpx.Client) -> None:
    text = (ROOT / "docs" / "api.md").read_text(encoding="utf-8").partition("## POST /explain")[2]
    asked, shown = (
        json.loads(block) for block in re.findall(r"^```json\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)[:2]
    )
    found = client.post("/explain", json=asked).json()
    found["characters"] = [one[:2] for one in found["characters"]]
    assert list(found) == list(shown)
    for name in ("score", "rest", "residual", "coverage", "words_rest"):
        assert found[name] == pytest.approx(shown[name], abs=1e-4)
    assert found["characters"] == [pytest.approx(one, abs=1e-4) for one in shown["characters"]]
    assert found["features"][0]["source"] == shown["features"][0]["source"]
    assert found["words"] == [{**shown["words"][0], "contribution": pytest.approx(shown["score"], abs=1e-5)}]


def test_a_long_explanation_holds_up_nobody(client: httpx.Client, embedder: gramvec.Embedder) -> None:
    """While explanations wait for their turn, /embed answers."""
    with running(Settings(), embedder) as server:
        busy = threading.Event()
        loop_free = threading.Event()

        async def hold() -> None:
            with server.service.work_queue("explanations").admit(0.01) as job:
                await job.run(lambda: (busy.set(), loop_free.wait(PATIENCE)))

        loop = _loop_of(server)
        held = asyncio.run_coroutine_threadsafe(hold(), loop)
        assert busy.wait(PATIENCE)
        with httpx.Client(base_url=server.url, timeout=PATIENCE) as ours:
            answers: list[int] = []
            waiting = threading.Thread(
                target=lambda: answers.append(ours.post("/explain", json={"inputs": TEXTS}).status_code)
            )
            waiting.start()
            assert httpx.post(f"{server.url}/embed", json={"inputs": "a"}).status_code == 200
            assert answers == []
            loop_free.set()
            waiting.join(PATIENCE)
        held.result(PATIENCE)
        assert answers == [200]


def _loop_of(server: RunningServer) -> asyncio.AbstractEventLoop:
    found: list[asyncio.AbstractEventLoop] = []
    publish = server.service.metrics.publish

    def spy(*_: object) -> None:
        found.append(asyncio.get_running_loop())
        server.service.metrics.publish = publish  # type: ignore[method-assign]

    server.service.metrics.publish = spy  # type: ignore[method-assign]
    httpx.get(f"{server.url}/metrics")
    until(lambda: found)
    return found[0]
