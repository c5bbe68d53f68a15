"""Descriptions of responses for the routes, and what the OpenAPI document has beside what FastAPI makes of them.

Examples of responses are in examples.json, which `tests/openapi_examples.py` writes.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from functools import lru_cache
from importlib.resources import files
from typing import Annotated, Any, Literal

import orjson
from pydantic import BaseModel, Field

from gramvec.server.errors import ErrorBody, OpenAIErrorBody, is_openai
from gramvec.server.responses import JSON
from gramvec.server.settings import Settings

Responses = dict[int | str, dict[str, Any]]

Numbers = list[float]
Matrix = list[Numbers]


class BestScore(BaseModel):
    """The place of a right text, and its cosine with a left one."""

    index: int
    score: float


class EmbeddingEntry(BaseModel):
    """Vector of a text, as numbers or as little-endian float32 in base64, and the index of the text."""

    object: Literal["embedding"]
    index: int
    embedding: Numbers | Annotated[str, Field(json_schema_extra={"contentEncoding": "base64"})]


class WordCounts(BaseModel):
    """Words of the texts: runs of characters between white space."""

    prompt_tokens: int
    total_tokens: int


class EmbeddingsAnswer(BaseModel):
    """The response of /v1/embeddings."""

    object: Literal["list"]
    data: list[EmbeddingEntry]
    model: str
    usage: WordCounts


class ServedModel(BaseModel):
    """A model in OpenAI's shape."""

    id: str
    object: Literal["model"]
    created: int = Field(description="Always 0: the files of a model hold no time.")
    owned_by: str


class ServedModels(BaseModel):
    """The response of /v1/models."""

    object: Literal["list"]
    data: list[ServedModel]


Scores = Numbers | Matrix | list[list[BestScore]]

INTEGER = {"type": "integer"}
MILLISECONDS = {"type": "integer"}
TEXT = {"type": "string"}
UNKNOWN_422 = "/HTTPValidationError"
# Paths that are read without a key, beside /metrics.
OPEN = {"/", "/health", "/ready", "/v2/health/live", "/v2/health/ready", "/ping"}
# Paths that want the key to change indexes.
WRITING = {"/rows/add", "/rows/remove"}
BINARY = {"schema": {"type": "string", "format": "binary"}}
BASE64_ROWS = {
    "type": "array",
    "items": {"type": "string", "contentEncoding": "base64", "description": "Little-endian components."},
}
# Forms of vectors beside JSON numbers.
OTHER_FORMS = {
    "application/octet-stream": BINARY,
    "application/x-npy": BINARY,
    "application/json; encoding=base64": {"schema": BASE64_ROWS},
}
# Headers of every response, of those with one status, and of some routes.
HEADERS = {
    "x-request-id": {"description": "The request's own x-request-id, or a new one.", "schema": TEXT},
    "x-model": {"description": "Name, @, the first 12 digits of the model's digest.", "schema": TEXT},
    "x-compute-characters": {"description": "Characters that the model read.", "schema": INTEGER},
    "x-compute-tokens": {"description": "Words in what the model read, as usage counts them.", "schema": INTEGER},
    "x-compute-type": {"description": "cpu or gpu.", "schema": TEXT},
    "x-compute-time": {"description": "The same as x-total-time.", "schema": MILLISECONDS},
    "x-total-time": {
        "description": "Whole milliseconds from the request's head to this header.",
        "schema": MILLISECONDS,
    },
    "x-tokenization-time": {
        "description": "The part of x-inference-time from texts to n-grams and words, in whole milliseconds.",
        "schema": MILLISECONDS,
    },
    "x-queue-time": {"description": "Whole milliseconds in the queue.", "schema": MILLISECONDS},
    "x-inference-time": {"description": "Whole milliseconds in the model.", "schema": MILLISECONDS},
    "server-timing": {"description": "The same three times, to a microsecond (W3C Server Timing).", "schema": TEXT},
    "x-ignored-fields": {"description": "Fields of the body that this route does not have.", "schema": TEXT},
}
STATUS_HEADERS = {
    "401": {"WWW-Authenticate": {"description": "Bearer", "schema": TEXT}},
    "429": {"Retry-After": {"description": "Whole seconds until the request would fit.", "schema": INTEGER}},
    "503": {"Retry-After": {"description": "Whole seconds.", "schema": INTEGER}},
}
SHAPE_HEADERS = {
    "x-shape": {"description": "Rows and columns, as in 2,300; not for JSON numbers.", "schema": TEXT},
    "x-dtype": {"description": "float32, int8 or uint8; not for JSON numbers.", "schema": TEXT},
}
EMPTY_HEADERS = {"x-empty-inputs": {"description": "Places of texts without any known feature.", "schema": TEXT}}
UNKNOWN_HEADERS = {
    "x-unknown-inputs": {"description": "Places of texts whose best score is below the threshold.", "schema": TEXT}
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
    500: "The service failed on this request; its log gives the reason.",
    503: "The service is not ready; try again after Retry-After seconds.",
}


def ok(description: str, model: Any = None, content: Any = None, headers: Any = None) -> Responses:
    """Return the description of a 200: the type of its JSON, other media types, and headers."""
    found = {"description": description, "model": model, "content": content, "headers": headers}
    return {200: {name: value for name, value in found.items() if value is not None}}


def errors(*statuses: int, body: type[BaseModel] = ErrorBody, **own: str) -> Responses:
    """Return the descriptions of error responses, `own` ones as `e403="..."`."""
    described = {status: DESCRIPTIONS[status] for status in statuses}
    described |= {int(name[1:]): description for name, description in own.items()}
    return {status: {"description": description, "model": body} for status, description in described.items()}


ERRORS = errors(*DESCRIPTIONS)
V1_ERRORS = errors(
    *(status for status in DESCRIPTIONS if status != 422),
    body=OpenAIErrorBody,
    e400="The body is not JSON, a field or a text is not usable, or there are token ids of no encoding that is served.",
)


def complete(document: dict[str, Any], ours: Container[str], settings: Settings) -> None:
    """Add to a document what FastAPI cannot know of our operations: keys, the headers of every response, examples.

    Args:
        document: of an application.
        ours: the ids of our operations; others are a user's.
        settings: of the service.
    """
    document["servers"] = [{"url": "."}]  # also behind a proxy that adds a prefix
    components = document.setdefault("components", {})
    keyed = settings.needs_key
    if keyed:
        components.setdefault("securitySchemes", {})["bearer"] = {"type": "http", "scheme": "bearer"}
        document["security"] = [{"bearer": []}]
    if settings.takes_rows:
        components.setdefault("securitySchemes", {})["write"] = {"type": "http", "scheme": "bearer"}
    components["headers"] = HEADERS
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            is_ours = operation["operationId"] in ours
            is_open = method == "get" and (path in OPEN or (path == "/metrics" and settings.metrics != "key"))
            if keyed and (is_open or not is_ours):
                operation.setdefault("security", [])
            if is_ours and settings.takes_rows and path in WRITING:
                operation["security"] = [{"write": []}]
            if is_ours:
                _complete(operation, path, f"{method} {path}", components["schemas"])
    if UNKNOWN_422 not in str(document["paths"]):
        for name in ("HTTPValidationError", "ValidationError"):
            components["schemas"].pop(name, None)


def _complete(operation: dict[str, Any], path: str, name: str, schemas: Mapping[str, Any]) -> None:
    responses = operation["responses"]
    # No parameter of ours can be wrong: FastAPI thinks that a path might.
    if UNKNOWN_422 in str(responses.get("422")):
        del responses["422"]
    shared = {header: {"$ref": f"#/components/headers/{header}"} for header in HEADERS}
    shape = "/v1" if is_openai(path) else "/"
    for status, response in responses.items():
        response["headers"] = {**response.get("headers", {}), **STATUS_HEADERS.get(status, {}), **shared}
        example = _examples().get(f"{name} {status}") or _examples().get(f"{shape} {status}")
        if example is not None:
            response.setdefault("content", {}).setdefault(JSON, {})["example"] = example
    media = operation.get("requestBody", {}).get("content", {}).get(JSON)
    if media is not None:
        references = media["schema"].get("oneOf", [media["schema"]])
        shown = [
            example for each in references for example in schemas[each["$ref"].rpartition("/")[2]].get("examples", ())
        ]
        media["examples"] = {f"example {number}": {"value": example} for number, example in enumerate(shown, 1)}


@lru_cache(1)
def _examples() -> dict[str, Any]:
    """Return examples of responses by method, path and status; for any path outside and inside of /v1 as "/ 404"."""
    found: dict[str, Any] = orjson.loads((files("gramvec.server") / "examples.json").read_bytes())
    return found
