"""The body of POST /search, and of its answer."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from gramvec.http.contract.schemas import Body, Count, Direction, OneOrManyTexts, Truncate


class SearchRequest(Body):
    """Queries to an index."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"queries": ["lost parcel"], "k": 2}]})

    queries: OneOrManyTexts = Field(description="One text, or a list of texts.")
    k: Count | None = Field(10, description="How many rows to find for each query, 1 to 10,000.")
    where: dict[str, Any] | None = Field(
        None,
        description="Columns and the value that a row has to have there, or a list of such, compared as text; of those"
        " that the index was built to filter by.",
    )
    index: str | None = Field(None, description="Name of a served index; null for the first.")
    return_records: bool | None = Field(True, description="Give what was stored with each row.")
    truncate: Truncate = None
    truncation_direction: Direction | None = Field("right", description="The end at which a long text is cut.")

    def texts(self) -> list[str]:
        """All queries, in the order in which `path` counts them."""
        return [self.queries] if isinstance(self.queries, str) else self.queries

    def path(self, index: int) -> str:
        """Where a query stands in the body."""
        return "queries" if isinstance(self.queries, str) else f"queries[{index}]"


class FoundRow(BaseModel):
    """A row of an index: its id, its cosine with the query, and what was stored with it."""

    id: str
    score: float
    record: dict[str, Any] | None = None


class SearchAnswer(BaseModel):
    """The answer of /search: for each query the rows that are nearest, the nearest first."""

    index: str
    results: list[list[FoundRow]]
