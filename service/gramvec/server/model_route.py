"""Route of this service: a FastAPI route that bounds, checks, counts and answers its requests in one way.

FastAPI makes its description from the handler's signature. A request reaches the handler in one of two ways. `handle`
is FastAPI's own, with everything that a user may have added: dependencies, overrides, middlewares, exception handlers.
`answer` does the same where there is nothing of that, and costs a third of a short request less.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from contextlib import suppress
from typing import Any, get_type_hints

from fastapi import APIRouter
from fastapi.exception_handlers import http_exception_handler, request_validation_exception_handler
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.requests import Request as BaseRequest
from starlette.responses import Response as BaseResponse
from starlette.routing import Match
from starlette.types import Receive, Scope, Send
from starlette.websockets import WebSocketClose

from gramvec.errors import GramvecError
from gramvec.server.batching.queue import ClientGone
from gramvec.server.errors import (
    HttpError,
    path_of,
    reason_of,
    unhealthy_error,
    unknown_route_error,
    wrong_method_error,
)
from gramvec.server.recording import log_request, record_span
from gramvec.server.request import Document, Request
from gramvec.server.responses import Response, error_response
from gramvec.server.schemas import Body
from gramvec.server.state.service import Service
from gramvec.server.telemetry.metrics import CLIENT_GONE

log = logging.getLogger("gramvec.server")

BUG = HttpError(500, "backend", "the service failed on this request; its log gives the reason")
# Where a scope keeps the `Request` made of it, and Starlette its exception handlers.
OURS, HANDLERS = "gramvec.request", "starlette.exception_handlers"
METHODS = ("DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT")


def service_of(scope: Scope) -> Service:
    """Return the service of an application. Raises HttpError 503 where there is none yet."""
    service = getattr(scope["app"].state, "gramvec", None)
    if isinstance(service, Service):
        return service
    raise unhealthy_error(
        "the lifespan of this application has not run, so no model is loaded; run it around the requests"
    )


class ModelRoute(APIRoute):
    """Route of this service.

    A handler takes the request and, where there is one, the body, in a parameter of that name. `responses` has the
    response with status 200, too, and what describes the route is its docstring: a summary, and the rest.
    """

    needs_key = True

    def __init__(
        self,
        path: str,
        endpoint: Callable[..., Any],
        *,
        responses: Mapping[int | str, Any] | None = None,
        **options: Any,
    ) -> None:
        described = {status: dict(response) for status, response in (responses or {}).items()}
        success = described.get(200, {})
        if "model" in success:
            options["response_model"] = success.pop("model")
        elif "content" in success:
            options["response_class"] = BaseResponse
        if success:
            options["response_description"] = success["description"]
        summary, _, rest = (inspect.getdoc(endpoint) or "").partition("\n")
        options["summary"] = options.get("summary") or summary.rstrip(".")
        options["description"] = options.get("description") or rest.strip() or summary
        options["operation_id"] = options.get("operation_id") or endpoint.__name__
        # One body, or several of which `schema` chooses.
        self.body = get_type_hints(endpoint).get("body")
        super().__init__(path, endpoint, responses=described, **options)

    def document(self, request: Request) -> Awaitable[Document]:
        """Return the body of a request before its schema is looked at."""
        return request.document()

    def schema(self, value: Any) -> type[Body]:
        """Return the schema of this body."""
        assert self.body is not None
        schema: type[Body] = self.body
        return schema

    def read(self, request: Request) -> Awaitable[Document]:
        """Return the body of a request if requests are taken. Raises HttpError."""
        # Before the body is read: a request that was taken up is served, whatever comes later.
        service = request.service
        if service.stopping or service.failure is not None or not service.models:
            service.check_accepting()
        return self.document(request)

    def answer(self, service: Service, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        """Answer a request that only this route has to see."""
        request = Request(service, scope, receive, send, self.path)
        return finish(request, self._answer(request))

    async def _answer(self, request: Request) -> None:
        try:
            request.check(needs_key=self.needs_key)
            document = await self.read(request)
            response = await self.endpoint(request, request.validate(document, self.schema(document.value)))
        except (HttpError, GramvecError) as error:
            response = request.refuse(error)
        await request.respond(response)

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """Return whether this route is that of a request (Starlette): what takes GET takes HEAD (RFC 9110, 9.1)."""
        match, found = super().matches(scope)
        if match is Match.PARTIAL and scope["method"] == "HEAD" and "GET" in (self.methods or ()):
            match = Match.FULL
        return match, found

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request as FastAPI does, with all dependencies and exception handlers of the application."""
        request = scope[OURS] = Request(service_of(scope), scope, receive, send, self.path)
        methods = self.methods or ()
        if scope["method"] == "HEAD" and "GET" in methods:
            scope = {**scope, "method": "GET"}  # the server sends no body in answer to HEAD
        if scope["method"] == "OPTIONS" and "OPTIONS" not in methods:
            allowed = (b"allow", _allow_header(scope).encode())
            await finish(request, request.respond(Response([b""], "", [allowed], 204)))
            return
        if scope["method"] not in methods:
            # A path that needs no key is open for GET and HEAD only.
            needs_key = self.needs_key or scope["method"] not in ("GET", "HEAD")
            await finish(request, refuse(request, _wrong_method_error(scope), needs_key=needs_key))
            return
        handlers, of_statuses = scope.get(HANDLERS, ({}, {}))
        scope[HANDLERS] = {**handlers, **_missing_handlers(handlers)}, of_statuses
        await finish(request, super().handle(scope, request.receive, request.send_described))

    def get_route_handler(self) -> Callable[[BaseRequest], Coroutine[Any, Any, BaseResponse]]:
        """Return what answers a request, with the dependencies of this route."""
        solve = super().get_route_handler()

        async def handler(given: BaseRequest) -> BaseResponse:
            request: Request = given.scope[OURS]
            if given.scope is not request.scope:  # HEAD, which FastAPI took for GET
                request.scope.update({**given.scope, "method": request.method})
            request.check(needs_key=self.needs_key)
            request.receive_by(given.receive)
            if self.body is not None:
                document = await self.read(request)
                if document.cut_at is not None:
                    request.validate(document, self.schema(document.value))
                request.note_ignored(document.value, self.schema(document.value))
                request.give_json(document.value)
            return await solve(request)

        return handler


class OpenRoute(ModelRoute):
    """Route that needs no API key."""

    needs_key = False


def open_router(tag: str) -> APIRouter:
    """Return a router whose routes need no API key."""
    return APIRouter(route_class=OpenRoute, tags=[tag])


def model_router(tag: str, route_class: type[ModelRoute] = ModelRoute) -> APIRouter:
    """Return a router for routes of this service."""
    return APIRouter(route_class=route_class, tags=[tag])


async def finish(request: Request, answering: Coroutine[Any, Any, None]) -> None:
    """Answer a request, count it, and be the last resort for its failures."""
    service = request.service
    try:
        await answering
    except (ClientDisconnect, ClientGone):
        await _respond_to_nobody(request)
    except asyncio.CancelledError:
        if not service.stopping:
            raise
        # The grace time is over: the server cancels what a stalled client still holds open.
        if not request.started:
            await request.respond(request.refuse(unhealthy_error(service.stop_reason)))
    except HttpError as error:
        # The application has a handler for it.
        request.status, request.reason = error.status, reason_of(error, stopping=service.stopping)
        raise
    except Exception as error:
        if error is request.send_error:
            raise
        request.error = error
        handlers = request.app.exception_handlers
        if request.started and request.complete:
            pass
        elif request.started or Exception in handlers or 500 in handlers:
            request.status = 500
            raise
        else:
            await request.respond(request.refuse(BUG))
            request.reason = None
    finally:
        request.release()
        _record(request)


async def _respond_to_nobody(request: Request) -> None:
    """End a request whose client has gone; Starlette's middlewares take a missing response for a failure."""
    if not request.started:
        with suppress(OSError):  # of a server that refuses to send
            await request.respond(Response([b""], "", status=CLIENT_GONE))
    request.status = CLIENT_GONE


def _record(request: Request) -> None:
    """Count a request that has ended, and log it if it failed or if all are logged."""
    if not request.started:
        request.seconds = request.age
    service, status, reason = request.service, request.status, request.reason
    service.metrics.observe_request(request.template, status, request.seconds)
    if request.answered:
        service.metrics.observe_model(request.label, request.timings, request.encode_seconds)
    if reason is not None:
        service.metrics.reject(reason)
    failed = request.error is not None or (reason is None and (status >= 500 or status == 424))
    if failed or service.logs_all:
        log_request(request, failed=failed)
    if service.spans is not None:
        record_span(service.spans, request, failed=failed)


async def refuse(request: Request, error: HttpError, *, needs_key: bool) -> None:
    """Answer a request that has no handler, if its sender may know that."""
    first: HttpError | GramvecError = error
    try:
        request.check(needs_key=needs_key)
    except (HttpError, GramvecError) as earlier:
        first = earlier
    handlers, of_statuses = request.scope.get(HANDLERS, ({}, {}))
    if isinstance(first, HttpError) and (first.status in of_statuses or HttpError not in _missing_handlers(handlers)):
        raise first
    await request.respond(request.refuse(first))


async def answer_no_route(scope: Scope, receive: Receive, send: Send) -> None:
    """Answer a request for a path that has no route (ASGI).

    Clients that join an address and a path leave slashes: //embed and /embed/ are /embed.
    """
    if scope["type"] != "http":
        await WebSocketClose()(scope, receive, send)
        return
    path = _drop_empty_parts(scope["path"])
    if path != scope["path"]:
        plain = {**scope, "path": path, "raw_path": None}
        routes = scope["app"].router.routes
        if any(route.matches(plain)[0] is not Match.NONE for route in routes):
            await scope["app"].router(plain, receive, send)
            return
    request = Request(service_of(scope), scope, receive, send)
    await finish(request, refuse(request, unknown_route_error(scope["path"]), needs_key=True))


async def answer_error(given: BaseRequest, error: Exception) -> BaseResponse:
    """Return the response for an error that a request ended with, also that of a user's own route."""
    request: Request | None = given.scope.get(OURS)
    if isinstance(error, RequestValidationError):
        if request is None:
            return await request_validation_exception_handler(given, error)
        error = _validation_error(given.scope["route"], request, error)
    assert isinstance(error, HttpError | GramvecError)
    return error_response(error, given.scope["path"]) if request is None else request.refuse(error)


def _validation_error(route: ModelRoute, request: Request, error: RequestValidationError) -> HttpError:
    """Return the 422 for what FastAPI has found wrong with a request."""
    first = error.errors()[0]
    if first["loc"][0] == "body" and route.body is not None:
        try:
            request.validate(Document(error.body), route.schema(error.body))
        except HttpError as refusal:
            return refusal
    return HttpError(422, "validation", f"{path_of(first['loc'])}: {first['msg']}", param=path_of(first["loc"]))


# FastAPI's own handlers, in whose place a request of this service has its own shape of errors.
_DEFAULTS = {HTTPException: http_exception_handler, RequestValidationError: request_validation_exception_handler}


def _missing_handlers(handlers: Mapping[Any, Any]) -> dict[Any, Any]:
    """Return handlers of the errors that an application handles in no way of its own."""
    theirs = {kind for kind, handler in handlers.items() if handler not in (_DEFAULTS.get(kind), answer_error)}
    kinds = (HttpError, GramvecError, RequestValidationError)
    return {kind: answer_error for kind in kinds if not theirs.intersection(kind.__mro__)}


def _drop_empty_parts(path: str) -> str:
    """Return a path without empty parts."""
    return "/" + "/".join(part for part in path.split("/") if part)


def _allow_header(scope: Scope) -> str:
    """Return the methods of a path, as the header Allow lists them."""
    routes = scope["app"].router.routes
    allowed = [
        method
        for method in METHODS
        if method == "OPTIONS" or any(route.matches({**scope, "method": method})[0] is Match.FULL for route in routes)
    ]
    return ", ".join(allowed)


def _wrong_method_error(scope: Scope) -> HttpError:
    """Return the 405 for a path that has routes, all of other methods."""
    return wrong_method_error(scope["path"], scope["method"], _allow_header(scope))
