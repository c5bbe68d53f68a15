"""POST /embed and POST /similarity."""

from __future__ import annotations

import asyncio
from functools import partial

import numpy as np
from fastapi import APIRouter, Request
from numpy.typing import NDArray
from starlette.responses import Response

from gramvec.errors import InputError
from gramvec.http import openapi
from gramvec.http.answers import json_response, vectors_response
from gramvec.http.body import read
from gramvec.http.schemas import EmbedRequest, LeftAndRight, Pairs, SimilarityParameters, SimilarityRequest
from gramvec.http.service import Service, embed, prepare
from gramvec.postprocess import RawEmbeddings, check_dimensions, cosine_matrix, cosine_pairs, finish

# A score costs about 0.3 us; a matrix over 2 ms is computed in a thread.
LOOP_SCORES = 8_192
# A header has to fit into the 8 KiB that proxies take.
LISTED_EMPTY_INPUTS = 100

Best = list[list[dict[str, int | float]]]

router = APIRouter()


@router.post("/embed", openapi_extra=openapi.EMBED, responses=openapi.ERRORS)
async def embed_texts(request: Request) -> Response:
    """One vector a text, in the order of the inputs; always a list of vectors, also for one text.

    `Accept` chooses the form: `application/json`, `application/octet-stream` (raw little-endian rows, see the headers
    `x-shape` and `x-dtype`) or `application/x-npy`.
    """
    service: Service = request.app.state.service
    served = service.admit()
    body = await read(request, EmbedRequest)
    served.check_name(body.model)
    texts = body.texts()
    service.check_count(len(texts))
    check_dimensions(body.dimensions, served.embedder.dimension)  # before the model works, not after
    texts = prepare(served, texts, body.path, truncate=body.truncate, direction=body.truncation_direction)
    answer = await embed(served, texts, request)
    vectors = finish(answer.embeddings.vectors, normalize=body.normalize is not False, dimensions=body.dimensions)
    return vectors_response(vectors, request.headers.get("accept"))


@router.post("/similarity", openapi_extra=openapi.SIMILARITY, responses=openapi.ERRORS)
async def compare_texts(request: Request) -> Response:
    """Cosines in [-1, 1]: of one text with many, of pairs, or of every left text with every right one.

    A text without a single known feature scores 0 with everything; the header `x-empty-inputs` names such texts.
    """
    service: Service = request.app.state.service
    served = service.admit()
    body = await read(request, SimilarityRequest)
    served.check_name(body.model)
    inputs = body.inputs
    if body.top_k is not None and not isinstance(inputs, LeftAndRight):
        raise InputError("top_k goes with inputs of left and right only; leave it out")
    texts = inputs.texts()
    service.check_count(len(texts))
    parameters = body.parameters or SimilarityParameters()
    texts = prepare(served, texts, inputs.path, truncate=parameters.truncate, direction=parameters.truncation_direction)
    rows, distinct = _distinct(texts)
    answer = await embed(served, distinct, request)
    embeddings = answer.embeddings.take(rows)

    empty = np.flatnonzero(embeddings.feature_counts == 0)
    headers = {"x-empty-inputs": _listed([inputs.path(index) for index in empty.tolist()])} if len(empty) else None
    if isinstance(inputs, Pairs):
        return json_response(cosine_pairs(_part(embeddings, 0, None, 2), _part(embeddings, 1, None, 2)), headers)
    n_left = len(inputs.left) if isinstance(inputs, LeftAndRight) else 1
    compute = partial(_matrix, _part(embeddings, 0, n_left), _part(embeddings, n_left, None), body.top_k)
    small = n_left * (len(texts) - n_left) <= LOOP_SCORES
    scores = compute() if small else await asyncio.to_thread(compute)
    return json_response(scores if isinstance(inputs, LeftAndRight) else scores[0], headers)


def _distinct(texts: list[str]) -> tuple[NDArray[np.int64], list[str]]:
    places: dict[str, int] = {}
    rows = np.array([places.setdefault(text, len(places)) for text in texts], np.int64)
    return rows, list(places)


def _part(embeddings: RawEmbeddings, start: int, stop: int | None, step: int = 1) -> RawEmbeddings:
    chosen = slice(start, stop, step)
    return RawEmbeddings(embeddings.vectors[chosen], embeddings.feature_counts[chosen])


def _matrix(left: RawEmbeddings, right: RawEmbeddings, top_k: int | None) -> NDArray[np.float32] | Best:
    matrix = cosine_matrix(left, right)
    return matrix if top_k is None else _best(matrix, top_k)


def _best(matrix: NDArray[np.float32], k: int) -> Best:
    # Stable, so that of equal scores the earlier text comes first.
    order = np.argsort(-matrix, axis=1, kind="stable")[:, :k]
    scores = np.take_along_axis(matrix, order, axis=1)
    return [
        [{"index": index, "score": score} for index, score in zip(indices, row, strict=True)]
        for indices, row in zip(order.tolist(), scores, strict=True)
    ]


def _listed(paths: list[str]) -> str:
    more = ["..."] if len(paths) > LISTED_EMPTY_INPUTS else []
    return ", ".join(paths[:LISTED_EMPTY_INPUTS] + more)
