"""POST /embed_sparse: n-grams of texts, hashed to columns, for a store that weighs columns by how rare they are."""

from __future__ import annotations

from itertools import pairwise

from fastapi import APIRouter, Request
from starlette.responses import Response

from gramvec.lexical.sparse import SparseEmbedder, uniform
from gramvec.server.contract import (
    JSON,
    Incoming,
    Reply,
    SparseRequest,
    SparseValue,
    check,
    openapi,
    read,
    reply,
    to_json,
)
from gramvec.server.routes.shells import through
from gramvec.server.state import Service, check_characters, prepare, usage_of_turn

router = APIRouter()

# Of all texts of a request: half a second of a core, and 60 MB of answer.
MOST_CHARACTERS = 1_000_000
# A character begins an n-gram of three and one of four; an entry takes 46 bytes in JSON, and its objects as much.
BYTES_A_CHARACTER = 2 * 92

SPARSE = openapi.operation(
    SparseRequest,
    description="For each text the columns that it has, ascending, and their values.",
    schema=openapi.listed(openapi.listed(openapi.reference(SparseValue))),
)


@router.post("/embed_sparse", openapi_extra=SPARSE, responses=openapi.ERRORS)
async def embed_sparse_texts(request: Request) -> Response:
    """One sparse vector of length 1 a text: its n-grams of 3 and 4 characters, hashed to 16,777,216 columns.

    A value is how often the text has the n-gram; how rare that is among your texts, your store has to weigh, as Qdrant
    does with `modifier: idf`. No model has a part in it.
    """
    return await through(embed_sparse, request)


async def embed_sparse(service: Service, request: Incoming) -> Reply:
    """Answer POST /embed_sparse.

    Raises:
        HttpError, GramvecError: what `reply.error_reply` puts into words.
        ClientDisconnect: the client has gone.
    """
    service.check_accepting()
    body = check(await read(request, service.most_values), SparseRequest)
    given = body.texts()
    service.check_count(len(given))
    served = service.admit()
    texts = prepare(served, given, body.path, truncate=body.truncate, direction=body.truncation_direction)
    characters = check_characters(texts, MOST_CHARACTERS)
    request.reserve(BYTES_A_CHARACTER * characters)
    encoded, turn = await service.sparse.run(lambda: _encoded(uniform(), texts))
    return reply([encoded], JSON, usage_of_turn(served, texts, turn))


def _encoded(embedder: SparseEmbedder, texts: list[str]) -> bytes:
    found = embedder.embed(texts)
    # As float32 they are written with the digits that they have.
    entries = [
        {"index": index, "value": value}
        for index, value in zip(found.indices.tolist(), list(found.values), strict=True)
    ]
    edges = found.indptr.tolist()
    return to_json([entries[begin:end] for begin, end in pairwise(edges)])
