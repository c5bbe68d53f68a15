"""A model that is served, and what a request has of it: its texts checked, then their rows, unless the client goes."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeVar

from starlette.requests import ClientDisconnect

from gramvec.embed.embedder import Embedder
from gramvec.errors import InputError
from gramvec.server.batching.batcher import Answer, Batcher
from gramvec.server.contract import Incoming, Usage, too_large
from gramvec.server.state.serial import Took

T = TypeVar("T")

# So many calls of 4 ms on the loop may go by before a request that waits has a watch over its connection.
UNWATCHED_FLUSHES = 8


class Served(NamedTuple):
    """A loaded model, the queue in front of it, and its label for `x-model`: name and first digits of the digest.

    truncate: whether texts are cut of requests that do not say so.
    """

    embedder: Embedder
    batcher: Batcher
    label: bytes
    truncate: bool = False


def prepare(
    served: Served,
    texts: Sequence[str],
    path: Callable[[int], str],
    *,
    truncate: bool | None,
    direction: str | None,
) -> list[str]:
    """Checked and, if asked, cut texts; an InputError names the text by its path in the body."""
    try:
        return served.embedder.prepare(
            texts,
            truncate=served.truncate if truncate is None else truncate,
            truncation_direction="left" if direction in ("left", "Left") else "right",
        )
    except InputError as error:
        if error.index is None:
            raise
        # The library counts texts; a client knows them by their place in the body.
        sentence = str(error).removeprefix(f"text {error.index} ")
        raise InputError(f"{path(error.index)} {sentence}", field=path(error.index), index=error.index) from error


def check_characters(texts: Sequence[str], most: int) -> int:
    """How many characters the texts have. Raises HttpError 413 for more than `most`."""
    characters = sum(map(len, texts))
    if characters > most:
        raise too_large(f"{characters} characters are more than the limit of {most} in one request; send fewer texts")
    return characters


def usage_of(served: Served, answer: Answer) -> Usage:
    """What the model's part of a request cost, from the moment at which its answer is there."""
    texts = len(answer.embeddings.feature_counts)
    return Usage(answer.characters, answer.queue_ms, answer.inference_ms, served.label, texts, time.perf_counter())


def usage_of_turn(served: Served, texts: Sequence[str], turn: Took) -> Usage:
    """The same of work in a thread of its own, of which these texts are all."""
    characters = sum(map(len, texts))
    return Usage(characters, turn.waited_ms, turn.worked_ms, served.label, len(texts), time.perf_counter())


async def embed(served: Served, texts: Sequence[str], request: Incoming) -> Answer:
    """Rows for prepared texts, unless the client goes away while they wait.

    Raises:
        ClientDisconnect: nobody waits for the answer any more; the texts still queued are dropped.
    """
    pending = served.batcher.submit(texts)
    # A call short enough for the loop is done then, and the watch over the connection (a task, 20 us) is spared.
    flushes = 0
    while served.batcher.flush_due and flushes < UNWATCHED_FLUSHES and not pending.done():
        await served.batcher.flushed
        flushes += 1
        if request.gone and not pending.done():
            pending.cancel()
            raise ClientDisconnect
    return pending.result() if pending.done() else await unless_gone(pending, request)


async def unless_gone(pending: asyncio.Future[T], request: Incoming) -> T:
    """What is pending, unless the client goes away first, which cancels it and raises ClientDisconnect."""

    async def cancel_when_gone() -> None:
        while (await request.receive())["type"] != "http.disconnect":
            pass
        pending.cancel()

    watch = asyncio.create_task(cancel_when_gone())
    try:
        return await pending
    except asyncio.CancelledError:
        if watch.done():
            raise ClientDisconnect from None
        raise
    finally:
        watch.cancel()
