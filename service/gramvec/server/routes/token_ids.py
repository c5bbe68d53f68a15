"""The `input` of /v1/embeddings as token ids -> as texts, where the service was given their encoding."""

from __future__ import annotations

import asyncio
from typing import Any

from gramvec.errors import InputError
from gramvec.server.contract import Document, HttpError, Incoming
from gramvec.server.state import Encoding, Service, UnknownId

# As many as OpenAI takes in one request.
MOST_IDS = 300_000
BYTES_A_CHARACTER = 4
# Decoded before other requests have their turn.
PIECE_IDS = 8_192


def most_values(service: Service) -> int:
    """How many JSON values a body may have."""
    return service.most_values + (MOST_IDS if service.encodings else 0)


async def decoded(service: Service, document: Document, request: Incoming) -> Document:
    """The document with texts in the place of token ids; itself, where it holds none.

    What is no UTF-8, as where a client has cut a text inside a character, becomes U+FFFD, as it does in tiktoken.

    Raises:
        HttpError: 400 where no encoding was given for these ids; 413 for too many of them.
        InputError: one is no id of the encoding.
        Overloaded: all requests hold too much.
    """
    value = document.value
    given = value.get("input") if isinstance(value, dict) else None
    if not (isinstance(given, list) and _begins_with_ids(given)):
        return document
    encoding = service.encodings.of(value.get("model"))
    if encoding is None:
        raise _no_encoding(bool(service.encodings))
    one = not isinstance(given[0], list)
    lists = [given] if one else given
    service.check_count(len(lists))
    if document.cut_at is not None or sum(len(ids) for ids in lists if isinstance(ids, list)) > MOST_IDS:
        raise HttpError(413, "too_large", f"more than {MOST_IDS} token ids in one request; send fewer")
    # A character has four bytes at most: of more bytes, one character is too many in any case.
    most_bytes = BYTES_A_CHARACTER * (service.settings.max_characters + 1)
    texts, since = [], 0
    for index, ids in enumerate(lists):
        text = await _decoded(ids, encoding, "input" if one else f"input[{index}]", most_bytes)
        request.reserve(len(text))
        texts.append(text.decode("utf-8", errors="replace"))
        since += len(ids)
        if since > PIECE_IDS:
            since = 0
            await asyncio.sleep(0)
    return Document({**value, "input": texts[0] if one else texts})


async def _decoded(ids: Any, encoding: Encoding, path: str, most_bytes: int) -> bytes:
    if not isinstance(ids, list):
        raise InputError(f"{path} must be a list of token ids, as those before it are", field=path)
    try:
        return (await encoding.bytes_of(ids, most_bytes))[:most_bytes]
    except UnknownId as unknown:
        path += f"[{unknown.place}]"
        raise InputError(f"{path} is no token id of {encoding.name}; send those, or texts", field=path) from None


def _begins_with_ids(given: list[Any]) -> bool:
    """Whether the first thing in it is an integer, or a list of one; lists with nothing in them are passed over."""
    first = next((one for one in given if one != []), None)
    if isinstance(first, list):
        first = first[0]
    return isinstance(first, int) and not isinstance(first, bool)


def _no_encoding(others: bool) -> HttpError:
    why = "no encoding is served for this model's name" if others else "the service was given no encoding of theirs"
    return HttpError(
        400,
        "validation",
        f"input holds token ids, and {why}: send texts, or start the service with --token-ids FILE. "
        "In LangChain, set check_embedding_ctx_length=False in OpenAIEmbeddings",
        param="input",
        code="token_ids",
    )
