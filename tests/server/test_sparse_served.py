"""POST /embed_sparse over real HTTP: counted n-grams in the columns of gramvec.lexical."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import numpy as np
import pytest

import gramvec
from gramvec.server.routes import embed as route
from gramvec.server.settings import Settings
from support.http import asking

TEXTS = ["canon sd1100", "", "Canon  SD1100", "aaaaaa \U0001f642"]


@pytest.fixture(scope="module")
def client(embedder: gramvec.Embedder) -> Iterator[httpx.Client]:
    with asking(Settings(max_texts=300), embedder) as client:
        yield client


def test_a_value_is_how_often_a_text_has_an_ngram(client: httpx.Client) -> None:
    answer = client.post("/embed_sparse", json={"inputs": TEXTS})
    rows = answer.json()
    weighed = gramvec.lexical.fit(TEXTS).embed(TEXTS)
    for text, row, other in zip(TEXTS, rows, weighed, strict=True):
        assert [one["index"] for one in row] == list(other)
        counts = np.array([one["value"] for one in row])
        if text:
            assert np.linalg.norm(counts) == pytest.approx(1)
    # "aaaaaa" with a space around it: " aa" and "aa " once, "aaa" four times.
    ratios = sorted({round(one["value"] / min(other["value"] for other in rows[3]), 3) for one in rows[3]})
    assert ratios == [1, 3, 4]
    assert (rows[1], rows[0]) == ([], rows[2])
    assert client.post("/embed_sparse", json={"inputs": TEXTS[0]}).json() == [rows[0]]
    assert answer.headers["x-compute-characters"] == str(sum(map(len, TEXTS)))


@pytest.mark.parametrize(
    ("body", "status", "sentence"),
    [
        ({}, 422, "inputs is missing"),
        ({"inputs": []}, 422, "inputs is empty"),
        ({"inputs": [1]}, 422, "inputs[0]"),
        ({"inputs": ["a", "q" * 70_000]}, 422, "inputs[1]"),
        ({"inputs": ["a"] * 301}, 413, "301 texts"),
        ({"inputs": ["q" * 60_000] * 17}, 413, "1020000 characters"),
    ],
)
def test_bad_requests_are_one_sentence(client: httpx.Client, body: Any, status: int, sentence: str) -> None:
    answer = client.post("/embed_sparse", json=body)
    assert (answer.status_code, sentence in answer.json()["error"]) == (status, True), answer.text


def test_the_largest_answer_is_what_is_reserved_for_it(client: httpx.Client) -> None:
    numbers = np.random.default_rng(0)
    texts = ["".join(map(chr, numbers.integers(0x4E00, 0x9000, 10_000))) for _ in range(5)]
    answer = client.post("/embed_sparse", json={"inputs": texts})
    assert answer.status_code == 200
    assert len(answer.content) < route.BYTES_A_CHARACTER / 2 * sum(map(len, texts))
