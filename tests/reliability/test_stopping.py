"""SIGTERM under load: what was accepted is answered, the rest is refused, the exit code is 0."""

from __future__ import annotations

import asyncio
import json
import signal
import socket
from collections import Counter

import httpx
import numpy as np
import pytest
import uvloop

from benchmarks.soak.client import Connection
from conftest import MODELS
from gramvec import Embedder, load
from gramvec.server.processes import server as serving
from gramvec.server.settings import Settings
from http_support import PATIENCE, post_bytes, running, served_process, until
from reliability.support import answers, received

pytestmark = pytest.mark.slow

MODEL = MODELS / "paragram-phrase"
CLIENTS = 32
HELD = 20


class Outcomes:
    """What clients saw of a server that ends. `torn`: an answer cut off; `wrong`: one that is neither right nor 503."""

    def __init__(self, embedder: Embedder) -> None:
        self.embedder = embedder
        self.counts: Counter[str] = Counter()
        self.wrong: list[str] = []

    async def client(self, port: int, number: int) -> None:
        """Ask again and again until the server is gone; every other client opens a connection for each request."""
        connection = Connection(port)
        while True:
            texts = [f"a fast car {number}", "ripe bananas"] * (1 + number % 5 * 40)
            sent = post_bytes(json.dumps({"inputs": texts}).encode())
            reused = connection.is_open
            try:
                answer = await connection.ask(sent)
            except ConnectionRefusedError:
                self.counts["refused"] += 1
                return
            except asyncio.IncompleteReadError as error:
                self.counts["torn" if error.partial else "closed unread" if reused else "closed at once"] += 1
                continue
            except ConnectionResetError:
                self.counts["closed unread" if reused else "closed at once"] += 1
                continue
            if answer.status == 200:
                self.counts["answered"] += 1
                if np.array(json.loads(answer.body), np.float32).tobytes() != self.embedder.embed(texts).tobytes():
                    self.wrong.append("other bytes")
            elif answer.status == 503 and json.loads(answer.body)["error_type"] == "unhealthy":
                self.counts["sent away"] += 1
                assert answer.headers["connection"] == "close"
                assert int(answer.headers["retry-after"]) >= 1
                await asyncio.sleep(0.02)
            else:
                self.wrong.append(f"{answer.status} {answer.body[:200]!r}")
            if number % 2:
                await connection.close()


@pytest.mark.parametrize("workers", ["1", "2"])
@pytest.mark.parametrize("stalled", [False, True])
def test_nothing_accepted_is_lost(workers: str, stalled: bool) -> None:
    """`stalled`: some clients never send the rest, or never read, and the grace time is what ends the wait for them."""
    grace = "4" if stalled else "60"
    options = ["--model", str(MODEL), "--workers", workers, "--graceful-shutdown-seconds", grace, "--device", "cpu"]
    embedder = load(MODEL, device="cpu", threads=1)
    outcomes = Outcomes(embedder)
    body = b'{"inputs": "slow to arrive"}'
    expected = embedder.embed(["slow to arrive"])
    with served_process(*options) as (process, port):
        until(lambda: httpx.get(f"http://127.0.0.1:{port}/ready").status_code == 200)
        address = ("127.0.0.1", port)
        accepted = [socket.create_connection(address, timeout=PATIENCE) for _ in range(HELD)]
        asleep = [socket.create_connection(address, timeout=PATIENCE) for _ in range(6 if stalled else 0)]
        for connection in accepted:
            half = post_bytes(body).replace(b"host: test", b"host: test\r\nexpect: 100-continue")[: -len(body)]
            connection.sendall(half)
            assert connection.recv(1_000).startswith(b"HTTP/1.1 100 ")  # it is being read
        unread = post_bytes(json.dumps({"inputs": ["x"] * 2_000}).encode()) * 2
        parts = [post_bytes(body, length=1_000), post_bytes(body)[:40], unread]
        for number, connection in enumerate(asleep):
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
            connection.sendall(parts[number % 3])

        async def load_and_stop() -> None:
            clients = [asyncio.create_task(outcomes.client(port, number)) for number in range(CLIENTS)]
            while outcomes.counts["answered"] < 300:
                await asyncio.sleep(0.01)
            process.send_signal(signal.SIGTERM)
            await asyncio.sleep(0.3)
            for connection in accepted:
                connection.sendall(body)
            await asyncio.gather(*clients)

        uvloop.run(asyncio.wait_for(load_and_stop(), PATIENCE))
        for connection in accepted:
            (answer,) = answers(received(connection))
            assert answer.status == 200
            assert np.array(json.loads(answer.body), np.float32).tobytes() == expected.tobytes()
        assert process.wait(timeout=PATIENCE) == 0
        for connection in asleep[::3]:
            assert b"shutting down" in received(connection)
        for connection in [*accepted, *asleep]:
            connection.close()
        assert process.stderr is not None
        assert "Traceback" not in process.stderr.read()
    embedder.close()
    print(dict(outcomes.counts))  # noqa: T201
    assert outcomes.wrong == []
    assert outcomes.counts["torn"] == 0
    # At most those that came in the moment in which the socket was closed.
    assert outcomes.counts["closed at once"] < CLIENTS / 2
    # Each client was refused once, when all was over.
    assert outcomes.counts["refused"] == CLIENTS
    assert outcomes.counts["answered"] >= 300


def refuses(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=PATIENCE).close()
    except ConnectionRefusedError:
        return True
    return False


def test_a_connection_that_was_taken_is_heard_at_the_end(embedder: Embedder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serving, "NEWCOMER_SECONDS", PATIENCE)
    with running(Settings(), embedder) as server, server.connect() as newcomer:
        until(lambda: server.connections == 1)
        assert server.server is not None
        server.server.stop()
        until(lambda: refuses(server.port))
        newcomer.sendall(post_bytes(b'{"inputs": "late"}'))
        (answer,) = answers(received(newcomer))
    assert (answer.status, answer.headers["connection"]) == (503, "close")


def test_a_connection_that_asks_for_nothing_is_not_waited_for_long(embedder: Embedder) -> None:
    with running(Settings(), embedder) as server, server.connect() as silent:
        until(lambda: server.connections == 1)
        assert server.server is not None
        server.server.stop()
        assert received(silent) == b""
        assert refuses(server.port)
