"""POST /rerank, POST /v1/rerank and POST /v2/rerank: texts in the order of their cosine with a query.

By one vector a text (a bi-encoder): a cross-encoder reads both together, better and a thousand times slower.
"""

from __future__ import annotations

import asyncio
from typing import Any

import numpy as np
from fastapi import APIRouter, Request
from starlette.responses import Response

from gramvec.embed.vectors import cosine_matrix
from gramvec.server.contract import (
    JSON,
    Incoming,
    RankAnswer,
    RankedText,
    RankRequest,
    Reply,
    RerankRequest,
    Usage,
    check,
    openapi,
    read,
    reply,
    to_json,
)
from gramvec.server.routes.openai import count_words
from gramvec.server.routes.shells import through
from gramvec.server.state import ENTRY_BYTES, Served, Service, embed, prepare, usage_of

router = APIRouter()

# Texts that are sorted and written on the event loop; more would hold it for over 2 ms.
LOOP_TEXTS = 2_048

RERANK = openapi.operation(
    RerankRequest,
    description="The texts' places and scores, the best first.",
    schema=openapi.listed(openapi.reference(RankedText)),
)
RANK = openapi.operation(
    RankRequest, description="The documents' places and scores, the best first.", schema=openapi.reference(RankAnswer)
)


@router.post("/rerank", openapi_extra=RERANK, responses=openapi.ERRORS)
async def rerank_texts(request: Request) -> Response:
    """The texts in the order of their cosine with the query: those that `/similarity` gives, sorted.

    Of equal scores the earlier text comes first. One vector a text is compared (a bi-encoder).
    """
    return await through(rerank, request)


@router.post("/v1/rerank", openapi_extra=RANK, responses=openapi.V1_ERRORS)
async def rank_documents(request: Request) -> Response:
    """The same in the shape that Jina's and Cohere's clients know. `usage` counts words."""
    return await through(rank, request)


@router.post("/v2/rerank", openapi_extra=RANK, responses=openapi.ERRORS)
async def rank_documents_again(request: Request) -> Response:
    """`/v1/rerank`, where Cohere's later client looks for it."""
    return await through(rank, request)


async def rerank(service: Service, request: Incoming) -> Reply:
    """Answer POST /rerank.

    Raises:
        HttpError, GramvecError: what `reply.error_reply` puts into words.
        ClientDisconnect: the client has gone.
    """
    service.check_accepting()
    body = check(await read(request, service.most_values), RerankRequest)
    served = service.admit(body.model)
    service.check_count(1 + len(body.texts))
    given = [body.query, *body.texts]
    texts = prepare(served, given, body.path, truncate=body.truncate, direction=body.truncation_direction)
    order, scores, usage = await _ranked(served, texts, request, told=bool(body.return_text))

    def encode() -> bytes:
        entries: list[dict[str, Any]] = [
            {"index": index, "score": score} for index, score in zip(order, scores, strict=True)
        ]
        if body.return_text:
            for entry in entries:
                entry["text"] = body.texts[entry["index"]]
        return to_json(entries)

    return reply([await _aside(encode, len(order))], JSON, usage)


async def rank(service: Service, request: Incoming) -> Reply:
    """Answer POST /v1/rerank. Raises what `rerank` does."""
    service.check_accepting()
    body = check(await read(request, service.most_values), RankRequest)
    served = service.admit(body.model)
    documents = body.texts()
    service.check_count(1 + len(documents))
    texts = prepare(served, [body.query, *documents], body.path, truncate=body.truncation, direction=None)
    order, scores, usage = await _ranked(served, texts, request, told=bool(body.return_documents))
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

    return reply([await _aside(encode, len(order))], JSON, usage)


async def _ranked(
    served: Served, texts: list[str], request: Incoming, *, told: bool
) -> tuple[list[int], list[np.float32], Usage]:
    """Places and cosines of all but the first text, by falling cosine with that one."""
    request.reserve(len(texts) * ENTRY_BYTES + (sum(map(len, texts)) * 4 if told else 0))
    answer = await embed(served, texts, request)
    embeddings = answer.embeddings

    def compare() -> tuple[list[int], list[np.float32]]:
        (scores,) = cosine_matrix(embeddings.take(slice(1)), embeddings.take(slice(1, None)))
        order = np.argsort(-scores, kind="stable")
        return order.tolist(), list(scores[order])

    order, scores = await _aside(compare, len(texts))
    return order, scores, usage_of(served, answer)


async def _aside(work: Any, texts: int) -> Any:
    return work() if texts <= LOOP_TEXTS else await asyncio.to_thread(work)
