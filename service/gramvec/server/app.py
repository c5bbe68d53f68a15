"""The application: a front door, and FastAPI behind it, around one `Service`."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING

from starlette.types import Receive, Scope, Send

from gramvec.embed.embedder import Embedder
from gramvec.server.middleware import FrontDoor
from gramvec.server.settings import Settings
from gramvec.server.state import Service, check_aliases, check_names, open_attached

if TYPE_CHECKING:
    from fastapi import FastAPI


def create_app(settings: Settings | None = None, embedder: Embedder | Sequence[Embedder] | None = None) -> FrontDoor:
    """An ASGI application; its `state.service` holds the model and says whether it is ready.

    Args:
        settings: None for the defaults.
        embedder: a loaded model to serve, or several, which stay the caller's to close; None loads `settings.model`
            when the application starts, in the background: /health answers meanwhile, /ready says no. An empty
            sequence: they are loaded elsewhere, and this application has none to the end.

    Raises:
        BundleError: two of the models have one name, or an alias is of none of them.
        InputError: with models, an index or a head of the settings cannot be had.
    """
    given = embedder if isinstance(embedder, Sequence) else [embedder] if embedder is not None else []
    settings = settings or Settings()
    check_names(given)
    if given:
        check_aliases(settings, given)
    service = Service(settings, given, open_attached(settings, given) if given else ())
    return FrontDoor(_Behind(service, loads=embedder is None), service)


class _Behind:
    """The service's life, and FastAPI from the first request for it on.

    Texts and probes never reach it: who serves these alone saves its 15 MB, and 0.2 s of every start.
    """

    def __init__(self, service: Service, *, loads: bool) -> None:
        self._service = service
        self._loads = loads
        self._made: FastAPI | None = None
        self._making: asyncio.Future[FastAPI] | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._live(receive, send)
            return
        made = self._made or await self._application()
        await made(scope, receive, send)

    async def _application(self) -> FastAPI:
        # In a thread, and once for all who wait; a client that goes meanwhile ends nobody's waiting.
        if self._making is None:
            self._making = asyncio.ensure_future(asyncio.to_thread(self._make))
        try:
            self._made = await asyncio.shield(self._making)
        finally:
            if self._making is not None and self._making.done():
                self._making = None
        return self._made

    def _make(self) -> FastAPI:
        from gramvec.server.behind import application

        made = application(self._service)
        if self._service.on_loaded is not None:
            self._service.on_loaded()
        return made

    async def _live(self, receive: Receive, send: Send) -> None:
        service = self._service
        await receive()
        loading: asyncio.Task[None] | None = None
        if service.given:
            service.attach(*service.given, attached=service.given_attached)
        elif self._loads:
            loading = asyncio.create_task(service.load())
        await send({"type": "lifespan.startup.complete"})
        await receive()
        service.stop()
        if loading is not None:
            loading.cancel()  # it may read for a long time yet
            await asyncio.wait([loading])
        await service.close()
        await send({"type": "lifespan.shutdown.complete"})
