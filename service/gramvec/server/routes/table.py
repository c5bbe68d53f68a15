"""The table of routes: the only list of paths, methods, handlers, schemas, limits and documented responses.

`Application` answers by it, and `gramvec.server.openapi` describes it. A new route is one handler and one entry here.
"""

from __future__ import annotations

from gramvec.server.errors import OpenAIErrorBody
from gramvec.server.openapi import (
    EMPTY_HEADERS,
    ERRORS,
    OTHER_FORMS,
    SHAPE_HEADERS,
    UNKNOWN_HEADERS,
    V1_ERRORS,
    EmbeddingsAnswer,
    Matrix,
    Scores,
    ServedModel,
    ServedModels,
    describe,
    errors,
    ok,
)
from gramvec.server.request import Request, Route
from gramvec.server.responses import Response, to_json
from gramvec.server.routes.classify import LabelScore, PredictRequest, predict_labels
from gramvec.server.routes.compare import (
    MOST_MATCH_CHARACTERS,
    Explained,
    ExplainRequest,
    MatchAnswer,
    MatchRequest,
    compare_texts,
    explain_texts,
    match_texts,
)
from gramvec.server.routes.embed import (
    MOST_SPARSE_CHARACTERS,
    SparseRequest,
    SparseValue,
    embed_or_compare,
    embed_sparse_texts,
    embed_texts,
    read_either,
)
from gramvec.server.routes.openai import create_embeddings, list_models, read_embeddings, retrieve_model
from gramvec.server.routes.operations import get_metrics, health, info, ready, reload
from gramvec.server.routes.pages import DOCS_ASSETS, docs, docs_asset, playground
from gramvec.server.routes.rank import (
    RankAnswer,
    RankedText,
    RankRequest,
    RerankRequest,
    rank_documents,
    rank_documents_v2,
    rerank_texts,
)
from gramvec.server.routes.search import SearchAnswer, SearchRequest, search_index
from gramvec.server.schemas import EmbeddingsRequest, EmbedRequest, SimilarityRequest

RANKED = ok("The documents' places and scores, the best first.", RankAnswer)


async def describe_service(request: Request, body: None) -> Response:
    """Return the OpenAPI document of the service."""
    service = request.service
    return Response([await service.document(lambda: to_json(describe(ROUTES, service.settings)))])


ROUTES = (
    Route(
        "POST",
        "/embed",
        embed_texts,
        (EmbedRequest,),
        responses=ok("The vectors.", Matrix, OTHER_FORMS, SHAPE_HEADERS) | ERRORS,
    ),
    Route(
        "POST",
        "/similarity",
        compare_texts,
        (SimilarityRequest,),
        responses=ok(
            "A list of scores; a matrix for left and right; with top_k the best of each left text.",
            Scores,
            headers=EMPTY_HEADERS,
        )
        | ERRORS,
        work="comparisons",
    ),
    Route(
        "POST",
        "/v1/embeddings",
        create_embeddings,
        (EmbeddingsRequest,),
        read=read_embeddings,
        responses=ok("The vectors, each with the place of its text.", EmbeddingsAnswer) | V1_ERRORS,
    ),
    Route(
        "GET",
        "/v1/models",
        list_models,
        responses=ok("The models.", ServedModels) | errors(401, 500, 503, body=OpenAIErrorBody),
    ),
    Route(
        "GET",
        "/v1/models/{model:path}",
        retrieve_model,
        responses=ok("The model.", ServedModel) | errors(401, 404, 500, 503, body=OpenAIErrorBody),
    ),
    Route(
        "POST",
        "/",
        embed_or_compare,
        (EmbedRequest, SimilarityRequest),
        read=read_either,
        responses=ok(
            "The response of /embed or /similarity.", Matrix | Scores, OTHER_FORMS, SHAPE_HEADERS | EMPTY_HEADERS
        )
        | ERRORS,
        work="comparisons",
    ),
    Route("GET", "/health", health, responses=ok("The process answers."), public=True),
    Route(
        "GET",
        "/ready",
        ready,
        responses=ok("Requests are taken.") | errors(e503="They are not; the message says why."),
        public=True,
    ),
    Route(
        "POST",
        "/embed_sparse",
        embed_sparse_texts,
        (SparseRequest,),
        responses=ok("For each text the columns that it has, ascending, and their values.", list[list[SparseValue]])
        | ERRORS,
        characters=MOST_SPARSE_CHARACTERS,
        work="sparse vectors",
    ),
    Route(
        "POST",
        "/rerank",
        rerank_texts,
        (RerankRequest,),
        responses=ok("The texts' places and scores, the best first.", list[RankedText]) | ERRORS,
        work="rankings",
    ),
    Route("POST", "/v1/rerank", rank_documents, (RankRequest,), responses=RANKED | V1_ERRORS, work="rankings"),
    Route("POST", "/v2/rerank", rank_documents_v2, (RankRequest,), responses=RANKED | ERRORS, work="rankings"),
    Route(
        "POST",
        "/match",
        match_texts,
        (MatchRequest,),
        responses=ok("The matches, by left text and then the highest score.", MatchAnswer) | ERRORS,
        characters=MOST_MATCH_CHARACTERS,
        work="matches",
    ),
    Route(
        "POST",
        "/search",
        search_index,
        (SearchRequest,),
        responses=ok("For each query its nearest rows, the nearest first.", SearchAnswer) | ERRORS,
        work="searches",
    ),
    Route(
        "POST",
        "/predict",
        predict_labels,
        (PredictRequest,),
        responses=ok(
            "The labels, the likeliest first: a list for one text, a list of such lists for several.",
            list[LabelScore] | list[list[LabelScore]],
            headers=UNKNOWN_HEADERS,
        )
        | ERRORS,
        work="predictions",
    ),
    Route(
        "POST",
        "/explain",
        explain_texts,
        (ExplainRequest,),
        responses=ok("The score and its parts.", Explained) | ERRORS,
        work="explanations",
    ),
    Route(
        "GET",
        "/",
        playground,
        responses=ok("The page.", content={"text/html": {}}),
        public=True,
    ),
    Route("HEAD", "/", playground, public=True, documented=False),
    Route("GET", "/docs", docs, public=True, documented=False),
    *(Route("GET", f"/docs/{name}", docs_asset, public=True, documented=False) for name in DOCS_ASSETS),
    Route("GET", "/openapi.json", describe_service, public=True, documented=False),
    Route("HEAD", "/openapi.json", describe_service, public=True, documented=False),
    Route(
        "GET",
        "/info",
        info,
        responses=ok("Models, limits, device and versions.") | errors(401, 500, 503),
    ),
    Route(
        "POST",
        "/admin/reload",
        reload,
        responses=ok("Each model's name and digest, and whether it is another one than before.")
        | errors(
            *(401, 500, 503),
            e403="No API key is set, without which nothing is reloaded over HTTP.",
            e409="Another reload is under way.",
            e422="A model's folder holds no usable bundle; all models go on as they were.",
        ),
    ),
    Route(
        "GET",
        "/metrics",
        get_metrics,
        responses=ok(
            "Metrics of all workers.",
            content={"text/plain": {"schema": {"type": "string"}}, "application/openmetrics-text": {}},
        )
        | errors(401, e404="Metrics are switched off."),
        work="expositions",
    ),
)
