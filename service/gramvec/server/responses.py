"""Responses of handlers, and JSON made from arrays.

A large body is made in pieces, and the event loop serves others between two of them.
"""

from __future__ import annotations

import asyncio
from binascii import b2a_base64
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import orjson
from numpy.typing import NDArray

from gramvec.errors import GramvecError
from gramvec.server.errors import HttpError, error_value, from_gramvec
from gramvec.text.arrays import Array

JSON = "application/json"
JSON_LINE = b"content-type: application/json\r\n"

# This many numbers hold the loop for about 3 ms (orjson needs 30 ns for each); 256 vectors of 300 are one piece.
PIECE_NUMBERS = 96 * 1024
# An entry of the best scores takes as long as 16 numbers.
ENTRY_NUMBERS = 16
# Texts that a header names at most.
MOST_LISTED = 100

Buffer = bytes | memoryview
Headers = list[tuple[bytes, bytes]]


class Usage(NamedTuple):
    """The cost of one request.

    Attributes:
        characters: number of characters computed.
        queue_ms, inference_ms: milliseconds in the queue and in the model.
        label: of the model, for `x-model`; empty where no model took part, and the default's is sent.
        texts: number of texts computed.
        answered: the `time.perf_counter` at which the model's result was there; the body is made after it.
    """

    characters: int
    queue_ms: float
    inference_ms: float
    label: bytes = b""
    texts: int = 0
    answered: float = 0.0


NO_USAGE = Usage(0, 0.0, 0.0)


class Response(NamedTuple):
    """A finished response: the body in one or more parts, its media type, and headers with lower-case names.

    The length and the headers of every response are added when it is sent.
    """

    body: Sequence[Buffer]
    media_type: str = JSON
    usage: Usage = NO_USAGE
    headers: Sequence[tuple[bytes, bytes]] = ()
    status: int = 200


def described(response: Response) -> Headers:
    """Return the headers of the response, with the length and type of its body (no length for a 304, RFC 9110, 8.6)."""
    headers = [*response.headers]
    if response.status != 304:
        headers.append((b"content-length", b"%d" % sum(map(len, response.body))))
    if response.media_type:
        headers.append((b"content-type", response.media_type.encode()))
    return headers


def error_response(error: HttpError | GramvecError, path: str) -> Response:
    """Return the response for an error, in OpenAI's shape where the request's path is below /v1."""
    if isinstance(error, GramvecError):
        error = from_gramvec(error)
    headers = [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in error.headers.items()]
    return Response([orjson.dumps(error_value(error, path))], headers=headers, status=error.status)


def to_json(value: Any) -> bytes:
    """Return JSON made straight from arrays; float32 numbers keep their short, exact spelling."""
    return orjson.dumps(value, option=orjson.OPT_SERIALIZE_NUMPY)


async def in_pieces(rows: Any, columns: int, encode: Callable[[Any], bytes]) -> list[bytes]:
    """Return the encoded rows, each of `columns` numbers, in one piece or more."""
    if len(rows) * columns <= PIECE_NUMBERS:
        return [encode(rows)]
    step = max(1, PIECE_NUMBERS // columns)
    pieces = [encode(rows[:step])]
    for start in range(step, len(rows), step):
        await asyncio.sleep(0)
        pieces.append(encode(rows[start : start + step]))
    return pieces


def as_list(pieces: list[bytes]) -> Sequence[Buffer]:
    """Return pieces that are JSON lists as the parts of one list.

    They are not joined: copies of megabytes cost more than additional writes.
    """
    if len(pieces) == 1:
        return pieces
    parts: list[Buffer] = [b"["]
    for piece in pieces:
        parts += (memoryview(piece)[1:-1], b",")
    parts[-1] = b"]"
    return parts


async def rows_as_json(rows: Sequence[Any] | NDArray[Any], columns: int) -> Sequence[Buffer]:
    """Return a JSON list of rows of `columns` numbers each (1 for plain numbers)."""
    return as_list(await in_pieces(rows, columns, to_json))


def little_endian(rows: Array) -> Array:
    """Return the rows in little-endian byte order."""
    return rows.astype(rows.dtype.newbyteorder("<"), copy=False)


def base64_of_each(rows: Array) -> list[bytes]:
    """Return the little-endian bytes of each row in base64 (RFC 4648, section 4)."""
    return [b2a_base64(row, newline=False) for row in little_endian(rows)]


def listed_paths(paths: Sequence[str]) -> bytes:
    """Return the places of texts in the body as a header lists them, at most the first hundred."""
    shown = ", ".join(paths[:MOST_LISTED])
    return (shown if len(paths) <= MOST_LISTED else f"{shown}, ...").encode()
