"""A request's body -> a checked request model."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import Any, NamedTuple, Protocol, TypeVar

import orjson
from pydantic import ValidationError

from gramvec.server.contract.errors import HttpError, from_validation, too_large
from gramvec.server.contract.schemas import Body
from gramvec.server.contract.values import first_values, holds_more

RequestBody = TypeVar("RequestBody", bound=Body)


class Incoming(Protocol):
    """One request, as the routes see it."""

    @property
    def headers(self) -> Mapping[bytes, bytes]:
        """By lower-case name."""
        ...

    @property
    def body(self) -> Callable[[], Awaitable[bytes]]:
        """The whole body."""
        ...

    @property
    def reserve(self) -> Callable[[int], None]:
        """Counts bytes that the request is about to hold; raises Overloaded where all hold too many."""
        ...

    @property
    def gone(self) -> bool:
        """Whether it is known already that the client has gone; `receive` says it in any case."""
        ...

    @property
    def receive(self) -> Callable[[], Awaitable[MutableMapping[str, Any]]]:
        """The next ASGI message; after the body, one of type http.disconnect when the client has gone."""
        ...


class Document(NamedTuple):
    """A parsed body; where it holds more values than any request may have, its first ones and that number."""

    value: Any
    cut_at: int | None = None


async def read(request: Incoming, most_values: int) -> Document:
    """Read and parse the body, of more than `most_values` values so many.

    Raises:
        HttpError: 415 or 400; the limit on the body's size is enforced below, where it arrives.
    """
    _check_content_type(request.headers)
    raw = await request.body()
    if holds_more(raw, most_values):
        return Document(parse(first_values(raw, most_values)), most_values)
    return Document(parse(raw))


def check(document: Document, schema: type[RequestBody]) -> RequestBody:
    """The parsed body as a request.

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


def parse(raw: bytes) -> Any:
    """JSON as RFC 8259 has it: UTF-8, no NaN.

    A list of 256 texts takes 10 us, 8 MiB take 15 ms. orjson holds the GIL, so a thread would not spare the loop.

    Raises:
        HttpError: 400, saying where the text stops being JSON.
    """
    try:
        return orjson.loads(raw)
    except orjson.JSONDecodeError as error:
        # orjson refuses the escape of a lone surrogate as if it were bad JSON. It is good JSON of a bad text, and the
        # answer has to name that text.
        if "surrogate" in str(error):
            return _parse_with_surrogates(raw)
        raise _not_json(str(error)) from None


def _parse_with_surrogates(raw: bytes) -> Any:
    try:
        return json.loads(raw.decode("utf-8"), parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise _not_json(str(error)) from None


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def _not_json(reason: str) -> HttpError:
    return HttpError(400, "validation", f"the body is not JSON in UTF-8: {reason}")


def _check_content_type(headers: Mapping[bytes, bytes]) -> None:
    raw = headers.get(b"content-type", b"")
    if raw != b"application/json":
        given = raw.decode("latin-1")
        media_type = given.partition(";")[0].strip().lower()
        if media_type != "application/json" and not media_type.endswith("+json"):
            sent = f"not {given[:100]!r}" if given else "and none was sent"
            raise HttpError(415, "validation", f"Content-Type must be application/json, {sent}")
    if b"content-encoding" in headers and headers[b"content-encoding"].lower() != b"identity":
        encoding = headers[b"content-encoding"].decode("latin-1")
        raise HttpError(415, "validation", f"Content-Encoding {encoding[:100]!r} is not read; send the body as it is")
