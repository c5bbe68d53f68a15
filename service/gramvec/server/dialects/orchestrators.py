"""Paths that KServe and SageMaker ask: health, and invocations, which are POST /."""

from __future__ import annotations

from gramvec.server.errors import unhealthy_error
from gramvec.server.model_route import model_router, open_router
from gramvec.server.openapi import ERRORS, Matrix, Scores, errors, ok
from gramvec.server.request import Request
from gramvec.server.responses import Response, to_json
from gramvec.server.routes.embed import EitherRoute, embed_or_compare
from gramvec.server.schemas import EmbedRequest, SimilarityRequest

TAG = "operations"
probes, invocations = open_router(TAG), model_router("texts", EitherRoute)


@probes.get("/v2/health/live", responses=ok("The process answers."))
async def report_live(request: Request) -> Response:
    """Report liveness as KServe asks for it."""
    return Response([to_json({"live": True})])


@probes.get("/v2/health/ready", responses=ok("Requests are taken.") | errors(e503="They are not."))
async def report_ready(request: Request) -> Response:
    """Report readiness as KServe asks for it."""
    return _ready(request)


@probes.get("/ping", responses=ok("Requests are taken.") | errors(e503="They are not."))
async def ping(request: Request) -> Response:
    """Report readiness as SageMaker asks for it."""
    return _ready(request)


@invocations.post("/invocations", responses=ok("The response of POST /.", Matrix | Scores) | ERRORS)
async def invoke(request: Request, body: EmbedRequest | SimilarityRequest) -> Response:
    """Embed or compare texts as POST / does, at the path of SageMaker."""
    return await embed_or_compare(request, body)


def _ready(request: Request) -> Response:
    if reason := request.service.unready:
        raise unhealthy_error(reason)
    return Response([to_json({"ready": True})])
