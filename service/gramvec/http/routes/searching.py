"""POST /search: the rows of a served index that are nearest to texts."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import numpy as np
from fastapi import APIRouter, Request
from starlette.responses import Response

from gramvec.http.contract import (
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
from gramvec.http.models import ENTRY_BYTES, Rows, Service, embed, prepare, unless_gone, usage_of
from gramvec.http.routes.shells import through

router = APIRouter()

# Of all queries of a request together.
MOST_HITS = 100_000
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
    given, k = body.texts(), body.k if body.k is not None else 10
    service.check_count(len(given))
    if len(given) * k > MOST_HITS:
        raise too_large(f"{len(given)} queries with k {k} are more than {MOST_HITS} rows in one answer; ask less")
    served = service.admit(index.model)
    texts = prepare(served, given, body.path, truncate=body.truncate, direction=body.truncation_direction)
    request.reserve(len(given) * k * ENTRY_BYTES)
    answer = await embed(served, texts, request)
    units = answer.embeddings.units.copy()
    units[answer.embeddings.feature_counts == 0] = 0
    began = time.perf_counter()
    found = await unless_gone(asyncio.ensure_future(searches.find(units, k, body.where)), request)
    looked_ms = (time.perf_counter() - began) * 1e3
    told = body.return_records is not False
    if told:
        request.reserve(RECORD_TIMES * sum(some.view.record_bytes(rows) for some in found for rows in some.rows))
    encoded = await asyncio.to_thread(_encoded, index.name, found, told=told)
    usage = usage_of(served, answer)
    return reply([encoded], JSON, usage._replace(inference_ms=usage.inference_ms + looked_ms))


def _encoded(name: str, found: list[Rows], *, told: bool) -> bytes:
    results: list[list[dict[str, Any]]] = []
    for some in found:
        for rows, scores in zip(some.rows, some.scores, strict=True):
            hits = some.view.hits(rows, scores)
            results.append(
                [
                    # As float32 it is written with the digits that it has.
                    {"id": hit.id, "score": np.float32(hit.score), **({"record": hit.record} if told else {})}
                    for hit in hits
                ]
            )
    return to_json({"index": name, "results": results})
