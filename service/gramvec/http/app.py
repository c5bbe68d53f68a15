"""The application: a front door, and FastAPI behind it, around one `Service`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

from fastapi import FastAPI, Request
from starlette.exceptions import HTTPException
from starlette.responses import Response

from gramvec import __version__
from gramvec.embedder import Embedder
from gramvec.errors import GramvecError
from gramvec.http import admin, docs_page, explaining, exposition, openapi, operations, playground, routes
from gramvec.http.errors import HttpError, from_starlette, reason_of
from gramvec.http.front_door import BUG, PUBLIC_PATHS, FrontDoor
from gramvec.http.models import check_names
from gramvec.http.reply import error_reply
from gramvec.http.routes import REASON, as_response
from gramvec.http.service import Service
from gramvec.http.settings import Settings


def create_app(settings: Settings | None = None, embedder: Embedder | Sequence[Embedder] | None = None) -> FrontDoor:
    """An ASGI application; its `state.service` holds the model and says whether it is ready.

    Args:
        settings: None for the defaults.
        embedder: a loaded model to serve, or several, which stay the caller's to close; None loads `settings.model`
            when the application starts, in the background: /health answers meanwhile, /ready says no. An empty
            sequence: they are loaded elsewhere, and this application has none to the end.

    Raises:
        BundleError: two of the models have one name.
    """
    given = embedder if isinstance(embedder, Sequence) else [embedder] if embedder is not None else []
    check_names(given)
    service = Service(settings or Settings(), given)
    return FrontDoor(_application(service, loads=embedder is None), service)


def _application(service: Service, *, loads: bool) -> FastAPI:

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        loading: asyncio.Task[None] | None = None
        if service.given:
            service.attach(*service.given)
        elif loads:
            loading = asyncio.create_task(service.load())
        yield
        service.stop()
        if loading is not None:
            loading.cancel()  # it may read for a long time yet
            await asyncio.wait([loading])
        await service.close()

    app = FastAPI(
        title="gramvec",
        version=__version__,
        description="Sentence embeddings from character n-grams and words, in the shapes of Text Embeddings Inference"
        " and of OpenAI.",
        lifespan=lifespan,
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
    app.include_router(routes.router)
    app.include_router(explaining.router)
    app.include_router(playground.router)
    app.include_router(docs_page.router)
    app.include_router(operations.router)
    app.include_router(admin.router)
    app.include_router(exposition.router)
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
