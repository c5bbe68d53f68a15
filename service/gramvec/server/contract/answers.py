"""Arrays -> response bodies.

A large body is made piece by piece, and between two pieces the event loop serves others.
"""

from __future__ import annotations

import asyncio
from binascii import b2a_base64
from collections.abc import Callable, Sequence
from io import BytesIO
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray

from gramvec.server.contract.reply import JSON, Buffer, Headers, Reply, Usage, reply

RAW = "application/octet-stream"
NPY = "application/x-npy"
BASE64 = "application/json; encoding=base64"
MEDIA_TYPES = (JSON, RAW, NPY, BASE64)

# As many numbers hold the loop for about 3 ms, orjson needs 30 ns for each; 256 vectors of 300 are one piece.
PIECE_NUMBERS = 96 * 1024

# An entry of the best scores takes as long as so many numbers.
ENTRY_NUMBERS = 16
# Of the texts that a header names.
MOST_LISTED = 100

Vectors = NDArray[np.float32]
Rows = NDArray[np.generic]


def to_json(value: Any) -> bytes:
    """JSON straight from arrays: float32 components keep their short, exact spelling."""
    return orjson.dumps(value, option=orjson.OPT_SERIALIZE_NUMPY)


async def rows_reply(rows: Sequence[Any] | NDArray[Any], columns: int, usage: Usage, headers: Headers) -> Reply:
    """A JSON list of the rows, which have so many numbers each (1 for plain numbers)."""
    return reply(as_list(await in_pieces(rows, columns, to_json)), JSON, usage, headers)


class Best:
    """For each left text its best right ones: int32[n, k], their indices, and float32[n, k], their scores."""

    def __init__(self, indices: NDArray[np.int32], scores: NDArray[np.float32]) -> None:
        self.indices = indices
        self.scores = scores

    def __len__(self) -> int:
        return len(self.indices)

    def __getitem__(self, rows: slice) -> Best:
        return Best(self.indices[rows], self.scores[rows])

    def to_json(self) -> bytes:
        """A list for each left text: {"index": i, "score": s} for each of its best."""
        rows = []
        for indices, scores in zip(self.indices.tolist(), self.scores, strict=True):
            spelt = zip(indices, to_json(scores)[1:-1].split(b","), strict=True)
            rows.append(b"[%b]" % b",".join(map(b'{"index":%d,"score":%b}'.__mod__, spelt)))
        return b"[%b]" % b",".join(rows)


async def best_reply(best: Best, usage: Usage, headers: Headers) -> Reply:
    """`Best.to_json`, piece by piece; no object is made for a score."""
    columns = ENTRY_NUMBERS * best.scores.shape[1]
    return reply(as_list(await in_pieces(best, columns, Best.to_json)), JSON, usage, headers)


async def vectors_reply(vectors: Vectors, finish: Callable[[Vectors], Rows], accept: str, usage: Usage) -> Reply:
    """The finished rows [n, k] of float32[n, d] in the form that the client prefers.

    `finish` takes and gives rows, C-contiguous and each by itself; it may change their type. The forms are JSON, raw
    little-endian rows, an .npy file, and a JSON list with such rows in base64.
    """
    media_type = preferred(accept)
    encode = ENCODERS[media_type]
    if media_type == JSON and vectors.size <= PIECE_NUMBERS:
        return reply([encode(finish(vectors))], JSON, usage)
    pieces = await in_pieces(vectors, vectors.shape[1], lambda piece: encode(finish(piece)))
    if media_type == JSON:
        return reply(as_list(pieces), JSON, usage)
    first = finish(vectors[:1])
    shape = (len(vectors), first.shape[1])
    headers = [(b"x-shape", b"%d,%d" % shape), (b"x-dtype", first.dtype.name.encode())]
    if media_type == BASE64:
        return reply(as_list(pieces), BASE64, usage, headers)
    if media_type == NPY:
        pieces.insert(0, _npy_header(shape, first.dtype))
    return reply(pieces, media_type, usage, headers)


async def in_pieces(rows: Any, columns: int, encode: Callable[[Any], bytes]) -> list[bytes]:
    """The encoded rows, of so many columns, in one piece or more; others are served between two of them."""
    if len(rows) * columns <= PIECE_NUMBERS:
        return [encode(rows)]
    step = max(1, PIECE_NUMBERS // columns)
    pieces = [encode(rows[:step])]
    for start in range(step, len(rows), step):
        await asyncio.sleep(0)
        pieces.append(encode(rows[start : start + step]))
    return pieces


def as_list(pieces: list[bytes]) -> Sequence[Buffer]:
    """The pieces, JSON lists, as one list. They are not joined: copies of megabytes cost more than more writes."""
    if len(pieces) == 1:
        return pieces
    parts: list[Buffer] = [b"["]
    for piece in pieces:
        parts += (memoryview(piece)[1:-1], b",")
    parts[-1] = b"]"
    return parts


def base64_of_each(rows: Rows) -> list[bytes]:
    """Each row's little-endian bytes in base64 (RFC 4648, 4)."""
    return [b2a_base64(row, newline=False) for row in _little_endian(rows)]


def _raw_rows(rows: Rows) -> bytes:
    return _little_endian(rows).tobytes()


def _base64_rows(rows: Rows) -> bytes:
    return b'["%b"]' % b'","'.join(base64_of_each(rows))


def _little_endian(rows: Rows) -> Rows:
    return rows.astype(rows.dtype.newbyteorder("<"), copy=False)


ENCODERS: dict[str, Callable[[Rows], bytes]] = {
    JSON: to_json,
    RAW: _raw_rows,
    NPY: _raw_rows,
    BASE64: _base64_rows,
}


def _npy_header(shape: tuple[int, int], dtype: np.dtype[np.generic]) -> bytes:
    file = BytesIO()
    described = np.lib.format.dtype_to_descr(dtype.newbyteorder("<"))
    np.lib.format.write_array_header_1_0(file, {"descr": described, "fortran_order": False, "shape": shape})
    return file.getvalue()


def preferred(accept: str) -> str:
    """The best of `MEDIA_TYPES` for an Accept header (RFC 9110, 12.5.1); JSON for anything that names none of them."""
    accept = accept.lower()
    if RAW not in accept and NPY not in accept and "base64" not in accept:
        return JSON
    weights: dict[str, float] = {}
    for part in accept.split(","):
        name, *parameters = (piece.strip() for piece in part.split(";"))
        if name == JSON and any(one.replace('"', "") == "encoding=base64" for one in parameters):
            name = BASE64
        weights[name] = next((_weight(piece[2:]) for piece in parameters if piece.startswith("q=")), 1.0)
    fallback = weights.get("application/*", weights.get("*/*", 0.0))
    # Of equal weights a named type wins over a wildcard, then the order of MEDIA_TYPES.
    best = max(MEDIA_TYPES, key=lambda name: (weights.get(name, fallback), name in weights))
    return best if weights.get(best, fallback) > 0 else JSON


def _weight(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return 0.0


def listed_paths(paths: Sequence[str]) -> bytes:
    """Where texts stand, as a header names them: the first hundred."""
    return ", ".join([*paths[:MOST_LISTED], *(["..."] if len(paths) > MOST_LISTED else [])]).encode()
