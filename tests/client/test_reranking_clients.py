"""/rerank, /v1/rerank and /v2/rerank as real clients ask them: Cohere's, both of its interfaces, and requests."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest

from gramvec import Embedder
from gramvec.server.settings import settings_from
from support.errors import refused
from support.http import PATIENCE, RunningServer, running

cohere = pytest.importorskip("cohere", reason="make test-integrations installs it")
requests = pytest.importorskip("requests", reason="comes with cohere")

QUERY, DOCUMENTS = "vehicals", ["bananas", "vehicles", "ripe bananas", "cars"]
KEY = "a-key-of-this-test"
MODEL = "rerank-v3.5"


@pytest.fixture(scope="module")
def server(embedder: Embedder) -> Iterator[RunningServer]:
    with running(settings_from({"api_key": (KEY,), "alias": (f"{MODEL}=gramvec-en",)}), embedder) as started:
        yield started


@pytest.fixture(scope="module")
def ranked(embedder: Embedder) -> list[tuple[int, float]]:
    found = embedder.rerank(QUERY, DOCUMENTS)
    return [(one.place, 1 / (1 + math.exp(-4 * (one.score - 0.6)))) for one in found]


@pytest.fixture(scope="module")
def http() -> Iterator[httpx.Client]:
    with httpx.Client(trust_env=False, timeout=PATIENCE) as opened:
        yield opened


@pytest.fixture
def of(server: RunningServer, http: httpx.Client) -> Callable[..., Any]:
    """A client of Cohere's by the name of its class."""

    def made(client: str, key: str = KEY) -> Any:
        return getattr(cohere, client)(api_key=key, base_url=server.url, httpx_client=http, max_retries=0)

    return made


def found(answer: Any) -> list[tuple[int, float]]:
    return [(one.index, one.relevance_score) for one in answer.results]


@pytest.mark.parametrize("client", ["Client", "ClientV2"])
def test_cohere_ranks(of: Callable[..., Any], ranked: list[tuple[int, float]], client: str) -> None:
    asked = of(client)
    answer = asked.rerank(model=MODEL, query=QUERY, documents=DOCUMENTS)
    assert found(answer) == [(place, pytest.approx(score, abs=1e-6)) for place, score in ranked]
    assert answer.id
    assert found(asked.rerank(model=MODEL, query=QUERY, documents=DOCUMENTS, top_n=2)) == found(answer)[:2]


def test_cohere_sends_more_with_its_second_interface(of: Callable[..., Any], ranked: list[tuple[int, float]]) -> None:
    answer = of("ClientV2").rerank(model=MODEL, query=QUERY, documents=DOCUMENTS, max_tokens_per_doc=512, priority=1)
    assert [place for place, _ in found(answer)] == [place for place, _ in ranked]


def test_cohere_sends_objects_with_its_first_interface(of: Callable[..., Any], ranked: list[tuple[int, float]]) -> None:
    documents = [{"text": text, "title": f"title {place}"} for place, text in enumerate(DOCUMENTS)]
    answer = of("Client").rerank(
        query=QUERY, documents=documents, rank_fields=["text"], return_documents=True, max_chunks_per_doc=3
    )
    assert [one.document.text for one in answer.results] == [DOCUMENTS[place] for place, _ in ranked]


@pytest.mark.parametrize("client", ["Client", "ClientV2"])
def test_cohere_raises_its_own_errors(of: Callable[..., Any], client: str) -> None:
    with pytest.raises(cohere.errors.UnauthorizedError):
        of(client, "wrong").rerank(model=MODEL, query=QUERY, documents=DOCUMENTS)
    with refused(cohere.errors.NotFoundError, "not served"):
        of(client).rerank(model="other", query=QUERY, documents=DOCUMENTS)
    # The first client asks below /v1, where a bad request has status 400.
    kind = cohere.errors.BadRequestError if client == "Client" else cohere.errors.UnprocessableEntityError
    with pytest.raises(kind, match="documents is empty"):
        of(client).rerank(model=MODEL, query=QUERY, documents=[])


def test_text_embeddings_inference_is_asked_as_its_page_says(
    server: RunningServer, ranked: list[tuple[int, float]]
) -> None:
    with requests.Session() as session:
        session.trust_env = False
        session.headers["authorization"] = f"Bearer {KEY}"
        body = {"query": QUERY, "texts": DOCUMENTS, "raw_scores": False, "return_text": True, "truncate": True}
        answer = session.post(f"{server.url}/rerank", json=body, timeout=PATIENCE)
    assert answer.json() == [
        {"index": place, "score": pytest.approx(score, abs=1e-6), "text": DOCUMENTS[place]} for place, score in ranked
    ]
