"""POST /tokenize: the words of texts and their places, in the shape of Text Embeddings Inference."""

from __future__ import annotations

import re

from pydantic import BaseModel, ConfigDict, Field

from gramvec.server.errors import too_large_error
from gramvec.server.inference import Work
from gramvec.server.model_route import model_router
from gramvec.server.openapi import ERRORS, ok
from gramvec.server.responses import Response, to_json
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
async def tokenize_texts(work: Work, body: TokenizeRequest) -> Response:
    """Cut texts into words: runs of characters between white space, which `usage` counts.

    The models have n-grams in the place of tokens, so an id is only the number of a word in its text. Clients of Text
    Embeddings Inference count tokens with this route.
    """
    texts = body.texts()
    work.check_count(len(texts))
    words = work.check_characters(texts, work.service.settings.max_characters * len(texts)) // 2 + len(texts)
    work.reserve(min(words, MAX_WORDS) * ENTRY_BYTES)
    with work.admit("words", words) as job:
        encoded = await job.run(lambda: _tokenize(texts))
    return Response([encoded])


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
