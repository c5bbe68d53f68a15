"""POST /embed: vectors of texts, as JSON, raw rows, an .npy file or base64; and POST /embed_sparse: hashed n-grams."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from io import BytesIO
from itertools import pairwise
from typing import Any

import numpy as np
import orjson
from pydantic import BaseModel, ConfigDict, Field

from gramvec.embed.vectors import RawEmbeddings, VectorPrecision, Vectors, check_precision, finish, quantize
from gramvec.lexical.sparse import SparseEmbedder, uniform
from gramvec.server.inference import ModelWork
from gramvec.server.model_route import model_router
from gramvec.server.openapi import EMPTY_HEADERS, ERRORS, OTHER_FORMS, SHAPE_HEADERS, Matrix, Scores, ok
from gramvec.server.request import Request
from gramvec.server.responses import (
    JSON,
    PIECE_NUMBERS,
    Response,
    base64_of_each,
    encode_in_pieces,
    join_as_list,
    list_paths,
    little_endian,
    to_json,
)
from gramvec.server.routes.compare import compare_texts
from gramvec.server.schemas import (
    Direction,
    EmbedOrSimilarity,
    EmbedRequest,
    LenientBody,
    OneOrManyBody,
    OneOrManyTexts,
    Truncate,
)
from gramvec.server.state.memory_budget import NUMBER_BYTES
from gramvec.text.arrays import Array

RAW = "application/octet-stream"
NPY = "application/x-npy"
BASE64 = "application/json; encoding=base64"
MEDIA_TYPES = (JSON, RAW, NPY, BASE64)


router = model_router("texts")


@router.post("/embed", responses=ok("The vectors.", Matrix, OTHER_FORMS, SHAPE_HEADERS | EMPTY_HEADERS) | ERRORS)
async def embed_texts(request: Request, work: ModelWork, body: EmbedRequest) -> Response:
    """Embed texts: one vector for each text, in the order of the inputs.

    The response is always a list of vectors, also for one text. `Accept` chooses its form: `application/json`,
    `application/octet-stream` (raw little-endian rows, see the headers `x-shape` and `x-dtype`), `application/x-npy`,
    or `application/json; encoding=base64` (a list of such rows).
    """
    served = work.model(body.model, nominal=True)
    embedder = served.embedder
    texts, normalize = body.texts(), body.normalize is not False
    dimensions = work.dimensions(served, body.dimensions)
    work.check_count(len(texts))
    columns, width = embedder.columns(body.space, dimensions)  # before the model works, not after
    if body.precision not in (None, "float32"):
        check_precision(body.precision, normalize=normalize)
    texts = work.prepare(served, texts, body.path, truncate=body.truncate, direction=body.truncation_direction)
    work.reserve(len(texts) * width * NUMBER_BYTES)
    embeddings = await work.embed(served, texts, body.path)
    vectors, finished = make_finisher(embeddings.of_columns(columns), normalize, dimensions, body.precision)
    accept = request.sent.get(b"accept", b"*/*")
    media_type = JSON if accept == b"*/*" else choose_media_type(accept.decode("latin-1"))
    if media_type == JSON and vectors.size <= PIECE_NUMBERS:
        return Response([orjson.dumps(finished(vectors), option=orjson.OPT_SERIALIZE_NUMPY)])
    encode = ENCODERS[media_type]
    pieces = await encode_in_pieces(vectors, vectors.shape[1], lambda piece: encode(finished(piece)))
    if media_type == JSON:
        return Response(join_as_list(pieces))
    first = finished(vectors[:1])
    shape = (len(vectors), first.shape[1])
    headers = [(b"x-shape", b"%d,%d" % shape), (b"x-dtype", first.dtype.name.encode())]
    if media_type == BASE64:
        return Response(join_as_list(pieces), BASE64, headers)
    if media_type == NPY:
        pieces.insert(0, _npy_header(shape, first.dtype))
    return Response(pieces, media_type, headers)


@router.post(
    "/",
    responses=ok("The response of /embed or /similarity.", Matrix | Scores, OTHER_FORMS, SHAPE_HEADERS | EMPTY_HEADERS)
    | ERRORS,
)
async def embed_or_compare(request: Request, work: ModelWork, body: EmbedOrSimilarity) -> Response:
    """Embed or compare texts: `/embed`, or `/similarity` where `inputs` is an object.

    This route is for clients that know only the address of the server.
    """
    return await (embed_texts(request, work, body) if isinstance(body, EmbedRequest) else compare_texts(work, body))


def make_finisher(
    embeddings: RawEmbeddings, normalize: bool, dimensions: int | None, precision: VectorPrecision | None = None
) -> tuple[Vectors, Callable[[Vectors], Array]]:
    """Return vectors float32[n, d] and a function that normalizes, truncates and quantizes a slice of them.

    The function takes and returns C-contiguous rows, each handled by itself; it may change their type.
    """
    finished: Callable[[Vectors], Vectors] = _keep_vectors
    vectors = embeddings.units
    if not normalize or dimensions is not None:
        finished, vectors = partial(finish, normalize=normalize, dimensions=dimensions), embeddings.vectors
    if precision in (None, "float32"):
        return vectors, finished
    return vectors, lambda rows: quantize(finished(rows), precision)


def _keep_vectors(vectors: Vectors) -> Vectors:
    return vectors


def _raw_rows(rows: Array) -> bytes:
    return little_endian(rows).tobytes()


def _base64_rows(rows: Array) -> bytes:
    return b'["%b"]' % b'","'.join(base64_of_each(rows))


ENCODERS: dict[str, Callable[[Array], bytes]] = {
    JSON: to_json,
    RAW: _raw_rows,
    NPY: _raw_rows,
    BASE64: _base64_rows,
}


def _npy_header(shape: tuple[int, int], dtype: np.dtype[Any]) -> bytes:
    file = BytesIO()
    described = np.lib.format.dtype_to_descr(dtype.newbyteorder("<"))
    np.lib.format.write_array_header_1_0(file, {"descr": described, "fortran_order": False, "shape": shape})
    return file.getvalue()


def choose_media_type(accept: str) -> str:
    """Return the best of `MEDIA_TYPES` for an Accept header (RFC 9110, section 12.5.1); JSON if it names none."""
    accept = accept.lower()
    if RAW not in accept and NPY not in accept and "base64" not in accept:
        return JSON
    weights: dict[str, float] = {}
    for part in accept.split(","):
        name, *parameters = (piece.strip() for piece in part.split(";"))
        if name == JSON and any(parameter.replace('"', "") == "encoding=base64" for parameter in parameters):
            name = BASE64
        weights[name] = next((_weight(piece[2:]) for piece in parameters if piece.startswith("q=")), 1.0)
    fallback = weights.get("application/*", weights.get("*/*", 0.0))
    # With equal weights a named type wins over a wildcard, then the order of MEDIA_TYPES counts.
    best = max(MEDIA_TYPES, key=lambda name: (weights.get(name, fallback), name in weights))
    return best if weights.get(best, fallback) > 0 else JSON


def _weight(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return 0.0


# In all texts of a request: half a second of a core, and 60 MB of JSON.
MAX_SPARSE_CHARACTERS = 1_000_000
# A character begins an n-gram of three and one of four; an entry takes 46 bytes in JSON, and as much before.
BYTES_A_CHARACTER = 2 * 92


class SparseRequest(OneOrManyBody, LenientBody):
    """Texts to embed sparsely, in the shape of Text Embeddings Inference."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"inputs": ["tv", "a tv"]}]})

    inputs: OneOrManyTexts = Field(description="One text, or a list of texts. The empty string has an empty vector.")
    truncate: Truncate = None
    truncation_direction: Direction = "right"


class SparseValue(BaseModel):
    """Entry of a sparse vector: its column, below 16,777,216, and its value."""

    index: int
    value: float


@router.post(
    "/embed_sparse",
    responses=ok(
        "The columns of each text, ascending, and their values.",
        list[list[SparseValue]],
        headers=EMPTY_HEADERS,
    )
    | ERRORS,
)
async def embed_sparse_texts(request: Request, work: ModelWork, body: SparseRequest) -> Response:
    """Embed texts sparsely: their n-grams of 3 and 4 characters, hashed to 16,777,216 columns, at length 1.

    A value is how often the text has the n-gram. Your store has to weigh how rare it is among your texts, as Qdrant
    does with `modifier: idf`. No model takes part.
    """
    service, given = work.service, body.texts()
    work.check_count(len(given))
    served = service.admit()
    texts = work.prepare(served, given, body.path, truncate=body.truncate, direction=body.truncation_direction)
    characters = work.check_characters(texts, MAX_SPARSE_CHARACTERS)
    work.reserve(BYTES_A_CHARACTER * characters)
    with work.admit("sparse vectors", 2 * characters) as job:
        encoded, found = await job.run(lambda: _encode_rows(uniform(), texts))
    await work.count_job(job, served, texts)
    empty = [body.path(index) for index, row in enumerate(found) if row == 0]
    if empty:
        request.notes.append((b"x-empty-inputs", list_paths(empty)))
    return Response(join_as_list(encoded))


def _encode_rows(embedder: SparseEmbedder, texts: list[str]) -> tuple[list[bytes], list[int]]:
    """Return lists of rows as JSON, and each row's number of entries. Objects of entries live within a row only."""
    found = embedder.embed(texts)
    edges = found.indptr.tolist()
    blocks = [edges[rows.start : rows.stop + 1] for rows in found.row_blocks()]
    encoded = [
        b"[%b]" % b",".join(_row(found.indices[begin:end], found.values[begin:end]) for begin, end in pairwise(block))
        for block in blocks
    ]
    return encoded, np.diff(found.indptr).tolist()


def _row(columns: Array, values: Array) -> bytes:
    # float32 numbers are written with only the digits that they have.
    spelt = zip(columns.tolist(), to_json(values)[1:-1].split(b","), strict=bool(len(columns)))
    return b"[%b]" % b",".join(map(b'{"index":%d,"value":%b}'.__mod__, spelt))
