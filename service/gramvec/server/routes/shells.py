"""The hot routes as FastAPI knows them, for /openapi.json and /docs, over the same functions; and /v1/models.

Requests to the hot ones are answered by the front door, before FastAPI; through here they give the same answers.
"""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.responses import Response

from gramvec.server.contract import JSON, openapi, reply, to_json
from gramvec.server.routes import embedding, openai, probes
from gramvec.server.routes.passing import RESERVE, USAGE, Route, as_response

router = APIRouter()


@router.post("/embed", openapi_extra=openapi.EMBED, responses=openapi.ERRORS)
async def embed_texts(request: Request) -> Response:
    """One vector a text, in the order of the inputs; always a list of vectors, also for one text.

    `Accept` chooses the form: `application/json`, `application/octet-stream` (raw little-endian rows, see the headers
    `x-shape` and `x-dtype`), `application/x-npy`, or `application/json; encoding=base64` (a list of such rows).
    """
    return await through(embedding.embed_texts, request)


@router.post("/similarity", openapi_extra=openapi.SIMILARITY, responses=openapi.ERRORS)
async def compare_texts(request: Request) -> Response:
    """Cosines in [-1, 1]: of one text with many, of pairs, or of every left text with every right one.

    A text without a single known feature scores 0 with everything; the header `x-empty-inputs` names such texts.
    """
    return await through(embedding.compare_texts, request)


@router.post("/v1/embeddings", openapi_extra=openapi.EMBEDDINGS, responses=openapi.V1_ERRORS)
async def create_embeddings(request: Request) -> Response:
    """OpenAI's shape, for its clients. `usage` counts words: what stands between white space."""
    return await through(openai.create_embeddings, request)


@router.get("/v1/models", openapi_extra=openapi.MODELS, responses=openapi.V1_GET_ERRORS)
async def list_models(request: Request) -> Response:
    """The served models in OpenAI's shape, the default first."""
    return as_response(reply([to_json(openai.list_models(request.app.state.service))], JSON))


@router.get("/v1/models/{model:path}", openapi_extra=openapi.MODEL, responses=openapi.V1_MODEL_ERRORS)
async def retrieve_model(request: Request) -> Response:
    """One served model in OpenAI's shape."""
    # Read here and not declared: FastAPI would document a 422 that cannot happen.
    name = request.path_params["model"]
    return as_response(reply([to_json(openai.retrieve_model(request.app.state.service, name))], JSON))


@router.post("/", openapi_extra=openapi.ROOT, responses=openapi.ERRORS)
async def embed_or_compare(request: Request) -> Response:
    """`/embed`, or `/similarity` where `inputs` is an object: for clients that know the server's address alone."""
    return await through(embedding.embed_or_compare, request)


@router.get("/health", responses=openapi.HEALTH)
async def health(request: Request) -> Response:
    """Liveness: 200 while the process can answer at all, also while the model loads."""
    return await through(probes.health, request)


@router.get("/ready", responses=openapi.READY)
async def ready(request: Request) -> Response:
    """Readiness: 200 when requests are taken, else 503 with the reason."""
    return await through(probes.ready, request)


class _Shell:
    """A Starlette request as the routes see it."""

    gone = False  # nobody knows before it is asked

    def __init__(self, request: Request) -> None:
        self.reserve = request.scope[RESERVE]
        self.headers = dict(request.headers.raw)
        self.body = request.body
        self.receive = request.receive


async def through(route: Route, request: Request) -> Response:
    """What a route answers to a request that came through FastAPI."""
    answer = await route(request.app.state.service, _Shell(request))
    request.scope[USAGE] = answer.usage
    return as_response(answer)
