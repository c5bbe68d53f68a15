"""The body of POST /explain, and of its answer."""

from __future__ import annotations

from typing import Annotated

from pydantic import ConfigDict, Field

from gramvec.explain.contributions import MAX_CHARACTERS, MOST_PAIRS, TOP_K
from gramvec.server.contract.schemas import WHOLE, Body


class SourceAndTarget(Body):
    """The two texts."""

    source_sentence: str
    target_sentence: str

    @staticmethod
    def path(index: int) -> str:
        """Where a text stands in the body."""
        return "inputs.target_sentence" if index else "inputs.source_sentence"


class ExplainRequest(Body):
    """Two texts whose cosine is to be explained."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"inputs": {"source_sentence": "vehicals", "target_sentence": "vehicles"}, "top_k": 1}]
        }
    )

    inputs: SourceAndTarget = Field(description=f"Two texts of at most {MAX_CHARACTERS} characters each.")
    top_k: Annotated[int, Field(ge=1, le=MOST_PAIRS), WHOLE] | None = Field(
        TOP_K, description="List so many pairs of features and so many pairs of words, the largest first."
    )
    model: str | None = Field(None, description="Name of a served model; null for the default.")


class ExplainedFeature(Body):
    """A feature and where it stands: code-point offsets into the text as given, of its first occurrence."""

    kind: str
    text: str
    start: int
    end: int
    times: int


class ExplainedPair(Body):
    """What a pair of features adds to the score."""

    source: ExplainedFeature
    target: ExplainedFeature
    contribution: float


class ExplainedWord(Body):
    """A word, which is what stands between white space, and its code-point offsets in the text as given."""

    text: str
    start: int
    end: int


class ExplainedWords(Body):
    """What the features of a pair of words add to the score."""

    source: ExplainedWord
    target: ExplainedWord
    contribution: float


class Explained(Body):
    """A score and what made it: contributions + rest + residual = score."""

    score: float
    residual: float = Field(
        description="What no pair of features explains: the model's bias, and rounding; where the model is more than a "
        "sum of rows, what features do alone."
    )
    rest: float = Field(description="The sum of the pairs that are not listed.")
    coverage: list[float] = Field(
        description="Share of each text's characters, white space aside, that lie in a feature of the vocabulary."
    )
    features: list[ExplainedPair]
    words: list[ExplainedWords] = Field(
        description="The same by words, the largest first; a feature over two words is shared between them by its "
        "characters."
    )
    words_rest: float = Field(description="The sum of the pairs of words that are not listed.")
    characters: list[list[float]] = Field(
        description="For each text a number a code point: the contributions, spread over the characters of features."
    )
