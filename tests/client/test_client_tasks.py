"""gramvec.client beyond vectors, against real servers: search, order, labels, matches, sparse vectors."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_client import DIGEST, SMALL, stranger

import gramvec
from conftest import ROOT
from gramvec.client import AsyncClient, Client, MatchedPair, PredictedLabel, RerankedText
from gramvec.errors import InputError, ServiceError
from gramvec.jobs.classify.head import Head
from gramvec.lexical.sparse import uniform
from gramvec.server.settings import Settings
from support.errors import refused
from support.http import RunningServer, running

pytest.importorskip("tantivy", reason="tantivy is not installed: pip install '.[search]'")
pytest.importorskip("sparse_dot_topn", reason="SciPy is not installed: pip install '.[match]'")

RECORDS = [
    {"text": "lost parcel", "team": "post"},
    {"text": "parcel is late", "team": "post"},
    {"text": "reset my password", "team": "web"},
]
QUERIES = ["parcle lost", "", "pasword", 'café "quoted"\n', "\U0001f642 app", "lost parcel"]
LABELS = ("card", "exchange", "other")


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory, small: gramvec.Embedder) -> gramvec.Index:
    path = tmp_path_factory.mktemp("index") / "things.index"
    return gramvec.Index.build(path, RECORDS, model=small, filter=["team"])


@pytest.fixture(scope="module")
def head(tmp_path_factory: pytest.TempPathFactory, small: gramvec.Embedder) -> tuple[Path, Head]:
    path = tmp_path_factory.mktemp("head") / "x.head"
    made = Head.of(
        small.embed(list(LABELS)) * 8, np.zeros(3, np.float32), labels=LABELS, threshold=0.5,
        model=small.name, digest=small.digest,
    )  # fmt: skip
    made.save(path)
    return path, made


@pytest.fixture(scope="module", params=[{}, SMALL], ids=["limits of every day", "small limits"])
def server(
    request: pytest.FixtureRequest,
    index: gramvec.Index,
    head: tuple[Path, Head],
    small: gramvec.Embedder,
    embedder: gramvec.Embedder,
) -> Iterator[RunningServer]:
    given = {**request.param, "index": (f"things={index.path}",), "head": (f"intents={head[0]}",)}
    # The index's and the head's model is not the default one.
    with running(Settings.model_validate(given), [embedder, small]) as opened:
        yield opened


@pytest.fixture
def client(server: RunningServer) -> Iterator[Client]:
    with Client(server.url) as opened:
        yield opened


def plain(found: list[list[Any]]) -> list[list[tuple[Any, ...]]]:
    return [[(hit.id, pytest.approx(hit.score, abs=1e-6), hit.record) for hit in one] for one in found]


def test_search_is_the_indexs(client: Client, index: gramvec.Index) -> None:
    assert client.search(QUERIES, 2) == plain(index.search(QUERIES, 2))
    narrowed = client.search(iter(QUERIES), where={"team": ["web"]}, index="things")
    assert narrowed == plain(index.search(QUERIES, where={"team": ["web"]}))
    assert client.search([]) == []
    assert [hit.record for hit in client.search(["app"], return_records=False)[0]] == [None] * 3
    assert len(client.search(["x" * 3_000], 1, truncate=True)[0]) == 1


def test_rerank_is_the_embedders(client: Client, embedder: gramvec.Embedder) -> None:
    texts = [*QUERIES, "bananas", "lost parcel"]
    found = client.rerank("parcel", texts)
    # Letters are weighted by the texts of one request, of which small limits make several.
    scores = {one.place: pytest.approx(one.score, abs=0.1) for one in embedder.rerank("parcel", texts)}
    assert dict(found) == scores
    expected = sorted(found, key=lambda one: (-one.score, one.place))
    assert found == expected
    assert client.rerank("parcel", iter(texts), top_n=2) == expected[:2]
    assert client.rerank("parcel", []) == []
    assert isinstance(client.rerank("parcel", texts)[0], RerankedText)


def test_predict_is_the_heads(client: Client, head: tuple[Path, Head], small: gramvec.Embedder) -> None:
    scores = head[1].predict(QUERIES, small.embed(QUERIES))
    expected = [
        [(LABELS[place], pytest.approx(one[place])) for place in np.argsort(-one, kind="stable").tolist()]
        for one in scores
    ]
    assert client.predict(QUERIES) == expected
    found = client.predict(QUERIES, head="intents", top_k=1)
    assert found == [one[:1] for one in expected]
    assert isinstance(found[0][0], PredictedLabel)
    assert client.predict([]) == []


def test_match_is_the_librarys(client: Client) -> None:
    left, right = ["canon sd1100", "nikon s8100"], ["nikon s8100 black", "canon sd1100 is"]
    for options in ({}, {"top": 2, "threshold": 0.0}, {"one_to_one": True}):
        found = gramvec.match(left, right, **options)  # type: ignore[arg-type]
        expected = [
            (a, b, pytest.approx(score))
            for a, b, score in zip(found.left.tolist(), found.right.tolist(), found.scores.tolist(), strict=True)
        ]
        assert client.match(left, iter(right), **options) == expected  # type: ignore[arg-type]
    assert isinstance(client.match(left, right)[0], MatchedPair)
    assert client.match([], right) == client.match(left, []) == []


def test_sparse_vectors_are_the_librarys(client: Client) -> None:
    found, expected = client.embed_sparse(QUERIES), uniform().embed(QUERIES)
    assert found.columns == expected.columns
    for name in ("indptr", "indices", "values"):
        one, other = getattr(found, name), getattr(expected, name)
        assert one.dtype == other.dtype
        assert one.tobytes() == other.tobytes()
    assert len(client.embed_sparse([])) == 0


def test_an_event_loop_has_the_same(server: RunningServer) -> None:
    async def asked() -> None:
        async with AsyncClient(server.url) as waiting:
            with Client(server.url) as client:
                assert await waiting.search(QUERIES, 2, where={"team": "post"}) == client.search(
                    QUERIES, 2, where={"team": "post"}
                )
                assert await waiting.rerank("parcel", QUERIES, top_n=3) == client.rerank("parcel", QUERIES, top_n=3)
                assert await waiting.predict(QUERIES, top_k=2) == client.predict(QUERIES, top_k=2)
                assert await waiting.match(QUERIES[:2], QUERIES[4:]) == client.match(QUERIES[:2], QUERIES[4:])
                assert list(await waiting.embed_sparse(QUERIES)) == list(client.embed_sparse(QUERIES))

    asyncio.run(asked())


def test_what_cannot_be_asked_is_one_sentence(client: Client) -> None:
    for ask, kind, said in (
        (lambda: client.search("hello"), InputError, "wrap it in a list"),
        (lambda: client.search(["a"], 0), InputError, "k:"),
        (lambda: client.search(["a"], 10_001), InputError, "10,000"),
        (lambda: client.search(["a"], index="none"), ServiceError, "no index 'none' is served here"),
        (lambda: client.search(["a"], where={"text": "x"}), InputError, "cannot be narrowed by text"),
        (lambda: client.rerank("a", ["b"], top_n=0), InputError, "top_n"),
        (lambda: client.rerank("a", ["b", None]), InputError, "text 1 is missing"),  # type: ignore[list-item]
        (lambda: client.predict(["a"], head="none"), ServiceError, "no head 'none' is served here"),
        (lambda: client.predict(["a"], top_k=True), InputError, "top_k"),
        (lambda: client.match(["a"], ["b"], threshold=2), InputError, "threshold: must be at most 1"),
        (lambda: client.embed_sparse(["x" * 70_000]), InputError, "text 0 has 70000 characters"),
    ):
        with pytest.raises(kind, match=re.escape(said)) as caught:
            ask()
        assert "\n" not in str(caught.value)


def test_lists_that_no_request_can_hold_are_refused_by_the_service(
    embedder: gramvec.Embedder,
) -> None:
    with running(Settings.model_validate(SMALL), embedder) as server, Client(server.url) as client:
        with refused(ServiceError, "6 texts", "4") as caught:
            client.match(["a"] * 3, ["b"] * 3)
        assert caught.value.status == 413


OTHER_MODEL = {"x-model": "another@123456789012"}


@pytest.mark.parametrize(
    ("body", "ask"),
    [
        ({"index": "i", "results": []}, lambda client: client.search(["a"])),
        ({"index": "i", "results": [[{"id": "1", "score": "high"}]]}, lambda client: client.search(["a"])),
        ({"index": "i", "results": [[{"id": "1", "score": 0}] * 2]}, lambda client: client.search(["a"], 1)),
        ([[{"label": "a", "score": 1}] * 2], lambda client: client.predict(["a"], top_k=1)),
        ([{"label": "a", "score": 1}], lambda client: client.predict(["a"])),
        ({"matches": [{"left": 0, "right": 1, "score": 1}]}, lambda client: client.match(["a"], ["b"])),
        ([[{"index": 2**24, "value": 1}]], lambda client: client.embed_sparse(["a"])),
        ("no", lambda client: client.embed_sparse(["a"])),
    ],
)
def test_a_strangers_answer_is_looked_at(body: Any, ask: Any) -> None:
    with stranger(200, OTHER_MODEL, json.dumps(body).encode()) as url, Client(url) as client:
        with pytest.raises(ServiceError, match="for other texts|something else|other places") as caught:
            ask(client)
        assert "\n" not in str(caught.value)


def test_a_strangers_order_is_looked_at() -> None:
    ours = {"x-model": f"m@{DIGEST[:12]}"}
    for body in ([{"index": 1, "score": 1}], [{"index": 0, "score": 1}] * 2, []):
        said = refused(ServiceError, "other places")
        with stranger(200, ours, json.dumps(body).encode()) as url, Client(url) as client, said:
            client.rerank("a", ["b"])
    said = refused(ServiceError, "another@123456789012")
    with stranger(200, OTHER_MODEL, b"[]") as url, Client(url) as client, said:
        client.rerank("a", ["b"])


def test_the_example_of_the_page_runs(server: RunningServer, capsys: pytest.CaptureFixture[str]) -> None:
    page = (ROOT / "docs" / "quickstart.md").read_text(encoding="utf-8")
    (script,) = re.findall(r"^```python\n(with Client\(url\).*?)^```$", page, re.DOTALL | re.MULTILINE)
    exec(script, {"Client": Client, "url": server.url})
    assert capsys.readouterr().out.split("\n") == [*re.findall(r"# (.*)$", script, re.MULTILINE), ""]
