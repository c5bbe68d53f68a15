"""POST /match: the most similar texts of two lists, by their n-grams."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from gramvec.server.errors import too_large
from gramvec.server.request import Request, usage_of_job
from gramvec.server.responses import JSON, Response, to_json
from gramvec.server.schemas import Body, PositiveWhole, Texts
from gramvec.server.state.memory_budget import ENTRY_BYTES

# In all texts of a request: two seconds of a core where each left text shares n-grams with each right one.
MOST_CHARACTERS = 500_000
# Matters only where max_texts is raised.
MOST_PAIRS = 2_000_000
# In the response to one request.
MOST_MATCHES = 100_000
# N-grams of a character, of 16 bytes each in both lists' vectors and as much while they are multiplied.
BYTES_A_CHARACTER = 2 * 32
# Making n-grams, and comparing a left with a right text.
SECONDS_A_CHARACTER = 1e-6
SECONDS_A_PAIR = 1e-6

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
    top: PositiveWhole | None = Field(1, description="The most right texts for each left one.")
    threshold: Share | None = Field(
        None, description="The lowest score of a match, 0 to 1; without one, that of the highest expected F1."
    )
    one_to_one: bool | None = Field(
        False, description="No text is in two matches: the best first, among the ten nearest of each text."
    )

    def path(self, index: int) -> str:
        """Return the place of a text in the body, counted through the left ones first."""
        return f"left[{index}]" if index < len(self.left) else f"right[{index - len(self.left)}]"


class MatchedTexts(BaseModel):
    """Places of a left and a right text, and the probability that they name the same thing."""

    left: int
    right: int
    score: float


class MatchAnswer(BaseModel):
    """The response of /match, by left text, then by falling score."""

    matches: list[MatchedTexts]


async def match_texts(request: Request, body: MatchRequest) -> Response:
    """Match two lists of texts: the most similar right texts of each left one, by rare n-grams and words.

    No model takes part: this is what `gramvec match` does with tables. All pairs of texts are considered.
    """
    service = request.service
    request.check_count(len(body.left) + len(body.right))
    served = service.admit()
    texts = request.prepare(served, [*body.left, *body.right], body.path)
    characters = request.check_characters(texts)
    top = min(body.top or 1, len(body.right))
    n_left, n_right = len(body.left), len(body.right)
    if n_left * n_right > MOST_PAIRS:
        raise too_large(f"{n_left} left and {n_right} right texts are more than {MOST_PAIRS} pairs; send fewer texts")
    if n_left * top > MOST_MATCHES:
        raise too_large(f"{n_left} left texts with top {top} are more than {MOST_MATCHES} matches; ask for fewer")
    request.reserve(BYTES_A_CHARACTER * characters + n_left * top * ENTRY_BYTES)
    left, right = texts[:n_left], texts[n_left:]
    with request.admit(SECONDS_A_CHARACTER * characters + SECONDS_A_PAIR * n_left * n_right) as job:
        encoded = await request.in_thread(
            job, lambda: _matched(left, right, top, body.threshold, bool(body.one_to_one))
        )
    return Response([encoded], JSON, usage_of_job(served, texts, job))


def _matched(left: list[str], right: list[str], top: int, threshold: float | None, one_to_one: bool) -> bytes:
    # It imports SciPy, which no other route needs.
    from gramvec import matching

    found = matching.match(left, right, top=top, threshold=threshold, one_to_one=one_to_one)
    matches = [
        {"left": a, "right": b, "score": score}
        for a, b, score in zip(found.left.tolist(), found.right.tolist(), list(found.scores), strict=True)
    ]
    return to_json({"matches": matches})
