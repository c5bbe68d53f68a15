"""POST /rerank, /v1/rerank and /v2/rerank over real HTTP: what `Embedder.rerank` returns."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import numpy as np
import pytest

import gramvec
from gramvec.server.settings import Settings
from support.http import asking

QUERY = "vehicals"
TEXTS = ["bananas", "vehicles", "", "cars", "vehicles", "ripe bananas"]


@pytest.fixture(scope="module")
def client(embedder: gramvec.Embedder) -> Iterator[httpx.Client]:
    with asking(Settings(max_texts=3_000), embedder) as client:
        yield client


@pytest.mark.parametrize("count", [1, len(TEXTS), 2_500])
def test_texts_come_as_embedder_rerank_has_them(client: httpx.Client, embedder: gramvec.Embedder, count: int) -> None:
    texts = [TEXTS[i % len(TEXTS)] + ("" if i < len(TEXTS) else f" {i % 97}") for i in range(count)]
    ranked = [(one.place, pytest.approx(one.score, abs=1e-7)) for one in embedder.rerank(QUERY, texts)]
    answer = client.post("/rerank", json={"query": QUERY, "texts": texts, "raw_scores": True, "return_text": True})
    assert answer.status_code == 200
    assert answer.json() == [{"index": i, "score": score, "text": texts[i]} for i, score in ranked]
    assert answer.headers["x-model"].startswith("gramvec-en@")
    assert answer.headers["x-compute-characters"] == str(len(QUERY) + sum(map(len, texts)))
    documents = [text if i % 2 else {"text": text} for i, text in enumerate(texts)]
    body = {"query": QUERY, "documents": documents, "top_n": 4, "return_documents": True, "model": "gramvec-en"}
    body["raw_scores"] = True
    found = client.post("/v1/rerank", json=body).json()
    assert found["results"] == [
        {"index": i, "relevance_score": score, "document": {"text": texts[i]}} for i, score in ranked[:4]
    ]
    assert client.post("/v2/rerank", json=body).json()["results"] == found["results"]
    words = len(QUERY.split()) + sum(len(text.split()) for text in texts)
    assert (found["model"], found["usage"]) == ("gramvec-en", {"prompt_tokens": words, "total_tokens": words})


def test_texts_are_told_only_where_they_are_wanted(client: httpx.Client) -> None:
    found = client.post("/rerank", json={"query": QUERY, "texts": ["a", "b"], "return_text": None}).json()
    assert [set(one) for one in found] == [{"index", "score"}] * 2
    found = client.post("/v1/rerank", json={"query": QUERY, "documents": ["a", "b"]}).json()
    assert [set(one) for one in found["results"]] == [{"index", "relevance_score"}] * 2


def test_scores_lie_in_0_to_1_in_the_same_order_unless_raw_ones_are_asked_for(client: httpx.Client) -> None:
    body = {"query": "canon sd1100", "texts": ["canon sd1100", "canon sd 1100 is", "nikon", "", "zzzz"]}
    raw = client.post("/rerank", json={**body, "raw_scores": True}).json()
    assert raw[0]["score"] > 1
    found = client.post("/rerank", json={**body, "raw_scores": False}).json()
    assert [one["index"] for one in found] == [one["index"] for one in raw]
    expected = [1 / (1 + np.exp(-4 * (one["score"] - 0.6))) for one in raw]
    assert [one["score"] for one in found] == pytest.approx(expected, abs=1e-6)
    assert found[0]["score"] > 0.9 > 0.2 > found[-1]["score"]


def test_the_shape_of_the_request_is_that_of_the_response(client: httpx.Client) -> None:
    asked = {"query": QUERY, "documents": TEXTS, "top_n": 2, "model": "any-name", "return_documents": False}
    found = client.post("/rerank", json=asked).json()
    assert [set(one) for one in found["results"]] == [{"index", "relevance_score"}] * 2
    found = client.post("/rerank", json={"query": QUERY, "texts": TEXTS, "top_n": 2, "model": "any-name"})
    assert [set(one) for one in found.json()] == [{"index", "score"}] * 2
    assert found.headers["x-empty-inputs"] == "texts[2]"
    assert len(client.post("/rerank", json={"query": QUERY, "texts": TEXTS, "top_k": 1}).json()) == 1


@pytest.mark.parametrize(
    ("path", "body", "status", "sentence"),
    [
        ("/rerank", {"query": QUERY}, 422, "texts is missing"),
        ("/rerank", {"texts": TEXTS}, 422, "query is missing"),
        ("/rerank", {"query": QUERY, "texts": []}, 422, "texts"),
        ("/rerank", {"query": QUERY, "texts": ["a", 1]}, 422, "texts[1]"),
        ("/rerank", {"query": "q" * 70_000, "texts": ["a"]}, 422, "query has 70000"),
        ("/rerank", {"query": QUERY, "texts": ["a", "b" * 70_000]}, 422, "texts[1] has 70000"),
        ("/rerank", {"query": QUERY, "texts": ["a"] * 3_000}, 413, "3001 texts"),
        ("/v2/rerank", {"query": QUERY, "documents": ["a"], "model": "none"}, 404, "model 'none'"),
        ("/v1/rerank", {"query": QUERY}, 400, "documents is missing"),
        ("/v1/rerank", {"query": QUERY, "documents": [1]}, 400, "documents[0]"),
        ("/v1/rerank", {"query": QUERY, "documents": [{}]}, 400, "documents[0].text is missing"),
        ("/v1/rerank", {"query": QUERY, "documents": ["a"], "top_n": 0}, 400, "top_n"),
        (
            "/v1/rerank", {"query": QUERY, "documents": ["a", {"text": "b" * 70_000}]}, 400,
            "documents[1].text",
        ),
    ],
)  # fmt: skip
def test_a_bad_request_says_what_to_do(
    client: httpx.Client, path: str, body: dict[str, Any], status: int, sentence: str
) -> None:
    answer = client.post(path, json=body)
    assert answer.status_code == status, answer.text
    found = answer.json()["error"]
    assert (found["message"] if path.startswith("/v1") else found).startswith(sentence)


def test_a_long_text_is_cut_where_that_is_asked_for(client: httpx.Client) -> None:
    body = {"query": QUERY, "texts": ["vehicles", "b" * 70_000], "truncate": True, "truncation_direction": "Left"}
    assert [one["index"] for one in client.post("/rerank", json=body).json()] == [0, 1]
    body = {"query": QUERY, "documents": ["vehicles", "b" * 70_000], "truncation": True}
    assert client.post("/v1/rerank", json=body).status_code == 200
