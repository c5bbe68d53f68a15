"""POST /embed_sparse: hashed n-grams of texts, for a store that weighs columns by how rare they are."""

from __future__ import annotations

from itertools import pairwise

from pydantic import BaseModel, ConfigDict, Field

from gramvec.lexical.sparse import SparseEmbedder, uniform
from gramvec.server.request import Request, usage_of_job
from gramvec.server.responses import JSON, Response, to_json
from gramvec.server.schemas import Direction, OneOrManyBody, OneOrManyTexts, Truncate

# In all texts of a request: half a second of a core, and 60 MB of JSON.
MOST_CHARACTERS = 1_000_000
# A character begins an n-gram of three and one of four; an entry takes 46 bytes in JSON, and its objects as much.
BYTES_A_CHARACTER = 2 * 92
SECONDS_A_CHARACTER = 5e-7


class SparseRequest(OneOrManyBody):
    """Texts to embed sparsely, in the shape of Text Embeddings Inference."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"inputs": ["tv", "a tv"]}]})

    inputs: OneOrManyTexts = Field(description="One text, or a list of texts. The empty string has an empty vector.")
    truncate: Truncate = None
    truncation_direction: Direction | None = Field("right", description="The end at which a long text is cut.")


class SparseValue(BaseModel):
    """Entry of a sparse vector: its column, below 16,777,216, and its value."""

    index: int
    value: float


async def embed_sparse_texts(request: Request, body: SparseRequest) -> Response:
    """Embed texts sparsely: their n-grams of 3 and 4 characters, hashed to 16,777,216 columns, at length 1.

    A value is how often the text has the n-gram. Your store has to weigh how rare it is among your texts, as Qdrant
    does with `modifier: idf`. No model takes part.
    """
    service, given = request.service, body.texts()
    request.check_count(len(given))
    served = service.admit()
    texts = request.prepare(served, given, body.path, truncate=body.truncate, direction=body.truncation_direction)
    characters = request.check_characters(texts)
    request.reserve(BYTES_A_CHARACTER * characters)
    with request.admit(SECONDS_A_CHARACTER * characters) as job:
        encoded = await request.in_thread(job, lambda: _encoded(uniform(), texts))
    return Response([encoded], JSON, usage_of_job(served, texts, job))


def _encoded(embedder: SparseEmbedder, texts: list[str]) -> bytes:
    found = embedder.embed(texts)
    # float32 numbers are written with only the digits that they have.
    entries = [
        {"index": index, "value": value}
        for index, value in zip(found.indices.tolist(), list(found.values), strict=True)
    ]
    edges = found.indptr.tolist()
    return to_json([entries[begin:end] for begin, end in pairwise(edges)])
