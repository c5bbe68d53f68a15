"""POST /explain over real HTTP."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest

import gramvec
from gramvec.explain.contributions import explain
from gramvec.server.settings import Settings
from support.http import PATIENCE, asking, running, until

TEXTS = {"source_sentence": "cheap flihgts\u0301 \U0001f642", "target_sentence": "low-cost  air fares"}


@pytest.fixture(scope="module")
def client(embedder: gramvec.Embedder) -> Iterator[httpx.Client]:
    with asking(Settings(), embedder) as client:
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
    assert answer.headers["x-inference-time"].isdecimal()


@pytest.mark.parametrize(
    ("body", "status", "sentence"),
    [
        ({"inputs": TEXTS, "top_k": 0}, 422, "top_k"),
        ({"inputs": TEXTS, "top_k": 1001}, 422, "top_k"),
        ({"inputs": TEXTS, "top_k": "5"}, 422, "top_k"),
        ({"inputs": TEXTS, "more": 1}, 422, "more"),
        ({"inputs": {"source_sentence": "a"}}, 422, "inputs.target_sentence is missing"),
        ({"inputs": {**TEXTS, "target_sentence": ["a"]}}, 422, "inputs.target_sentence"),
        ({"inputs": "a"}, 422, "inputs"),
        ({}, 422, "inputs is missing"),
        ([], 422, "the body"),
        (
            {"inputs": {**TEXTS, "target_sentence": "x" * 4097}},
            422,
            "inputs.target_sentence has 4097",
        ),
        ({"inputs": {**TEXTS, "source_sentence": "\ud800"}}, 422, "inputs.source_sentence"),
        ({"inputs": TEXTS, "model": "nonesuch"}, 404, "model 'nonesuch'"),
    ],
)
def test_a_bad_request_says_what_to_do(client: httpx.Client, body: Any, status: int, sentence: str) -> None:
    answer = client.post("/explain", content=json.dumps(body), headers={"content-type": "application/json"})
    assert answer.status_code == status
    assert answer.json()["error"].startswith(sentence)
    assert answer.json()["error_type"] == ("not_found" if status == 404 else "validation")


def test_a_long_explanation_holds_up_nobody(embedder: gramvec.Embedder) -> None:
    """While explanations wait for their turn, /embed answers."""
    gate = threading.Event()
    with running(Settings(), embedder) as server, ThreadPoolExecutor(1) as pool:
        queue = server.service.work_queue("explanations")
        queue._thread.submit(gate.wait, PATIENCE)
        waits = pool.submit(httpx.post, f"{server.url}/explain", json={"inputs": TEXTS}, timeout=PATIENCE)
        until(lambda: queue._present == 1)
        assert httpx.post(f"{server.url}/embed", json={"inputs": "a"}).status_code == 200
        assert not waits.done()
        gate.set()
        assert waits.result(PATIENCE).status_code == 200
