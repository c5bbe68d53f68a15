"""Routes below /api: the shapes of Ollama's clients."""

from __future__ import annotations

import time
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from gramvec import __version__
from gramvec.embed.vectors import check_dimensions
from gramvec.server.inference import ModelWork
from gramvec.server.model_route import ModelRoute, model_router
from gramvec.server.openapi import EMPTY_HEADERS, ERRORS, Matrix, Numbers, errors, ok
from gramvec.server.request import Document, Request
from gramvec.server.responses import Response, to_json
from gramvec.server.routes.embed import make_finisher
from gramvec.server.schemas import Dimensions, LenientBody, OneOrManyBody, OneOrManyOrNoTexts, Truncate
from gramvec.server.state.memory_budget import NUMBER_BYTES
from gramvec.server.state.models import LoadedModel

# Ollama lists a name without a tag with this one, and its clients add it.
TAG = ":latest"
# Content types with which a page of any origin may send a body without asking first (Fetch, CORS-safelisted).
SAFELISTED = (b"application/x-www-form-urlencoded", b"multipart/form-data", b"text/plain", b"")


class OllamaRoute(ModelRoute):
    """Route whose body is JSON whatever its content type says, as Ollama reads it, and may name the model `name`."""

    async def document(self, request: Request) -> Document:
        """Return the body of a request, with `model` in the place of the earlier `name`.

        Raises:
            HttpError: 415 from a page of a browser that has not asked whether it may send JSON.
        """
        media_type = request.sent.get(b"content-type", b"").partition(b";")[0].strip().lower()
        is_of_page = b"origin" in request.sent and media_type in SAFELISTED
        document = await request.document(any_type=not is_of_page)
        value = document.value
        if isinstance(value, dict) and value.get("model") is None and value.get("name") is not None:
            document = document._replace(
                value={**{k: v for k, v in value.items() if k != "name"}, "model": value["name"]}
            )
        return document


class OllamaRequest(OneOrManyBody, LenientBody):
    """Texts to embed, in Ollama's shape."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"model": "gramvec-en", "input": ["vehicles", "a fast car"], "dimensions": 3}]}
    )

    holds = "input"

    input: OneOrManyOrNoTexts = Field(
        default_factory=list, description="One text, or a list of texts; none only loads the model."
    )
    model: str
    truncate: Truncate = True
    dimensions: Dimensions = None


class OllamaPrompt(LenientBody):
    """Single text to embed, in Ollama's earlier shape."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"model": "gramvec-en", "prompt": "vehicles"}]})

    prompt: str | None = Field(None, description="The text; none only loads the model.")
    model: str


class OllamaName(LenientBody):
    """Name of a model."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"model": "gramvec-en"}]})

    model: str


class OllamaAnswer(BaseModel):
    """The response of /api/embed; durations are nanoseconds, and words are counted in the place of tokens."""

    model: str
    embeddings: Matrix
    total_duration: int
    load_duration: int
    prompt_eval_count: int


class OllamaVector(BaseModel):
    """The response of /api/embeddings."""

    embedding: Numbers


class OllamaDetails(BaseModel):
    """Kind of a model, in Ollama's words."""

    format: Literal["gramvec"] = "gramvec"
    family: str
    families: list[str]
    parent_model: Literal[""] = ""
    parameter_size: str
    quantization_level: str


class OllamaModel(BaseModel):
    """A model of /api/tags; a bundle holds no time, so that the same training gives the same bytes."""

    name: str
    model: str
    modified_at: Literal["1970-01-01T00:00:00Z"] = "1970-01-01T00:00:00Z"
    size: int
    digest: str
    details: OllamaDetails


class OllamaModels(BaseModel):
    """The response of /api/tags."""

    models: list[OllamaModel]


class OllamaShown(OllamaModel):
    """The response of /api/show."""

    capabilities: list[Literal["embedding"]] = ["embedding"]
    model_info: dict[str, str | int]


class OllamaVersion(BaseModel):
    """The response of /api/version."""

    version: str


class OllamaStatus(BaseModel):
    """The response of /api/pull, of which each is a line of its own where a client wants to follow."""

    status: Literal["success"]


router = model_router("as Ollama", OllamaRoute)


@router.post("/api/embed", responses=ok("The vectors.", OllamaAnswer, headers=EMPTY_HEADERS) | ERRORS)
async def create_ollama_embeddings(work: ModelWork, body: OllamaRequest) -> Response:
    """Embed texts in Ollama's shape."""
    began = time.perf_counter_ns()
    served = work.model(body.model.removesuffix(TAG))
    texts = body.texts()
    work.check_count(len(texts))
    dimensions = work.dimensions(served, body.dimensions)
    check_dimensions(dimensions, served.embedder.dimension)
    if not texts:
        nothing = {"embeddings": [], "total_duration": 0, "load_duration": 0, "prompt_eval_count": 0}
        return Response([to_json({"model": body.model, **nothing})])
    texts = work.prepare(served, texts, body.path, truncate=body.truncate)
    work.reserve(len(texts) * served.embedder.dimension * NUMBER_BYTES)
    vectors, finished = make_finisher(await work.embed(served, texts, body.path), True, dimensions)
    value = {
        "model": body.model,
        "embeddings": finished(vectors),
        "total_duration": time.perf_counter_ns() - began,
        "load_duration": 0,
        "prompt_eval_count": work.words,
    }
    return Response([to_json(value)])


@router.post("/api/embeddings", responses=ok("The vector.", OllamaVector, headers=EMPTY_HEADERS) | ERRORS)
async def create_ollama_embedding(work: ModelWork, body: OllamaPrompt) -> Response:
    """Embed one text in Ollama's earlier shape."""
    served = work.model(body.model.removesuffix(TAG))
    if not body.prompt:
        return Response([to_json({"embedding": []})])
    dimensions = work.dimensions(served, None)
    texts = work.prepare(served, [body.prompt], lambda index: "prompt", truncate=True)
    embeddings = await work.embed(served, texts, lambda index: "prompt")
    vectors, finished = make_finisher(embeddings, True, dimensions)
    return Response([to_json({"embedding": finished(vectors)[0]})])


@router.get("/api/tags", responses=ok("The models.", OllamaModels) | errors(401, 500, 503))
async def list_ollama_models(work: ModelWork) -> OllamaModels:
    """List the served models and aliases in Ollama's shape."""
    work.service.check_accepting()
    names = {name: name for name in work.service.models} | dict(work.service.aliases)
    return OllamaModels(models=[_describe(alias, work.service.admit(name)) for alias, name in names.items()])


@router.get("/api/ps", responses=ok("The models.", OllamaModels) | errors(401, 500, 503))
async def list_loaded_ollama_models(work: ModelWork) -> OllamaModels:
    """List the models that are loaded, which are all that are served."""
    return await list_ollama_models(work)


@router.post("/api/show", responses=ok("The model.", OllamaShown) | ERRORS)
async def show_ollama_model(work: ModelWork, body: OllamaName) -> OllamaShown:
    """Describe a served model in Ollama's shape."""
    served = work.service.admit(body.model.removesuffix(TAG))
    embedder = served.embedder
    facts: dict[str, str | int] = {
        "general.architecture": "gramvec",
        "gramvec.embedding_length": embedder.dimension,
        "gramvec.context_length": embedder.max_characters,
    }
    return OllamaShown(**dict(_describe(body.model, served)), model_info=facts)


@router.post("/api/pull", responses=ok("The model is served.", OllamaStatus) | ERRORS)
async def pull_ollama_model(work: ModelWork, body: OllamaName) -> OllamaStatus:
    """Confirm that a model is served, for clients that pull a model before they use it. Nothing is loaded."""
    work.service.admit(body.model.removesuffix(TAG))
    return OllamaStatus(status="success")


@router.get("/api/version", responses=ok("The version.", OllamaVersion) | errors(401, 500, 503))
async def report_ollama_version() -> OllamaVersion:
    """Return the version of gramvec, in Ollama's shape."""
    return OllamaVersion(version=__version__)


def _describe(name: str, served: LoadedModel) -> OllamaModel:
    embedder = served.embedder
    return OllamaModel(
        name=name if ":" in name else name + TAG,
        model=name if ":" in name else name + TAG,
        size=embedder.manifest.rows * embedder.dimension,
        digest=embedder.digest,
        details=OllamaDetails(
            family=embedder.kind,
            families=[embedder.kind],
            parameter_size=str(embedder.manifest.rows * embedder.dimension),
            quantization_level=embedder.manifest.graph.precision,
        ),
    )
