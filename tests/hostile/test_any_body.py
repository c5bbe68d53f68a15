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

from hostile.bodies import GOOD
from hostile.bounds import check_answer

JSON_TYPE = {"content-type": "application/json"}

leaves = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20)
any_json = st.recursive(
    leaves, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4)
)
any_text = st.text(st.characters(codec="utf-8"), max_size=300)


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
