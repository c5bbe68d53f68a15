"""A finished answer, of no framework: what the routes give and the front door sends."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import orjson

from gramvec.errors import GramvecError
from gramvec.server.contract.envelope import envelope
from gramvec.server.contract.errors import HttpError, from_gramvec

JSON = "application/json"
JSON_CONTENT = (b"content-type", b"application/json")

Buffer = bytes | memoryview
Headers = list[tuple[bytes, bytes]]


class Usage(NamedTuple):
    """What one request cost: characters computed, milliseconds in the queue and in the model, and that model's label.

    The label is for `x-model`; empty where no model took part, and the default's is sent. `texts` is the number of
    texts computed, `answered` the `time.perf_counter` at which the model's answer was there: what comes after it is
    the making of the body.
    """

    characters: int
    queue_ms: float
    inference_ms: float
    label: bytes = b""
    texts: int = 0
    answered: float = 0.0


NO_USAGE = Usage(0, 0.0, 0.0)


class Reply(NamedTuple):
    """Status, headers with lower-case names, the body in one or more parts, and what the request cost."""

    status: int
    headers: Headers
    body: Sequence[Buffer]
    usage: Usage = NO_USAGE


def reply(body: Sequence[Buffer], media_type: str, usage: Usage = NO_USAGE, headers: Headers | None = None) -> Reply:
    """A 200 with this body."""
    described = _describing(body, media_type)
    return Reply(200, headers + described if headers else described, body, usage)


def error_reply(error: HttpError | GramvecError, path: str = "") -> Reply:
    """The answer that an error becomes, in OpenAI's shape where `path`, the request's, is below /v1."""
    if isinstance(error, GramvecError):
        error = from_gramvec(error)
    openai = path.startswith("/v1/") or path == "/v1"
    body = [orjson.dumps(envelope(error) if openai else {"error": str(error), "error_type": error.error_type})]
    headers = [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in error.headers.items()]
    return Reply(error.status, [*headers, *_describing(body, JSON)], body)


def _describing(body: Sequence[Buffer], media_type: str) -> Headers:
    length = len(body[0]) if len(body) == 1 else sum(map(len, body))
    content_type = JSON_CONTENT if media_type == JSON else (b"content-type", media_type.encode())
    return [(b"content-length", b"%d" % length), content_type]
