"""POST /v1/embeddings and GET /v1/models: OpenAI's shapes over the same models."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from itertools import count
from typing import Any

import orjson

from gramvec.embed.vectors import check_dimensions, check_precision
from gramvec.errors import InputError
from gramvec.server.errors import HttpError, OpenAIErrorBody
from gramvec.server.inference import Inference, ModelWork
from gramvec.server.model_route import ModelRoute, model_router
from gramvec.server.openapi import V1_ERRORS, EmbeddingsAnswer, ServedModel, ServedModels, errors, ok
from gramvec.server.request import Document, Request
from gramvec.server.responses import Response, base64_of_each, encode_in_pieces, join_as_list, to_json
from gramvec.server.routes.embed import make_finisher
from gramvec.server.schemas import EmbeddingsRequest
from gramvec.server.settings import OTHERS
from gramvec.server.state.memory_budget import NUMBER_BYTES
from gramvec.server.state.models import LoadedModel
from gramvec.server.state.token_ids import PIECE_IDS, Encoding, UnknownId
from gramvec.text.arrays import Array

# Ollama's clients add this tag to a name that has none.
LATEST = ":latest"
# OpenAI takes as many in one request.
MAX_IDS = 300_000
BYTES_A_CHARACTER = 4


class EmbeddingsRoute(ModelRoute):
    """Route whose body may hold token ids."""

    async def document(self, request: Request) -> Document:
        """Return the body of a request with texts in the place of token ids."""
        service = request.service
        document = await request.document(service.max_values + (MAX_IDS if service.encodings else 0))
        return await decode_tokens(Inference(request), document)


TAG = "as OpenAI"
router = model_router(TAG)
embeddings = model_router(TAG, EmbeddingsRoute)
# Paths with a name, or without the prefix that some clients leave out.
deployments = model_router(TAG, EmbeddingsRoute)


@deployments.post("/embeddings", include_in_schema=False)
@embeddings.post(
    "/v1/embeddings", responses=ok("The vectors, each with the place of its text.", EmbeddingsAnswer) | V1_ERRORS
)
async def create_embeddings(work: ModelWork, body: EmbeddingsRequest) -> Response:
    """Embed texts in OpenAI's shape, for its clients.

    `usage` counts words: the text between white space.
    """
    return await _create_embeddings(work, body)


@deployments.post(
    "/openai/deployments/{deployment}/embeddings",
    responses=ok("The vectors, each with the place of its text.", EmbeddingsAnswer) | V1_ERRORS,
)
async def create_deployment_embeddings(work: ModelWork, body: EmbeddingsRequest, deployment: str) -> Response:
    """Embed texts at the path of Azure's clients, whose deployment is the name of a served model or an alias."""
    return await _create_embeddings(work, body, deployment)


async def _create_embeddings(work: Inference, body: EmbeddingsRequest, model: str | None = None) -> Response:
    served = work.model(model if model is not None else body.model)
    texts = body.texts()
    work.check_count(len(texts))
    dimensions, precision = work.dimensions(served, body.width), body.precision
    check_dimensions(dimensions, served.embedder.dimension)
    if precision != "float32":
        check_precision(precision, normalize=body.normalized is not False)
    texts = _prepare(work, served, body)
    work.reserve(len(texts) * served.embedder.dimension * NUMBER_BYTES)
    embeddings = await work.embed(served, texts, body.path)
    vectors, finished = make_finisher(embeddings, body.normalized is not False, dimensions, precision)
    encode = _base64_entries if body.in_base64 else _entries
    indices = count()
    pieces = await encode_in_pieces(vectors, vectors.shape[1], lambda piece: encode(finished(piece), indices))
    counts = orjson.dumps({"prompt_tokens": work.words, "total_tokens": work.words})
    tail = b',"model":%b,"usage":%b}' % (orjson.dumps(served.embedder.name), counts)
    return Response([b'{"object":"list","data":', *join_as_list(pieces), tail])


@router.get("/v1/models", responses=ok("The models.", ServedModels) | errors(401, 500, 503, body=OpenAIErrorBody))
async def list_models(work: ModelWork) -> ServedModels:
    """List the served models in OpenAI's shape: the default first, aliases last."""
    service = work.service
    service.check_accepting()
    models = [_model(name) for name in (*service.models, *service.aliases)]
    return ServedModels(object="list", data=models)


@router.get(
    "/v1/models/{model:path}",
    responses=ok("The model.", ServedModel) | errors(401, 404, 500, 503, body=OpenAIErrorBody),
)
async def retrieve_model(work: ModelWork, model: str) -> ServedModel:
    """Return one served model in OpenAI's shape."""
    work.service.admit(model.removesuffix(LATEST))
    return _model(model)


def _model(name: str) -> ServedModel:
    # A bundle holds no time, so that the same training gives the same bytes.
    return ServedModel(id=name, object="model", created=0, owned_by="gramvec")


def _entries(rows: Array, indices: Iterator[int]) -> bytes:
    return to_json([{"object": "embedding", "index": next(indices), "embedding": row} for row in rows])


def _base64_entries(rows: Array, indices: Iterator[int]) -> bytes:
    entry = b'{"object":"embedding","index":%d,"embedding":"%b"}'
    return b"[%b]" % b",".join([entry % (next(indices), row) for row in base64_of_each(rows)])


def _prepare(work: Inference, served: LoadedModel, body: EmbeddingsRequest) -> list[str]:
    try:
        return work.prepare(served, body.texts(), body.path, truncate=body.cut, direction=body.direction)
    except InputError as error:
        # The message names a field that this route does not have.
        sentence = str(error).replace(" or pass truncate=true", "")
        raise InputError(sentence, field=error.field, index=error.index) from error


async def decode_tokens(work: Inference, document: Document) -> Document:
    """Return the document with texts in the place of token ids; unchanged where it holds none.

    Bytes that are not UTF-8, as where a client has cut a text inside a character, become U+FFFD as in tiktoken.

    Raises:
        HttpError: 400 where no encoding was given for these ids; 413 for too many of them.
        InputError: one is not an id of the encoding.
        Overloaded: all requests together hold too much.
    """
    service, value = work.service, document.value
    given = value.get("input") if isinstance(value, dict) else None
    if not (isinstance(given, list) and _begins_with_ids(given)):
        return document
    name, encodings = value.get("model"), service.encodings
    encoding = encodings.get(name if isinstance(name, str) else OTHERS, encodings.get(OTHERS))
    if encoding is None:
        raise _no_encoding(bool(service.encodings))
    is_single = not isinstance(given[0], list)
    lists = [given] if is_single else given
    work.check_count(len(lists))
    if document.cut_at is not None or sum(len(ids) for ids in lists if isinstance(ids, list)) > MAX_IDS:
        raise HttpError(413, "too_large", f"more than {MAX_IDS} token ids in one request; send fewer")
    # A character has at most four bytes, so more bytes than this are one character too many in any case.
    max_bytes = BYTES_A_CHARACTER * (service.settings.max_characters + 1)
    texts, since = [], 0
    for index, ids in enumerate(lists):
        text = await _decode(ids, encoding, "input" if is_single else f"input[{index}]", max_bytes)
        work.reserve(len(text))
        texts.append(text.decode("utf-8", errors="replace"))
        since += len(ids)
        if since > PIECE_IDS:
            since = 0
            await asyncio.sleep(0)
    return Document({**value, "input": texts[0] if is_single else texts})


async def _decode(ids: Any, encoding: Encoding, path: str, max_bytes: int) -> bytes:
    if not isinstance(ids, list):
        raise InputError(f"{path}: must be a list of token ids, as those before it are", field=path)
    try:
        return (await encoding.bytes_of(ids, max_bytes))[:max_bytes]
    except UnknownId as unknown:
        path += f"[{unknown.place}]"
        raise InputError(f"{path}: is not a token id of {encoding.name}; send those, or texts", field=path) from None


def _begins_with_ids(given: list[Any]) -> bool:
    """Return True if the first item is an integer or a list that begins with one; empty lists are skipped."""
    first = next((item for item in given if item != []), None)
    if isinstance(first, list):
        first = first[0]
    return isinstance(first, int) and not isinstance(first, bool)


def _no_encoding(others: bool) -> HttpError:
    why = "no encoding is served for this model's name" if others else "the service was given no encoding of theirs"
    return HttpError(
        400,
        "validation",
        f"input holds token ids, and {why}: send texts, or start the service with --token-ids FILE. "
        "In LangChain, set check_embedding_ctx_length=False in OpenAIEmbeddings",
        param="input",
        code="token_ids",
    )
