"""POST /explain: which features made the cosine of two texts."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from gramvec.errors import InputError
from gramvec.explain.contributions import MAX_CHARACTERS, TOP_K, explain
from gramvec.server.contract import (
    JSON,
    Explained,
    ExplainRequest,
    Incoming,
    Reply,
    check,
    openapi,
    read,
    reply,
    to_json,
)
from gramvec.server.routes.shells import through
from gramvec.server.state import Service, prepare, usage_of_turn

router = APIRouter()


EXPLAIN = openapi.operation(ExplainRequest, description="The score and its parts.", schema=openapi.reference(Explained))


@router.post("/explain", openapi_extra=EXPLAIN, responses=openapi.ERRORS)
async def explain_texts(request: Request) -> Response:
    """Which features of two texts made their cosine, and how much each character adds to it.

    The score is that of `/similarity`. Where the model has no bias, the contributions sum to it.
    """
    return await through(explained, request)


async def explained(service: Service, request: Incoming) -> Reply:
    """Answer POST /explain.

    Raises:
        HttpError, GramvecError: what `reply.error_reply` puts into words.
        ClientDisconnect: the client has gone.
    """
    service.check_accepting()
    body = check(await read(request, service.most_values), ExplainRequest)
    served = service.admit(body.model)
    inputs = body.inputs
    texts = [inputs.source_sentence, inputs.target_sentence]
    prepare(served, texts, inputs.path, truncate=False, direction=None)
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

    answer, turn = await service.explanations.run(work)
    return reply([answer], JSON, usage_of_turn(served, texts, turn))
