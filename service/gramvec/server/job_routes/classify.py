"""POST /predict: labels of texts, by a head over a model's vectors."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag

from gramvec.embed.vectors import Vectors
from gramvec.jobs.classify.ngrams import BLOCK_CHARACTERS, BYTES_A_CHARACTER
from gramvec.lexical.top_k import top_k_of_rows
from gramvec.server.errors import too_large_error
from gramvec.server.inference import ModelWork
from gramvec.server.model_route import model_router
from gramvec.server.openapi import ERRORS, UNKNOWN_HEADERS, ok
from gramvec.server.responses import Response, list_paths, to_json
from gramvec.server.schemas import Direction, LenientBody, OneOrManyBody, PositiveWhole, Truncate
from gramvec.server.state.memory_budget import ENTRY_BYTES
from gramvec.server.state.models import AttachedFile

# Scores of one request, in 110 MB: 0.8 s of a core for vectors of 300 columns, 1.6 s for 1,024 columns.
MAX_SCORES = 2_000_000
# Products of n-grams with labels in one request: 0.6 s of a core.
MAX_WORK = 400_000_000
# In the response to one request.
MAX_ENTRIES = 200_000


def _kind(value: Any) -> str:
    return "@lists" if isinstance(value, list) and value and isinstance(value[0], list) else _tag_of(value)


def _tag_of(value: Any) -> str:
    return "@many" if isinstance(value, list) else "@one"


SingleTextList = Annotated[list[str], Field(min_length=1, max_length=1, fail_fast=True)]
Inputs = Annotated[
    Annotated[str, Tag("@one")]
    | Annotated[list[str], Field(min_length=1, fail_fast=True), Tag("@many")]
    | Annotated[list[SingleTextList], Field(min_length=1, fail_fast=True), Tag("@lists")],
    Discriminator(_kind),
]


class PredictParameters(LenientBody):
    """Parameters of a prediction, as the Hugging Face client sends them."""

    top_k: PositiveWhole | None = Field(None, description="As top_k beside it.")


class PredictRequest(OneOrManyBody, LenientBody):
    """Texts to label, in the shape of Text Embeddings Inference."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"inputs": "my card is gone"}, {"inputs": [["my card is gone"], ["hello"]]}]}
    )

    inputs: Inputs = Field(description="One text, a list of texts, or a list of lists of one text each.")
    top_k: PositiveWhole | None = Field(None, description="The number of best labels for each text; all without it.")
    parameters: PredictParameters | None = Field(None, description="top_k, in the Hugging Face client's place.")
    raw_scores: bool | None = Field(False, description="Accepted and ignored: scores are always calibrated.")
    head: str | None = Field(None, description="Name of a served head; null for the first.")
    truncate: Truncate = None
    truncation_direction: Direction = "right"

    @property
    def is_single(self) -> bool:
        """True for one text, whose labels come without a list around them."""
        return isinstance(self.inputs, str)

    def texts(self) -> list[str]:
        """Return all texts in the order in which `path` counts them."""
        return [item if isinstance(item, str) else item[0] for item in super().texts()]

    def path(self, index: int) -> str:
        """Return the place of a text in the body."""
        within = "" if isinstance(self.inputs, str) or isinstance(self.inputs[index], str) else "[0]"
        return super().path(index) + within


class LabelScore(BaseModel):
    """A label, and the share of texts with this score that have it."""

    label: str
    score: float


router = model_router("texts")


@router.post(
    "/predict",
    responses=ok(
        "The labels, the likeliest first: a list for one text, a list of such lists for several.",
        list[LabelScore] | list[list[LabelScore]],
        headers=UNKNOWN_HEADERS,
    )
    | ERRORS,
)
async def predict_labels(work: ModelWork, body: PredictRequest) -> Response:
    """Predict the labels of texts with calibrated scores, by a head that `gramvec classify fit` learned.

    The header `x-unknown-inputs` names texts whose best score is below the head's threshold.
    """
    service = work.service
    served_head = service.admit_head(body.head)
    given = body.texts()
    work.check_count(len(given))
    labels = len(served_head.held.labels)
    parameters = body.parameters or PredictParameters()
    shown = min(body.top_k or parameters.top_k or labels, labels)
    if len(given) * labels > MAX_SCORES and len(given) > 1:
        raise too_large_error(f"{len(given)} texts with {labels} labels are over {MAX_SCORES} scores; send fewer texts")
    if len(given) * shown > MAX_ENTRIES:
        raise too_large_error(
            f"{len(given)} texts with {shown} labels are over {MAX_ENTRIES}; ask for fewer with top_k"
        )
    served = service.admit(served_head.model)
    texts = work.prepare(served, given, body.path, truncate=body.truncate, direction=body.truncation_direction)
    products = served_head.held.work(texts)
    if len(texts) > 1 and products > MAX_WORK:
        raise too_large_error(f"{len(texts)} texts with {labels} labels are too much work; send fewer or shorter texts")
    ngrams = min(sum(map(len, texts)), BLOCK_CHARACTERS) * BYTES_A_CHARACTER
    work.reserve(ngrams + len(given) * (4 * labels + shown * (ENTRY_BYTES + served_head.held.longest_label)))
    # A score is a character of work, and so are 200 products.
    with work.admit("predictions", len(given) * (labels + 3 * shown) + products // 200) as job:
        embeddings = await work.embed(served, texts)
        units = embeddings.units
        encoded, unknown = await job.run(lambda: _predict(served_head, texts, units, shown, body.is_single))
    await work.count_job(job, served)
    headers = [(b"x-unknown-inputs", list_paths([body.path(index) for index in unknown]))] if unknown else []
    return Response([encoded], headers=headers)


def _predict(
    served: AttachedFile, texts: list[str], units: Vectors, shown: int, is_single: bool
) -> tuple[bytes, list[int]]:
    head = served.held
    scores = head.predict(texts, units)
    order, best = top_k_of_rows(scores, shown)
    answers = [
        [{"label": head.labels[place], "score": score} for place, score in zip(places, some, strict=True)]
        for places, some in zip(order.tolist(), map(list, best), strict=True)
    ]
    unknown = [row for row, answer in enumerate(head.answers(scores)) if not answer.known]
    return to_json(answers[0] if is_single else answers), unknown
