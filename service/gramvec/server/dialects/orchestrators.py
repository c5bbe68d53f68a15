"""Paths that KServe and SageMaker ask: health, and invocations, which are POST /."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel

from gramvec.server.errors import unhealthy_error
from gramvec.server.inference import ModelWork
from gramvec.server.model_route import model_router, open_router
from gramvec.server.openapi import ERRORS, Matrix, Scores, errors, ok
from gramvec.server.request import Request
from gramvec.server.responses import Response
from gramvec.server.routes.embed import embed_or_compare
from gramvec.server.schemas import EmbedOrSimilarity

TAG = "operations"
probes, invocations = open_router(TAG), model_router("texts")


class LiveModelServer(BaseModel):
    """The response of /v2/health/live."""

    live: Literal[True] = True


class ReadyModelServer(BaseModel):
    """The response of /v2/health/ready and of /ping."""

    ready: Literal[True] = True


@probes.get("/v2/health/live", responses=ok("The process answers.", LiveModelServer))
async def report_live() -> LiveModelServer:
    """Report liveness as KServe asks for it."""
    return LiveModelServer()


@probes.get("/v2/health/ready", responses=ok("Requests are taken.", ReadyModelServer) | errors(e503="They are not."))
async def report_ready(work: ModelWork) -> ReadyModelServer:
    """Report readiness as KServe asks for it."""
    if reason := work.service.unready:
        raise unhealthy_error(reason)
    return ReadyModelServer()


@probes.get("/ping", responses=ok("Requests are taken.", ReadyModelServer) | errors(e503="They are not."))
async def ping(work: ModelWork) -> ReadyModelServer:
    """Report readiness as SageMaker asks for it."""
    return await report_ready(work)


@invocations.post("/invocations", responses=ok("The response of POST /.", Matrix | Scores) | ERRORS)
async def invoke(request: Request, work: ModelWork, body: EmbedOrSimilarity) -> Response:
    """Embed or compare texts as POST / does, at the path of SageMaker."""
    return await embed_or_compare(request, work, body)
