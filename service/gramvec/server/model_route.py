"""Route of this service: a FastAPI route that bounds, checks, counts and answers its requests in one way.

FastAPI makes its description from the handler's signature, and every request comes through the whole of FastAPI. Only
where nothing is to be solved, because a route has no dependency but `Inference`, is FastAPI's solver left out: it would
parse the query and the cookies for nobody. Where an inclusion, an override or a user has added a dependency, FastAPI
solves all of them.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from contextlib import suppress
from typing import Any, get_args, get_type_hints

from fastapi import APIRouter, FastAPI, routing
from fastapi.dependencies.models import Dependant
from fastapi.dependencies.utils import get_parameterless_sub_dependant
from fastapi.exception_handlers import http_exception_handler, request_validation_exception_handler
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from pydantic import Discriminator, TypeAdapter
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
    from_gramvec,
    no_write_key_error,
    path_of,
    reason_of,
    unhealthy_error,
    unknown_route_error,
    wrong_method_error,
)
from gramvec.server.inference import Inference, inference
from gramvec.server.recording import log_request, record_span
from gramvec.server.request import Document, Request
from gramvec.server.responses import Response, error_response
from gramvec.server.schemas import Body
from gramvec.server.state.service import Service
from gramvec.server.telemetry.metrics import CLIENT_GONE

log = logging.getLogger("gramvec.server")

BUG = HttpError(500, "backend", "the service failed on this request; its log gives the reason")
# Where a scope keeps the `Request` made of it.
OURS = "gramvec.request"
# The target of OPTIONS for the server as a whole: RFC 9110, section 9.3.7.
SERVER = "*"
METHODS = ("DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT")
# No path of ours is longer, and longer ones are not searched for empty parts.
LONGEST_PATH = 4096


def service_of(scope: Scope) -> Service:
    """Return the service of an application. Raises HTTPException 503 where there is none yet."""
    service = getattr(scope["app"].state, "gramvec", None)
    if isinstance(service, Service):
        return service
    raise HTTPException(
        503, "the lifespan of this application has not run, so no model is loaded; run it around the requests"
    )


class ModelRoute(APIRoute):
    """Route of this service.

    A handler has what it needs in its signature: the body in a parameter of that name, the models as `work`, the
    message as `request`, and parameters of the path, which are texts. It returns a `Response`, or an object of its
    response model. `responses` has the response with status 200, too, and what describes the route is its docstring: a
    summary, and the rest.

    Attributes:
        options: that the route was made with, to make another one of it.
        body: the schema of the body, or a union of several of which the function in its `Discriminator` chooses; None
            where there is none.
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
        self.options = {"responses": responses, **options}
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
        self.body = get_type_hints(endpoint, include_extras=True).get("body")
        self.schema = _chooser(self.body)
        self._is_made = False
        super().__init__(path, endpoint, responses=described, **options)
        self._is_made = True
        self._encode = TypeAdapter(self.response_model or Any).dump_json
        self._known_dependencies = len(self.dependencies)
        # What FastAPI has made for this route has stacks for the ends of dependencies; without any it is left out.
        self._solved_app, self.app = self.app, self._answer_alone

    def check(self, request: Request) -> None:
        """Check all of a request that can be checked before its body is read. Raises HttpError."""
        request.check(needs_key=self.needs_key)

    def document(self, request: Request) -> Awaitable[Document]:
        """Return the body of a request before its schema is looked at."""
        return request.document()

    def read(self, request: Request) -> Awaitable[Document]:
        """Return the body of a request if requests are taken. Raises HttpError."""
        # Before the body is read: a request that was taken up is served, whatever comes later.
        service = request.service
        if service.stopping or service.failure is not None or not service.models:
            service.check_accepting()
        return self.document(request)

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """Return whether this route is that of a request (Starlette): what takes GET takes HEAD (RFC 9110, 9.1)."""
        if scope["type"] != "http":
            return Match.NONE, {}
        if not self.param_convertors:
            # Without a regular expression, of which a request would pass dozens.
            if not scope["path"].endswith(self.path):
                return Match.NONE, {}
            is_alone = scope["path"] == self.path and "fastapi" not in scope and not scope.get("root_path")
            if is_alone and scope["method"] in (self.methods or ()):
                return Match.FULL, {"endpoint": self.endpoint, "path_params": {}, "route": self}
        match, found = super().matches(scope)
        if match is Match.PARTIAL and scope["method"] == "HEAD" and "GET" in (self.methods or ()):
            match = Match.FULL
        return match, found

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request as FastAPI does, count it, and give an error its shape."""
        request = scope[OURS] = Request(service_of(scope), scope, receive, send, self.path)
        if scope["method"] == "HEAD" and "GET" in (self.methods or ()):
            scope = {**scope, "method": "GET"}  # the server sends no body in answer to HEAD
        if len(self.dependencies) != self._known_dependencies:
            self._add_dependencies()
        await finish(request, super().handle(scope, request.receive, request.send_described), self)

    async def _answer_alone(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request of a route that was not included in another router."""
        if not self._has_nothing_to_solve(self.dependant, self.dependency_overrides_provider):
            await self._solved_app(scope, receive, send)
            return
        request: Request = scope[OURS]
        request.receive_by(receive)
        try:
            response = await self._answer(request, self.dependant)
        except (HttpError, GramvecError) as error:
            response = refusal(request, error)
        await response(scope, receive, send)

    def get_route_handler(self) -> Callable[[BaseRequest], Coroutine[Any, Any, BaseResponse]]:
        """Return what answers a request, with the dependencies of this route, or of one inclusion of it (FastAPI)."""
        solve = super().get_route_handler()
        is_included = self._is_made
        # What has replaced FastAPI's solver, as products do that watch requests, is always asked.
        is_replaced = solve.__module__ != APIRoute.__module__ or hasattr(solve, "__wrapped__")
        if not is_included:
            self._is_replaced = is_replaced

        async def handler(given: BaseRequest) -> BaseResponse:
            request: Request = given.scope[OURS]
            if given.scope is not request.scope:  # HEAD, which FastAPI took for GET
                request.scope.update({**given.scope, "method": request.method})
            request.receive_by(given.receive)
            if is_included and not is_replaced:
                inclusion = given.scope.get("fastapi", {}).get("effective_route_context")
                if (
                    inclusion is not None
                    and inclusion.original_route is self
                    and self._has_nothing_to_solve(inclusion.dependant, inclusion.dependency_overrides_provider)
                ):
                    answer: BaseResponse = await self._answer(request, inclusion.dependant)
                    return answer
            self.check(request)
            if self.body is not None:
                document = await self.read(request)
                if document.cut_at is not None:
                    request.validate(document, self.schema(document.value))
                request.note_ignored(document.value, self.schema(document.value))
                request.give_json(document.value)
            try:
                response: BaseResponse = await solve(request)
            except RequestValidationError as error:
                if RequestValidationError in own_handlers(request.app):
                    raise
                raise self._validation_error(request, error) from None
            return response

        return handler

    def _has_nothing_to_solve(self, dependant: Dependant, provider: Any) -> bool:
        """Return True where no dependency is to be solved but ours, and nobody watches how FastAPI solves them."""
        if self._is_replaced or getattr(provider, "dependency_overrides", None):
            return False
        # A generator would cost a tenth of what the whole of this route does.
        return not [given for given in dependant.dependencies if given.call is not inference or given.dependencies]

    async def _answer(self, request: Request, dependant: Dependant) -> BaseResponse:
        """Return the response of the handler, whose parameters are the request's, the body, and the models."""
        self.check(request)
        # Below a prefix of a user's there are others in the path.
        in_path = request.scope["path_params"]
        values: dict[str, Any] = {field.name: in_path[field.alias] for field in dependant.path_params}
        if self.body is not None:
            document = await self.read(request)
            values["body"] = request.validate(document, self.schema(document.value))
        if dependant.request_param_name is not None:
            values[dependant.request_param_name] = request
        for given in dependant.dependencies:
            assert given.name is not None
            values[given.name] = Inference(request)
        # By its name in FastAPI, where products that watch requests put a function of their own.
        made = await routing.run_endpoint_function(dependant=dependant, values=values, is_coroutine=True)
        return made if isinstance(made, BaseResponse) else Response([self._encode(made)])

    def _add_dependencies(self) -> None:
        """Have FastAPI solve what was added to `dependencies` since the route was made."""
        for added in self.dependencies[self._known_dependencies :]:
            given = get_parameterless_sub_dependant(depends=added, path=self.path_format)
            self.dependant.dependencies.insert(0, given)
        self._known_dependencies = len(self.dependencies)

    def _validation_error(self, request: Request, error: RequestValidationError) -> HttpError:
        """Return the 422 for what FastAPI has found wrong with a request."""
        first = error.errors()[0]
        if first["loc"][0] == "body" and self.body is not None:
            try:
                request.validate(Document(error.body), self.schema(error.body))
            except HttpError as refusal:
                return refusal
        return HttpError(422, "validation", f"{path_of(first['loc'])}: {first['msg']}", param=path_of(first["loc"]))

    def has_other_methods(self, request: Request, error: HTTPException) -> bool:
        """Return True for FastAPI's error of a method that this path does not take."""
        return error.status_code == 405 and not request.started and request.method not in (self.methods or ())

    async def refuse_method(self, request: Request) -> None:
        """Answer a request of a method that this path does not take, or OPTIONS."""
        allowed = _allow_header(request.scope)
        if request.method == "OPTIONS":
            await request.respond(_methods_response(allowed))
            return
        # A path that needs no key is open for GET and HEAD only.
        needs_key = self.needs_key or request.method not in ("GET", "HEAD")
        await refuse(request, wrong_method_error(request.scope["path"], request.method, allowed), needs_key=needs_key)


class OpenRoute(ModelRoute):
    """Route that needs no API key."""

    needs_key = False


class WriteRoute(ModelRoute):
    """Route that changes an index, and needs the key for that in the place of an API key."""

    def check(self, request: Request) -> None:
        """Check all of a request that can be checked before its body is read. Raises HttpError."""
        keys = request.service.write_auth
        if keys is None:
            request.check(needs_key=True)
            raise no_write_key_error()
        request.check_key(keys)
        request.check(needs_key=False)


def open_router(tag: str) -> APIRouter:
    """Return a router whose routes need no API key."""
    return APIRouter(route_class=OpenRoute, tags=[tag])


def model_router(tag: str, route_class: type[ModelRoute] = ModelRoute) -> APIRouter:
    """Return a router for routes of this service."""
    return APIRouter(route_class=route_class, tags=[tag])


def _chooser(body: Any) -> Callable[[Any], type[Body]]:
    """Return the function that chooses the schema of a body, which the union of schemas names for FastAPI, too."""
    marks = get_args(body)[1:] if hasattr(body, "__metadata__") else ()
    choose: Any = next((mark.discriminator for mark in marks if isinstance(mark, Discriminator)), None)
    if choose is None:
        return lambda value: body
    schemas = {get_args(each)[1].tag: get_args(each)[0] for each in get_args(get_args(body)[0])}
    return lambda value: schemas[choose(value)]


async def finish(request: Request, answering: Coroutine[Any, Any, None], route: ModelRoute | None = None) -> None:
    """Answer a request, count it, and be the last resort for its failures."""
    try:
        await answering
    except (Exception, asyncio.CancelledError) as error:
        await _recover(request, error, route)
    finally:
        request.release()
        _record(request)


async def _recover(request: Request, error: BaseException, route: ModelRoute | None) -> None:
    """Answer a request that has ended with an error; raises what others are to answer."""
    if isinstance(error, HTTPException) and route is not None and route.has_other_methods(request, error):
        try:
            await route.refuse_method(request)
        except (HttpError, GramvecError) as refused:
            error = refused
        else:
            return
    if isinstance(error, HttpError | GramvecError):
        await request.respond(refusal(request, error))
    elif isinstance(error, ClientDisconnect | ClientGone):
        await _respond_to_nobody(request)
    elif isinstance(error, asyncio.CancelledError):
        if not request.service.stopping:
            raise error
        # The grace time is over: the server cancels what a stalled client still holds open.
        if not request.started:
            await request.respond(request.refuse(unhealthy_error(request.service.stop_reason)))
    else:
        await _answer_failure(request, error)


async def _answer_failure(request: Request, error: BaseException) -> None:
    """Answer a request that nobody foresaw would fail; raises what is the server's or the application's to answer."""
    if error in (request.send_error, request.theirs):
        raise error
    if isinstance(error, HTTPException):  # as a limit of FastAPI's on bodies raises it
        request.status = error.status_code
        raise error
    assert isinstance(error, Exception)
    request.error = error
    handlers = request.app.exception_handlers
    if request.started and request.complete:
        pass
    elif request.started or Exception in handlers or 500 in handlers:
        request.status = 500
        raise error
    else:
        await request.respond(request.refuse(BUG))
        request.reason = None


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


def refusal(request: Request, error: HttpError | GramvecError) -> Response:
    """Return the response for an error; raises what the application has a handler of its own for, in its place."""
    request.theirs = _for_own_handler(request.app, error)
    if request.theirs is None:
        return request.refuse(error)
    shown = from_gramvec(error) if isinstance(error, GramvecError) else error
    request.status, request.reason = shown.status, reason_of(error, stopping=request.service.stopping)
    raise request.theirs


def _for_own_handler(app: FastAPI, error: HttpError | GramvecError) -> Exception | None:
    """Return an error as the handlers that a user has given to an application know it; None where there is none."""
    own = own_handlers(app)
    if isinstance(error, GramvecError):
        return error if own.intersection(type(error).__mro__) else None
    if error.problems and RequestValidationError in own:
        return RequestValidationError(error.problems, body=error.given)
    if HTTPException in own or error.status in own:
        return HTTPException(error.status, str(error), error.headers)
    return None


# FastAPI's own handlers, in whose place a request of this service has its own shape of errors.
DEFAULTS: dict[Any, Any] = {
    HTTPException: http_exception_handler,
    RequestValidationError: request_validation_exception_handler,
}


def own_handlers(app: FastAPI) -> set[Any]:
    """Return the errors and statuses for which an application was given handlers of its own.

    What products wrap around FastAPI's handlers, and say so as functools.wraps does, is none of them.
    """
    first: Mapping[Any, Any] = getattr(app, "first_handlers", DEFAULTS)
    return {
        kind
        for kind, handler in app.exception_handlers.items()
        if handler is not first.get(kind) and inspect.unwrap(handler) is not first.get(kind)
    }


async def refuse(request: Request, error: HttpError, *, needs_key: bool) -> None:
    """Answer a request that has no handler, if its sender may know that."""
    request.check(needs_key=needs_key)
    raise error


async def answer_no_route(scope: Scope, receive: Receive, send: Send) -> None:
    """Answer a request for a path that has no route (ASGI).

    Clients that join an address and a path leave slashes: //embed and /embed/ are /embed.
    """
    if scope["type"] != "http":
        await WebSocketClose()(scope, receive, send)
        return
    path = scope["path"] if len(scope["path"]) > LONGEST_PATH else _drop_empty_parts(scope["path"])
    if path != scope["path"]:
        plain = {**scope, "path": path, "raw_path": None}
        routes = scope["app"].router.routes
        if any(route.matches(plain)[0] is not Match.NONE for route in routes):
            await scope["app"].router(plain, receive, send)
            return
    request = Request(service_of(scope), scope, receive, send)
    if scope["method"] == "OPTIONS" and request.own_path == SERVER:
        every = {method for route in scope["app"].router.routes for method in getattr(route, "methods", None) or ()}
        await finish(request, request.respond(_methods_response(", ".join(sorted(every | {"OPTIONS"})))))
        return
    await finish(request, refuse(request, unknown_route_error(request.own_path), needs_key=True))


async def answer_error(given: BaseRequest, error: Exception) -> BaseResponse:
    """Return the response for an error that a request ended with, also that of a user's own route."""
    request: Request | None = given.scope.get(OURS)
    assert isinstance(error, GramvecError)
    return error_response(error, given.scope["path"]) if request is None else request.refuse(error)


def _drop_empty_parts(path: str) -> str:
    """Return a path without empty parts."""
    return "/" + "/".join(part for part in path.split("/") if part)


def _methods_response(allowed: str) -> Response:
    """Return the response to OPTIONS."""
    return Response([b""], "", [(b"allow", allowed.encode())], 204)


def _allow_header(scope: Scope) -> str:
    """Return the methods of a path, as the header Allow lists them."""
    routes = scope["app"].router.routes
    allowed = [
        method
        for method in METHODS
        if method == "OPTIONS" or any(route.matches({**scope, "method": method})[0] is Match.FULL for route in routes)
    ]
    return ", ".join(allowed)
