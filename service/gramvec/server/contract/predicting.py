"""The body of POST /predict, and of its answer."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag

from gramvec.server.contract.schemas import Count, Direction, OneOrManyBody, Truncate


def _kind(value: Any) -> str:
    return "@lists" if isinstance(value, list) and value and isinstance(value[0], list) else _one(value)


def _one(value: Any) -> str:
    return "@many" if isinstance(value, list) else "@one"


Alone = Annotated[list[str], Field(min_length=1, max_length=1, fail_fast=True)]
Inputs = Annotated[
    Annotated[str, Tag("@one")]
    | Annotated[list[str], Field(min_length=1, fail_fast=True), Tag("@many")]
    | Annotated[list[Alone], Field(min_length=1, fail_fast=True), Tag("@lists")],
    Discriminator(_kind),
]


class PredictRequest(OneOrManyBody):
    """Texts to be labelled, in the shape of Text Embeddings Inference."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"inputs": "my card is gone"}, {"inputs": [["my card is gone"], ["hello"]]}]}
    )

    inputs: Inputs = Field(description="One text, a list of texts, or a list of lists of one text each.")
    top_k: Count | None = Field(None, description="Only so many labels of each text, the best; all without it.")
    raw_scores: bool | None = Field(False, description="Taken and not used: scores are calibrated in any case.")
    head: str | None = Field(None, description="Name of a served head; null for the first.")
    truncate: Truncate = None
    truncation_direction: Direction | None = Field("right", description="The end at which a long text is cut.")

    @property
    def alone(self) -> bool:
        """Whether it is one text, whose labels are answered without a list around them."""
        return isinstance(self.inputs, str)

    def texts(self) -> list[str]:
        """All texts, in the order in which `path` counts them."""
        return [one if isinstance(one, str) else one[0] for one in super().texts()]

    def path(self, index: int) -> str:
        """Where a text stands in the body."""
        within = "" if isinstance(self.inputs, str) or isinstance(self.inputs[index], str) else "[0]"
        return super().path(index) + within


class LabelScore(BaseModel):
    """A label, and the share of texts with this score that have it."""

    label: str
    score: float
