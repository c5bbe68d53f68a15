"""POST /search: the best documents of a served index."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
import orjson
from pydantic import BaseModel, ConfigDict, Field

from gramvec.server.errors import too_large_error
from gramvec.server.inference import ModelWork
from gramvec.server.model_route import model_router
from gramvec.server.openapi import ERRORS, ok
from gramvec.server.responses import Response, to_json
from gramvec.server.schemas import Direction, OneOrManyBody, OneOrManyTexts, PositiveWhole, Truncate
from gramvec.server.state.memory_budget import ENTRY_BYTES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gramvec.embed.embedder import Embedder
    from gramvec.jobs.search.filters import Conditions
    from gramvec.jobs.search.index import Index
    from gramvec.jobs.search.snapshot import Only, Snapshot, TopDocuments
    from gramvec.lexical.demands import Demands
    from gramvec.text.arrays import Floats

# Documents in all queries of a request; each query looks at 100 or more.
MAX_HITS, MIN_LOOKED = 100_000, 100
# Queries that are searched together; another request has its turn after them.
PIECE_QUERIES = 8
# Stored bytes that are read before the next are counted and other requests have their turn.
PIECE_BYTES = 1 << 20
# While a record is checked, memory holds its bytes and its parsed values, and a copy of the bytes in the response.
RECORD_TIMES = 2
# In characters of work: a query, a character of it that is cut, and a document that is returned.
QUERY_COST, CUT_COST, HIT_COST = 1_600, 2, 66
# For one of them: comparisons of a row with a character of a query, and of meanings, rows that are read, and rows that
# a condition is compared with.
LETTERS_COMPARED, MEANINGS_COMPARED, ROWS_READ, ROWS_WITHIN = 750, 24, 8, 40
# Bytes of a row while conditions are compared with it, and the row is then in a set of bits.
WITHIN_BYTES = 3


class SearchRequest(OneOrManyBody):
    """Queries to an index."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"queries": ["lost parcel"], "k": 2}]})

    holds: ClassVar[str] = "queries"

    queries: OneOrManyTexts = Field(description="One text, or a list of texts.")
    k: PositiveWhole | None = Field(10, description="The number of documents to find for each query, 1 to 10,000.")
    where: dict[str, Any] | None = Field(
        None,
        description="Conditions on columns that the index was built to filter by, all of which hold: a value, a list of"
        ' values one of which a document has, null for none, or bounds as in {"gte": 10, "lt": 20}, and "ne" for not'
        " equal.",
    )
    only: Literal["letters", "meaning"] | None = Field(
        None, description="Compare only letters, or only meaning; null for the sum of both."
    )
    min_score: float | None = Field(0, ge=0, description="Documents with a lower score are left out.")
    literal: bool | None = Field(
        False,
        description='Take -word and "a phrase" in a query as they are, instead of leaving out documents that have the'
        " word, and those that do not have the phrase.",
    )
    index: str | None = Field(None, description="Name of a served index; null for the first.")
    return_records: bool | None = Field(True, description="Return what was stored with each document.")
    truncate: Truncate = None
    truncation_direction: Direction = "right"


class FoundRow(BaseModel):
    """A document of an index: its id, its score, and what is stored with it.

    The score is the cosine of the meaning plus the share of the query's letters that the document has.
    """

    id: str
    score: float
    record: dict[str, Any] | None = None


class SearchAnswer(BaseModel):
    """The response of /search: the best documents for each query, the best first."""

    index: str
    results: list[list[FoundRow]]


router = model_router("texts")


@router.post("/search", responses=ok("For each query its nearest rows, the nearest first.", SearchAnswer) | ERRORS)
async def search_index(work: ModelWork, body: SearchRequest) -> Response:
    """Search a served index: the best documents for each query, by their letters and meaning.

    Indexes are made by `gramvec index build` and served with `--index NAME=FOLDER`.
    """
    from gramvec.jobs.search.filters import conditions_of
    from gramvec.jobs.search.index import check_k
    from gramvec.lexical.demands import Demands, demands_of

    service = work.service
    index = service.admit_index(body.index)
    held: Index = index.held
    given, k, only = body.texts(), body.k if body.k is not None else 10, body.only
    work.check_count(len(given))
    check_k(k)
    looked = max(k, MIN_LOOKED)
    if len(given) * looked > MAX_HITS:
        raise too_large_error(
            f"{len(given)} queries with {looked} documents each are more than {MAX_HITS} documents at once; ask less"
        )
    conditions = conditions_of(held.manifest.filters, body.where)
    served = service.admit(index.model)
    prepared = work.prepare(served, given, body.path, truncate=body.truncate, direction=body.truncation_direction)
    asked = [Demands(text) if body.literal else demands_of(text) for text in prepared]
    texts = [query.text for query in asked]
    work.reserve(len(given) * k * ENTRY_BYTES)
    pieces = [slice(start, start + PIECE_QUERIES) for start in range(0, len(texts), PIECE_QUERIES)]
    costs = [_cost(texts[piece], len(held), k, only) for piece in pieces]
    if conditions:
        costs[0] += len(held) * len(conditions) // ROWS_WITHIN
        work.reserve(WITHIN_BYTES * len(held))
    # Searches without conditions do not wait for those with some, which read a column of all rows.
    with work.admit("narrowed searches" if conditions else "searches", sum(costs)) as job:
        units = None
        if only != "letters":
            embedded = await work.embed(served, texts)
            units = np.where(embedded.feature_counts[:, None] == 0, np.float32(0), embedded.units)
        snapshot = held.snapshot()
        results: list[list[dict[str, Any]]] = []
        # Other requests have their turn between two pieces.
        for piece, cost in zip(pieces, costs, strict=True):
            some = None if units is None else units[piece]
            look = partial(
                _find, snapshot, served.embedder, asked[piece], some, k, conditions, only, body.min_score or 0.0
            )
            found = await job.run(look, cost)
            reading = _RecordReader(snapshot, found, records=body.return_records is not False)
            while not reading.done:
                work.reserve(RECORD_TIMES * await job.run(reading.read, 0))
            results += reading.results
        encoded = await job.run(lambda: to_json({"index": index.name, "results": results}))
    await work.count_job(job, served, texts if units is None else ())
    return Response([encoded])


def _find(
    snapshot: Snapshot, embedder: Embedder, asked: Sequence[Demands], units: Floats | None, k: int,
    conditions: Conditions, only: Only | None, min_score: float,
) -> list[TopDocuments]:  # fmt: skip
    """Return what `Snapshot.find` returns, in a thread that may read all words of a model."""
    from gramvec.jobs.search.index import names_in

    names = () if units is None or only is not None else [names_in(query.text, embedder) for query in asked]
    return snapshot.find(asked, units, k, conditions, only, min_score, names)


def _cost(texts: list[str], rows: int, k: int, only: str | None) -> int:
    """Return the cost of the queries of a piece, in characters of work."""
    from gramvec.lexical.letters import MAX_SEARCHED

    cost = len(texts) * (QUERY_COST + HIT_COST * k)
    if only != "letters":
        cost += rows // ROWS_READ + rows * len(texts) // MEANINGS_COMPARED
    if only != "meaning":
        cost += CUT_COST * sum(map(len, texts))
        cost += rows * sum(min(len(text), MAX_SEARCHED) for text in texts) // LETTERS_COMPARED
    return cost


class _RecordReader:
    """Documents of a few queries; of their records a bounded number of bytes is read at a time.

    Attributes:
        results: of each query, the documents so far.
    """

    def __init__(self, snapshot: Snapshot, found: list[TopDocuments], *, records: bool) -> None:
        self._snapshot = snapshot
        self._records = records
        self.results: list[list[dict[str, Any]]] = [[] for _ in found]
        self._left = [
            (at, address, score)
            for at, hits in enumerate(found)
            for address, score in zip(*hits, strict=True)
        ][::-1]  # fmt: skip

    @property
    def done(self) -> bool:
        return not self._left

    def read(self) -> int:
        """Read some of the documents; return the number of bytes of their records."""
        size = 0
        while self._left and size < PIECE_BYTES:
            at, address, score = self._left.pop()
            document = self._snapshot.document(address)
            # As float32 a score is written with the digits that it has.
            hit = {"id": document.id, "score": np.float32(score)}
            if self._records:
                hit["record"] = orjson.Fragment(document.data)
                size += len(document.data)
            self.results[at].append(hit)
        return size
