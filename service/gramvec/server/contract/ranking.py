"""The bodies of POST /rerank and POST /v1/rerank, and of their answers."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag

from gramvec.server.contract.schemas import Body, Count, Direction, Texts, Truncate


class RerankRequest(Body):
    """A query and texts to be put into order, in the shape of Text Embeddings Inference."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"query": "vehicals", "texts": ["bananas", "vehicles"], "return_text": True}]}
    )

    query: str
    texts: Texts
    raw_scores: bool | None = Field(False, description="Taken and not used: a score is a cosine in any case.")
    return_text: bool | None = Field(False, description="Give each text back beside its score.")
    truncate: Truncate = None
    truncation_direction: Direction | None = Field("right", description="The end at which a long text is cut.")
    model: str | None = Field(None, description="Name of a served model; null for the default.")

    def path(self, index: int) -> str:
        """Where a text stands in the body; the query is the first."""
        return f"texts[{index - 1}]" if index else "query"


class DocumentText(Body):
    """A document that is an object; what it holds beside its text is the client's own."""

    model_config = ConfigDict(extra="ignore")

    text: str


def _kind(value: Any) -> str:
    return "@object" if isinstance(value, dict) else "@text"


Documents = Annotated[
    list[
        Annotated[
            Annotated[str, Tag("@text")] | Annotated[DocumentText, Tag("@object")],
            Discriminator(_kind),
        ]
    ],
    Field(min_length=1, fail_fast=True),
]


class RankRequest(Body):
    """A query and documents to be put into order, in the shape of Jina and Cohere."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"query": "vehicals", "documents": ["bananas", {"text": "vehicles"}], "top_n": 1}]
        }
    )

    query: str
    documents: Documents = Field(description="Texts, or objects with a text.")
    top_n: Count | None = Field(None, description="Only the best so many; all without it.")
    return_documents: bool | None = Field(False, description="Give each document back beside its score.")
    max_tokens_per_doc: Count | None = Field(None, description="Taken and not used: there are no tokens.")
    max_chunks_per_doc: Count | None = Field(None, description="Taken and not used: a document is read as a whole.")
    rank_fields: list[Literal["text"]] | None = Field(None, description="A document is ranked by its text alone.")
    priority: int | None = Field(None, description="Taken and not used.")
    truncation: Truncate = None
    model: str | None = Field(None, description="Name of a served model; null for the default.")

    def texts(self) -> list[str]:
        """The documents' texts."""
        return [one if isinstance(one, str) else one.text for one in self.documents]

    def path(self, index: int) -> str:
        """Where a text stands in the body; the query is the first."""
        if not index:
            return "query"
        inner = "" if isinstance(self.documents[index - 1], str) else ".text"
        return f"documents[{index - 1}]{inner}"


class RankedText(BaseModel):
    """One text of an answer of /rerank."""

    index: int
    score: float
    text: str | None = None


class RankedDocument(BaseModel):
    """One document of an answer of /v1/rerank."""

    index: int
    relevance_score: float
    document: DocumentText | None = None


class RankUsage(BaseModel):
    """Words of the texts: what stands between white space."""

    prompt_tokens: int
    total_tokens: int


class RankAnswer(BaseModel):
    """The answer of /v1/rerank, the best first."""

    id: str
    model: str
    results: list[RankedDocument]
    usage: RankUsage
