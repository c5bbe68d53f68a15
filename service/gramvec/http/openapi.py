"""What /openapi.json says beyond the routes' own text: request bodies, answers and errors, with examples that work.

The routes read and check their bodies themselves, so FastAPI cannot see the schemas; they are named here.
"""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic.json_schema import models_json_schema

from gramvec.http.answers import BASE64, NPY, RAW
from gramvec.http.errors import ErrorBody
from gramvec.http.reply import JSON
from gramvec.http.schemas import Body, EmbedRequest, SimilarityRequest

REFERENCE = "#/components/schemas/{model}"

Operation = dict[str, Any]
Responses = dict[int | str, dict[str, Any]]

NUMBERS = {"type": "array", "items": {"type": "number"}}
MATRIX = {"type": "array", "items": NUMBERS}
BINARY = {"schema": {"type": "string", "format": "binary"}}
BASE64_ROWS = {
    "type": "array",
    "items": {"type": "string", "contentEncoding": "base64", "description": "Little-endian float32 components."},
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


def _reference(schema: type[Any]) -> dict[str, str]:
    return {"$ref": REFERENCE.format(model=schema.__name__)}


def _request_body(schema: type[Body]) -> dict[str, Any]:
    examples = schema.model_json_schema()["examples"]
    named = {f"example {number}": {"value": example} for number, example in enumerate(examples, 1)}
    return {"required": True, "content": {JSON: {"schema": _reference(schema), "examples": named}}}


def _error(description: str) -> dict[str, Any]:
    return {"description": description, "content": {JSON: {"schema": _reference(ErrorBody)}}}


EMBED: Operation = {
    "requestBody": _request_body(EmbedRequest),
    "responses": {
        "200": {
            "description": "The vectors.",
            "content": {JSON: {"schema": MATRIX}, RAW: BINARY, NPY: BINARY, BASE64: {"schema": BASE64_ROWS}},
        }
    },
}

SIMILARITY: Operation = {
    "requestBody": _request_body(SimilarityRequest),
    "responses": {
        "200": {
            "description": "A list of scores; a matrix for left and right; with top_k the best of each left text.",
            "content": {JSON: {"schema": {"anyOf": [NUMBERS, MATRIX, BEST]}}},
        }
    },
}

ERRORS: Responses = {
    400: _error("The body is not JSON."),
    401: _error("The API key is missing or wrong."),
    404: _error("No model of that name is served."),
    413: _error("The body is over the limit, or there are too many texts."),
    415: _error("The content type is not application/json."),
    422: _error("A field or a text is not usable; the message names it."),
    424: _error("The model failed on this request."),
    429: _error("The queue is full; try again after Retry-After seconds."),
    503: _error("The service is not ready; try again after Retry-After seconds."),
}

HEALTH: Responses = {200: {"description": "The process answers."}}
READY: Responses = {200: {"description": "Requests are taken."}, 503: _error("They are not; the message says why.")}
INFO: Responses = {
    200: {"description": "Models, limits, device and versions."},
    401: ERRORS[401],
    503: ERRORS[503],
}


def describe(app: FastAPI) -> dict[str, Any]:
    """The OpenAPI document of the application, made once."""
    if app.openapi_schema is None:
        document = get_openapi(title=app.title, version=app.version, description=app.description, routes=app.routes)
        schemas: list[tuple[type[Any], Any]] = [
            (schema, "validation") for schema in (EmbedRequest, SimilarityRequest, ErrorBody)
        ]
        _, definitions = models_json_schema(schemas, ref_template=REFERENCE)
        components = document.setdefault("components", {})
        components.setdefault("schemas", {}).update(definitions["$defs"])
        if app.state.service.settings.api_key:
            components["securitySchemes"] = {"bearer": {"type": "http", "scheme": "bearer"}}
            document["security"] = [{"bearer": []}]
        app.openapi_schema = document
    return app.openapi_schema
