"""POST /rerank, /v1/rerank and /v2/rerank: texts in the order of their cosine with a query.

Each text has one vector (a bi-encoder). A cross-encoder reads both texts together, which is better and a thousand times
slower.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, Literal, TypeVar

import numpy as np
from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag

from gramvec.embed.vectors import cosine_matrix
from gramvec.server.request import Request
from gramvec.server.responses import JSON, Response, Usage, to_json
from gramvec.server.routes.openai import count_words
from gramvec.server.schemas import Body, Count, Direction, Texts, Truncate
from gramvec.server.state.memory_budget import ENTRY_BYTES
from gramvec.server.state.models import Served

T = TypeVar("T")

# Texts that are sorted and written on the event loop; more would hold it for over 2 ms.
LOOP_TEXTS = 2_048
SECONDS_A_TEXT = 1e-6


class RerankRequest(Body):
    """A query and texts to rank, in the shape of Text Embeddings Inference."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"query": "vehicals", "texts": ["bananas", "vehicles"], "return_text": True}]}
    )

    query: str
    texts: Texts
    raw_scores: bool | None = Field(False, description="Accepted and ignored: a score is always a cosine.")
    return_text: bool | None = Field(False, description="Return each text beside its score.")
    truncate: Truncate = None
    truncation_direction: Direction | None = Field("right", description="The end at which a long text is cut.")
    model: str | None = Field(None, description="Name of a served model; null for the default.")

    def path(self, index: int) -> str:
        """Return the place of a text in the body; the query is the first."""
        return f"texts[{index - 1}]" if index else "query"


class DocumentText(Body):
    """Document that is an object; its other fields are ignored."""

    model_config = ConfigDict(extra="ignore")

    text: str


def _shape_of_document(value: Any) -> str:
    return "@object" if isinstance(value, dict) else "@text"


Documents = Annotated[
    list[
        Annotated[
            Annotated[str, Tag("@text")] | Annotated[DocumentText, Tag("@object")],
            Discriminator(_shape_of_document),
        ]
    ],
    Field(min_length=1, fail_fast=True),
]


class RankRequest(Body):
    """A query and documents to rank, in the shape of Jina and Cohere."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"query": "vehicals", "documents": ["bananas", {"text": "vehicles"}], "top_n": 1}]
        }
    )

    query: str
    documents: Documents = Field(description="Texts, or objects with a text.")
    top_n: Count | None = Field(None, description="The number of best documents; all without it.")
    return_documents: bool | None = Field(False, description="Return each document beside its score.")
    max_tokens_per_doc: Count | None = Field(None, description="Accepted and ignored: there are no tokens.")
    max_chunks_per_doc: Count | None = Field(None, description="Accepted and ignored: a document is read as a whole.")
    rank_fields: list[Literal["text"]] | None = Field(None, description="A document is ranked only by its text.")
    priority: int | None = Field(None, description="Accepted and ignored.")
    truncation: Truncate = None
    model: str | None = Field(None, description="Name of a served model; null for the default.")

    def texts(self) -> list[str]:
        """Return the texts of the documents."""
        return [one if isinstance(one, str) else one.text for one in self.documents]

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
    document: DocumentText | None = None


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


async def rerank_texts(request: Request, body: RerankRequest) -> Response:
    """Rank texts by their cosine with a query: the scores of `/similarity`, sorted.

    Of equal scores the earlier text comes first. Each text has one vector (a bi-encoder).
    """
    served = request.model(body.model)
    request.check_count(1 + len(body.texts))
    given = [body.query, *body.texts]
    texts = request.prepare(served, given, body.path, truncate=body.truncate, direction=body.truncation_direction)
    order, scores, usage = await _ranked(request, served, texts, returned=bool(body.return_text))

    def encode() -> bytes:
        entries: list[dict[str, Any]] = [
            {"index": index, "score": score} for index, score in zip(order, scores, strict=True)
        ]
        if body.return_text:
            for entry in entries:
                entry["text"] = body.texts[entry["index"]]
        return to_json(entries)

    return Response([await _in_thread(request, encode, len(order))], JSON, usage)


async def rank_documents(request: Request, body: RankRequest) -> Response:
    """Rank documents by their cosine with a query, in the shape that Jina's and Cohere's clients know.

    `usage` counts words.
    """
    served = request.model(body.model)
    documents = body.texts()
    request.check_count(1 + len(documents))
    texts = request.prepare(served, [body.query, *documents], body.path, truncate=body.truncation)
    order, scores, usage = await _ranked(request, served, texts, returned=bool(body.return_documents))
    words = await count_words(texts)

    def encode() -> bytes:
        results: list[dict[str, Any]] = [
            {"index": index, "relevance_score": score}
            for index, score in zip(order[: body.top_n], scores[: body.top_n], strict=True)
        ]
        if body.return_documents:
            for result in results:
                result["document"] = {"text": documents[result["index"]]}
        counted = {"prompt_tokens": words, "total_tokens": words}
        # Cohere's client wants an id; the request's own is in the header x-request-id.
        return to_json({"id": "rerank", "model": served.embedder.name, "results": results, "usage": counted})

    return Response([await _in_thread(request, encode, len(order))], JSON, usage)


async def rank_documents_v2(request: Request, body: RankRequest) -> Response:
    """Rank documents as `/v1/rerank` does, at the path of Cohere's later client."""
    return await rank_documents(request, body)


async def _ranked(
    request: Request, served: Served, texts: list[str], *, returned: bool
) -> tuple[list[int], list[np.float32], Usage]:
    """Return the places and cosines of all but the first text, by falling cosine with the first."""
    request.reserve(len(texts) * ENTRY_BYTES + (sum(map(len, texts)) * 4 if returned else 0))
    embeddings, usage = await request.embed(served, texts)

    def compare() -> tuple[list[int], list[np.float32]]:
        (scores,) = cosine_matrix(embeddings.take(slice(1)), embeddings.take(slice(1, None)))
        order = np.argsort(-scores, kind="stable")
        return order.tolist(), list(scores[order])

    order, scores = await _in_thread(request, compare, len(texts))
    return order, scores, usage


async def _in_thread(request: Request, work: Callable[[], T], texts: int) -> T:
    if texts <= LOOP_TEXTS:
        return work()
    with request.admit(SECONDS_A_TEXT * texts) as job:
        return await request.in_thread(job, work)
