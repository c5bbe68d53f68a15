"""POST /similarity: cosines of texts."""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import NDArray

from gramvec.embed.vectors import RawEmbeddings, cosine_matrix, cosine_pairs
from gramvec.errors import InputError
from gramvec.server.request import Request
from gramvec.server.responses import (
    ENTRY_NUMBERS,
    JSON,
    Headers,
    Response,
    as_list,
    in_pieces,
    listed_paths,
    rows_as_json,
    to_json,
)
from gramvec.server.schemas import LeftAndRight, Pairs, SimilarityParameters, SimilarityRequest
from gramvec.server.state.memory_budget import ENTRY_BYTES, NUMBER_BYTES, SCORE_BYTES

# A matrix over 2 ms is computed in a thread.
SECONDS_A_SCORE = 3e-7
LOOP_SCORES = 8_192
# Scores that are sorted at a time: a megabyte.
ORDERED_SCORES = 64 * 1024


async def compare_texts(request: Request, body: SimilarityRequest) -> Response:
    """Compare texts by their cosine in [-1, 1]: one with many, pairs, or every left text with every right one.

    A text without a single known feature scores 0 with everything; the header `x-empty-inputs` names such texts.
    """
    served = request.model(body.model)
    inputs = body.inputs
    if body.top_k is not None and not isinstance(inputs, LeftAndRight):
        raise InputError("top_k goes with inputs of left and right only; leave it out", field="top_k")
    texts = inputs.texts()
    request.check_count(len(texts))
    parameters = body.parameters or SimilarityParameters()
    texts = request.prepare(
        served, texts, inputs.path, truncate=parameters.truncate, direction=parameters.truncation_direction
    )
    n_left = 0 if isinstance(inputs, Pairs) else len(inputs.left) if isinstance(inputs, LeftAndRight) else 1
    request.reserve(_bytes_of(n_left, len(texts), body.top_k))
    rows, distinct = _distinct(texts)
    embedded, usage = await request.embed(served, distinct)
    embeddings = embedded.take(rows)

    empty = np.flatnonzero(embeddings.feature_counts == 0)
    headers: Headers = []
    if len(empty):
        headers.append((b"x-empty-inputs", listed_paths([inputs.path(index) for index in empty.tolist()])))
    if isinstance(inputs, Pairs):
        scores = cosine_pairs(embeddings.take(slice(0, None, 2)), embeddings.take(slice(1, None, 2)))
        return Response(await rows_as_json(scores, 1), JSON, usage, headers)
    n_right = len(texts) - n_left
    compute = partial(_matrix, embeddings.take(slice(n_left)), embeddings.take(slice(n_left, None)), body.top_k)
    if n_left * n_right <= LOOP_SCORES:
        matrix = compute()
    else:
        with request.admit(SECONDS_A_SCORE * n_left * n_right) as job:
            matrix = await request.in_thread(job, compute)
    if isinstance(matrix, Best):
        columns = ENTRY_NUMBERS * matrix.scores.shape[1]
        return Response(as_list(await in_pieces(matrix, columns, Best.to_json)), JSON, usage, headers)
    if isinstance(inputs, LeftAndRight):
        return Response(await rows_as_json(matrix, n_right), JSON, usage, headers)
    return Response(await rows_as_json(matrix[0], 1), JSON, usage, headers)


class Best:
    """Indices int32[n, k] of the best right texts for each left one, and their scores float32[n, k]."""

    def __init__(self, indices: NDArray[np.int32], scores: NDArray[np.float32]) -> None:
        self.indices = indices
        self.scores = scores

    def __len__(self) -> int:
        return len(self.indices)

    def __getitem__(self, rows: slice) -> Best:
        return Best(self.indices[rows], self.scores[rows])

    def to_json(self) -> bytes:
        """Return a list of {"index": i, "score": s} for each left text. No object is made for a score."""
        rows = []
        for indices, scores in zip(self.indices.tolist(), self.scores, strict=True):
            spelt = zip(indices, to_json(scores)[1:-1].split(b","), strict=True)
            rows.append(b"[%b]" % b",".join(map(b'{"index":%d,"score":%b}'.__mod__, spelt)))
        return b"[%b]" % b",".join(rows)


def _bytes_of(n_left: int, n_texts: int, top_k: int | None) -> int:
    """Return the most bytes of the scores and the response."""
    n_right = n_texts - n_left
    if top_k is None:
        return max(n_texts, n_left * n_right) * NUMBER_BYTES
    return n_left * (n_right * SCORE_BYTES + min(top_k, n_right) * ENTRY_BYTES)


def _distinct(texts: list[str]) -> tuple[NDArray[np.int64], list[str]]:
    """Return each text once, and the place of every given text among them."""
    places: dict[str, int] = {}
    rows = np.array([places.setdefault(text, len(places)) for text in texts], np.int64)
    return rows, list(places)


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
        # A stable sort: of equal scores the earlier text comes first.
        order = np.argsort(-rows, axis=1, kind="stable")[:, :k]
        indices[start : start + step] = order
        scores[start : start + step] = np.take_along_axis(rows, order, axis=1)
    return Best(indices, scores)
