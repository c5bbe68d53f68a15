"""Arrays -> response bodies."""

from __future__ import annotations

from io import BytesIO
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray
from starlette.responses import Response

JSON = "application/json"
RAW = "application/octet-stream"
NPY = "application/x-npy"
MEDIA_TYPES = (JSON, RAW, NPY)


def json_response(value: Any, headers: dict[str, str] | None = None) -> Response:
    """JSON straight from arrays: float32 components keep their short, exact spelling."""
    return Response(orjson.dumps(value, option=orjson.OPT_SERIALIZE_NUMPY), 200, headers, JSON)


def vectors_response(vectors: NDArray[np.float32], accept: str | None) -> Response:
    """float32[n, k] in the form that the client prefers: JSON, raw little-endian rows, or an .npy file."""
    media_type = preferred(accept)
    rows = np.ascontiguousarray(vectors, dtype="<f4")
    if media_type == JSON:
        return json_response(rows)
    headers = {"x-shape": ",".join(map(str, rows.shape)), "x-dtype": "float32"}
    if media_type == RAW:
        return Response(rows.tobytes(), 200, headers, RAW)
    file = BytesIO()
    np.save(file, rows, allow_pickle=False)
    return Response(file.getvalue(), 200, headers, NPY)


def preferred(accept: str | None) -> str:
    """The best of `MEDIA_TYPES` for an Accept header (RFC 9110, 12.5.1); JSON for anything that names none of them."""
    accept = (accept or "").lower()
    if RAW not in accept and NPY not in accept:
        return JSON
    weights: dict[str, float] = {}
    for part in accept.split(","):
        name, *parameters = (piece.strip() for piece in part.split(";"))
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
