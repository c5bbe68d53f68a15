"""What is promised over HTTP: bodies, answers, errors and their envelopes, and the document that says so.

May import settings. A new body is a model in `schemas`, a new error a function in `errors` and a row in docs/http.md.
"""

from __future__ import annotations

from gramvec.server.contract.answers import (
    Best,
    Rows,
    as_list,
    base64_of_each,
    best_reply,
    in_pieces,
    listed_paths,
    rows_reply,
    to_json,
    vectors_reply,
)
from gramvec.server.contract.body import Document, Incoming, check, read
from gramvec.server.contract.errors import (
    ErrorType,
    HttpError,
    from_starlette,
    not_reloaded,
    reason_of,
    reload_given_up,
    reload_under_way,
    shortened,
    too_large,
    too_large_body,
    unhealthy,
)
from gramvec.server.contract.explanation import Explained, ExplainRequest
from gramvec.server.contract.matching import MatchAnswer, MatchRequest
from gramvec.server.contract.predicting import LabelScore, PredictRequest
from gramvec.server.contract.ranking import RankAnswer, RankedText, RankRequest, RerankRequest
from gramvec.server.contract.reply import JSON, NO_USAGE, Headers, Reply, Usage, error_reply, reply
from gramvec.server.contract.schemas import (
    EmbeddingsRequest,
    EmbedRequest,
    LeftAndRight,
    OneText,
    Pairs,
    SimilarityParameters,
    SimilarityRequest,
)
from gramvec.server.contract.searching import SearchAnswer, SearchRequest
from gramvec.server.contract.sparse import SparseRequest, SparseValue

__all__ = [
    "JSON",
    "NO_USAGE",
    "Best",
    "Document",
    "EmbedRequest",
    "EmbeddingsRequest",
    "ErrorType",
    "ExplainRequest",
    "Explained",
    "Headers",
    "HttpError",
    "Incoming",
    "LabelScore",
    "LeftAndRight",
    "MatchAnswer",
    "MatchRequest",
    "OneText",
    "Pairs",
    "PredictRequest",
    "RankAnswer",
    "RankRequest",
    "RankedText",
    "Reply",
    "RerankRequest",
    "Rows",
    "SearchAnswer",
    "SearchRequest",
    "SimilarityParameters",
    "SimilarityRequest",
    "SparseRequest",
    "SparseValue",
    "Usage",
    "as_list",
    "base64_of_each",
    "best_reply",
    "check",
    "error_reply",
    "from_starlette",
    "in_pieces",
    "listed_paths",
    "not_reloaded",
    "read",
    "reason_of",
    "reload_given_up",
    "reload_under_way",
    "reply",
    "rows_reply",
    "shortened",
    "to_json",
    "too_large",
    "too_large_body",
    "unhealthy",
    "vectors_reply",
]
