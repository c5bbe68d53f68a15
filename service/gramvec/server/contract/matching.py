"""The body of POST /match, and of its answer."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from gramvec.server.contract.schemas import Body, Count, Texts

Share = Annotated[float, Field(ge=0, le=1)]


class MatchRequest(Body):
    """Two lists of texts."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"left": ["canon sd1100", "nikon s8100"], "right": ["nikon s8100 black", "canon sd1100 is"]}]
        }
    )

    left: Texts
    right: Texts
    top: Count | None = Field(1, description="So many of the right texts for a left one, at most.")
    threshold: Share | None = Field(0.3, description="The least score of a match, 0 to 1.")
    one_to_one: bool | None = Field(
        False, description="No text is in two matches: best first, of each one's ten nearest."
    )

    def path(self, index: int) -> str:
        """Where a text stands in the body, the left ones first."""
        return f"left[{index}]" if index < len(self.left) else f"right[{index - len(self.left)}]"


class MatchedTexts(BaseModel):
    """Places of a left and a right text, and the cosine of their weighed n-grams."""

    left: int
    right: int
    score: float


class MatchAnswer(BaseModel):
    """The answer of /match: by left text, then the highest score."""

    matches: list[MatchedTexts]
