"""POST /embed and POST /similarity as FastAPI knows them: for /openapi.json and /docs, over the same functions.

Requests to them are answered by the front door, before FastAPI; through here they give the same answers.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from fastapi import APIRouter, Request
from starlette.responses import Response

from gramvec.http import embedding, openapi
from gramvec.http.body import Incoming
from gramvec.http.reply import Reply
from gramvec.http.service import Service

Route = Callable[[Service, Incoming], Awaitable[Reply]]

# Where a reply's `Usage` is left in the ASGI scope, for the headers that the front door adds.
USAGE = "gramvec.usage"

router = APIRouter()


@router.post("/embed", openapi_extra=openapi.EMBED, responses=openapi.ERRORS)
async def embed_texts(request: Request) -> Response:
    """One vector a text, in the order of the inputs; always a list of vectors, also for one text.

    `Accept` chooses the form: `application/json`, `application/octet-stream` (raw little-endian rows, see the headers
    `x-shape` and `x-dtype`), `application/x-npy`, or `application/json; encoding=base64` (a list of such rows).
    """
    return await _through(embedding.embed_texts, request)


@router.post("/similarity", openapi_extra=openapi.SIMILARITY, responses=openapi.ERRORS)
async def compare_texts(request: Request) -> Response:
    """Cosines in [-1, 1]: of one text with many, of pairs, or of every left text with every right one.

    A text without a single known feature scores 0 with everything; the header `x-empty-inputs` names such texts.
    """
    return await _through(embedding.compare_texts, request)


class _Shell:
    """A Starlette request as the routes see it."""

    def __init__(self, request: Request) -> None:
        self.headers = dict(request.headers.raw)
        self.body = request.body
        self.receive = request.receive


async def _through(route: Route, request: Request) -> Response:
    reply = await route(request.app.state.service, _Shell(request))
    request.scope[USAGE] = reply.usage
    return as_response(reply)


def as_response(reply: Reply) -> Response:
    """The same for Starlette."""
    response = Response(b"".join(reply.body), reply.status)
    response.raw_headers = list(reply.headers)
    return response
