"""POST /api/embed, /api/embeddings and /api/show, GET /api/tags and /api/version: the shapes of Ollama's clients."""

from __future__ import annotations

import time
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from gramvec import __version__
from gramvec.embed.vectors import check_dimensions
from gramvec.server.inference import Work
from gramvec.server.model_route import model_router
from gramvec.server.openapi import EMPTY_HEADERS, ERRORS, Matrix, Numbers, errors, ok
from gramvec.server.responses import Response, count_words, to_json
from gramvec.server.routes.embed import make_finisher
from gramvec.server.schemas import Dimensions, LenientBody, OneOrManyBody, OneOrManyTexts, Truncate
from gramvec.server.state.memory_budget import NUMBER_BYTES
from gramvec.server.state.models import LoadedModel

# Ollama's clients add this tag to a name that has none.
TAG = ":latest"


class OllamaRequest(OneOrManyBody, LenientBody):
    """Texts to embed, in Ollama's shape."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"model": "gramvec-en", "input": ["vehicles", "a fast car"], "dimensions": 3}]}
    )

    holds = "input"

    input: OneOrManyTexts = Field(description="One text, or a list of texts.")
    model: str
    truncate: Truncate = True
    dimensions: Dimensions = None


class OllamaPrompt(LenientBody):
    """Single text to embed, in Ollama's earlier shape."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"model": "gramvec-en", "prompt": "vehicles"}]})

    prompt: str
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


class OllamaModels(BaseModel):
    """The response of /api/tags."""

    models: list[dict[str, Any]]


class OllamaVersion(BaseModel):
    """The response of /api/version."""

    version: str


router = model_router("as Ollama")


@router.post("/api/embed", responses=ok("The vectors.", OllamaAnswer, headers=EMPTY_HEADERS) | ERRORS)
async def create_ollama_embeddings(work: Work, body: OllamaRequest) -> Response:
    """Embed texts in Ollama's shape."""
    began = time.perf_counter_ns()
    served = work.model(body.model.removesuffix(TAG))
    texts = body.texts()
    work.check_count(len(texts))
    dimensions = work.dimensions(served, body.dimensions)
    check_dimensions(dimensions, served.embedder.dimension)
    texts = work.prepare(served, texts, body.path, truncate=body.truncate)
    work.reserve(len(texts) * served.embedder.dimension * NUMBER_BYTES)
    vectors, finished = make_finisher(await work.embed(served, texts, body.path), True, dimensions)
    words = await count_words(texts)
    value = {
        "model": body.model,
        "embeddings": finished(vectors),
        "total_duration": time.perf_counter_ns() - began,
        "load_duration": 0,
        "prompt_eval_count": words,
    }
    return Response([to_json(value)])


@router.post("/api/embeddings", responses=ok("The vector.", OllamaVector, headers=EMPTY_HEADERS) | ERRORS)
async def create_ollama_embedding(work: Work, body: OllamaPrompt) -> Response:
    """Embed one text in Ollama's earlier shape."""
    served = work.model(body.model.removesuffix(TAG))
    dimensions = work.dimensions(served, None)
    texts = work.prepare(served, [body.prompt], lambda index: "prompt", truncate=True)
    embeddings = await work.embed(served, texts, lambda index: "prompt")
    vectors, finished = make_finisher(embeddings, True, dimensions)
    return Response([to_json({"embedding": finished(vectors)[0]})])


@router.get("/api/tags", responses=ok("The models.", OllamaModels) | errors(401, 500, 503))
async def list_ollama_models(work: Work) -> Response:
    """List the served models and aliases in Ollama's shape."""
    service = work.service
    service.check_accepting()
    names = {name: name for name in service.models} | dict(service.aliases)
    models = [_describe(alias, service.admit(name)) for alias, name in names.items()]
    return Response([to_json({"models": models})])


@router.post("/api/show", responses=ok("The model.") | ERRORS)
async def show_ollama_model(work: Work, body: OllamaName) -> Response:
    """Describe a served model in Ollama's shape."""
    served = work.service.admit(body.model.removesuffix(TAG))
    described = _describe(body.model, served)
    embedder = served.embedder
    facts = {
        "general.architecture": "gramvec",
        "gramvec.embedding_length": embedder.dimension,
        "gramvec.context_length": embedder.max_characters,
    }
    return Response([to_json({**described, "capabilities": ["embedding"], "model_info": facts})])


@router.get("/api/version", responses=ok("The version.", OllamaVersion) | errors(401, 500, 503))
async def report_ollama_version() -> Response:
    """Return the version of gramvec, in Ollama's shape."""
    return Response([to_json({"version": __version__})])


def _describe(name: str, served: LoadedModel) -> dict[str, Any]:
    embedder = served.embedder
    details = {
        "format": "gramvec",
        "family": embedder.kind,
        "families": [embedder.kind],
        "parent_model": "",
        "parameter_size": str(embedder.manifest.rows * embedder.dimension),
        "quantization_level": embedder.manifest.graph.precision,
    }
    # A bundle holds no time, so that the same training gives the same bytes.
    return {
        "name": name,
        "model": name,
        "modified_at": "1970-01-01T00:00:00Z",
        "size": embedder.manifest.rows * embedder.dimension,
        "digest": embedder.digest,
        "details": details,
    }
