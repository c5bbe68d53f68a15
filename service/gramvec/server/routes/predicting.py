"""POST /predict: the labels of texts, by a head over a model's vectors."""

from __future__ import annotations

import numpy as np
from fastapi import APIRouter, Request
from starlette.responses import Response

from gramvec.embed.vectors import Vectors
from gramvec.server.contract import (
    JSON,
    Incoming,
    LabelScore,
    PredictRequest,
    Reply,
    check,
    listed_paths,
    openapi,
    read,
    reply,
    to_json,
    too_large,
)
from gramvec.server.routes.shells import through
from gramvec.server.state import ENTRY_BYTES, Attached, Service, embed, prepare, usage_of

router = APIRouter()

# Scores of one request, in 110 MB: of vectors of 300 columns 0.8 s of a core, of 1,024 columns 1.6 s.
MOST_SCORES = 2_000_000
# Of one request's answer.
MOST_ENTRIES = 200_000

LABELS = openapi.listed(openapi.reference(LabelScore))
PREDICT = openapi.operation(
    PredictRequest,
    description="The labels, the likeliest first: a list for one text, a list of such lists for several.",
    schema={"anyOf": [LABELS, openapi.listed(LABELS)]},
    headers=openapi.UNKNOWN_HEADERS,
)


@router.post("/predict", openapi_extra=PREDICT, responses=openapi.ERRORS)
async def predict_labels(request: Request) -> Response:
    """The labels of texts with calibrated scores, by a head that `gramvec classify fit` learned.

    The header `x-unknown-inputs` names texts whose best score is below the head's threshold.
    """
    return await through(predict, request)


async def predict(service: Service, request: Incoming) -> Reply:
    """Answer POST /predict.

    Raises:
        HttpError, GramvecError: what `reply.error_reply` puts into words.
        ClientDisconnect: the client has gone.
    """
    service.check_accepting()
    body = check(await read(request, service.most_values), PredictRequest)
    served_head = service.admit_head(body.head)
    given = body.texts()
    service.check_count(len(given))
    labels = len(served_head.held.labels)
    told = min(body.top_k or labels, labels)
    if len(given) * labels > MOST_SCORES and len(given) > 1:
        raise too_large(f"{len(given)} texts with {labels} labels are over {MOST_SCORES} scores; send fewer texts")
    if len(given) * told > MOST_ENTRIES:
        raise too_large(f"{len(given)} texts with {told} labels are over {MOST_ENTRIES}; ask for fewer with top_k")
    served = service.admit(served_head.model)
    texts = prepare(served, given, body.path, truncate=body.truncate, direction=body.truncation_direction)
    request.reserve(len(given) * (4 * labels + told * (ENTRY_BYTES + served_head.held.longest_label)))
    answer = await embed(served, texts, request)
    units = answer.embeddings.units
    (encoded, unknown), turn = await service.predictions.run(lambda: _predicted(served_head, units, told, body.alone))
    usage = usage_of(served, answer)
    usage = usage._replace(queue_ms=usage.queue_ms + turn.waited_ms, inference_ms=usage.inference_ms + turn.worked_ms)
    made = reply([encoded], JSON, usage)
    if unknown:
        made.headers.append((b"x-unknown-inputs", listed_paths([body.path(index) for index in unknown])))
    return made


def _predicted(served: Attached, units: Vectors, told: int, alone: bool) -> tuple[bytes, list[int]]:
    head = served.held
    scores = head.predict(units)
    order = np.argsort(-scores, axis=1, kind="stable")[:, :told]
    best = np.take_along_axis(scores, order, 1)
    answers = [
        [{"label": head.labels[place], "score": score} for place, score in zip(places, some, strict=True)]
        for places, some in zip(order.tolist(), map(list, best), strict=True)
    ]
    unknown = [row for row, label in enumerate(head.answers(scores)) if label is None]
    return to_json(answers[0] if alone else answers), unknown
