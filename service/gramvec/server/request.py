"""HTTP request for handlers: its body, what is noted of it, and its response."""

from __future__ import annotations

import asyncio
import logging
import re
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from itertools import islice
from typing import Any, NamedTuple, TypeVar

import orjson
from pydantic import ValidationError
from starlette.datastructures import Headers as Values
from starlette.datastructures import QueryParams
from starlette.requests import ClientDisconnect
from starlette.requests import Request as BaseRequest
from starlette.types import Message, Receive, Scope, Send

from gramvec.errors import GramvecError
from gramvec.server.auth import Auth
from gramvec.server.batching.batcher import Timings
from gramvec.server.batching.queue import HAS_GONE
from gramvec.server.compressed import unpack
from gramvec.server.errors import (
    HttpError,
    check_content_type,
    from_validation,
    large_body_error,
    reason_of,
    too_large_error,
)
from gramvec.server.request_ids import new_request_id
from gramvec.server.responses import JSON_TYPE, Headers, Response, error_response
from gramvec.server.schemas import Body, first_values, holds_more, parse_slowly
from gramvec.server.state.memory_budget import UNCOUNTED_BYTES
from gramvec.server.state.service import Service
from gramvec.server.telemetry.metrics import CLIENT_GONE, UNKNOWN_ROUTE

log = logging.getLogger("gramvec.server")

SomeBody = TypeVar("SomeBody", bound=Body)

CLOSE = (b"connection", b"close")
NO_TIMINGS = Timings()
NOTHING: dict[str, Any] = {}

# Parameters of a query, or cookies, that are parsed where a dependency of a user's may want them.
MAX_PARAMETERS = 256
# Escapes of a query or in cookies, which Python decodes one by one. In 60 kB, those of a query would take 24 times as
# long as a body of as many bytes, and those of a cookie in quotes for seconds (CVE-2024-7592).
MAX_ESCAPES = 1_000
# Ignored fields that a header names.
MAX_IGNORED = 20
_is_plain = re.compile(r"[A-Za-z0-9_.-]{1,64}").fullmatch
_is_sane = re.compile(rb"[\x21-\x7e]{1,128}").fullmatch


def _check_cost(parts: int, escapes: int) -> None:
    """Raise HttpError 400 for a query, or cookies, that would cost much."""
    if parts > MAX_PARAMETERS:
        raise HttpError(
            400, "validation", f"the query or the cookies have more than {MAX_PARAMETERS} parts; send fewer"
        )
    if escapes > MAX_ESCAPES:
        raise HttpError(
            400, "validation", f"the query or the cookies have more than {MAX_ESCAPES} escaped characters; shorten them"
        )


class Document(NamedTuple):
    """A parsed body. If it holds more values than a request may have, only the first ones, and that limit."""

    value: Any
    cut_at: int | None = None


class Request(BaseRequest):
    """HTTP request and its response; as Starlette's, with a bounded body.

    Attributes:
        service: that answers it.
        sent: the headers by lower-case name, as bytes; of equal names the last.
        template: the path of the route in metrics and logs, with its parameters' names.
        reason: why the request was refused, in a word; None if it was not.
        error: an unexpected exception.
        theirs: an exception that a handler of the application's user answers.
        send_error: an exception of the sender of the response: a middleware, or the server.
        status: of the response; `CLIENT_GONE` until there is one.
        started, complete: of the response.
        timings: of the work that was done for it.
        notes: headers that say what was ignored, or of which texts nothing is known.
        label: of the model that did it; empty where none took part, and the default's is sent.
        answered: the `time.perf_counter` at which the model's result was there; 0.0 where no model took part.
        seconds, encode_seconds: from the head of the request, and from the model's result, to the response.
    """

    def __init__(self, service: Service, scope: Scope, receive: Receive, send: Send, template: str = "") -> None:
        self._began = time.perf_counter()
        super().__init__(scope, self._receive_bounded, self.send_described)
        self.service = service
        self.sent: Mapping[bytes, bytes] = dict(scope["headers"])
        self._receive_any = receive
        # Our connections say whether their client has gone; for other servers a task waits for the message of it.
        self._tells_of_client: Callable[[], bool] | None = (
            scope.get("extensions", NOTHING).get(HAS_GONE, NOTHING).get("ask")
        )
        self._watching: asyncio.Task[None] | None = None
        self._gone = False
        self._send_bare = send
        self._limit = service.settings.max_body_bytes
        self._received = self._reserved = 0
        self._body_complete = False
        self._whole: bytes | None = None
        self.started = False
        self.complete = False
        self.template = template or UNKNOWN_ROUTE
        self.reason: str | None = None
        self.error: Exception | None = None
        self.theirs: Exception | None = None
        self.send_error: Exception | None = None
        self.status = CLIENT_GONE
        self.timings = NO_TIMINGS
        self.label = b""
        self.notes: Headers = []
        self.answered = self.seconds = self.encode_seconds = 0.0
        given = self.sent.get(b"x-request-id")
        self.request_id = given if given is not None and _is_sane(given) else new_request_id()

    @property
    def own_path(self) -> str:
        """The path below that at which the application is mounted."""
        return str(self.scope["path"]).removeprefix(self.scope.get("root_path", "").rstrip("/"))

    @property
    def query_params(self) -> QueryParams:
        """Parameters of the query, which no route of ours has. Raises HttpError 400 for many of them, or escapes."""
        query = self.scope["query_string"]
        _check_cost(query.count(b"&"), query.count(b"%"))
        return super().query_params

    @property
    def cookies(self) -> dict[str, str]:
        """Cookies, which no route of ours reads. Raises HttpError 400 for many of them, or escapes."""
        cookies = [value for name, value in self.scope["headers"] if name == b"cookie"]
        _check_cost(sum(value.count(b";") for value in cookies), sum(value.count(b"\\") for value in cookies))
        return super().cookies

    @property
    def age(self) -> float:
        """Seconds since the head of the request was read."""
        return time.perf_counter() - self._began

    def check(self, *, needs_key: bool) -> None:
        """Check all that can be checked before the body is read. Raises HttpError 401 and 413, Overloaded."""
        service, sent = self.service, self.sent
        if needs_key and service.auth is not None:
            self.check_key(service.auth)
        length = sent.get(b"content-length", b"")
        # Python refuses to read thousands of digits; a body that is longer than 2**64 ends at its limit in any case.
        if 4 < len(length) <= 20 and length.isdigit():
            size = int(length)
            if size > self._limit:
                raise large_body_error(self._limit)
            self.reserve(size)

    def check_key(self, keys: Auth) -> None:
        """Raise HttpError 401 unless the request has one of these keys."""
        keys.check(self.sent.get(b"authorization", b""), self.sent.get(b"api-key"))

    # Memory

    def reserve(self, size: int) -> None:
        """Count `size` bytes as held by this request until `release`. Raises Overloaded."""
        if size > UNCOUNTED_BYTES:
            self.service.memory.reserve(size, own=self._reserved)
            self._reserved += size

    def release(self) -> None:
        """Give back all reserved bytes, and ask for no further message."""
        if self._watching is not None:
            self._watching.cancel()
        if self._reserved:
            self.service.memory.release(self._reserved)
            self._reserved = 0

    # The body

    async def _receive_bounded(self) -> Message:
        """Return the next ASGI message. Raises HttpError 413 once the body is over the limit, Overloaded for memory."""
        message = await self._receive_any()
        if message["type"] == "http.request":
            self._received += len(message.get("body", b""))
            self._body_complete = not message.get("more_body", False)
            if self._received > self._limit:
                raise large_body_error(self._limit)
            self.reserve(self._received - self._reserved)
        else:
            self._body_complete = True
        return message

    async def body(self) -> bytes:
        """Return the whole body. Raises HttpError 413, or ClientDisconnect if it never comes."""
        if self._whole is not None:
            return self._whole
        body = b""
        parts: list[bytes] = []
        while not self._body_complete:
            message = await self._receive()
            if message["type"] == "http.disconnect":
                raise ClientDisconnect
            body = message.get("body", b"")
            parts.append(body)
        self._whole = self._body = body if len(parts) == 1 else b"".join(parts)
        return self._whole

    async def document(self, max_values: int | None = None, *, any_type: bool = False) -> Document:
        """Return the body as a JSON value, cut where it holds more than `max_values` values.

        With `any_type` it is read whatever its content type says.

        Parsing 256 texts takes 10 us, 8 MiB take 15 ms. orjson holds the GIL, so a thread would not spare the loop.

        Raises:
            HttpError: 415 for another content type, 400 for what is not JSON, 413 for too many bytes.
        """
        headers = self.sent
        if headers.get(b"content-type") != b"application/json" and not any_type:
            check_content_type(headers)
        raw = await self.body()
        if b"content-encoding" in headers:
            raw = unpack(raw, headers[b"content-encoding"], self._limit, self.reserve)
        max_values = self.service.max_values if max_values is None else max_values
        # A value has two bytes at least.
        if len(raw) > 2 * max_values and holds_more(raw, max_values):
            return Document(parse_slowly(first_values(raw, max_values)), max_values)
        try:
            return Document(orjson.loads(raw))
        except orjson.JSONDecodeError:
            return Document(parse_slowly(raw))

    def receive_by(self, receive: Receive) -> None:
        """Read the body by what FastAPI has put around `receive`, as a limit of the user's."""
        self._receive = receive

    def give_json(self, value: Any) -> None:
        """Have FastAPI take this value of the body, which was read already, whatever its content type says."""
        self._json = value
        if not self.sent.get(b"content-type", b"").lower().startswith(JSON_TYPE[1]):
            others = [header for header in self.scope["headers"] if header[0] != JSON_TYPE[0]]
            self._headers = Values(raw=[*others, JSON_TYPE])

    def validate(self, document: Document, schema: type[SomeBody]) -> SomeBody:
        """Return the document as a body of this schema.

        Raises:
            HttpError: 422; 413 for too many values, unless one of the first is wrong by itself.
        """
        try:
            body = schema.model_validate(document.value)
        except ValidationError as error:
            refusal = from_validation(
                error, list(schema.model_fields), given=document.value, whole=document.cut_at is None
            )
            if refusal is not None:
                refusal.given = document.value
                refusal.problems = [
                    {**problem, "loc": ("body", *problem["loc"])} for problem in error.errors(include_url=False)
                ]
                raise refusal from None
        else:
            if document.cut_at is None:
                self.note_ignored(document.value, schema)
                return body
        raise too_large_error(f"the body holds more than {document.cut_at} JSON values; send fewer texts in a request")

    def note_ignored(self, value: Any, schema: type[Body]) -> None:
        """Name the fields of a body that its schema does not have, in a header and in a line of the log."""
        if not isinstance(value, dict) or value.keys() <= schema.model_fields.keys():
            return
        unknown = (name for name in value if name not in schema.model_fields and value[name] is not None)
        names = [name for name in islice(unknown, MAX_IGNORED) if _is_plain(name)]
        if names:
            self.notes.append((b"x-ignored-fields", ", ".join(names).encode()))
            log.debug("%s: ignored the fields %s", self.template, ", ".join(names))

    # The client

    def watch(self) -> None:
        """Notice from now on that the client has gone, where the server does not say it by itself."""
        if self._tells_of_client is None and self._watching is None and self._body_complete:
            self._watching = asyncio.create_task(self._wait_for_leave())

    async def _wait_for_leave(self) -> None:
        with suppress(Exception):  # of a server that has no more to say
            while (await self._receive_any())["type"] != "http.disconnect":
                pass
            self._gone = True

    def has_gone(self) -> bool:
        """Return True if the client is known to have gone."""
        tells = self._tells_of_client
        return self._gone if tells is None else tells()

    # The response

    def refuse(self, error: HttpError | GramvecError) -> Response:
        """Return the response for an error, and note the reason. What was computed until then does not count."""
        self.reason = reason_of(error, stopping=self.service.stopping)
        self.timings, self.label, self.answered, self.notes = NO_TIMINGS, b"", 0.0, []
        # Below a user's prefix the route knows whose shape it has.
        return error_response(error, self.template if self.template.startswith("/") else self.own_path)

    async def respond(self, response: Response) -> None:
        """Send the response with the headers that every response has."""
        await response(self.scope, self._receive_bounded, self.send_described)

    async def send_described(self, message: Message) -> None:
        """Send a message of a response (ASGI), with the headers that every response has."""
        if message["type"] == "http.response.start":
            self.started = True
            self.status = message["status"]
            headers: Headers = [*message.get("headers", ()), *self._own_headers()]
            if self.service.stopping:
                headers.append(CLOSE)
            message = {**message, "headers": headers}
        try:
            await self._send_bare(message)
        except Exception as error:
            self.send_error = error
            raise
        self.complete = message["type"] == "http.response.body" and not message.get("more_body", False)

    def _own_headers(self) -> Headers:
        """Return the headers that every response has."""
        self._note_time()
        timings = self.timings
        total, queue, inference = self.seconds * 1e3, timings.queue_ms, timings.inference_ms
        milliseconds = b"%d" % total
        headers = [
            (b"x-request-id", self.request_id),
            # Names and whole milliseconds are those of Text Embeddings Inference, whose clients read them.
            (b"x-compute-type", self.service.compute_type),
            (b"x-compute-time", milliseconds),
            (b"x-compute-characters", b"%d" % timings.characters),
            (b"x-compute-tokens", b"%d" % timings.words),
            (b"x-total-time", milliseconds),
            (b"x-tokenization-time", b"%d" % timings.featurize_ms),
            (b"x-queue-time", b"%d" % queue),
            (b"x-inference-time", b"%d" % inference),
            (b"server-timing", b"total;dur=%.3f, queue;dur=%.3f, inference;dur=%.3f" % (total, queue, inference)),
        ]
        if label := self.label or self.service.default_label:
            headers.append((b"x-model", label))
        return headers + self.notes if self.notes else headers

    def _note_time(self) -> None:
        now = time.perf_counter()
        self.seconds = now - self._began
        self.encode_seconds = now - self.answered
