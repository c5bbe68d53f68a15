"""POST /v1/embeddings and GET /v1/models: OpenAI's shapes, over the same models."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import orjson

from gramvec.embed.vectors import Vectors, check_dimensions
from gramvec.errors import InputError
from gramvec.server.contract import (
    JSON,
    EmbeddingsRequest,
    Incoming,
    Reply,
    Rows,
    as_list,
    base64_of_each,
    check,
    in_pieces,
    read,
    reply,
    to_json,
)
from gramvec.server.routes.embedding import finishing
from gramvec.server.routes.token_ids import decoded, most_values
from gramvec.server.state import NUMBER_BYTES, Served, Service, embed, prepare, usage_of

# To split as many characters into words holds the loop for about 2 ms.
PIECE_CHARACTERS = 128 * 1024


async def create_embeddings(service: Service, request: Incoming) -> Reply:
    """Answer POST /v1/embeddings. Raises what `embedding.embed_texts` does."""
    service.check_accepting()
    document = await decoded(service, await read(request, most_values(service)), request)
    body = check(document, EmbeddingsRequest)
    served = service.admit(body.model)
    texts = body.texts()
    service.check_count(len(texts))
    check_dimensions(body.dimensions, served.embedder.dimension)
    texts = _prepare(served, body)
    request.reserve(len(texts) * served.embedder.dimension * NUMBER_BYTES)
    answer = await embed(served, texts, request)
    usage = usage_of(served, answer)
    vectors, finished = finishing(answer.embeddings, True, body.dimensions)
    encode = _numbering(_base64_entries if body.encoding_format == "base64" else _entries, finished)
    entries = as_list(await in_pieces(vectors, vectors.shape[1], encode))
    words = await count_words(texts)
    counts = orjson.dumps({"prompt_tokens": words, "total_tokens": words})
    tail = b',"model":%b,"usage":%b}' % (orjson.dumps(served.embedder.name), counts)
    return reply([b'{"object":"list","data":', *entries, tail], JSON, usage)


async def count_words(texts: list[str]) -> int:
    """What `usage` calls tokens: the runs of characters between white space, in all texts."""
    words = since = 0
    for text in texts:
        words += len(text.split())
        since += len(text)
        if since > PIECE_CHARACTERS:
            since = 0
            await asyncio.sleep(0)
    return words


def list_models(service: Service) -> dict[str, Any]:
    """The answer to GET /v1/models, the default model first, aliases last. Raises HttpError 503."""
    service.check_accepting()
    return {"object": "list", "data": [_model(name) for name in (*service.models, *service.aliases)]}


def retrieve_model(service: Service, name: str) -> dict[str, Any]:
    """The answer to GET /v1/models/{name}. Raises HttpError 404 or 503."""
    service.admit(name)
    return _model(name)


def _model(name: str) -> dict[str, Any]:
    # A bundle says nothing of time, so that the same training gives the same bytes.
    return {"id": name, "object": "model", "created": 0, "owned_by": "gramvec"}


def _numbering(
    entries: Callable[[int, Rows], bytes], finished: Callable[[Vectors], Rows]
) -> Callable[[Vectors], bytes]:
    start = 0

    def encode(piece: Vectors) -> bytes:
        nonlocal start
        rows = finished(piece)
        first, start = start, start + len(rows)
        return entries(first, rows)

    return encode


def _entries(start: int, rows: Rows) -> bytes:
    return to_json([{"object": "embedding", "index": index, "embedding": row} for index, row in enumerate(rows, start)])


def _base64_entries(start: int, rows: Rows) -> bytes:
    entry = b'{"object":"embedding","index":%d,"embedding":"%b"}'
    return b"[%b]" % b",".join([entry % numbered for numbered in enumerate(base64_of_each(rows), start)])


def _prepare(served: Served, body: EmbeddingsRequest) -> list[str]:
    try:
        return prepare(served, body.texts(), body.path, truncate=None, direction=None)
    except InputError as error:
        # The sentence names a field that this route does not have.
        sentence = str(error).replace(" or pass truncate=true", "")
        raise InputError(sentence, field=error.field, index=error.index) from error
