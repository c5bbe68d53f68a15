"""The body of POST /search, and of its answer."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

from pydantic import BaseModel, ConfigDict, Field

from gramvec.server.contract.schemas import Count, Direction, OneOrManyBody, OneOrManyTexts, Truncate


class SearchRequest(OneOrManyBody):
    """Queries to an index."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"queries": ["lost parcel"], "k": 2}]})

    holds: ClassVar[str] = "queries"

    queries: OneOrManyTexts = Field(description="One text, or a list of texts.")
    k: Count | None = Field(10, description="How many rows to find for each query, 1 to 10,000.")
    where: dict[str, Any] | None = Field(
        None,
        description="Columns and the value that a row has to have there, or a list of such, compared as text; of those"
        " that the index was built to filter by.",
    )
    hybrid: Annotated[float, Field(ge=0, le=1)] | None = Field(
        0.0,
        description="How much the n-grams that a row shares with the query count, beside what both mean: of the 100"
        " nearest rows, or k. The model has to say what n-grams weigh.",
    )
    index: str | None = Field(None, description="Name of a served index; null for the first.")
    return_records: bool | None = Field(True, description="Give what was stored with each row.")
    truncate: Truncate = None
    truncation_direction: Direction | None = Field("right", description="The end at which a long text is cut.")


class FoundRow(BaseModel):
    """A row of an index: its id, its score, a cosine unless the search is hybrid, and what was stored with it."""

    id: str
    score: float
    record: dict[str, Any] | None = None


class SearchAnswer(BaseModel):
    """The answer of /search: for each query the rows that are nearest, the nearest first."""

    index: str
    results: list[list[FoundRow]]
