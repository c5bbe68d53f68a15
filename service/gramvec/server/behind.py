"""What is behind the front door: FastAPI, with the routes that carry no traffic, the documents and all errors."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any

from fastapi import FastAPI, Request
from starlette.exceptions import HTTPException
from starlette.responses import Response

from gramvec import __version__
from gramvec.errors import GramvecError
from gramvec.server.contract import HttpError, error_reply, from_starlette, openapi, reason_of
from gramvec.server.middleware import BUG, PUBLIC_PATHS
from gramvec.server.routes import REASON, as_response, routers
from gramvec.server.state import Service


def application(service: Service) -> FastAPI:
    """FastAPI's application over the service, whose life is the front door's."""
    app = FastAPI(
        title="gramvec",
        version=__version__,
        description="Sentence embeddings from character n-grams and words, in the shapes of Text Embeddings Inference"
        " and of OpenAI.",
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        # FastAPI has OpenTelemetry built in, on by default, with exceptions' messages: what we tell is in /metrics.
        telemetry={
            "tracing": False,
            "metrics": False,
            "logs": False,
            "operation_spans": False,
            "auto_configure": False,
        },
    )
    app.state.service = service
    for router in routers():
        app.include_router(router)
    app.add_exception_handler(HttpError, _answer_error)
    app.add_exception_handler(GramvecError, _answer_error)
    app.add_exception_handler(HTTPException, _answer_starlette_error)
    # Starlette raises the error again after this answer, so that the front door puts it into the log.
    app.add_exception_handler(Exception, _answer_bug)
    app.openapi = partial(openapi.describe, app, PUBLIC_PATHS)  # type: ignore[method-assign]
    return app


# Starlette types its handlers by `Exception`; it calls each with the class that it is registered for.
async def _answer_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HttpError | GramvecError)
    return _answer(request, error)


async def _answer_starlette_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    path = request.url.path
    if error.status_code == 405:
        # Starlette names the methods of the path's first route alone.
        error.headers = {"Allow": ", ".join(sorted(_methods(request.app.routes, path)))}
    return _answer(request, from_starlette(error, request.method, path))


def _methods(routes: Iterable[Any], path: str) -> set[str]:
    found: set[str] = set()
    for route in routes:
        if (included := getattr(route, "original_router", None)) is not None:
            found |= _methods(included.routes, path)
        elif route.path_regex.match(path):
            found |= route.methods
    return found


def _answer(request: Request, error: HttpError | GramvecError) -> Response:
    request.scope[REASON] = reason_of(error, stopping=request.app.state.service.stopping)
    return as_response(error_reply(error, request.url.path))


async def _answer_bug(request: Request, error: Exception) -> Response:
    return as_response(error_reply(BUG, request.url.path))
