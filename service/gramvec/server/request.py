"""HTTP request for handlers: its body, its place in the model's queue, and its response."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from types import MappingProxyType
from typing import Any, NamedTuple, TypeVar

import orjson
from pydantic import ValidationError
from starlette.requests import ClientDisconnect
from starlette.types import Message, Receive, Scope, Send

from gramvec.embed.vectors import RawEmbeddings
from gramvec.errors import InputError
from gramvec.server.batching.work_queue import Job
from gramvec.server.errors import check_content_type, from_validation, too_large, too_large_body
from gramvec.server.http1.cycle import RequestResponse
from gramvec.server.responses import JSON, JSON_LINE, NO_USAGE, Headers, Response, Usage, described
from gramvec.server.schemas import Body, first_values, holds_more, parse_slowly
from gramvec.server.state.memory_budget import UNCOUNTED_BYTES
from gramvec.server.state.models import Served
from gramvec.server.state.service import Service
from gramvec.server.telemetry.metrics import UNKNOWN_ROUTE

T = TypeVar("T")
SomeBody = TypeVar("SomeBody", bound=Body)

CLOSE = (b"connection", b"close")
# The status that is counted where the client left before an answer; it is never sent.
CLIENT_GONE = 499

# Formatting each value into its place takes half the time of a list of pairs that become lines.
OWN_LINES = (
    b"x-request-id: %b\r\nx-compute-characters: %d\r\nx-total-time: %.3f\r\nx-queue-time: %.3f\r\n"
    b"x-inference-time: %.3f\r\n"
)

_line = b"%b: %b\r\n".__mod__
_is_sane = re.compile(rb"[\x21-\x7e]{1,128}").fullmatch


class Route(NamedTuple):
    """Entry of the table of routes.

    Attributes:
        method, path: of the request; a path may end in a parameter, as in "/models/{name:path}".
        handler: takes the request and its checked body (None without a schema) and returns the response.
        schemas: of the body, one or more; empty for a route that reads none.
        read: reads the body in another way than by its only schema.
        responses: by status, as /openapi.json has them.
        characters: the most in all texts of a request, beside the limit on each text.
        work: the kind of work that it does in a thread; each kind has a queue of its own.
        public: needs no API key.
        documented: is listed in /docs.
    """

    method: str
    path: str
    handler: Callable[[Request, Any], Awaitable[Response]]
    schemas: tuple[type[Body], ...] = ()
    read: Callable[[Request], Awaitable[Body]] | None = None
    responses: Mapping[int | str, Mapping[str, Any]] = MappingProxyType({})
    characters: int | None = None
    work: str = ""
    public: bool = False
    documented: bool = True


class Document(NamedTuple):
    """A parsed body. If it holds more values than a request may have, only the first ones, and that limit."""

    value: Any
    cut_at: int | None = None


class Request:
    """HTTP request and its response.

    Attributes:
        headers: by lower-case name.
        path_parameter: the end of the path, for a route whose path ends in a parameter.
        route: the line of the table; None where there is none for this path.
        template: the name of the route in metrics and logs.
        reason: why the request was refused, in a word; None if it was not.
        error: an exception that nobody foresaw.
        status: of the response; `CLIENT_GONE` until there is one.
        seconds, encode_seconds: from the head of the request, and from the model's result, to the response.
    """

    def __init__(
        self,
        service: Service,
        scope: Scope,
        receive: Receive,
        send: Send,
        new_id: bytes,
    ) -> None:
        self._began = time.perf_counter()
        self.service = service
        self.scope = scope
        self.headers: Mapping[bytes, bytes] = dict(scope["headers"])
        self._receive = receive
        self._send = send
        self._server_side = RequestResponse.of(receive)
        self._limit = service.settings.max_body_bytes
        self._received = self._reserved = 0
        self._body_complete = False
        self.started = False
        self.complete = False
        self.cors: Headers = []
        self.path_parameter = ""
        self.route: Route | None = None
        self.template = UNKNOWN_ROUTE
        self.reason: str | None = None
        self.error: Exception | None = None
        self.status = CLIENT_GONE
        self.seconds = self.encode_seconds = 0.0
        self.usage = NO_USAGE
        given = self.headers.get(b"x-request-id")
        self.request_id = given if given is not None and _is_sane(given) else new_id

    @property
    def age(self) -> float:
        """Seconds since the head of the request was read."""
        return time.perf_counter() - self._began

    # Memory

    def reserve(self, size: int) -> None:
        """Count `size` bytes as held by this request until `release`. Raises Overloaded."""
        if size > UNCOUNTED_BYTES:
            self.service.memory.reserve(size, own=self._reserved)
            self._reserved += size

    def release(self) -> None:
        """Give back all reserved bytes."""
        if self._reserved:
            self.service.memory.release(self._reserved)
            self._reserved = 0

    # The body

    async def receive(self) -> Message:
        """Return the next ASGI message. Raises HttpError 413 once the body is over the limit, Overloaded for memory."""
        message = await self._receive()
        if message["type"] == "http.request":
            self._received += len(message.get("body", b""))
            self._body_complete = not message.get("more_body", False)
            if self._received > self._limit:
                raise too_large_body(self._limit)
            self.reserve(self._received - self._reserved)
        else:
            self._body_complete = True
        return message

    async def body(self) -> bytes:
        """Return the whole body. Raises HttpError 413, or ClientDisconnect if it never comes."""
        body = b""
        parts: list[bytes] = []
        while not self._body_complete:
            message = await self.receive()
            if message["type"] == "http.disconnect":
                raise ClientDisconnect
            body = message.get("body", b"")
            parts.append(body)
        return body if len(parts) == 1 else b"".join(parts)

    async def document(self, most_values: int | None = None) -> Document:
        """Return the body as a JSON value, cut where it holds more than `most_values` values.

        Parsing 256 texts takes 10 us, 8 MiB take 15 ms. orjson holds the GIL, so a thread would not spare the loop.

        Raises:
            HttpError: 415 for another content type, 400 for what is not JSON, 413 for too many bytes.
        """
        headers = self.headers
        if headers.get(b"content-type") != b"application/json" or b"content-encoding" in headers:
            check_content_type(headers)
        raw = await self.body()
        most = self.service.most_values if most_values is None else most_values
        # A value has two bytes at least.
        if len(raw) > 2 * most and holds_more(raw, most):
            return Document(parse_slowly(first_values(raw, most)), most)
        try:
            return Document(orjson.loads(raw))
        except orjson.JSONDecodeError:
            return Document(parse_slowly(raw))

    def check(self, document: Document, schema: type[SomeBody]) -> SomeBody:
        """Return the document as a body of this schema.

        Raises:
            HttpError: 422; 413 for too many values, unless one of the first is wrong by itself.
        """
        try:
            body = schema.model_validate(document.value)
        except ValidationError as error:
            refusal = from_validation(error, list(schema.model_fields), whole=document.cut_at is None)
            if refusal is not None:
                raise refusal from None
        else:
            if document.cut_at is None:
                return body
        raise too_large(f"the body holds more than {document.cut_at} JSON values; send fewer texts in a request")

    async def read(self, route: Route) -> Body | None:
        """Return the checked body of a request to this route; None where it has none."""
        if not route.schemas:
            return None
        # Before the body is read: a request that was taken up is served, whatever comes later.
        service = self.service
        if service.stopping or service.failure is not None or not service.models:
            service.check_accepting()
        if route.read is not None:
            return await route.read(self)
        return self.check(await self.document(), route.schemas[0])

    def check_characters(self, texts: Sequence[str]) -> int:
        """Return the number of characters of the texts. Raises HttpError 413 for more than the route takes."""
        characters = sum(map(len, texts))
        most = None if self.route is None else self.route.characters
        if most is not None and characters > most:
            raise too_large(
                f"{characters} characters are more than the limit of {most} in one request; send fewer texts"
            )
        return characters

    def check_count(self, texts: int) -> None:
        """Raise HttpError 413 for more texts than one request may have."""
        limit = self.service.settings.max_texts
        if texts > limit:
            raise too_large(f"{texts} texts are more than the limit of {limit} in one request")

    # The model

    def model(self, name: str | None) -> Served:
        """Return the model of this name or alias, None for the default. Raises HttpError 404."""
        default = self.service.served
        return default if name is None and default is not None else self.service.admit(name)

    def prepare(
        self,
        served: Served,
        texts: list[str],
        path: Callable[[int], str],
        *,
        truncate: bool | None = None,
        direction: str | None = None,
    ) -> list[str]:
        """Return checked texts, cut to the limit on their length if asked. A schema has found them to be strings.

        Raises:
            InputError: a text is too long or has a lone surrogate; the message names it by its `path` in the body.
        """
        embedder = served.embedder
        if max(map(len, texts)) <= embedder.max_characters and all(map(str.isascii, texts)):
            return texts
        try:
            return embedder.prepare(
                texts,
                truncate=served.truncate if truncate is None else truncate,
                truncation_direction="left" if direction in ("left", "Left") else "right",
            )
        except InputError as error:
            if error.index is None:
                raise
            # The library counts texts; a client knows them by their place in the body.
            sentence = str(error).removeprefix(f"text {error.index} ")
            raise InputError(f"{path(error.index)} {sentence}", field=path(error.index), index=error.index) from error

    async def embed(self, served: Served, texts: Sequence[str]) -> tuple[RawEmbeddings, Usage]:
        """Return the embeddings of prepared texts and what they cost.

        Raises:
            Overloaded, BackendError: see `Batcher.submit`.
            ClientDisconnect: the client has left; texts that are still queued are dropped.
        """
        found = await self.unless_gone(served.batcher.submit(texts))
        now = time.perf_counter()
        usage = Usage(found.characters, found.queue_ms, found.inference_ms, served.label, len(texts), now)
        return found.embeddings, usage

    def admit(self, seconds: float) -> AbstractContextManager[Job]:
        """Admit work of the route's kind that costs about `seconds` of a core. Raises Overloaded, see `WorkQueue`."""
        assert self.route is not None
        return self.service.work_queue(self.route.work).admit(seconds)

    async def in_thread(self, job: Job, work: Callable[[], T], seconds: float | None = None) -> T:
        """Return the result of admitted work, see `Job.run`. Raises ClientDisconnect if the client goes away first."""
        return await self.unless_gone(asyncio.ensure_future(job.run(work, seconds)))

    async def unless_gone(self, pending: asyncio.Future[T]) -> T:
        """Return the result of `pending`; cancel it and raise ClientDisconnect if the client goes away first."""
        server_side = self._server_side
        if server_side is None:  # another server, which has to be asked
            return await self._watched(pending)
        server_side.when_gone(pending.cancel)
        try:
            return await pending
        except asyncio.CancelledError:
            if server_side.disconnected:
                raise ClientDisconnect from None
            raise

    async def _watched(self, pending: asyncio.Future[T]) -> T:
        async def cancel_when_gone() -> None:
            while (await self.receive())["type"] != "http.disconnect":
                pass
            pending.cancel()

        watch = asyncio.create_task(cancel_when_gone())
        try:
            return await pending
        except asyncio.CancelledError:
            if watch.done():
                raise ClientDisconnect from None
            raise
        finally:
            watch.cancel()

    # The response

    async def respond(self, response: Response) -> None:
        """Send the response with the headers that every response has."""
        body, media_type, usage, extra, status = response
        server_side, own = self._server_side, self._own_lines(usage)
        at_once = server_side is not None and status == 200 and len(body) == 1 and self._body_complete
        if at_once and not self.service.stopping:
            assert server_side is not None
            content_type = JSON_LINE if media_type == JSON else b"content-type: %b\r\n" % media_type.encode()
            lines = (
                *map(_line, extra),
                b"content-length: %d\r\n%b" % (len(body[0]), content_type),
                own,
                *map(_line, self.cors),
            )
            if server_side.respond(lines, body[0]):
                self.started = self.complete = True
                self.status = status
                return
        headers = described(response)
        headers += [(name, value) for name, _, value in (line.partition(b": ") for line in own.split(b"\r\n")[:-1])]
        if self.service.stopping:
            headers.append(CLOSE)
        headers += self.cors
        self.started = True
        self.status = status
        await self._send({"type": "http.response.start", "status": status, "headers": headers})
        *parts, last = body
        for part in parts:
            await self._send({"type": "http.response.body", "body": part, "more_body": True})
        await self._send({"type": "http.response.body", "body": last})
        self.complete = True

    def _own_lines(self, usage: Usage) -> bytes:
        characters, queue_ms, inference_ms, label, _, answered = self.usage = usage
        now = time.perf_counter()
        self.seconds = now - self._began
        self.encode_seconds = now - answered
        lines = OWN_LINES % (self.request_id, characters, self.seconds * 1e3, queue_ms, inference_ms)
        if label := label or self.service.default_label:
            lines += b"x-model: %b\r\n" % label
        return lines


def usage_of_job(served: Served, texts: Sequence[str], job: Job) -> Usage:
    """Return the cost of a request whose work on these texts is done."""
    characters = sum(map(len, texts))
    return Usage(characters, job.waited_ms, job.worked_ms, served.label, len(texts), time.perf_counter())


def with_job(usage: Usage, job: Job) -> Usage:
    """Return the cost of a request that took part of a model and did work in a thread."""
    return usage._replace(queue_ms=usage.queue_ms + job.waited_ms, inference_ms=usage.inference_ms + job.worked_ms)
