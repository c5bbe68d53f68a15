"""POST /search: the nearest rows of a served index."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from gramvec.embed.embedder import Embedder
from gramvec.embed.vectors import RawEmbeddings
from gramvec.server.errors import too_large
from gramvec.server.request import Request
from gramvec.server.responses import JSON, Response, to_json
from gramvec.server.schemas import Count, Direction, OneOrManyBody, OneOrManyTexts, Truncate
from gramvec.server.state.searches import Rows
from gramvec.server.state.served import Served, usage_of
from gramvec.server.state.traffic import ENTRY_BYTES

if TYPE_CHECKING:
    from gramvec.search.hybrid import Hit
    from gramvec.search.index import Index, View

Mixed = Callable[["View", Any, Any, str], "list[Hit]"]

# In all queries of a request.
MOST_HITS = 100_000
# The same for hybrid searches, which look at rows again: 4 s at worst, in a thread.
MOST_MIXED = 10_000
# Queries whose n-grams are weighted on the event loop; more would hold it for some milliseconds.
LOOP_TEXTS = 64
# A record in the file, its objects, and its JSON.
RECORD_TIMES = 6


class SearchRequest(OneOrManyBody):
    """Queries to an index."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"queries": ["lost parcel"], "k": 2}]})

    holds: ClassVar[str] = "queries"

    queries: OneOrManyTexts = Field(description="One text, or a list of texts.")
    k: Count | None = Field(10, description="The number of rows to find for each query, 1 to 10,000.")
    where: dict[str, Any] | None = Field(
        None,
        description="Columns and the value, or list of values, that a row must have there, compared as text; only"
        " columns that the index was built to filter by.",
    )
    hybrid: Annotated[float, Field(ge=0, le=1)] | None = Field(
        0.0,
        description="The weight of the n-grams that a row shares with the query, beside the semantic cosine, among the"
        " 100 nearest rows, or k. The model must have weights of n-grams.",
    )
    index: str | None = Field(None, description="Name of a served index; null for the first.")
    return_records: bool | None = Field(True, description="Return what was stored with each row.")
    truncate: Truncate = None
    truncation_direction: Direction | None = Field("right", description="The end at which a long text is cut.")


class FoundRow(BaseModel):
    """A row of an index: its id, its score (a cosine unless the search is hybrid), and its stored record."""

    id: str
    score: float
    record: dict[str, Any] | None = None


class SearchAnswer(BaseModel):
    """The response of /search: the nearest rows for each query, the nearest first."""

    index: str
    results: list[list[FoundRow]]


async def search_index(request: Request, body: SearchRequest) -> Response:
    """Search a served index: the nearest rows for each query, by cosine; every row is looked at.

    Indexes are made by `gramvec index build` and served with `--index NAME=FILE`.
    """
    service = request.service
    searches = service.admit_index(body.index)
    index = searches.served
    given, k, hybrid = body.texts(), body.k if body.k is not None else 10, body.hybrid or 0.0
    looked, most = (_candidates(k), MOST_MIXED) if hybrid else (k, MOST_HITS)
    request.check_count(len(given))
    if len(given) * looked > most:
        raise too_large(f"{len(given)} queries with {looked} rows each are more than {most} rows at once; ask less")
    served = service.admit(index.model)
    mixed = None if not hybrid else _mixed_by(served, index.held, hybrid, k)
    texts = served.prepare(given, body.path, truncate=body.truncate, direction=body.truncation_direction)
    request.reserve(len(given) * k * ENTRY_BYTES)
    answer = await request.embed(served, texts)
    embeddings = await _asked(index.held.asked_with(served.embedder), served, texts, answer.embeddings)
    units = embeddings.units.copy()
    units[embeddings.feature_counts == 0] = 0
    began = time.perf_counter()
    found = await request.unless_gone(asyncio.ensure_future(searches.find(units, looked, body.where)))
    looked_ms = (time.perf_counter() - began) * 1e3
    told = body.return_records is not False
    if told or mixed:
        request.reserve(RECORD_TIMES * sum(some.view.record_bytes(rows) for some in found for rows in some.rows))
    encoded = await asyncio.to_thread(_encoded, index.name, texts, found, mixed, told=told)
    usage = usage_of(served, answer)
    return Response([encoded], JSON, usage._replace(inference_ms=usage.inference_ms + looked_ms))


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
