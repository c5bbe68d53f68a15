"""Five times what can be served: the accepted are served in the time that the queue allows, the rest is told when."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import uvloop

from benchmarks.soak.client import Connection
from benchmarks.soak.overload import Overload, Taken, overload, told
from gramvec import Embedder
from gramvec.embed.vectors import RawEmbeddings
from gramvec.server.settings import Settings
from support.http import post_bytes, running
from support.wire import once_of_three

pytestmark = pytest.mark.slow

SECONDS_A_TEXT = 0.01
TEXTS = 4
CAPACITY = 1 / SECONDS_A_TEXT / TEXTS  # requests a second
SECONDS = 2
# What fills the queue of the second test.
FULL = 250


class SlowModel:
    """The real model, and a pause for each text."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder

    def raw(self, texts: Sequence[str]) -> RawEmbeddings:
        time.sleep(SECONDS_A_TEXT * len(texts))
        return self._embedder.raw(texts)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._embedder, name)


def body(texts: int) -> bytes:
    return post_bytes(json.dumps({"inputs": ["a text of some length"] * texts}).encode())


async def taught(port: int) -> Connection:
    """A connection, after the service has seen what a text costs."""
    connection = Connection(port)
    for _ in range(4):
        assert (await connection.ask(body(30))).status == 200
    return connection


@once_of_three
def test_the_accepted_keep_their_latency_and_the_rest_is_refused(embedder: Embedder) -> None:
    queue = 100
    with running(Settings(queue_texts=queue, max_texts=queue), SlowModel(embedder)) as server:

        async def run() -> Overload:
            await (await taught(server.port)).close()
            return await overload(server.port, [body(TEXTS)], rate=5 * CAPACITY, seconds=SECONDS)

        found = uvloop.run(run())
        assert server.service.served is not None
        assert server.service.served.batcher.waiting == 0
    assert found.others == []
    # What is ahead in the queue, what is under way, and twice that for a machine that has other things to do.
    assert found.latency(99) < 2 * (queue + 2 * TEXTS) * SECONDS_A_TEXT + 0.5
    assert len(found.accepted) > 0.5 * SECONDS * CAPACITY
    assert len(found.refused) > len(found.accepted)
    assert all(one.retry_after is not None and 1 <= one.retry_after <= 4 for one in found.refused)


@once_of_three
@pytest.mark.parametrize("full_by", ["queue_texts", "queue_characters"])
def test_who_waits_as_long_as_it_is_told_gets_in(embedder: Embedder, full_by: str) -> None:
    characters = len("a text of some length") * FULL
    limit = {"queue_characters": characters, "max_characters": characters}
    chosen = Settings.model_validate(
        {"max_texts": FULL, **({"queue_texts": FULL} if full_by == "queue_texts" else limit)}
    )
    with running(chosen, SlowModel(embedder)) as server:

        async def run() -> tuple[float, float]:
            connection = await taught(server.port)
            filling = [asyncio.create_task(_ask_alone(server.port, body(FULL // 10))) for _ in range(12)]
            await asyncio.sleep(0.2)
            # As large as the queue: it fits when nothing else waits.
            refusal = await connection.ask(body(FULL))
            assert refusal.status == 429
            began = time.perf_counter()
            wait = told(refusal)
            assert wait is not None
            await asyncio.sleep(wait / 2 - 0.05)
            early = await connection.ask(body(FULL))
            assert early.status == 429
            status = 429
            while status == 429:
                await asyncio.sleep(0.05)
                entered = time.perf_counter() - began
                status = (await connection.ask(body(FULL))).status
            assert status == 200
            assert set(await asyncio.gather(*filling)) <= {200, 429}
            await connection.close()
            return wait, entered

        wait, entered = uvloop.run(run())
    assert wait >= 2
    assert wait / 2 <= entered <= 3 * wait


async def _ask_alone(port: int, sent: bytes) -> int:
    connection = Connection(port)
    answer = await connection.ask(sent)
    await connection.close()
    return answer.status


def test_ratios_by_hand() -> None:
    """Refused at 1.0 s, heard at 1.1: what was taken before is served at 3.1, two seconds later."""
    run = Overload([Taken(0.0, 200, 3.1), Taken(0.5, 200, 1.0), Taken(1.0, 429, 0.1, 3.0), Taken(1.2, 0, 0.0)])
    np.testing.assert_allclose(run.retry_after_ratios(), [1.5])
    assert run.others == [0]
    assert run.latency(100) == 3.1
