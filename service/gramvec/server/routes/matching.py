"""POST /match: two lists of texts, and which of them are most alike by their letters."""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.responses import Response

from gramvec.server.contract import (
    JSON,
    Incoming,
    MatchAnswer,
    MatchRequest,
    Reply,
    check,
    openapi,
    read,
    reply,
    to_json,
    too_large,
)
from gramvec.server.routes.shells import through
from gramvec.server.state import ENTRY_BYTES, Service, check_characters, prepare, usage_of_turn

router = APIRouter()

# Of all texts of a request: a second of a core where each left text shares n-grams with each right one.
MOST_CHARACTERS = 500_000
# Where max_texts is raised.
MOST_PAIRS = 2_000_000
# Of one request's answer.
MOST_MATCHES = 100_000
# N-grams of a character, of 16 bytes each in both lists' vectors and as much while they are multiplied.
BYTES_A_CHARACTER = 2 * 32

MATCH = openapi.operation(
    MatchRequest,
    description="The matches, by left text and then the highest score.",
    schema=openapi.reference(MatchAnswer),
)


@router.post("/match", openapi_extra=MATCH, responses=openapi.ERRORS)
async def match_texts(request: Request) -> Response:
    """For each left text the right ones that are most alike, by n-grams weighed by how rare they are in both lists.

    No model has a part in it: it is what `gramvec match` does with tables. Every two texts are considered.
    """
    return await through(match, request)


async def match(service: Service, request: Incoming) -> Reply:
    """Answer POST /match.

    Raises:
        HttpError, GramvecError: what `reply.error_reply` puts into words.
        ClientDisconnect: the client has gone.
    """
    service.check_accepting()
    body = check(await read(request, service.most_values), MatchRequest)
    given = [*body.left, *body.right]
    service.check_count(len(given))
    served = service.admit()
    texts = prepare(served, given, body.path, truncate=None, direction=None)
    characters = check_characters(texts, MOST_CHARACTERS)
    top = min(body.top or 1, len(body.right))
    n_left, n_right = len(body.left), len(body.right)
    if n_left * n_right > MOST_PAIRS:
        raise too_large(f"{n_left} left and {n_right} right texts are more than {MOST_PAIRS} pairs; send fewer texts")
    if n_left * top > MOST_MATCHES:
        raise too_large(f"{n_left} left texts with top {top} are more than {MOST_MATCHES} matches; ask for fewer")
    request.reserve(BYTES_A_CHARACTER * characters + n_left * top * ENTRY_BYTES)
    left, right = texts[:n_left], texts[n_left:]
    encoded, turn = await service.matches.run(
        lambda: _matched(left, right, top, 0.3 if body.threshold is None else body.threshold, bool(body.one_to_one))
    )
    return reply([encoded], JSON, usage_of_turn(served, texts, turn))


def _matched(left: list[str], right: list[str], top: int, threshold: float, one_to_one: bool) -> bytes:
    # With SciPy, which nothing else here wants.
    from gramvec import matching

    found = matching.match(left, right, top=top, threshold=threshold, one_to_one=one_to_one)
    matches = [
        {"left": a, "right": b, "score": score}
        for a, b, score in zip(found.left.tolist(), found.right.tolist(), list(found.scores), strict=True)
    ]
    return to_json({"matches": matches})
