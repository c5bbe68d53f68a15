"""What POST /embed and POST /similarity do: a request in, a `Reply` out, of no framework.

The front door calls these directly; the routes that FastAPI declares (`routes`) are shells over them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import NDArray

from gramvec.embed.quantization import Precision, check_precision, quantize
from gramvec.embed.vectors import RawEmbeddings, Vectors, cosine_matrix, cosine_pairs, finish
from gramvec.errors import InputError
from gramvec.server.contract import (
    Best,
    Document,
    EmbedRequest,
    Headers,
    Incoming,
    LeftAndRight,
    OneText,
    Pairs,
    Reply,
    Rows,
    SimilarityParameters,
    SimilarityRequest,
    best_reply,
    check,
    listed_paths,
    read,
    rows_reply,
    vectors_reply,
)
from gramvec.server.state import ENTRY_BYTES, NUMBER_BYTES, SCORE_BYTES, Service, embed, prepare, usage_of

# A score costs about 0.3 us; a matrix over 2 ms is computed in a thread.
LOOP_SCORES = 8_192

# The scores that are put into order at a time: a megabyte.
ORDERED_SCORES = 64 * 1024


async def embed_texts(service: Service, request: Incoming) -> Reply:
    """Answer POST /embed.

    Raises:
        HttpError, GramvecError: what `reply.error_reply` puts into words.
        ClientDisconnect: the client has gone.
    """
    service.check_accepting()
    return await _embed(service, request, await read(request, service.most_values))


async def compare_texts(service: Service, request: Incoming) -> Reply:
    """Answer POST /similarity. Raises what `embed_texts` does."""
    service.check_accepting()
    return await _compare(service, request, await read(request, service.most_values))


async def embed_or_compare(service: Service, request: Incoming) -> Reply:
    """Answer POST /, where clients of Text Embeddings Inference go that were given no path: by the shape of inputs.

    Raises what `embed_texts` does.
    """
    service.check_accepting()
    document = await read(request, service.most_values)
    value = document.value
    compares = isinstance(value, dict) and isinstance(value.get("inputs"), dict)
    return await (_compare if compares else _embed)(service, request, document)


async def _embed(service: Service, request: Incoming, document: Document) -> Reply:
    body = OneText.of(document.value) or check(document, EmbedRequest)
    served = service.admit(body.model)
    embedder = served.embedder
    texts, dimensions, normalize = body.texts(), body.dimensions, body.normalize is not False
    service.check_count(len(texts))
    columns, width = embedder.columns(body.space, dimensions)  # before the model works, not after
    if not (isinstance(body, OneText) and len(body.inputs) <= embedder.max_characters):
        check_precision(body.precision, normalize=normalize)
        texts = prepare(served, texts, body.path, truncate=body.truncate, direction=body.truncation_direction)
        request.reserve(len(texts) * width * NUMBER_BYTES)
    answer = await embed(served, texts, request)
    vectors, finished = finishing(answer.embeddings.of_columns(columns), normalize, dimensions, body.precision)
    accept = request.headers.get(b"accept", b"")
    return await vectors_reply(vectors, finished, accept.decode("latin-1"), usage_of(served, answer))


async def _compare(service: Service, request: Incoming, document: Document) -> Reply:
    body = check(document, SimilarityRequest)
    served = service.admit(body.model)
    inputs = body.inputs
    if body.top_k is not None and not isinstance(inputs, LeftAndRight):
        raise InputError("top_k goes with inputs of left and right only; leave it out", field="top_k")
    texts = inputs.texts()
    service.check_count(len(texts))
    parameters = body.parameters or SimilarityParameters()
    texts = prepare(served, texts, inputs.path, truncate=parameters.truncate, direction=parameters.truncation_direction)
    n_left = 0 if isinstance(inputs, Pairs) else len(inputs.left) if isinstance(inputs, LeftAndRight) else 1
    request.reserve(_bytes_of(n_left, len(texts), body.top_k))
    rows, distinct = _distinct(texts)
    answer = await embed(served, distinct, request)
    usage = usage_of(served, answer)
    embeddings = answer.embeddings.take(rows)

    empty = np.flatnonzero(embeddings.feature_counts == 0)
    headers: Headers = []
    if len(empty):
        headers.append((b"x-empty-inputs", listed_paths([inputs.path(index) for index in empty.tolist()])))
    if isinstance(inputs, Pairs):
        scores = cosine_pairs(embeddings.take(slice(0, None, 2)), embeddings.take(slice(1, None, 2)))
        return await rows_reply(scores, 1, usage, headers)
    n_right = len(texts) - n_left
    compute = partial(_matrix, embeddings.take(slice(n_left)), embeddings.take(slice(n_left, None)), body.top_k)
    matrix = compute() if n_left * n_right <= LOOP_SCORES else await asyncio.to_thread(compute)
    if isinstance(matrix, Best):
        return await best_reply(matrix, usage, headers)
    if isinstance(inputs, LeftAndRight):
        return await rows_reply(matrix, n_right, usage, headers)
    return await rows_reply(matrix[0], 1, usage, headers)


def _bytes_of(n_left: int, n_texts: int, top_k: int | None) -> int:
    """What the scores and the answer hold at most."""
    n_right = n_texts - n_left
    if top_k is None:
        return max(n_texts, n_left * n_right) * NUMBER_BYTES
    return n_left * (n_right * SCORE_BYTES + min(top_k, n_right) * ENTRY_BYTES)


def _distinct(texts: list[str]) -> tuple[NDArray[np.int64], list[str]]:
    places: dict[str, int] = {}
    rows = np.array([places.setdefault(text, len(places)) for text in texts], np.int64)
    return rows, list(places)


def finishing(
    embeddings: RawEmbeddings, normalize: bool, dimensions: int | None, precision: Precision | None = None
) -> tuple[Vectors, Callable[[Vectors], Rows]]:
    """float32[n, d], and what makes any rows of it what was asked for."""
    finished: Callable[[Vectors], Vectors] = _as_they_are
    vectors = embeddings.units
    if not normalize or dimensions is not None:
        finished, vectors = partial(finish, normalize=normalize, dimensions=dimensions), embeddings.vectors
    if precision in (None, "float32"):
        return vectors, finished
    return vectors, lambda rows: quantize(finished(rows), precision)


def _as_they_are(vectors: Vectors) -> Vectors:
    return vectors


def _matrix(left: RawEmbeddings, right: RawEmbeddings, top_k: int | None) -> NDArray[np.float32] | Best:
    matrix = cosine_matrix(left, right)
    return matrix if top_k is None else _best(matrix, top_k)


def _best(matrix: NDArray[np.float32], k: int) -> Best:
    n_left, n_right = matrix.shape
    indices = np.empty((n_left, min(k, n_right)), np.int32)
    scores = np.empty(indices.shape, np.float32)
    step = max(1, ORDERED_SCORES // n_right)
    for start in range(0, n_left, step):
        rows = matrix[start : start + step]
        # Stable, so that of equal scores the earlier text comes first.
        order = np.argsort(-rows, axis=1, kind="stable")[:, :k]
        indices[start : start + step] = order
        scores[start : start + step] = np.take_along_axis(rows, order, axis=1)
    return Best(indices, scores)
