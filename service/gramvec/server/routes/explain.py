"""POST /explain: the features that made the cosine of two texts."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import ConfigDict, Field

from gramvec.errors import InputError
from gramvec.explain.contributions import MAX_CHARACTERS, MOST_PAIRS, TOP_K, explain
from gramvec.server.request import Request, usage_of_job
from gramvec.server.responses import JSON, Response, to_json
from gramvec.server.schemas import WHOLE, Body

# An explanation of the longest texts takes 0.3 s.
LEAST_SECONDS = 0.001
SECONDS_OF_LONGEST = 0.3


class SourceAndTarget(Body):
    """The two texts of an explanation."""

    source_sentence: str
    target_sentence: str

    @staticmethod
    def path(index: int) -> str:
        """Return the place of a text in the body."""
        return "inputs.target_sentence" if index else "inputs.source_sentence"


class ExplainRequest(Body):
    """Two texts whose cosine to explain."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"inputs": {"source_sentence": "vehicals", "target_sentence": "vehicles"}, "top_k": 1}]
        }
    )

    inputs: SourceAndTarget = Field(description=f"Two texts of at most {MAX_CHARACTERS} characters each.")
    top_k: Annotated[int, Field(ge=1, le=MOST_PAIRS), WHOLE] | None = Field(
        TOP_K, description="The number of pairs of features, and of pairs of words, that are listed, the largest first."
    )
    model: str | None = Field(None, description="Name of a served model; null for the default.")


class ExplainedFeature(Body):
    """A feature and the code-point offsets of its first occurrence in the given text."""

    kind: str
    text: str
    start: int
    end: int
    times: int


class ExplainedPair(Body):
    """A pair of features and what it adds to the score."""

    source: ExplainedFeature
    target: ExplainedFeature
    contribution: float


class ExplainedWord(Body):
    """A word (text between white space) and its code-point offsets in the given text."""

    text: str
    start: int
    end: int


class ExplainedWords(Body):
    """A pair of words and what their features add to the score."""

    source: ExplainedWord
    target: ExplainedWord
    contribution: float


class Explained(Body):
    """A score and its parts: contributions + rest + residual = score."""

    score: float
    residual: float = Field(
        description="The part that no pair of features explains: the model's bias, and rounding; for a model that is "
        "more than a sum of rows, also what features do alone."
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
        description="For each text one number per code point: the contributions, spread over characters of features."
    )


async def explain_texts(request: Request, body: ExplainRequest) -> Response:
    """Explain the cosine of two texts: the features that made it, and what each character adds to it.

    The score is that of `/similarity`. Where the model has no bias, the contributions sum to it.
    """
    served = request.model(body.model)
    inputs = body.inputs
    texts = [inputs.source_sentence, inputs.target_sentence]
    request.prepare(served, texts, inputs.path, truncate=False)
    for index, text in enumerate(texts):
        if len(text) > MAX_CHARACTERS:
            path = inputs.path(index)
            raise InputError(
                f"{path} has {len(text)} characters, and explanations take {MAX_CHARACTERS}: shorten it",
                field=path,
                index=index,
            )

    def work() -> bytes:
        value: Any = explain(served.embedder, *texts, top_k=body.top_k or TOP_K).to_dict()
        return to_json(value)

    share = len(texts[0]) * len(texts[1]) / MAX_CHARACTERS**2
    with request.admit(LEAST_SECONDS + SECONDS_OF_LONGEST * share) as job:
        encoded = await request.in_thread(job, work)
    return Response([encoded], JSON, usage_of_job(served, texts, job))
