"""What every request passes: the key, the limit on the body, the headers, the last resort.

Pure ASGI. The routes that carry the traffic are answered here, the rest by the application behind: FastAPI costs
more than a short text does, its own middleware decorator alone 205 us a request.
"""

from __future__ import annotations

import asyncio
import hmac
import logging
import os
from collections.abc import Mapping
from itertools import count

from starlette.datastructures import State
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Receive, Scope, Send

from gramvec.errors import GramvecError
from gramvec.http import embedding
from gramvec.http.errors import HttpError, too_large_body, unhealthy
from gramvec.http.exchange import Exchange
from gramvec.http.reply import error_reply
from gramvec.http.routes import Route
from gramvec.http.service import Service

log = logging.getLogger("gramvec.http")

HOT_ROUTES: Mapping[str, Route] = {"/embed": embedding.embed_texts, "/similarity": embedding.compare_texts}
# Probes have no key to show, and the page that explains how to send one must open without it.
PUBLIC_PATHS = frozenset({"/health", "/ready", "/docs", "/docs/oauth2-redirect", "/openapi.json"})
BUG = HttpError(500, "backend", "the service failed on this request; its log says why")


class FrontDoor:
    """The whole ASGI application.

    Args:
        behind: answers every request that is none of a hot route, and is told when the server starts and ends.
        service: what the routes share.
        routes: the hot routes, by path; all are POST.
    """

    def __init__(self, behind: ASGIApp, service: Service, routes: Mapping[str, Route] = HOT_ROUTES) -> None:
        self.behind = behind
        self.state = State({"service": service})
        self._service = service
        self._routes = routes
        self._limit = service.settings.max_body_bytes
        self._keys = [b"Bearer " + key.get_secret_value().encode() for key in service.settings.api_key]
        self._number = count()
        self._id_prefix = _random_prefix()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection's request; anything but HTTP goes straight through."""
        if scope["type"] != "http":
            # The server starts: another process, perhaps, than the one that made this application.
            self._id_prefix = _random_prefix()
            await self.behind(scope, receive, send)
            return
        # 16 random digits and a counter: as unique as a UUID, which costs 3 us.
        new_id = b"%b%08x" % (self._id_prefix, next(self._number))
        exchange = Exchange(self._service, scope, dict(scope["headers"]), receive, send, new_id)
        try:
            await self._serve(scope, exchange)
        except ClientDisconnect:
            pass
        except asyncio.CancelledError:
            if not self._service.stopping:
                raise
            # The grace time is over: the server cancels what a stalled client still holds open.
            if not exchange.started:
                exchange.linger_seconds = 0.0
                await exchange.reply(error_reply(unhealthy("the service is shutting down")))
        except Exception:
            log.exception("request %s failed", exchange.request_id.decode())
            if not exchange.started:
                await exchange.reply(error_reply(BUG))
            elif not exchange.complete:
                raise

    async def _serve(self, scope: Scope, exchange: Exchange) -> None:
        route = self._routes.get(scope["path"]) if scope["method"] == "POST" else None
        try:
            self._check(scope, exchange.headers)
            if route is not None:
                reply = await route(self._service, exchange)
        except (HttpError, GramvecError) as error:
            reply = error_reply(error)
        else:
            if route is None:
                await self.behind(scope, exchange.receive, exchange.send)
                return
        await exchange.reply(reply)

    def _check(self, scope: Scope, headers: Mapping[bytes, bytes]) -> None:
        if self._keys and scope["path"] not in PUBLIC_PATHS and not self._knows(headers.get(b"authorization", b"")):
            raise HttpError(
                401,
                "unauthorized",
                "the API key is missing or wrong; send it as 'Authorization: Bearer KEY'",
                {"WWW-Authenticate": "Bearer"},
            )
        length = headers.get(b"content-length", b"")
        if length.isdigit() and int(length) > self._limit:
            raise too_large_body(self._limit)

    def _knows(self, authorization: bytes) -> bool:
        scheme, _, key = authorization.partition(b" ")
        given = scheme.title() + b" " + key.strip()
        # Every key is compared, in constant time, so that the time taken says nothing about any of them.
        return any([hmac.compare_digest(given, known) for known in self._keys])


def _random_prefix() -> bytes:
    return os.urandom(8).hex().encode()
