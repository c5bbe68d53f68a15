"""POST /v1/embeddings and GET /v1/models over real HTTP, in OpenAI's shapes."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from typing import Any

import httpx
import numpy as np
import pytest

from gramvec import Embedder
from gramvec.bundle.bundle import DEFAULT_MODEL
from gramvec.server.settings import Settings
from support.http import asking

ENVELOPE = {"message", "type", "param", "code"}


@pytest.fixture(scope="module")
def client(embedder: Embedder) -> Iterator[httpx.Client]:
    with asking(Settings(), embedder) as opened:
        yield opened


def create(client: httpx.Client, **fields: Any) -> dict[str, Any]:
    answer = client.post("/v1/embeddings", json=fields)
    assert answer.status_code == 200, answer.text
    found = answer.json()
    assert isinstance(found, dict)
    return found


def vectors(answer: dict[str, Any]) -> np.ndarray[Any, Any]:
    assert answer.keys() == {"object", "data", "model", "usage"}
    assert answer["object"] == "list"
    assert [entry["index"] for entry in answer["data"]] == list(range(len(answer["data"])))
    assert all(entry.keys() == {"object", "index", "embedding"} for entry in answer["data"])
    assert {entry["object"] for entry in answer["data"]} == {"embedding"}
    rows = [entry["embedding"] for entry in answer["data"]]
    if isinstance(rows[0], str):
        return np.stack([np.frombuffer(base64.b64decode(row, validate=True), "<f4") for row in rows])
    return np.array(rows, np.float32)


@pytest.mark.parametrize("form", ["float", "base64", None])
@pytest.mark.parametrize("dimensions", [None, 7, 300])
def test_both_forms_have_the_bytes_of_the_library(
    client: httpx.Client, embedder: Embedder, form: str | None, dimensions: int | None
) -> None:
    texts = ["vehicles", "", "a fast car \N{GRINNING FACE}"]
    answer = create(client, input=texts, model=DEFAULT_MODEL, encoding_format=form, dimensions=dimensions, user="me")
    assert answer["model"] == DEFAULT_MODEL
    assert isinstance(answer["data"][0]["embedding"], str) == (form == "base64")
    assert vectors(answer).tobytes() == embedder.embed(texts, dimensions=dimensions).tobytes()


def test_one_text_is_a_list_of_one_and_null_is_as_if_left_out(client: httpx.Client, embedder: Embedder) -> None:
    bare = create(client, input="vehicles")
    assert vectors(bare).tobytes() == embedder.embed(["vehicles"]).tobytes()
    optional = ["model", "encoding_format", "dimensions", "user"]
    assert create(client, input="vehicles", **dict.fromkeys(optional)) == bare


def test_a_large_answer_in_pieces_keeps_its_order(client: httpx.Client, embedder: Embedder) -> None:
    texts = [f"text number {number}" for number in range(2_048)]
    expected = embedder.embed(texts).tobytes()
    for form in ("float", "base64"):
        assert vectors(create(client, input=texts, encoding_format=form)).tobytes() == expected


@pytest.mark.parametrize(
    ("texts", "words"),
    [
        ("", 0),
        (" \t\n", 0),
        ("vehicles", 1),
        ("  two   words ", 2),
        (["two words", "and\nthree\u3000more", ""], 5),
        (["word " * 13_000] * 40, 40 * 13_000),
    ],
)
def test_usage_counts_words(client: httpx.Client, texts: Any, words: int) -> None:
    assert create(client, input=texts, dimensions=1)["usage"] == {"prompt_tokens": words, "total_tokens": words}


@pytest.mark.parametrize("ids", [[1], [1, 2, 3], [[1, 2], [3]], [[1]]])
def test_token_ids_are_refused_with_what_to_do(client: httpx.Client, ids: Any) -> None:
    answer = client.post("/v1/embeddings", json={"input": ids, "model": DEFAULT_MODEL})
    error = answer.json()["error"]
    assert answer.status_code == 400
    assert error.keys() == ENVELOPE
    assert "check_embedding_ctx_length=False" in error["message"]
    assert (error["type"], error["param"], error["code"]) == ("invalid_request_error", "input", "token_ids")


def test_models_are_listed_and_found(client: httpx.Client) -> None:
    one = {"id": DEFAULT_MODEL, "object": "model", "created": 0, "owned_by": "gramvec"}
    assert client.get("/v1/models").json() == {"object": "list", "data": [one]}
    assert client.get(f"/v1/models/{DEFAULT_MODEL}").json() == one
    for unknown in ("other", "org/other"):
        answer = client.get(f"/v1/models/{unknown}")
        error = answer.json()["error"]
        assert answer.status_code == 404
        assert error.keys() == ENVELOPE
        assert (error["param"], error["code"]) == ("model", "model_not_found")
        assert DEFAULT_MODEL in error["message"]


INVALID = "invalid_request_error"


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "kind", "param", "code", "word"),
    [
        ("POST", "/v1/embeddings", {}, 400, INVALID, "input", None, "input is missing"),
        ("POST", "/v1/embeddings", [], 400, INVALID, None, None, "object"),
        ("POST", "/v1/embeddings", {"input": None}, 400, INVALID, "input", None, "input is missing"),
        ("POST", "/v1/embeddings", {"input": ["a", 3]}, 400, INVALID, "input[1]", None, "string"),
        ("POST", "/v1/embeddings", {"input": [True]}, 400, INVALID, "input[0]", None, "string"),
        ("POST", "/v1/embeddings", {"input": "x" * 65_537}, 400, INVALID, "input", None, "65536"),
        ("POST", "/v1/embeddings", {"input": "a", "dimensions": 0}, 400, INVALID, "dimensions", None, "at least 1"),
        ("POST", "/v1/embeddings", {"input": "a", "dimensions": 301}, 400, INVALID, "dimensions", None, "300"),
        ("POST", "/v1/embeddings", {"input": "a", "encoding_format": "hex"}, 400, INVALID, "encoding_format", None, ""),
        ("POST", "/v1/embeddings", {"input": "a", "model": "o"}, 404, INVALID, "model", "model_not_found", "'o'"),
        ("POST", "/v1/models", {}, 405, INVALID, None, "not_found", "GET"),
        ("GET", "/v1", None, 404, INVALID, None, "unknown_url", "/v1"),
        ("GET", "/v1/", None, 404, INVALID, None, "unknown_url", "/v1/"),
    ],
)
def test_every_error_has_the_envelope(
    client: httpx.Client,
    method: str,
    path: str,
    body: Any,
    status: int,
    kind: str,
    param: str | None,
    code: str | None,
    word: str,
) -> None:
    content = None if body is None else json.dumps(body).encode()
    answer = client.request(method, path, content=content, headers={"content-type": "application/json"})
    error = answer.json()["error"]
    assert answer.json().keys() == {"error"}
    assert error.keys() == ENVELOPE
    assert (answer.status_code, error["type"], error["param"], error["code"]) == (status, kind, param, code), error
    assert word in error["message"]
    assert "truncate" not in error["message"]  # no field of OpenAI's


def test_other_paths_keep_their_own_shape(client: httpx.Client) -> None:
    for path in ("/v1x", "/nowhere", "/V1/models"):
        assert client.get(path).json().keys() == {"error", "error_type"}
