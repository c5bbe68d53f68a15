"""POST /rerank, /v1/rerank and /v2/rerank: texts in the order of a search for a query, by letters and meaning.

No network reads both texts together: a cross-encoder does, which is better and a thousand times slower.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, Literal, TypeVar

import numpy as np
from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag

from gramvec.embed.reranking import rerank_scores
from gramvec.lexical.top_k import top_k
from gramvec.server.inference import Inference, ModelWork
from gramvec.server.model_route import model_router
from gramvec.server.openapi import ERRORS, V1_ERRORS, ok
from gramvec.server.responses import Response, to_json
from gramvec.server.schemas import (
    Direction,
    LenientBody,
    PositiveWhole,
    RequestedModel,
    TextObject,
    Texts,
    TextsOrObjects,
    Truncate,
)
from gramvec.server.state.memory_budget import ENTRY_BYTES
from gramvec.server.state.models import LoadedModel

T = TypeVar("T")

# In characters of work: longer work runs in a thread; the cost of a compared text, and of an entry of the response.
LOOP_COST, TEXT_COST, ENTRY_COST = 6_000, 16, 3
# Characters of a text that are compared for one of them.
CHARACTERS_COMPARED = 5
# At most: what is kept of a text's n-grams that the query has.
BYTES_A_CHARACTER = 64


class RerankRequest(LenientBody):
    """A query and texts to rank, in the shape of Text Embeddings Inference."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"query": "vehicals", "texts": ["bananas", "vehicles"], "return_text": True}]}
    )

    query: str
    texts: Texts
    raw_scores: bool | None = Field(
        False, description="Scores as the model has them, -1 to 3; else they lie in 0 to 1."
    )
    top_n: PositiveWhole | None = Field(None, description="The number of best texts; all without it.")
    top_k: PositiveWhole | None = Field(None, description="As top_n.")
    return_text: bool | None = Field(False, description="Return each text beside its score.")
    truncate: Truncate = None
    truncation_direction: Direction = "right"
    model: RequestedModel = None

    def path(self, index: int) -> str:
        """Return the place of a text in the body; the query is the first."""
        return f"texts[{index - 1}]" if index else "query"


class RankRequest(LenientBody):
    """A query and documents to rank, in the shape of Jina and Cohere."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"query": "vehicals", "documents": ["bananas", {"text": "vehicles"}], "top_n": 1}]
        }
    )

    query: str
    documents: TextsOrObjects = Field(description="Texts, or objects with a text.")
    top_n: PositiveWhole | None = Field(None, description="The number of best documents; all without it.")
    top_k: PositiveWhole | None = Field(None, description="As top_n, in Voyage's words.")
    raw_scores: bool | None = Field(
        False, description="Scores as the model has them, -1 to 3; else they lie in 0 to 1."
    )
    return_documents: bool | None = Field(False, description="Return each document beside its score.")
    max_tokens_per_doc: PositiveWhole | None = Field(None, description="Accepted and ignored: there are no tokens.")
    max_chunks_per_doc: PositiveWhole | None = Field(
        None, description="Accepted and ignored: a document is read as a whole."
    )
    rank_fields: list[Literal["text"]] | None = Field(None, description="A document is ranked only by its text.")
    priority: int | None = Field(None, description="Accepted and ignored.")
    truncation: Truncate = None
    model: RequestedModel = None

    def texts(self) -> list[str]:
        """Return the texts of the documents."""
        return [document if isinstance(document, str) else document.text for document in self.documents]

    def path(self, index: int) -> str:
        """Return the place of a text in the body; the query is the first."""
        if not index:
            return "query"
        inner = "" if isinstance(self.documents[index - 1], str) else ".text"
        return f"documents[{index - 1}]{inner}"


class RankedText(BaseModel):
    """Ranked text in a response of /rerank."""

    index: int
    score: float
    text: str | None = None


class RankedDocument(BaseModel):
    """Ranked document in a response of /v1/rerank."""

    index: int
    relevance_score: float
    document: TextObject | None = None


class RankUsage(BaseModel):
    """Number of words (text between white space)."""

    prompt_tokens: int
    total_tokens: int


class RankAnswer(BaseModel):
    """The response of /v1/rerank, the best first."""

    id: str
    model: str
    results: list[RankedDocument]
    usage: RankUsage


class VoyageDocument(BaseModel):
    """Ranked document in a response for Voyage's client."""

    index: int
    relevance_score: float
    document: str | None = None


class VoyageAnswer(BaseModel):
    """The response of /v1/rerank to a request with `top_k` or `truncation`, as Voyage's client sends them."""

    object: Literal["list"]
    data: list[VoyageDocument]
    model: str
    usage: RankUsage


RERANKED = ok("The places and scores, the best first.", list[RankedText] | RankAnswer | VoyageAnswer)
RANKED = ok("The documents' places and scores, the best first.", RankAnswer | VoyageAnswer)


def _reranks_or_ranks(value: Any) -> str:
    return "@documents" if isinstance(value, dict) and "documents" in value else "@texts"


# `texts` as Text Embeddings Inference has them, or `documents` as Jina and Cohere.
RerankOrRankRequest = Annotated[
    Annotated[RerankRequest, Tag("@texts")] | Annotated[RankRequest, Tag("@documents")],
    Discriminator(_reranks_or_ranks),
]

router = model_router("texts")
v1 = model_router("as OpenAI")


@router.post("/rerank", responses=RERANKED | ERRORS)
async def rerank_texts(work: ModelWork, body: RerankOrRankRequest) -> Response:
    """Rank texts for a query by the two terms of a search: the share of its letters that a text has, plus the cosine.

    The response has the shape of the request: that of `/v1/rerank` where it has `documents`. A score is 0 to 1; with
    `raw_scores` it is -1 to 3, and the letters depend a little on the other texts. Of equal scores the earlier text is
    first.
    """
    if isinstance(body, RankRequest):
        return await _rank_documents(work, body, nominal=True)
    served = work.model(body.model, nominal=True)
    work.check_count(1 + len(body.texts))
    given = [body.query, *body.texts]
    texts = work.prepare(served, given, body.path, truncate=body.truncate, direction=body.truncation_direction)
    order, scores = await _rank(work, served, texts, body.path, returned=bool(body.return_text))
    scores = scores if body.raw_scores else relevance(scores)
    shown = body.top_n if body.top_n is not None else body.top_k

    def encode() -> bytes:
        entries: list[dict[str, Any]] = [
            {"index": index, "score": score} for index, score in zip(order[:shown], scores[:shown], strict=True)
        ]
        if body.return_text:
            for entry in entries:
                entry["text"] = body.texts[entry["index"]]
        return to_json(entries)

    return Response([await _run(work, encode, ENTRY_COST * len(order))])


@v1.post("/v1/rerank", responses=RANKED | V1_ERRORS)
async def rank_documents(work: ModelWork, body: RankRequest) -> Response:
    """Rank documents for a query as `/rerank` does, in the shape that Jina's and Cohere's clients know.

    `usage` counts words.
    """
    return await _rank_documents(work, body)


async def _rank_documents(work: Inference, body: RankRequest, *, nominal: bool = False) -> Response:
    served = work.model(body.model, nominal=nominal)
    documents = body.texts()
    work.check_count(1 + len(documents))
    texts = work.prepare(served, [body.query, *documents], body.path, truncate=body.truncation)
    order, scores = await _rank(work, served, texts, body.path, returned=bool(body.return_documents))
    scores = scores if body.raw_scores else relevance(scores)
    shown = body.top_n if body.top_n is not None else body.top_k

    def encode() -> bytes:
        results: list[dict[str, Any]] = [
            {"index": index, "relevance_score": score}
            for index, score in zip(order[:shown], scores[:shown], strict=True)
        ]
        if body.return_documents:
            for result in results:
                result["document"] = {"text": documents[result["index"]]}
        counted = {"prompt_tokens": work.words, "total_tokens": work.words}
        if body.truncation is not None or body.top_k is not None:  # Voyage's client, which sends them always
            entries = [
                {**result, "document": documents[result["index"]]} if body.return_documents else result
                for result in results
            ]
            return to_json({"object": "list", "data": entries, "model": served.embedder.name, "usage": counted})
        # Cohere's client wants an id; the request's own is in the header x-request-id.
        return to_json({"id": "rerank", "model": served.embedder.name, "results": results, "usage": counted})

    return Response([await _run(work, encode, ENTRY_COST * len(order))])


@router.post("/v2/rerank", responses=RANKED | ERRORS)
async def rank_documents_v2(work: ModelWork, body: RankRequest) -> Response:
    """Rank documents as `/v1/rerank` does, at the path of Cohere's later client."""
    return await rank_documents(work, body)


def relevance(scores: list[np.float32]) -> list[np.float32]:
    """Return raw scores as values from 0 to 1, in the same order: what clients' thresholds expect.

    The logistic function of four times the distance to 0.6: a raw score of 1.8, which the query itself has, becomes
    0.99, and a raw score of 0 becomes 0.08.
    """
    values = np.asarray(scores, np.float64)
    return list((1 / (1 + np.exp(-4 * (values - 0.6)))).astype(np.float32))


async def _rank(
    work: Inference, served: LoadedModel, texts: list[str], path: Callable[[int], str], *, returned: bool
) -> tuple[list[int], list[np.float32]]:
    """Return the places and scores of all but the first text, by falling score for the first."""
    characters = sum(map(len, texts))
    held = len(texts) * ENTRY_BYTES + characters * BYTES_A_CHARACTER
    work.reserve(held + (characters * 4 if returned else 0))
    embeddings = await work.embed(served, texts, path)
    query, *others = texts

    def compare() -> tuple[list[int], list[np.float32]]:
        scores = rerank_scores(query, others, embeddings, served.embedder.sketch)
        order = top_k(scores, len(scores))
        return order.tolist(), list(scores[order])

    return await _run(work, compare, TEXT_COST * len(texts) + characters // CHARACTERS_COMPARED)


async def _run(work: Inference, compute: Callable[[], T], cost: int) -> T:
    """Return the result of work of this cost, which is done on the event loop if it is little."""
    if cost <= LOOP_COST:
        return compute()
    with work.admit("rankings", cost) as job:
        return await job.run(compute)
