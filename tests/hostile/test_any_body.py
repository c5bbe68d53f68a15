"""Any JSON and any text to every route: an answer of the documented kind, never a 500, never a NaN."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import httpx
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import gramvec
from gramvec import Embedder
from gramvec.jobs.classify.head import Head
from gramvec.server.settings import Settings
from http_support import asking

for _module in ("tantivy", "scipy"):
    pytest.importorskip(_module, reason="the extras are not installed: pip install '.[search,match]'")

ERROR_TYPES = {"validation", "empty", "too_large", "overloaded", "unhealthy", "backend", "unauthorized", "not_found"}
JSON_TYPE = {"content-type": "application/json"}
# Bodies that are right, to be changed in one place.
GOOD: dict[str, list[dict[str, Any]]] = {
    "/embed": [
        {
            "inputs": ["a", ""],
            "normalize": True,
            "truncate": False,
            "dimensions": 3,
            "precision": "int8",
            "model": None,
        },
        {"inputs": "a", "truncation_direction": "left", "prompt_name": None},
    ],
    "/similarity": [
        {"inputs": {"source_sentence": "a", "sentences": ["b"]}, "parameters": {"truncate": True}},
        {"inputs": {"pairs": [["a", "b"]]}, "model": None},
        {"inputs": {"left": ["a"], "right": ["b", "c"]}, "top_k": 1},
    ],
    "/explain": [{"inputs": {"source_sentence": "a fast car", "target_sentence": "cars"}, "top_k": 3}],
    "/v1/embeddings": [
        {"input": ["a"], "model": "x", "encoding_format": "base64", "dimensions": 2, "user": "u"},
        {"input": "a", "model": None},
    ],
    "/embed_sparse": [{"inputs": ["a tv", ""], "truncate": True, "truncation_direction": "left"}, {"inputs": "a"}],
    "/match": [{"left": ["a tv", ""], "right": ["tv"], "top": 2, "threshold": 0.1, "one_to_one": True}],
    "/rerank": [{"query": "a", "texts": ["b", ""], "raw_scores": True, "return_text": True, "truncate": True}],
    "/v1/rerank": [{"query": "a", "documents": ["b", {"text": "c"}], "top_n": 1, "return_documents": True}],
    "/search": [
        {"queries": ["a"], "k": 2, "where": {"x": ["y", "z"]}, "index": None, "return_records": False},
        {"queries": "a", "where": {"x": 1}, "truncate": True},
    ],
    "/predict": [{"inputs": [["a"], ["b"]], "top_k": 1, "raw_scores": True, "head": "it"}, {"inputs": "a"}],
    "/": [{"inputs": ["a"]}, {"inputs": {"source_sentence": "a", "sentences": ["b"]}}],
}

leaves = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20)
any_json = st.recursive(
    leaves, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4)
)
any_text = st.text(st.characters(codec="utf-8"), max_size=300)


@pytest.fixture(scope="module")
def client(embedder: Embedder, tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    folder = tmp_path_factory.mktemp("attached")
    records = [{"text": "a b", "x": "y"}, {"text": "c", "x": 1}]
    gramvec.Index.build(folder / "it.index", records, model=embedder, filter=["x"])
    zeros = np.zeros((2, embedder.dimension), np.float32), np.zeros(2, np.float32)
    Head.of(*zeros, labels=("one", "two"), threshold=0.1, model=embedder.name, digest=embedder.digest).save(
        folder / "it.head"
    )
    chosen = Settings.model_validate(
        {
            **{"max_texts": 50, "queue_texts": 60, "max_characters": 1_000, "max_body_bytes": 100_000},
            **{"index": [f"it={folder / 'it.index'}"], "head": [f"it={folder / 'it.head'}"]},
        }
    )
    with asking(chosen, embedder) as opened:
        yield opened


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The paths of everything in a body."""
    yield path
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, child in children:
        yield from places(child, (*path, key))


def changed(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    if not path:
        return new
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[path[0]] = changed(copy[path[0]], path[1:], new)
    return copy


@st.composite
def bodies(draw: st.DrawFn) -> tuple[str, Any]:
    """A route, and a body for it: anything, or a good one with one part replaced or one field added."""
    path = draw(st.sampled_from(sorted(GOOD)))
    if draw(st.booleans()):
        return path, draw(any_json)
    body = draw(st.sampled_from(GOOD[path]))
    place = draw(st.sampled_from(list(places(body))))
    return path, changed(body, place, draw(any_json))


def check_answer(path: str, answer: httpx.Response) -> None:
    assert answer.status_code == 200 or 400 <= answer.status_code < 500, answer.text
    assert answer.headers["content-type"].startswith("application/json")
    value = answer.json()
    if answer.status_code == 200:
        assert value
    elif path.startswith("/v1"):
        error = value["error"]
        assert set(value) == {"error"} and set(error) == {"message", "type", "param", "code"}
        assert isinstance(error["message"], str) and error["message"]
        assert isinstance(error["type"], str)
        assert all(error[name] is None or isinstance(error[name], str) for name in ("param", "code"))
    else:
        assert set(value) == {"error", "error_type"}
        assert value["error"] and value["error_type"] in ERROR_TYPES
        assert "\n" not in value["error"]


@pytest.mark.parametrize("path", GOOD)
def test_the_good_bodies_are_good(client: httpx.Client, path: str) -> None:
    for body in GOOD[path]:
        body = {**body, "model": None} if "model" in body else body
        assert client.post(path, json=body).status_code == 200


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(bodies())
def test_any_json_has_a_documented_answer(client: httpx.Client, case: tuple[str, Any]) -> None:
    path, body = case
    content = json.dumps(body).encode()
    check_answer(path, client.post(path, content=content, headers=JSON_TYPE))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.sampled_from(sorted(GOOD)), st.binary(max_size=200))
def test_any_bytes_have_a_documented_answer(client: httpx.Client, path: str, content: bytes) -> None:
    check_answer(path, client.post(path, content=content, headers=JSON_TYPE))


@pytest.mark.parametrize("path", GOOD)
@pytest.mark.parametrize(
    "content",
    [
        b"[" * 100_000,
        b'{"inputs":' * 9_000,
        b'{"inputs": [' + b"[" * 50_000 + b"]" * 50_000 + b"]}",
        b'{"input": ["\\ud800", ' + b"[" * 40_000 + b"]" * 40_000 + b"]}",
        b'{"inputs": ' + b"9" * 50_000 + b"}",
        b'{"inputs": "a", "dimensions": ' + b"9" * 5_000 + b"}",
        b'{"inputs": "a", "dimensions": 1e400}',
        b'{"inputs": "a", "dimensions": -0}',
        b'{"inputs": "a", "inputs": 5}',
        b'{"": "a"}',
        b"\xef\xbb\xbf" + b'{"inputs": "a"}',
        '{"inputs": "a"}'.encode("utf-16"),
    ],
    ids=range(12),
)
def test_json_at_its_limits(client: httpx.Client, path: str, content: bytes) -> None:
    check_answer(path, client.post(path, content=content, headers=JSON_TYPE))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(any_text, min_size=1, max_size=12))
def test_any_text_has_a_finite_vector_the_same_in_any_company(client: httpx.Client, texts: list[str]) -> None:
    raw = {"accept": "application/octet-stream"}
    together = client.post("/embed", json={"inputs": texts}, headers=raw)
    assert together.status_code == 200
    alone = [client.post("/embed", json={"inputs": text}, headers=raw).content for text in texts]
    assert together.content == b"".join(alone)
    vectors = np.frombuffer(together.content, "<f4").reshape(len(texts), -1)
    assert np.isfinite(vectors).all()
    lengths = np.linalg.norm(vectors, axis=1)
    assert all(length == 0 or abs(length - 1) < 1e-5 for length in lengths)
    as_json = client.post("/v1/embeddings", json={"input": texts, "model": None, "encoding_format": "float"}).json()
    np.testing.assert_array_equal(np.array([one["embedding"] for one in as_json["data"]], np.float32), vectors)
    scores = client.post("/similarity", json={"inputs": {"left": texts, "right": texts}}).json()
    assert np.isfinite(np.array(scores)).all()
    assert np.abs(scores).max() <= 1
