"""Responses of handlers, and JSON made from arrays.

A large body is made in pieces, and the event loop serves others between two of them.
"""

from __future__ import annotations

import asyncio
from binascii import b2a_base64
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import orjson
from numpy.typing import NDArray
from starlette.background import BackgroundTask
from starlette.responses import Response as BaseResponse
from starlette.types import Receive, Scope, Send

from gramvec.errors import GramvecError
from gramvec.server.errors import HttpError, error_value, from_gramvec, is_openai
from gramvec.text.arrays import Array

JSON = "application/json"
JSON_TYPE = (b"content-type", b"application/json")

# This many numbers hold the loop for about 3 ms (orjson needs 30 ns for each); 256 vectors of 300 are one piece.
PIECE_NUMBERS = 96 * 1024
# An entry of the best scores takes as long as 16 numbers.
ENTRY_NUMBERS = 16
# Splitting this many characters into words holds the loop for about 2 ms.
PIECE_CHARACTERS = 128 * 1024
# White space of ASCII, as `str.split` knows it, becomes a space, and all else a "w".
SPACE_OR_WORD = bytes(ord(" " if chr(code).isspace() else "w") for code in range(128)) + b"w" * 128
# Texts that a header names at most.
MAX_LISTED = 100

Buffer = bytes | memoryview
Headers = list[tuple[bytes, bytes]]


class Response(BaseResponse):
    """A finished response: the body in one or more parts, and headers with lower-case names.

    The headers that every response has are added when it is sent.

    Args:
        parts: of the body, at least one.
        media_type: of the body; empty for none.
        headers: beside those that say the length and the type.
        status: of the response.
    """

    def __init__(
        self,
        parts: Sequence[Buffer],
        media_type: str = JSON,
        headers: Iterable[tuple[bytes, bytes]] = (),
        status: int = 200,
    ) -> None:
        self.parts = parts
        self.status_code = status
        self.background: BackgroundTask | None = None
        self.raw_headers = [*headers]
        # No length for a 204 and a 304: RFC 9110, section 8.6.
        if status not in (204, 304):
            size = len(parts[0]) if len(parts) == 1 else sum(map(len, parts))
            self.raw_headers.append((b"content-length", b"%d" % size))
        if media_type is JSON:
            self.raw_headers.append(JSON_TYPE)
        elif media_type:
            self.raw_headers.append((b"content-type", media_type.encode()))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the response (ASGI)."""
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        *parts, last = self.parts
        for part in parts:
            await send({"type": "http.response.body", "body": part, "more_body": True})
        await send({"type": "http.response.body", "body": last})
        if self.background is not None:  # of a user's dependency
            await self.background()


def error_response(error: HttpError | GramvecError, path: str) -> Response:
    """Return the response for an error, in OpenAI's shape where the path is one of OpenAI's.

    OpenAI has one status for bad requests: 400 in the place of 422.
    """
    if isinstance(error, GramvecError):
        error = from_gramvec(error)
    status = 400 if error.status == 422 and is_openai(path) else error.status
    headers = [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in error.headers.items()]
    return Response([orjson.dumps(error_value(error, path))], headers=headers, status=status)


def to_json(value: Any) -> bytes:
    """Return JSON made straight from arrays; float32 numbers keep their short, exact spelling."""
    return orjson.dumps(value, option=orjson.OPT_SERIALIZE_NUMPY)


async def encode_in_pieces(rows: Any, columns: int, encode: Callable[[Any], bytes]) -> list[bytes]:
    """Return the encoded rows, each of `columns` numbers, in one piece or more."""
    if len(rows) * columns <= PIECE_NUMBERS:
        return [encode(rows)]
    step = max(1, PIECE_NUMBERS // columns)
    pieces = [encode(rows[:step])]
    for start in range(step, len(rows), step):
        await asyncio.sleep(0)
        pieces.append(encode(rows[start : start + step]))
    return pieces


def join_as_list(pieces: list[bytes]) -> Sequence[Buffer]:
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
    return join_as_list(await encode_in_pieces(rows, columns, to_json))


def little_endian(rows: Array) -> Array:
    """Return the rows in little-endian byte order."""
    return rows.astype(rows.dtype.newbyteorder("<"), copy=False)


def base64_of_each(rows: Array) -> list[bytes]:
    """Return the little-endian bytes of each row in base64 (RFC 4648, section 4)."""
    return [b2a_base64(row, newline=False) for row in little_endian(rows)]


async def count_words(texts: Sequence[str]) -> int:
    """Return the number of words, which `usage` calls tokens: runs of characters between white space, in all texts."""
    if sum(map(len, texts)) <= PIECE_CHARACTERS:
        return _count_words(texts)
    words = since = 0
    for text in texts:
        words += _count_words([text])
        since += len(text)
        if since > PIECE_CHARACTERS:
            since = 0
            await asyncio.sleep(0)
    return words


def _count_words(texts: Sequence[str]) -> int:
    """Return the number of words. To split texts in ASCII takes five times as long as to count where words begin."""
    joined = " ".join(filter(str.isascii, texts))
    words = f" {joined}".encode().translate(SPACE_OR_WORD).count(b" w")
    return words + sum(len(text.split()) for text in texts if not text.isascii())


def list_paths(paths: Sequence[str]) -> bytes:
    """Return the places of texts in the body as a header lists them, at most the first hundred."""
    shown = ", ".join(paths[:MAX_LISTED])
    return (shown if len(paths) <= MAX_LISTED else f"{shown}, ...").encode()
