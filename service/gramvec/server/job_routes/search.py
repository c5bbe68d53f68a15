"""POST /search and /rows: the best documents of a served index, and those of ids, or all of them."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import numpy as np
import orjson
from pydantic import BaseModel, ConfigDict, Field

from gramvec.server.errors import too_large_error
from gramvec.server.inference import ModelWork
from gramvec.server.model_route import model_router
from gramvec.server.openapi import ERRORS, ok
from gramvec.server.responses import Response, to_json
from gramvec.server.schemas import Body, Direction, NonNegative, OneOrManyBody, OneOrManyTexts, PositiveWhole, Truncate
from gramvec.server.state.memory_budget import ENTRY_BYTES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gramvec.embed.embedder import Embedder
    from gramvec.jobs.search.filters import Conditions
    from gramvec.jobs.search.index import Index
    from gramvec.jobs.search.snapshot import Only, Snapshot, TopDocuments
    from gramvec.lexical.demands import Demands
    from gramvec.text.arrays import Floats

# Documents in all queries of a request; each query looks at 100 or more. Rows of a request that asks for them by ids.
MAX_HITS, MIN_LOOKED, MAX_ROWS = 100_000, 100, 10_000
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
    offset: NonNegative | None = Field(
        0, description="How many of the best are left out, for the next page; with k at most 10,000."
    )
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
    """The response of /search: the best documents for each query, the best first.

    total: how many documents meet `where`, of which the queries order those that are near.
    """

    index: str
    total: int
    results: list[list[FoundRow]]


class RowsRequest(Body):
    """Ids of documents; without them a page of all documents."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"limit": 2}, {"ids": ["1", "9"]}]})

    ids: Annotated[list[str], Field(max_length=MAX_ROWS, fail_fast=True)] | None = Field(
        None, description="Of the documents that are wanted; null for a page of all."
    )
    start: NonNegative | None = Field(0, description="Where the page begins: 0, or `next` of the page before.")
    limit: PositiveWhole | None = Field(100, le=MAX_ROWS, description="Rows of a page, 1 to 10,000.")
    index: str | None = Field(None, description="Name of a served index; null for the first.")
    return_records: bool | None = Field(True, description="Return what was stored with each document.")


class StoredRow(BaseModel):
    """A document of an index: its id, and what is stored with it; null where there is none of this id."""

    id: str
    record: dict[str, Any] | None = None


class RowsAnswer(BaseModel):
    """The response of /rows: documents in the order of the ids that were asked for, or as they were added.

    total: of the whole index. next: where the next page begins, null where there is none.
    """

    index: str
    total: int
    rows: list[StoredRow]
    next: int | None


router = model_router("texts")


@router.post("/search", responses=ok("For each query its nearest rows, the nearest first.", SearchAnswer) | ERRORS)
async def search_index(work: ModelWork, body: SearchRequest) -> Response:
    """Search a served index: the best documents for each query, by their letters and meaning.

    Indexes are made by `gramvec index build` and served with `--index NAME=FOLDER`.
    """
    from gramvec.jobs.search.filters import conditions_of
    from gramvec.jobs.search.index import check_page
    from gramvec.lexical.demands import Demands, demands_of

    service = work.service
    index = await service.current_index(body.index)
    held: Index = index.held
    given, only, min_score = body.texts(), body.only, body.min_score or 0.0
    k, offset = body.k if body.k is not None else 10, body.offset or 0
    work.check_count(len(given))
    check_page(k, offset)
    looked = max(offset + k, MIN_LOOKED)
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
    costs = [_cost(texts[piece], len(held), offset + k, only) for piece in pieces]
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
            piece_units = None if units is None else units[piece]
            look = partial(
                _find, snapshot, served.embedder, asked[piece], piece_units, offset + k, conditions, only, min_score
            )
            found = [(best[offset:], scores[offset:]) for best, scores in await job.run(look, cost)]
            reading = _RecordReader(snapshot, found, records=body.return_records is not False)
            while not reading.done:
                work.reserve(RECORD_TIMES * await job.run(reading.read, 0))
            results += reading.results
        encoded = await job.run(
            lambda: to_json({"index": index.name, "total": snapshot.count(conditions), "results": results})
        )
    await work.count_job(job, served, texts if units is None else ())
    return Response([encoded])


@router.post("/rows", responses=ok("Documents with their ids and records.", RowsAnswer) | ERRORS)
async def list_rows(work: ModelWork, body: RowsRequest) -> Response:
    """Return documents of a served index by their ids, or all of them, page by page, in the order of adding.

    A page is of `limit` rows, and has fewer documents where some were removed.
    """
    service = work.service
    index = await service.current_index(body.index)
    served = service.admit(index.model)
    snapshot: Snapshot = index.held.snapshot()
    ids, start, limit = body.ids, body.start or 0, body.limit or 100
    wanted = limit if ids is None else len(ids)
    work.reserve(wanted * ENTRY_BYTES)
    with work.admit("searches", QUERY_COST + 2 * HIT_COST * wanted) as job:
        look = partial(snapshot.page, start, limit) if ids is None else lambda: (snapshot.addresses(ids), None)
        addresses, following = await job.run(look, HIT_COST * wanted)
        there = [address for address in addresses if address is not None]
        reading = _RecordReader(snapshot, [(there, [None] * len(there))], records=body.return_records is not False)
        while not reading.done:
            work.reserve(RECORD_TIMES * await job.run(reading.read, 0))
        rows = reading.results[0]
        if ids is not None:
            by_id = {row["id"]: row for row in rows}
            rows = [by_id.get(given_id, {"id": given_id, "record": None}) for given_id in ids]
        answer = {"index": index.name, "total": snapshot.documents, "rows": rows, "next": following}
        encoded = await job.run(lambda: to_json(answer))
    await work.count_job(job, served)
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
    """Documents of a few queries, with scores or without; a bounded number of bytes of records is read at a time.

    Attributes:
        results: of each query, the documents so far.
    """

    def __init__(
        self, snapshot: Snapshot, found: Sequence[tuple[list[Any], Sequence[float | None]]], *, records: bool
    ) -> None:
        self._snapshot = snapshot
        self._records = records
        self.results: list[list[dict[str, Any]]] = [[] for _ in found]
        self._left = [
            (at, address, score)
            for at, (addresses, scores) in enumerate(found)
            for address, score in zip(addresses, scores, strict=True)
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
            hit: dict[str, Any] = {"id": document.id}
            if score is not None:  # as float32 it is written with the digits that it has
                hit["score"] = np.float32(score)
            if self._records:
                hit["record"] = orjson.Fragment(document.data)
                size += len(document.data)
            self.results[at].append(hit)
        return size
