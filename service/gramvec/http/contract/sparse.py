"""The body of POST /embed_sparse, and of its answer."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

from gramvec.http.contract.schemas import Body, Direction, OneOrManyTexts, Truncate


class SparseRequest(Body):
    """Texts to be embedded sparsely, in the shape of Text Embeddings Inference."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"inputs": ["canon sd1100", "nikon s8100"]}]})

    inputs: OneOrManyTexts = Field(description="One text, or a list of texts. The empty string has an empty vector.")
    truncate: Truncate = None
    truncation_direction: Direction | None = Field("right", description="The end at which a long text is cut.")

    def texts(self) -> list[str]:
        """All texts, in the order in which `path` counts them."""
        return [self.inputs] if isinstance(self.inputs, str) else self.inputs

    def path(self, index: int) -> str:
        """Where a text stands in the body."""
        return "inputs" if isinstance(self.inputs, str) else f"inputs[{index}]"


class SparseValue(BaseModel):
    """One entry of a sparse vector: its column, below 16,777,216, and its value."""

    index: int
    value: float
