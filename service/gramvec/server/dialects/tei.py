"""Routes in the shape of Text Embeddings Inference: POST /tokenize, the words of texts, and what ranks as a service."""

from __future__ import annotations

import re

from pydantic import BaseModel, ConfigDict, Field

from gramvec import __version__
from gramvec.server.errors import SENTENCES, HttpError, too_large_error
from gramvec.server.inference import ModelWork
from gramvec.server.model_route import model_router
from gramvec.server.openapi import ERRORS, errors, ok
from gramvec.server.responses import Response, to_json
from gramvec.server.routes.rank import RERANKED, RerankOrRankRequest, rerank_texts
from gramvec.server.schemas import LenientBody, OneOrManyBody, OneOrManyTexts
from gramvec.server.state.memory_budget import ENTRY_BYTES

# Words in one response; a text of a megabyte of single letters has half a million.
MAX_WORDS = 200_000
_word = re.compile(r"\S+")


class TokenizeRequest(OneOrManyBody, LenientBody):
    """Texts whose words are wanted."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"inputs": ["cheap flihgts"]}]})

    inputs: OneOrManyTexts = Field(description="One text, or a list of texts.")


class Token(BaseModel):
    """Word of a text, and where it starts and stops, in characters. Its id is its place in the text."""

    id: int
    text: str
    special: bool
    start: int
    stop: int


router = model_router("texts")


@router.post("/tokenize", responses=ok("The words of each text.", list[list[Token]]) | ERRORS)
async def tokenize_texts(work: ModelWork, body: TokenizeRequest) -> Response:
    """Cut texts into words: runs of characters between white space, which `usage` counts.

    The models have n-grams in the place of tokens, so an id is only the number of a word in its text. Clients of Text
    Embeddings Inference count tokens with this route.
    """
    texts = body.texts()
    work.check_count(len(texts))
    words = work.check_characters(texts, work.service.settings.max_characters * len(texts)) // 2 + len(texts)
    for index, text in enumerate(texts):
        if not text.isascii() and not is_whole(text):
            raise HttpError(
                422, "validation", SENTENCES["string_unicode"].format(path=body.path(index)), param=body.path(index)
            )
    work.reserve(min(words, MAX_WORDS) * ENTRY_BYTES)
    with work.admit("words", words) as job:
        encoded = await job.run(lambda: _tokenize(texts))
    return Response([encoded])


def is_whole(text: str) -> bool:
    """Return True for a text without lone surrogates, which no JSON can have."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _tokenize(texts: list[str]) -> bytes:
    left = MAX_WORDS
    found: list[list[dict[str, object]]] = []
    for text in texts:
        row: list[dict[str, object]] = []
        for place, word in enumerate(_word.finditer(text)):
            left -= 1
            if left < 0:
                raise too_large_error(f"the texts have more than {MAX_WORDS} words; send fewer texts in a request")
            row.append({"id": place, "text": word[0], "special": False, "start": word.start(), "stop": word.end()})
        found.append(row)
    return to_json(found)


class RerankerModel(BaseModel):
    """Type of a model that ranks."""

    reranker: dict[str, dict[str, str | int]]


class RerankerInfo(BaseModel):
    """What clients that look for a service of rankings want to see of it."""

    model_id: str
    model_type: RerankerModel
    max_client_batch_size: int
    max_input_length: int
    version: str


@router.get("/reranker/info", responses=ok("The model.", RerankerInfo) | errors(401, 500, 503))
async def describe_reranker(work: ModelWork) -> RerankerInfo:
    """Describe the default model as one that ranks, for clients that take no other.

    Dify's provider, for example, takes the address of this service with /reranker behind it.
    """
    work.service.check_accepting()
    embedder = work.service.admit().embedder
    return RerankerInfo(
        model_id=embedder.name,
        model_type=RerankerModel(reranker={"id2label": {"0": "LABEL_0"}, "label2id": {"LABEL_0": 0}}),
        max_client_batch_size=work.service.settings.max_texts,
        max_input_length=embedder.max_characters,
        version=__version__,
    )


@router.post("/reranker/rerank", responses=RERANKED | ERRORS)
async def rerank_texts_as_reranker(work: ModelWork, body: RerankOrRankRequest) -> Response:
    """Rank texts for a query as `/rerank` does."""
    return await rerank_texts(work, body)
