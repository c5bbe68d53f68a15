"""Examples for /openapi.json: what the routes answer to their first examples with gramvec-en, and how they refuse."""

from __future__ import annotations

from typing import Any

from gramvec.server.contract.envelope import envelope
from gramvec.server.contract.errors import HttpError, not_reloaded, reload_under_way, too_large, unhealthy

_VECTORS = [[-0.777668, -0.32999218, 0.5351053], [-0.9414153, 0.13676782, 0.30827218]]
_MODEL = {"id": "gramvec-en", "object": "model", "created": 0, "owned_by": "gramvec"}
_DIGEST = "4df01d1d192440e8cdcff583d0190acfd502d40776006768d417aa0e9392e266"
_FIRST = {"kind": "ngram", "text": " v", "start": 0, "end": 1, "times": 1}
_VEHICALS = [0.21866105, 0.18546161, 0.18275344, 0.10541161, 0.052063286, 0.007842698, 0.013824642, 0.081964895]
_VEHICLES = [0.16510388, 0.13613607, 0.16015011, 0.11207873, 0.08069652, 0.05658942, 0.04228734, 0.09494119]
_TV = [111387, 14160410, 14934341]
_A_TV = [111387, 10419421, 12149963, 13118156, 14160410, 14309824, 14934341]

# Of each operation that answers with JSON.
ANSWERS: dict[str, Any] = {
    "post /embed": _VECTORS,
    "post /": _VECTORS,
    "post /similarity": [0.84798324, 0.7150618, 0.095513694],
    "post /v1/embeddings": {
        "object": "list",
        "data": [{"object": "embedding", "index": at, "embedding": one} for at, one in enumerate(_VECTORS)],
        "model": "gramvec-en",
        "usage": {"prompt_tokens": 4, "total_tokens": 4},
    },
    "get /v1/models": {"object": "list", "data": [_MODEL]},
    "get /v1/models/{model}": _MODEL,
    "get /health": {"status": "alive"},
    "get /ready": {"status": "ready"},
    "post /embed_sparse": [
        [{"index": column, "value": 0.57735026} for column in _TV],
        [{"index": column, "value": 0.37796447} for column in _A_TV],
    ],
    "post /rerank": [
        {"index": 1, "score": 0.84798324, "text": "vehicles"},
        {"index": 0, "score": 0.095513694, "text": "bananas"},
    ],
    "post /v1/rerank": {
        "id": "rerank",
        "model": "gramvec-en",
        "results": [{"index": 1, "relevance_score": 0.84798324}],
        "usage": {"prompt_tokens": 3, "total_tokens": 3},
    },
    "post /match": {
        "matches": [{"left": 0, "right": 1, "score": 0.66207206}, {"left": 1, "right": 0, "score": 0.508123}]
    },
    "post /search": {
        "index": "tickets",
        "results": [
            [
                {"id": "1", "score": 1.0, "record": {"text": "lost parcel"}},
                {"id": "2", "score": 0.6946977, "record": {"text": "late parcel"}},
            ]
        ],
    },
    "post /predict": [{"label": "card_lost", "score": 0.93}, {"label": "card_stolen", "score": 0.07}],
    "post /explain": {
        "score": 0.84798324,
        "residual": -1.4403465e-8,
        "rest": 0.7848856,
        "coverage": [1.0, 1.0],
        "features": [{"source": _FIRST, "target": _FIRST, "contribution": 0.0630977}],
        "words": [
            {
                "source": {"text": "vehicals", "start": 0, "end": 8},
                "target": {"text": "vehicles", "start": 0, "end": 8},
                "contribution": 0.84798324,
            }
        ],
        "words_rest": 0.0,
        "characters": [_VEHICALS, _VEHICLES],
    },
    "post /admin/reload": {
        "models": [{"name": "gramvec-en", "digest": _DIGEST, "changed": False}],
        "indexes": [],
        "heads": [],
    },
}
ANSWERS["post /v2/rerank"] = ANSWERS["post /v1/rerank"]

# Of each status, as any route answers it.
REFUSALS: dict[int, HttpError] = {
    400: HttpError(
        400, "validation", "the body is not JSON in UTF-8: unexpected end of data: line 1 column 2 (char 1)"
    ),
    401: HttpError(401, "unauthorized", "an API key is needed; send it as 'Authorization: Bearer KEY'"),
    404: HttpError(
        404,
        "not_found",
        "model 'other' is not served here; 'gramvec-en' is",
        param="model",
        code="model_not_found",
    ),
    413: too_large("2049 texts are more than the limit of 2048 in one request"),
    415: HttpError(415, "validation", "Content-Type must be application/json, not 'text/plain'"),
    422: HttpError(422, "validation", "the body must be a JSON object, not a list"),
    424: HttpError(424, "backend", "the model failed on this request (RuntimeError); the server's log says why"),
    429: HttpError(
        429,
        "overloaded",
        "4096 texts are waiting and 1 more would exceed the queue's 4096; send the request again later",
    ),
    500: HttpError(500, "backend", "the service failed on this request; its log says why"),
    503: unhealthy("the model is being loaded"),
}
# Of what single routes refuse in words of their own.
OWN_REFUSALS: dict[tuple[str, int], HttpError] = {
    ("/search", 404): HttpError(
        404, "not_found", "no index is served here, none is: start the service with --index NAME=FILE"
    ),
    ("/predict", 404): HttpError(
        404, "not_found", "no head is served here, none is: start the service with --head NAME=FILE"
    ),
    ("/metrics", 404): HttpError(
        404, "not_found", "metrics are switched off; start the service with --metrics open to have them"
    ),
    ("/admin/reload", 403): HttpError(
        403,
        "unauthorized",
        "models are reloaded over HTTP only where an API key is set; start with --api-key, or send SIGHUP",
    ),
    ("/admin/reload", 409): reload_under_way(),
    ("/admin/reload", 422): not_reloaded(
        "models/gramvec-en/manifest.json: missing; models/gramvec-en is not a bundle, export the model again"
    ),
}


def refusal(path: str, status: int) -> dict[str, Any] | None:
    """The JSON value of a refusal with this status, in the shape that the path's errors have."""
    error = OWN_REFUSALS.get((path, status)) or REFUSALS.get(status)
    if error is None:
        return None
    return envelope(error) if path.startswith("/v1/") else {"error": str(error), "error_type": error.error_type}
