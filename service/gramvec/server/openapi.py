"""The OpenAPI document of the table of routes, with examples that work.

FastAPI makes it from the table: from the schema of each body and response, and from each handler's docstring. Examples
of responses are in examples.json, which `tests/openapi_examples.py` writes.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache, reduce
from importlib.resources import files
from operator import or_
from typing import TYPE_CHECKING, Annotated, Any, Literal

import orjson
from pydantic import BaseModel, Field

from gramvec import __version__
from gramvec.server.errors import ErrorBody, OpenAIErrorBody
from gramvec.server.request import Route
from gramvec.server.responses import JSON
from gramvec.server.settings import Settings

if TYPE_CHECKING:
    from fastapi import FastAPI

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
MILLISECONDS = {"type": "number"}
TEXT = {"type": "string"}
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
    "x-total-time": {"description": "Milliseconds from the request's head to this header.", "schema": MILLISECONDS},
    "x-queue-time": {"description": "Milliseconds in the queue.", "schema": MILLISECONDS},
    "x-inference-time": {"description": "Milliseconds in the model.", "schema": MILLISECONDS},
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
    500: "The service failed on this request; its log says why.",
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
    *DESCRIPTIONS,
    body=OpenAIErrorBody,
    e400="The body is not JSON, or its input holds token ids of no encoding that is served.",
)

OPERATIONS = {"/health", "/ready", "/info", "/metrics", "/admin/reload"}


def describe(routes: Sequence[Route], settings: Settings) -> dict[str, Any]:
    """Return the OpenAPI document of these routes. The first call imports FastAPI (0.2 s, 15 MB)."""
    document = described_by_fastapi(routes).openapi()
    components = document.setdefault("components", {})
    keyed = bool(settings.api_key)
    if keyed:
        components["securitySchemes"] = {"bearer": {"type": "http", "scheme": "bearer"}}
        document["security"] = [{"bearer": []}]
    components["headers"] = HEADERS
    public = {route.path for route in routes if route.public and route.method == "GET"}
    if settings.metrics != "key":
        public.add("/metrics")
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            _complete(operation, path, f"{method} {path}")
            if keyed and path in public and method == "get":
                operation["security"] = []
    return document


def described_by_fastapi(routes: Iterable[Route]) -> FastAPI:
    """Return a FastAPI application with these routes. It describes them; `Application` answers requests."""
    from fastapi import FastAPI, Response
    from fastapi.responses import JSONResponse

    api = FastAPI(
        title="gramvec",
        version=__version__,
        description="Sentence embeddings from character n-grams and words, in the shapes of Text Embeddings Inference"
        " and of OpenAI.",
        # FastAPI has OpenTelemetry built in and on by default, with the messages of exceptions.
        telemetry={
            "tracing": False,
            "metrics": False,
            "logs": False,
            "operation_spans": False,
            "auto_configure": False,
        },
    )
    for route in routes:
        if not route.documented:
            continue
        described: dict[int | str, Any] = {status: dict(one) for status, one in route.responses.items()}
        success = described.pop(200)
        model = success.pop("model", None)
        summary, _, description = (inspect.getdoc(route.handler) or "").partition("\n")
        response_class = JSONResponse if model is not None or "content" not in success else Response
        api.add_api_route(
            route.path,
            _endpoint(route),
            methods=[route.method],
            name=route.handler.__name__,
            summary=summary.rstrip("."),
            description=description.strip() or summary,
            response_model=model,
            response_description=success["description"],
            responses={200: success, **described},
            tags=[_group(route.path)],
            openapi_extra=_parameters(route.path),
            response_class=response_class,
        )
    return api


def _endpoint(route: Route) -> Callable[..., Any]:
    from fastapi import Body

    async def endpoint(body: Any = None) -> None:
        """Stand for the handler, whose signature is of no use to FastAPI."""

    parameters = []
    if route.schemas:
        examples = [example for schema in route.schemas for example in schema.model_json_schema()["examples"]]
        named: dict[str, Any] = {f"example {number}": {"value": one} for number, one in enumerate(examples, 1)}
        kind = Annotated[reduce(or_, route.schemas), Body(openapi_examples=named)]  # type: ignore[valid-type]
        parameters.append(inspect.Parameter("body", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=kind))
    endpoint.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return endpoint


def _parameters(path: str) -> dict[str, Any] | None:
    _, braced, rest = path.partition("{")
    if not braced:
        return None
    name = rest.partition(":")[0]
    return {"parameters": [{"name": name, "in": "path", "required": True, "schema": TEXT}]}


def _group(path: str) -> str:
    if path.startswith("/v1/"):
        return "as OpenAI"
    return "operations" if path in OPERATIONS else "texts"


def _complete(operation: dict[str, Any], path: str, name: str) -> None:
    """Add the headers that every response has, and the examples."""
    shared = {header: {"$ref": f"#/components/headers/{header}"} for header in HEADERS}
    shape = "/v1" if path.startswith("/v1/") else "/"
    for status, response in operation["responses"].items():
        response["headers"] = {**response.get("headers", {}), **STATUS_HEADERS.get(status, {}), **shared}
        example = _examples().get(f"{name} {status}") or _examples().get(f"{shape} {status}")
        if example is not None:
            response.setdefault("content", {}).setdefault(JSON, {})["example"] = example


@lru_cache(1)
def _examples() -> dict[str, Any]:
    """Return examples of responses by method, path and status; for any path outside and inside of /v1 as "/ 404"."""
    found: dict[str, Any] = orjson.loads((files("gramvec.server") / "examples.json").read_bytes())
    return found
