"""Paths that KServe and SageMaker ask: health, and invocations, which are POST /."""

from __future__ import annotations

from gramvec.server.errors import unhealthy_error
from gramvec.server.inference import Inference, ModelWork
from gramvec.server.model_route import model_router, open_router
from gramvec.server.openapi import ERRORS, Matrix, Scores, errors, ok
from gramvec.server.request import Request
from gramvec.server.responses import Response, to_json
from gramvec.server.routes.embed import embed_or_compare
from gramvec.server.schemas import EmbedOrSimilarity

TAG = "operations"
probes, invocations = open_router(TAG), model_router("texts")


@probes.get("/v2/health/live", responses=ok("The process answers."))
async def report_live() -> Response:
    """Report liveness as KServe asks for it."""
    return Response([to_json({"live": True})])


@probes.get("/v2/health/ready", responses=ok("Requests are taken.") | errors(e503="They are not."))
async def report_ready(work: ModelWork) -> Response:
    """Report readiness as KServe asks for it."""
    return _ready(work)


@probes.get("/ping", responses=ok("Requests are taken.") | errors(e503="They are not."))
async def ping(work: ModelWork) -> Response:
    """Report readiness as SageMaker asks for it."""
    return _ready(work)


@invocations.post("/invocations", responses=ok("The response of POST /.", Matrix | Scores) | ERRORS)
async def invoke(request: Request, work: ModelWork, body: EmbedOrSimilarity) -> Response:
    """Embed or compare texts as POST / does, at the path of SageMaker."""
    return await embed_or_compare(request, work, body)


def _ready(work: Inference) -> Response:
    if reason := work.service.unready:
        raise unhealthy_error(reason)
    return Response([to_json({"ready": True})])
