"""What /openapi.json says beyond the routes' own text: request bodies, answers and errors, with examples that work.

The routes read and check their bodies themselves, so FastAPI cannot see the schemas; they are named here.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic.json_schema import models_json_schema

from gramvec.server.contract.answers import BASE64, NPY, RAW
from gramvec.server.contract.envelope import OpenAIErrorBody
from gramvec.server.contract.errors import ErrorBody
from gramvec.server.contract.examples import ANSWERS, refusal
from gramvec.server.contract.explanation import Explained, ExplainRequest
from gramvec.server.contract.matching import MatchAnswer, MatchRequest
from gramvec.server.contract.predicting import LabelScore, PredictRequest
from gramvec.server.contract.ranking import RankAnswer, RankedText, RankRequest, RerankRequest
from gramvec.server.contract.reply import JSON
from gramvec.server.contract.schemas import Body, EmbeddingsRequest, EmbedRequest, SimilarityRequest
from gramvec.server.contract.searching import SearchAnswer, SearchRequest
from gramvec.server.contract.sparse import SparseRequest, SparseValue

REFERENCE = "#/components/schemas/{model}"

Operation = dict[str, Any]
Responses = dict[int | str, dict[str, Any]]

NUMBERS = {"type": "array", "items": {"type": "number"}}
MATRIX = {"type": "array", "items": NUMBERS}
BINARY = {"schema": {"type": "string", "format": "binary"}}
BASE64_ROWS = {
    "type": "array",
    "items": {"type": "string", "contentEncoding": "base64", "description": "Little-endian components."},
}
BEST = {
    "type": "array",
    "items": {
        "type": "array",
        "items": {
            "type": "object",
            "properties": {"index": {"type": "integer"}, "score": {"type": "number"}},
            "required": ["index", "score"],
        },
    },
}


EMBEDDINGS_LIST = {
    "type": "object",
    "properties": {
        "object": {"const": "list"},
        "data": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "object": {"const": "embedding"},
                    "index": {"type": "integer"},
                    "embedding": {"anyOf": [NUMBERS, {"type": "string", "contentEncoding": "base64"}]},
                },
                "required": ["object", "index", "embedding"],
            },
        },
        "model": {"type": "string"},
        "usage": {
            "type": "object",
            "description": "Words of the texts: what stands between white space.",
            "properties": {"prompt_tokens": {"type": "integer"}, "total_tokens": {"type": "integer"}},
            "required": ["prompt_tokens", "total_tokens"],
        },
    },
    "required": ["object", "data", "model", "usage"],
}
ONE_MODEL = {
    "type": "object",
    "properties": {
        "id": {"type": "string"},
        "object": {"const": "model"},
        "created": {"type": "integer", "description": "Always 0: a model's files say nothing of time."},
        "owned_by": {"type": "string"},
    },
    "required": ["id", "object", "created", "owned_by"],
}
MODELS_LIST = {
    "type": "object",
    "properties": {"object": {"const": "list"}, "data": {"type": "array", "items": ONE_MODEL}},
    "required": ["object", "data"],
}

INTEGER = {"type": "integer"}
MILLISECONDS = {"type": "number"}
TEXT = {"type": "string"}
# Of every answer.
HEADERS = {
    "x-request-id": {"description": "The request's own x-request-id, or a new one.", "schema": TEXT},
    "x-model": {"description": "Name, @, the first 12 digits of the model's digest.", "schema": TEXT},
    "x-compute-characters": {"description": "Characters that the model read.", "schema": INTEGER},
    "x-total-time": {"description": "Milliseconds from the request's head to this header.", "schema": MILLISECONDS},
    "x-queue-time": {"description": "Milliseconds in the queue.", "schema": MILLISECONDS},
    "x-inference-time": {"description": "Milliseconds in the model.", "schema": MILLISECONDS},
}
# Of answers of one status.
STATUS_HEADERS = {
    "401": {"WWW-Authenticate": {"description": "Bearer", "schema": TEXT}},
    "429": {"Retry-After": {"description": "Whole seconds until the request would fit.", "schema": INTEGER}},
    "503": {"Retry-After": {"description": "Whole seconds.", "schema": INTEGER}},
}
SHAPE_HEADERS = {
    "x-shape": {"description": "Rows and columns, as in 2,300; of all forms but a list of numbers.", "schema": TEXT},
    "x-dtype": {"description": "float32, int8 or uint8; of all forms but a list of numbers.", "schema": TEXT},
}
EMPTY_HEADERS = {
    "x-empty-inputs": {"description": "Where the texts without any known feature stand, if any.", "schema": TEXT}
}
UNKNOWN_HEADERS = {
    "x-unknown-inputs": {
        "description": "Where the texts stand whose best score is below the threshold, if any.",
        "schema": TEXT,
    }
}


def reference(schema: type[Any]) -> dict[str, str]:
    """Where the document keeps this schema; `describe` puts it there."""
    return {"$ref": REFERENCE.format(model=schema.__name__)}


def request_body(*schemas: type[Body]) -> dict[str, Any]:
    """The body of a route that takes one of these, with the examples that they carry."""
    examples = [example for schema in schemas for example in schema.model_json_schema()["examples"]]
    named = {f"example {number}": {"value": example} for number, example in enumerate(examples, 1)}
    references = [reference(schema) for schema in schemas]
    schema = references[0] if len(references) == 1 else {"anyOf": references}
    return {"required": True, "content": {JSON: {"schema": schema, "examples": named}}}


def error(description: str, body: type[Any] = ErrorBody) -> dict[str, Any]:
    """An answer that is an error."""
    return {"description": description, "content": {JSON: {"schema": reference(body)}}}


def listed(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema of a list of these."""
    return {"type": "array", "items": schema}


def operation(
    *bodies: type[Body],
    description: str,
    schema: dict[str, Any] | None = None,
    content: dict[str, Any] | None = None,
    headers: dict[str, Any] | None = None,
) -> Operation:
    """A route that takes one of these bodies, if any, and what it answers: JSON of this schema, or this content."""
    answer = {"description": description, "content": content or {JSON: {"schema": schema}}}
    if headers:
        answer["headers"] = headers
    made: Operation = {"responses": {"200": answer}}
    return {"requestBody": request_body(*bodies), **made} if bodies else made


VECTORS = {JSON: {"schema": MATRIX}, RAW: BINARY, NPY: BINARY, BASE64: {"schema": BASE64_ROWS}}
SCORES = {"anyOf": [NUMBERS, MATRIX, BEST]}

EMBED = operation(EmbedRequest, description="The vectors.", content=VECTORS, headers=SHAPE_HEADERS)
SIMILARITY = operation(
    SimilarityRequest,
    description="A list of scores; a matrix for left and right; with top_k the best of each left text.",
    schema=SCORES,
    headers=EMPTY_HEADERS,
)
ROOT = operation(
    *(EmbedRequest, SimilarityRequest),
    description="What /embed or /similarity answers.",
    content={**VECTORS, JSON: {"schema": {"anyOf": [MATRIX, *SCORES["anyOf"]]}}},
    headers=SHAPE_HEADERS | EMPTY_HEADERS,
)
EMBEDDINGS = operation(
    EmbeddingsRequest, description="The vectors, each with the place of its text.", schema=EMBEDDINGS_LIST
)
MODELS = operation(description="The models.", schema=MODELS_LIST)
MODEL: Operation = {
    "parameters": [{"name": "model", "in": "path", "required": True, "schema": TEXT}],
    **operation(description="The model.", schema=ONE_MODEL),
}

DESCRIPTIONS = {
    400: "The body is not JSON.",
    401: "The API key is missing or wrong.",
    404: "No model of that name is served.",
    413: "The body is over the limit, or there are too many texts.",
    415: "The content type is not application/json.",
    422: "A field or a text is not usable; the message names it.",
    424: "The model failed on this request.",
    429: "The queue is full, or would hold the request for too long; try again after Retry-After seconds.",
    500: "The service failed on this request; its log says why.",
    503: "The service is not ready; try again after Retry-After seconds.",
}


def errors(*statuses: int, body: type[Any] = ErrorBody) -> Responses:
    """These answers, each of which has this body."""
    return {status: error(DESCRIPTIONS[status], body) for status in statuses}


ERRORS = errors(*DESCRIPTIONS)
V1_ERRORS = errors(*DESCRIPTIONS, body=OpenAIErrorBody) | {
    400: error("The body is not JSON, or its input holds token ids of no encoding that is served.", OpenAIErrorBody)
}
V1_GET_ERRORS = errors(401, 500, 503, body=OpenAIErrorBody)
V1_MODEL_ERRORS = errors(401, 404, 500, 503, body=OpenAIErrorBody)

OPERATIONS = {"/health", "/ready", "/info", "/metrics", "/admin/reload"}
HEALTH: Responses = {200: {"description": "The process answers."}}
READY: Responses = {200: {"description": "Requests are taken."}, 503: error("They are not; the message says why.")}
METRICS: Responses = {
    200: {
        "description": "Metrics of all workers.",
        "content": {"text/plain": {"schema": {"type": "string"}}, "application/openmetrics-text": {}},
    },
    401: ERRORS[401],
    404: error("Metrics are switched off."),
}
INFO: Responses = {200: {"description": "Models, limits, device and versions."}, **errors(401, 500, 503)}

RELOAD: Responses = {
    200: {"description": "Each model's name and digest, and whether it is another one than before."},
    **errors(401, 500, 503),
    403: error("No API key is set, without which nothing is reloaded over HTTP."),
    409: error("Another reload is under way."),
    422: error("A model's folder holds no usable bundle; all models go on as they were."),
}


def describe(app: FastAPI, public: Collection[str]) -> dict[str, Any]:
    """The OpenAPI document of the application, made once; `public` paths need no key."""
    if app.openapi_schema is None:
        document = get_openapi(title=app.title, version=app.version, description=app.description, routes=app.routes)
        bodies = (
            *(EmbedRequest, SimilarityRequest, EmbeddingsRequest, ExplainRequest, Explained),
            *(RerankRequest, RankedText, RankRequest, RankAnswer),
            *(SearchRequest, SearchAnswer, PredictRequest, LabelScore),
            *(SparseRequest, SparseValue, MatchRequest, MatchAnswer),
            *(ErrorBody, OpenAIErrorBody),
        )
        schemas: list[tuple[type[Any], Any]] = [(schema, "validation") for schema in bodies]
        _, definitions = models_json_schema(schemas, ref_template=REFERENCE)
        components = document.setdefault("components", {})
        components.setdefault("schemas", {}).update(definitions["$defs"])
        settings = app.state.service.settings
        keyed = bool(settings.api_key)
        open_paths = {*public, "/metrics"} if settings.metrics != "key" else public
        if keyed:
            components["securitySchemes"] = {"bearer": {"type": "http", "scheme": "bearer"}}
            document["security"] = [{"bearer": []}]
        components["headers"] = HEADERS
        for path, operations in document["paths"].items():
            for method, operation in operations.items():
                _complete(operation)
                _give_examples(operation, method, path)
                operation["tags"] = [_group(path)]
                if keyed and path in open_paths and method == "get":
                    operation["security"] = []
        app.openapi_schema = document
    return app.openapi_schema


def _group(path: str) -> str:
    if path.startswith("/v1/"):
        return "as OpenAI"
    return "operations" if path in OPERATIONS else "texts"


def _give_examples(operation: dict[str, Any], method: str, path: str) -> None:
    for status, response in operation["responses"].items():
        example = ANSWERS.get(f"{method} {path}") if status == "200" else refusal(path, int(status))
        if example is not None:
            response.setdefault("content", {}).setdefault(JSON, {})["example"] = example


def _complete(operation: dict[str, Any]) -> None:
    for status, response in operation["responses"].items():
        shared = {name: {"$ref": f"#/components/headers/{name}"} for name in HEADERS}
        response["headers"] = {**response.get("headers", {}), **STATUS_HEADERS.get(status, {}), **shared}
