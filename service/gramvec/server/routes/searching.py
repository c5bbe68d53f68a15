"""POST /search: the rows of a served index that are nearest to texts."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from fastapi import APIRouter, Request
from starlette.responses import Response

from gramvec.embed.embedder import Embedder
from gramvec.embed.vectors import RawEmbeddings
from gramvec.server.contract import (
    JSON,
    Incoming,
    Reply,
    SearchAnswer,
    SearchRequest,
    check,
    openapi,
    read,
    reply,
    to_json,
    too_large,
)
from gramvec.server.routes.shells import through
from gramvec.server.state import ENTRY_BYTES, Rows, Served, Service, embed, prepare, unless_gone, usage_of

if TYPE_CHECKING:
    from gramvec.search.hybrid import Hit
    from gramvec.search.index import Index, View

Mixed = Callable[["View", Any, Any, str], "list[Hit]"]

router = APIRouter()

# Of all queries of a request together.
MOST_HITS = 100_000
# The same where they are looked at again for shared n-grams: 4 s at worst, in a thread.
MOST_MIXED = 10_000
# Queries whose n-grams are weighed on the event loop; more would hold it for some milliseconds.
LOOP_TEXTS = 64
# A record as it lies in the file, its objects, and its JSON.
RECORD_TIMES = 6

SEARCH = openapi.operation(
    SearchRequest,
    description="For each query its nearest rows, the nearest first.",
    schema=openapi.reference(SearchAnswer),
)


@router.post("/search", openapi_extra=SEARCH, responses=openapi.ERRORS)
async def search_index(request: Request) -> Response:
    """The rows of a served index that are nearest to each query, by cosine; every row is looked at.

    Indexes are made by `gramvec index build` and served with `--index NAME=FILE`.
    """
    return await through(search, request)


async def search(service: Service, request: Incoming) -> Reply:
    """Answer POST /search.

    Raises:
        HttpError, GramvecError: what `reply.error_reply` puts into words.
        ClientDisconnect: the client has gone.
    """
    service.check_accepting()
    body = check(await read(request, service.most_values), SearchRequest)
    searches = service.admit_index(body.index)
    index = searches.served
    given, k, hybrid = body.texts(), body.k if body.k is not None else 10, body.hybrid or 0.0
    looked, most = (_candidates(k), MOST_MIXED) if hybrid else (k, MOST_HITS)
    service.check_count(len(given))
    if len(given) * looked > most:
        raise too_large(f"{len(given)} queries with {looked} rows each are more than {most} rows at once; ask less")
    served = service.admit(index.model)
    mixed = None if not hybrid else _mixed_by(served, index.held, hybrid, k)
    texts = prepare(served, given, body.path, truncate=body.truncate, direction=body.truncation_direction)
    request.reserve(len(given) * k * ENTRY_BYTES)
    answer = await embed(served, texts, request)
    embeddings = await _asked(index.held.asked_with(served.embedder), served, texts, answer.embeddings)
    units = embeddings.units.copy()
    units[embeddings.feature_counts == 0] = 0
    began = time.perf_counter()
    found = await unless_gone(asyncio.ensure_future(searches.find(units, looked, body.where)), request)
    looked_ms = (time.perf_counter() - began) * 1e3
    told = body.return_records is not False
    if told or mixed:
        request.reserve(RECORD_TIMES * sum(some.view.record_bytes(rows) for some in found for rows in some.rows))
    encoded = await asyncio.to_thread(_encoded, index.name, texts, found, mixed, told=told)
    usage = usage_of(served, answer)
    return reply([encoded], JSON, usage._replace(inference_ms=usage.inference_ms + looked_ms))


def _candidates(k: int) -> int:
    from gramvec.search.hybrid import CANDIDATES

    return max(k, CANDIDATES)


async def _asked(asking: Embedder, served: Served, texts: list[str], found: RawEmbeddings) -> RawEmbeddings:
    """The queries as the index wants them: as the served model has them, or with the index's weights of n-grams."""
    if asking is served.embedder:
        return found
    if len(texts) <= LOOP_TEXTS:
        return asking.with_semantic(texts, found)
    return await asyncio.to_thread(asking.with_semantic, texts, found)


def _mixed_by(served: Served, held: Index, hybrid: float, k: int) -> Mixed:
    """What puts the rows of a query in another order. Raises InputError where the model weighs no n-grams."""
    from gramvec.search.hybrid import weights_for

    lexical = weights_for(served.embedder, hybrid, held.lexical)
    assert lexical is not None
    return lambda view, rows, scores, text: view.mixed(rows, scores, text, lexical, hybrid)[:k]


def _encoded(name: str, texts: list[str], found: list[Rows], mixed: Mixed | None, *, told: bool) -> bytes:
    results: list[list[dict[str, Any]]] = []
    asked = iter(texts)
    for some in found:
        for rows, scores, text in zip(some.rows, some.scores, asked, strict=False):
            hits = some.view.hits(rows, scores) if mixed is None else mixed(some.view, rows, scores, text)
            results.append(
                [
                    # As float32 it is written with the digits that it has.
                    {"id": hit.id, "score": np.float32(hit.score), **({"record": hit.record} if told else {})}
                    for hit in hits
                ]
            )
    return to_json({"index": name, "results": results})
