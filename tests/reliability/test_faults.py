"""What fails, fails alone: a text, a worker, a client."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import struct
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import httpx
import numpy as np
import pytest
import uvloop

from benchmarks.soak.client import Tally, drive
from benchmarks.soak.requests import Mixture
from conftest import MODELS
from gramvec import Embedder
from gramvec.bundle.bundle import open_bundle
from gramvec.errors import BackendError
from gramvec.features.featurizer import Featurizer
from gramvec.runtime.base import Sums
from gramvec.runtime.select import open_runtime
from gramvec.server.settings import Settings
from gramvec.text.arrays import FeatureBatch
from support.http import (
    HELD,
    PATIENCE,
    RunningServer,
    WatchedModel,
    children,
    post_bytes,
    running,
    served_process,
    until,
)
from support.wire import LAST, ask, closing, is_normal, received, watched

pytestmark = pytest.mark.slow

MODEL = MODELS / "paragram-phrase"
# A word of that model, and of none of the other texts here.
POISON = "bananas"


class FaultyRuntime:
    """A runtime that fails on every batch with the rows of one word in it, as a device would: on the whole call."""

    def __init__(self, inner: Any, rows: set[int], error: type[Exception]) -> None:
        self._inner = inner
        self._rows = rows
        self._error = error
        self.neighbors = 0

    def run(self, batch: FeatureBatch) -> Any:
        if self._rows & set(batch.ids.tolist()):
            self.neighbors = max(self.neighbors, len(batch) - 1)
            raise self._error("injected fault")
        return self._inner.run(batch)

    def embed(self, featurizer: Featurizer, texts: Sequence[str]) -> Sums:
        self.run(featurizer(texts))
        sums: Sums = self._inner.embed(featurizer, texts)
        return sums

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


@contextmanager
def faulty(error: type[Exception], inner: str) -> Iterator[tuple[Embedder, FaultyRuntime]]:
    bundle = open_bundle(MODEL)
    rows = set(bundle.memoized([POISON]).ids.tolist()) - set(bundle.memoized(["a fast car"]).ids.tolist())
    assert rows
    runtime = FaultyRuntime(open_runtime(bundle, "cpu", inner), rows, error)  # type: ignore[arg-type]
    embedder = Embedder(bundle, runtime, threads=1)
    try:
        yield embedder, runtime
    finally:
        embedder.close()


@pytest.mark.parametrize("inner", ["native", "onnx"])
@pytest.mark.parametrize("error", [BackendError, RuntimeError, MemoryError, ValueError])
def test_a_runtime_that_fails_on_one_text_fails_for_its_request_alone(error: type[Exception], inner: str) -> None:
    with faulty(error, inner) as (embedder, runtime), running(Settings(), model := WatchedModel(embedder)) as server:
        texts = [f"a fast car {number}" if number % 5 else f"{POISON} {number}" for number in range(40)]
        good = [text for text in texts if POISON not in text]
        alone = dict(zip(good, embedder.embed(good), strict=True))
        served = server.service.served
        assert served is not None
        with ThreadPoolExecutor(2) as pool:
            # While a long call is held up, the others gather and form the next one.
            held = pool.submit(httpx.post, f"{server.url}/embed", json={"inputs": HELD}, timeout=PATIENCE)
            assert model.holding.wait(PATIENCE)
            small = pool.submit(all_at_once, server, texts)
            until(lambda: served.batcher.waiting == len(texts))
            model.gate.set()
            found = small.result(PATIENCE)
            assert held.result(PATIENCE).status_code == 200
        assert runtime.neighbors > 0
        for text, (status, body) in zip(texts, found, strict=True):
            if POISON in text:
                assert (status, body["error_type"]) == (424, "backend")
                assert "injected" not in body["error"]
            else:
                assert status == 200
                assert np.array(body[0], np.float32).tobytes() == alone[text].tobytes()
        assert httpx.get(f"{server.url}/ready").status_code == 200


def all_at_once(server: RunningServer, texts: list[str]) -> list[tuple[int, Any]]:
    """Each text in a request and on a connection of its own, all sent before any is read."""
    connections = [server.connect() for _ in texts]
    for connection, text in zip(connections, texts, strict=True):
        body = json.dumps({"inputs": text}).encode()
        connection.sendall(closing(post_bytes(body)))
    found = []
    for connection in connections:
        with connection:
            data = received(connection)
        head, _, body = data.partition(b"\r\n\r\n")
        found.append((int(head.split()[1]), json.loads(body)))
    return found


def test_a_bulk_request_with_one_bad_text_is_424_and_its_neighbors_are_not() -> None:
    with faulty(BackendError, "native") as (embedder, _), running(Settings(), embedder) as server:
        bodies = [{"inputs": ["a fast car"] * 2_000}, {"inputs": ["a fast car"] * 1_999 + [POISON]}] * 3
        with ThreadPoolExecutor(len(bodies)) as pool:
            found = list(pool.map(lambda body: httpx.post(f"{server.url}/embed", json=body, timeout=PATIENCE), bodies))
    assert [answer.status_code for answer in found] == [200, 424] * 3


def test_killed_workers_are_replaced_and_meanwhile_requests_are_answered() -> None:
    """A request in a killed worker is lost with it; all others, and all that come after, are answered right."""
    with served_process("--model", str(MODEL), "--workers", "2", "--device", "cpu") as (process, port):
        until(lambda: len(children(process)) == 2)
        opened = Embedder(open_bundle(MODEL), open_runtime(open_bundle(MODEL), "cpu", "auto"), threads=1)
        models = {f"{opened.name}@{opened.digest[:12]}": opened}
        first = children(process)
        enough = threading.Event()

        def unending() -> Iterator[Any]:
            mixture = Mixture(7)
            while not enough.is_set():
                yield from mixture.take(50)

        def kill_both() -> None:
            for pid in sorted(first):
                os.kill(pid, signal.SIGKILL)
                # The next one is killed when this one's place is taken: there is always one to answer.
                until(lambda pid=pid: pid not in children(process) and len(children(process)) == 2)

        async def load() -> tuple[Tally, Tally]:
            running_load = asyncio.create_task(drive(port, unending(), models, connections=8))
            await asyncio.to_thread(kill_both)
            enough.set()
            return await running_load, await drive(port, Mixture(8).take(500), models, connections=8)

        during, after = uvloop.run(load())
        opened.close()
        assert not children(process) & first
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=PATIENCE) == 0
    assert during.wrong == 0, during.first_wrong
    # Eight connections were open: a death takes at most the requests on these.
    assert during.lost <= 2 * 8
    assert during.sent > 100
    assert (after.lost, after.wrong) == (0, 0), after.first_wrong


@pytest.mark.parametrize("how", ["closed", "reset"])
def test_clients_that_go_away_give_back_their_share_of_the_queue(embedder: Embedder, how: str) -> None:
    model = WatchedModel(embedder)
    with watched(Settings(queue_texts=2_048, request_deadline_seconds=10), model) as held:
        served = held.server.service.served
        assert served is not None
        with ThreadPoolExecutor(1) as pool:
            busy = pool.submit(httpx.post, f"{held.server.url}/embed", json={"inputs": HELD}, timeout=PATIENCE)
            assert model.holding.wait(PATIENCE)
            leaving = [held.server.connect() for _ in range(40)]
            for number, connection in enumerate(leaving):
                connection.sendall(post_bytes(json.dumps({"inputs": [f"gone {number}"] * 50}).encode()))
            until(lambda: served.batcher.waiting == 2_000)
            refused = ask(held.server, closing(post_bytes(json.dumps({"inputs": ["x"] * 60}).encode())))
            assert refused[0].status == 429
            for connection in leaving:
                if how == "reset":
                    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                connection.close()
            until(lambda: held.counted.under_way == 1)
            until(lambda: served.batcher.waiting == 0)
            stays = pool_post(held.server.url, ["x"] * 2_000)
            model.gate.set()
            assert busy.result(PATIENCE).status_code == 200
            assert stays.result(PATIENCE).status_code == 200
        until(held.has_let_go)
        assert served.batcher.waiting == 0
        assert not any("gone" in text for call in model.calls for text in call)
        assert is_normal(ask(held.server, LAST)[0])


def pool_post(url: str, texts: list[str]) -> Any:
    pool = ThreadPoolExecutor(1)
    found = pool.submit(httpx.post, f"{url}/embed", json={"inputs": texts}, timeout=PATIENCE)
    pool.shutdown(wait=False)
    return found
