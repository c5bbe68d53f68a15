"""POST /search: the nearest rows of a served index."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, NamedTuple

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from gramvec.embed.embedder import Embedder
from gramvec.embed.vectors import RawEmbeddings
from gramvec.server.errors import too_large
from gramvec.server.request import Request, with_job
from gramvec.server.responses import JSON, Response, to_json
from gramvec.server.schemas import Count, Direction, OneOrManyBody, OneOrManyTexts, Truncate
from gramvec.server.state.memory_budget import ENTRY_BYTES
from gramvec.server.state.models import Served

if TYPE_CHECKING:
    from gramvec.search.hybrid import Hit
    from gramvec.search.index import Index, View

Mixed = Callable[["View", Any, Any, str], "list[Hit]"]

# In all queries of a request.
MOST_HITS = 100_000
# The same for hybrid searches, which look at rows again: 4 s at worst, in a thread.
MOST_MIXED = 10_000
# Queries that are searched together; another request has its turn after them.
PIECE_QUERIES = 8
# One query against one row, what a hit adds, and a row that is compared by its n-grams.
SECONDS_A_ROW = 1.1e-8
SECONDS_A_HIT = 5e-6
SECONDS_A_MIXED_ROW = 4e-4
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
    from gramvec.search.index import check_k

    service = request.service
    index = service.admit_index(body.index)
    held: Index = index.held
    given, k, hybrid = body.texts(), body.k if body.k is not None else 10, body.hybrid or 0.0
    looked, most = (_candidates(k), MOST_MIXED) if hybrid else (k, MOST_HITS)
    request.check_count(len(given))
    if len(given) * looked > most:
        raise too_large(f"{len(given)} queries with {looked} rows each are more than {most} rows at once; ask less")
    served = service.admit(index.model)
    mixed = None if not hybrid else _mixed_by(served, held, hybrid, k)
    texts = request.prepare(served, given, body.path, truncate=body.truncate, direction=body.truncation_direction)
    check_k(looked)
    narrowing = held.narrowing(body.where)
    request.reserve(len(given) * k * ENTRY_BYTES)
    returned = body.return_records is not False
    look_seconds = SECONDS_A_ROW * len(held)
    hit_seconds = (SECONDS_A_MIXED_ROW if hybrid else SECONDS_A_HIT) * looked
    with request.admit((look_seconds + hit_seconds) * len(texts)) as job:
        embedded, usage = await request.embed(served, texts)
        asking = held.asked_with(served.embedder)
        results: list[list[dict[str, Any]]] = []
        view = await request.in_thread(job, partial(held.view, narrowing), 0.0)
        # Others have their turn between two pieces.
        for start in range(0, len(texts), PIECE_QUERIES):
            piece = texts[start : start + PIECE_QUERIES]
            embeddings = embedded.take(slice(start, start + PIECE_QUERIES))
            weighting = None if asking is served.embedder else asking
            look = partial(_look, view, piece, embeddings, weighting, looked)
            found = await request.in_thread(job, look, look_seconds * len(piece))
            if returned or mixed:
                request.reserve(RECORD_TIMES * sum(map(found.view.record_bytes, found.rows)))
            encode = partial(_results, found, piece, mixed, returned=returned)
            results += await request.in_thread(job, encode, hit_seconds * len(piece))
        encoded = await request.in_thread(job, lambda: to_json({"index": index.name, "results": results}))
    return Response([encoded], JSON, with_job(usage, job))


def _candidates(k: int) -> int:
    from gramvec.search.hybrid import CANDIDATES

    return max(k, CANDIDATES)


def _mixed_by(served: Served, held: Index, hybrid: float, k: int) -> Mixed:
    """Return a re-ranking function. Raises InputError where the model has no weights of n-grams."""
    from gramvec.search.hybrid import weights_for

    lexical = weights_for(served.embedder, hybrid, held.lexical)
    assert lexical is not None
    return lambda view, rows, scores, text: view.mixed(rows, scores, text, lexical, hybrid)[:k]


class Found(NamedTuple):
    """Rows int64[q, n] of an index and their cosines float32[q, n], the nearest first, and the view they belong to."""

    view: View
    rows: Any
    scores: Any


def _look(view: View, texts: list[str], embeddings: RawEmbeddings, asking: Embedder | None, k: int) -> Found:
    """Return the nearest rows; `asking` weights the n-grams of queries as the index does."""
    if asking is not None:
        embeddings = asking.with_semantic(texts, embeddings)
    units = np.where(embeddings.feature_counts[:, None] == 0, np.float32(0), embeddings.units)
    return Found(view, *view.nearest(units, k))


def _results(found: Found, texts: list[str], mixed: Mixed | None, *, returned: bool) -> list[list[dict[str, Any]]]:
    results: list[list[dict[str, Any]]] = []
    for text, rows, scores in zip(texts, found.rows, found.scores, strict=True):
        hits = found.view.hits(rows, scores) if mixed is None else mixed(found.view, rows, scores, text)
        results.append(
            [
                # A float32 number is written with only the digits that it has.
                {"id": hit.id, "score": np.float32(hit.score), **({"record": hit.record} if returned else {})}
                for hit in hits
            ]
        )
    return results
