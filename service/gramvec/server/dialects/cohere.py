"""POST /v1/embed and /v2/embed: the shapes of Cohere's clients over the same models."""

from __future__ import annotations

from typing import Annotated, Any, Literal, cast

from pydantic import BaseModel, ConfigDict, Field

from gramvec.embed.vectors import RawEmbeddings, VectorPrecision, check_dimensions
from gramvec.server.errors import HttpError
from gramvec.server.inference import Inference, ModelWork
from gramvec.server.model_route import model_router
from gramvec.server.openapi import EMPTY_HEADERS, ERRORS, V1_ERRORS, ok
from gramvec.server.responses import Response, base64_of_each, to_json
from gramvec.server.routes.embed import make_finisher
from gramvec.server.schemas import Dimensions, LenientBody, RequestedModel, Texts
from gramvec.server.state.memory_budget import NUMBER_BYTES

EmbeddingType = Literal["float", "int8", "uint8", "binary", "ubinary", "base64"]
DEFAULT_TYPES: tuple[EmbeddingType, ...] = ("float",)


class ContentPart(LenientBody):
    """Part of an input; images are refused."""

    type: Literal["text"]
    text: str


class ContentInput(LenientBody):
    """Input of parts, whose texts are joined with spaces."""

    content: Annotated[list[ContentPart], Field(min_length=1)]


class CohereRequest(LenientBody):
    """Texts to embed, in Cohere's shape."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"model": "gramvec-en", "texts": ["vehicles"], "output_dimension": 3}]
        }
    )  # fmt: skip

    texts: Texts | None = None
    inputs: Annotated[list[ContentInput], Field(min_length=1)] | None = Field(
        None, description="Texts in the shape of mixed content."
    )
    model: RequestedModel = None
    embedding_types: Annotated[list[EmbeddingType], Field(min_length=1, max_length=6)] | None = Field(
        None, description="Types of the components; float without it."
    )
    output_dimension: Dimensions = None
    truncate: Literal["NONE", "START", "END"] | None = Field("END", description="The end at which a long text is cut.")

    def all_texts(self) -> list[str]:
        """Return all texts. Raises HttpError 422 where there is not exactly one list of them."""
        if (self.texts is None) == (self.inputs is None):
            raise HttpError(422, "validation", "texts: give either texts or inputs", param="texts")
        if self.inputs is None:
            return cast(list[str], self.texts)
        return [" ".join(part.text for part in item.content) for item in self.inputs]

    def path(self, index: int) -> str:
        """Return the place of a text in the body."""
        return f"inputs[{index}].content" if self.texts is None else f"texts[{index}]"


class CohereAnswer(BaseModel):
    """The response of /v2/embed: a list of vectors for each type."""

    id: str
    embeddings: dict[EmbeddingType, list[Any]]
    texts: list[str]
    meta: dict[str, Any]


class CohereFloats(BaseModel):
    """The response of /v1/embed without embedding_types."""

    id: str
    response_type: Literal["embeddings_floats", "embeddings_by_type"]
    embeddings: list[list[float]] | dict[EmbeddingType, list[Any]]
    texts: list[str]
    meta: dict[str, Any]


router = model_router("as Cohere")


@router.post("/v2/embed", responses=ok("The vectors, by their type.", CohereAnswer, headers=EMPTY_HEADERS) | ERRORS)
async def create_typed_embeddings(work: ModelWork, body: CohereRequest) -> Response:
    """Embed texts in the shape of Cohere's second version."""
    return await _respond(work, body, version=2)


@router.post("/v1/embed", responses=ok("The vectors.", CohereFloats, headers=EMPTY_HEADERS) | V1_ERRORS)
async def create_cohere_embeddings(work: ModelWork, body: CohereRequest) -> Response:
    """Embed texts in the shape of Cohere's first version."""
    return await _respond(work, body, version=1)


async def _respond(work: Inference, body: CohereRequest, version: int) -> Response:
    served = work.model(body.model)
    given = body.all_texts()
    work.check_count(len(given))
    dimensions = work.dimensions(served, body.output_dimension)
    check_dimensions(dimensions, served.embedder.dimension)
    direction = "left" if body.truncate == "START" else "right"
    texts = work.prepare(served, given, body.path, truncate=body.truncate != "NONE", direction=direction)
    types = list(dict.fromkeys(body.embedding_types or DEFAULT_TYPES))
    work.reserve(len(types) * len(texts) * served.embedder.dimension * NUMBER_BYTES + sum(map(len, texts)))
    embeddings = await work.embed(served, texts, body.path)
    by_type = {kind: _rows(embeddings, kind, dimensions) for kind in types}
    # Cohere's client wants an id; the request's own is in the header x-request-id.
    value: dict[str, Any] = {"id": "embed"}
    if version == 1:
        value["response_type"] = "embeddings_floats" if body.embedding_types is None else "embeddings_by_type"
    only_floats = version == 1 and body.embedding_types is None
    value["embeddings"] = by_type["float"] if only_floats else by_type
    value["texts"] = given
    value["meta"] = {"api_version": {"version": str(version)}, "billed_units": {"input_tokens": work.words}}
    return Response([to_json(value)])


def _rows(embeddings: RawEmbeddings, kind: EmbeddingType, dimensions: int | None) -> Any:
    precision: VectorPrecision = "float32" if kind in ("float", "base64") else cast(VectorPrecision, kind)
    vectors, finished = make_finisher(embeddings, True, dimensions, precision)
    rows = finished(vectors)
    return [row.decode() for row in base64_of_each(rows)] if kind == "base64" else rows
