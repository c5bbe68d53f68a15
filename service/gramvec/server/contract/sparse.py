"""The body of POST /embed_sparse, and of its answer."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

from gramvec.server.contract.schemas import Direction, OneOrManyBody, OneOrManyTexts, Truncate


class SparseRequest(OneOrManyBody):
    """Texts to be embedded sparsely, in the shape of Text Embeddings Inference."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"inputs": ["tv", "a tv"]}]})

    inputs: OneOrManyTexts = Field(description="One text, or a list of texts. The empty string has an empty vector.")
    truncate: Truncate = None
    truncation_direction: Direction | None = Field("right", description="The end at which a long text is cut.")


class SparseValue(BaseModel):
    """One entry of a sparse vector: its column, below 16,777,216, and its value."""

    index: int
    value: float
