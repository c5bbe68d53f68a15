"""POST /match over real HTTP: what gramvec.match finds in two lists."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

import gramvec
from gramvec.server.routes import compare as route
from gramvec.server.settings import Settings
from support.http import asking

pytest.importorskip("sparse_dot_topn", reason="SciPy is not installed: pip install '.[match]'")

LEFT = ["canon sd1100", "nikon s8100", "", "bananas"]
RIGHT = ["Nikon S-8100 black", "powershot sd1100", "nikon s8100"]


@pytest.fixture(scope="module")
def client(embedder: gramvec.Embedder) -> Iterator[httpx.Client]:
    with asking(Settings(max_texts=300), embedder) as client:
        yield client


@pytest.mark.parametrize(
    ("sent", "asked"),
    [
        ({}, {}),
        ({"top": 3, "threshold": 0}, {"top": 3, "threshold": 0}),
        ({"top": None, "threshold": None, "one_to_one": True}, {"one_to_one": True}),
        ({"top": 50, "threshold": 1}, {"top": 3, "threshold": 1}),
    ],
)
def test_it_answers_what_match_finds(client: httpx.Client, sent: dict[str, Any], asked: dict[str, Any]) -> None:
    answer = client.post("/match", json={"left": LEFT, "right": RIGHT, **sent})
    assert answer.status_code == 200
    found = gramvec.match(LEFT, RIGHT, **asked)
    assert answer.json()["matches"] == [
        {"left": left, "right": right, "score": pytest.approx(score)}
        for left, right, score in zip(found.left.tolist(), found.right.tolist(), found.scores.tolist(), strict=True)
    ]
    if not sent:
        assert [(one["left"], one["right"]) for one in answer.json()["matches"]] == [(1, 2), (1, 0)]


@pytest.mark.parametrize(
    ("body", "status", "sentence"),
    [
        ({}, 422, "left is missing"),
        ({"left": ["a"], "right": []}, 422, "right is empty"),
        ({"left": ["a"], "right": [1]}, 422, "right[0]"),
        ({"left": ["a"], "right": ["b", "q" * 70_000]}, 422, "70000"),
        ({"left": ["a"], "right": ["b"], "threshold": 1.1}, 422, "threshold"),
        ({"left": ["a"], "right": ["b"], "threshold": False}, 422, "threshold"),
        ({"left": ["a"], "right": ["b"], "top": 0}, 422, "top"),
        ({"left": ["a"] * 200, "right": ["b"] * 200}, 413, "400 texts"),
        (
            {"left": ["q" * 60_000] * 8, "right": ["q" * 20_001]},
            413,
            "500001 characters",
        ),
    ],
)
def test_bad_requests_are_one_sentence(client: httpx.Client, body: Any, status: int, sentence: str) -> None:
    answer = client.post("/match", json=body)
    assert (answer.status_code, sentence in answer.json()["error"]) == (status, True), answer.text


def test_more_than_one_answer_may_have_is_refused(client: httpx.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(route, "MAX_MATCHES", 11)
    assert client.post("/match", json={"left": LEFT, "right": RIGHT, "top": 2}).status_code == 200
    answer = client.post("/match", json={"left": LEFT, "right": RIGHT, "top": 1000})
    assert (answer.status_code, "11 matches" in answer.json()["error"]) == (413, True), answer.text
    monkeypatch.setattr(route, "MAX_MATCH_PAIRS", 11)
    answer = client.post("/match", json={"left": LEFT, "right": RIGHT})
    assert (answer.status_code, "11 pairs" in answer.json()["error"]) == (413, True), answer.text


def test_without_scipy_it_says_what_to_install(client: httpx.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.split(".")[0] == "scipy"]:
        monkeypatch.setitem(sys.modules, name, None)
    answer = client.post("/match", json={"left": LEFT, "right": RIGHT})
    assert (answer.status_code, "gramvec[match]" in answer.json()["error"]) == (422, True), answer.text
