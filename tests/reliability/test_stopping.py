"""SIGTERM under load: every request on an open connection is answered, no other is accepted, the exit code is 0."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
import uvloop

from benchmarks.soak.client import Connection
from conftest import MODELS
from gramvec import Embedder, load
from gramvec.server.edge import server as serving
from gramvec.server.settings import Settings
from reliability import far_clients
from support.http import HELD, PATIENCE, WatchedModel, post_bytes, running, served_process, serves, until
from support.proxy import needs_nginx, nginx
from support.wire import answers, once_of_three, received

pytestmark = pytest.mark.slow

MODEL = MODELS / "paragram-phrase"
CLIENTS = 32
STALLED = 20
REQUESTS = 10_000


class Outcomes:
    """What clients saw of a server that ends. `torn`: an answer cut off; `lost`: a request without one."""

    def __init__(self, embedder: Embedder) -> None:
        self.embedder = embedder
        self.counts: Counter[str] = Counter()
        self.wrong: list[str] = []
        self.right: dict[int, bytes] = {}  # the answer of each client: the same request has the same bytes

    async def client(self, port: int, number: int) -> None:
        """Ask again and again until the server is gone; every other client opens a connection for each request."""
        connection = Connection(port)
        while True:
            texts = [f"a fast car {number}", "ripe bananas"] * (1 + number % 5 * 40)
            sent = post_bytes(json.dumps({"inputs": texts}).encode())
            try:
                answer = await connection.ask(sent)
            except ConnectionRefusedError:
                self.counts["refused"] += 1
                return
            except (asyncio.IncompleteReadError, ConnectionResetError) as error:
                self.counts["torn" if getattr(error, "partial", b"") else "lost"] += 1
                continue
            if answer.status == 200:
                self.counts["answered"] += 1
                if number not in self.right:
                    vectors = np.array(json.loads(answer.body), np.float32)
                    assert vectors.tobytes() == self.embedder.embed(texts).tobytes()
                    self.right[number] = answer.body
                if answer.body != self.right[number]:
                    self.wrong.append("other bytes")
            else:
                self.wrong.append(f"{answer.status} {answer.body[:200]!r}")
            if number % 2 or answer.headers.get("connection") == "close":
                await connection.close()


@pytest.mark.parametrize("workers", ["1", "2"])
@pytest.mark.parametrize("stalled", [False, True])
def test_nothing_accepted_is_lost(workers: str, stalled: bool) -> None:
    """`stalled`: some clients never send the rest, or never read, and the grace time is what ends the wait for them."""
    grace = "4" if stalled else "60"
    options = ["--model", str(MODEL), "--workers", workers, "--graceful-shutdown-seconds", grace, "--device", "cpu"]
    options += ["--body-timeout-seconds", "300"]  # on a busy machine the load takes long before the signal
    embedder = load(MODEL, device="cpu", threads=1)
    outcomes = Outcomes(embedder)
    body = b'{"inputs": "slow to arrive"}'
    expected = embedder.embed(["slow to arrive"])
    with served_process(*options) as (process, port):
        until(lambda: httpx.get(f"http://127.0.0.1:{port}/ready").status_code == 200)
        address = ("127.0.0.1", port)
        accepted = [socket.create_connection(address, timeout=PATIENCE) for _ in range(STALLED)]
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
    assert outcomes.counts["torn"] == outcomes.counts["lost"] == 0
    # Each client was refused once, when all was over.
    assert outcomes.counts["refused"] == CLIENTS
    assert outcomes.counts["answered"] >= 300


def refuses(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=PATIENCE).close()
    except ConnectionRefusedError:
        return True
    return False


def test_what_comes_over_an_open_connection_is_answered_and_closes_it(
    embedder: Embedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a client that is idle, and of one that has only just connected; meanwhile the service is not ready."""
    monkeypatch.setattr(serving, "QUIET_SECONDS", PATIENCE)
    ask = post_bytes(b'{"inputs": "late"}')
    with running(Settings(), embedder) as server, server.connect() as idle, server.connect() as newcomer:
        idle.sendall(ask)
        assert idle.recv(100_000).startswith(b"HTTP/1.1 200 ")
        with server.connect() as asking:
            until(lambda: server.connections == 3)
            assert server.server is not None
            server.server.stop()
            until(lambda: refuses(server.port))
            asking.sendall(b"GET /ready HTTP/1.1\r\nhost: test\r\n\r\n")
            (answer,) = answers(received(asking))
            assert (answer.status, answer.headers["connection"]) == (503, "close")
        for connection in (idle, newcomer):
            connection.sendall(ask)
            (answer,) = answers(received(connection))
            assert (answer.status, answer.headers["connection"]) == (200, "close")


def test_while_a_request_is_in_flight_others_are_answered(embedder: Embedder) -> None:
    watched = WatchedModel(embedder)
    held, ask = json.dumps({"inputs": HELD}).encode(), post_bytes(b'{"inputs": "late"}')
    with running(Settings(), watched) as server, server.connect() as slow, server.connect() as idle:
        slow.sendall(post_bytes(held))
        assert watched.holding.wait(PATIENCE)
        assert server.server is not None
        server.server.stop()
        until(lambda: refuses(server.port))
        time.sleep(2 * serving.QUIET_SECONDS)
        idle.sendall(ask)
        watched.gate.set()
        for connection in (idle, slow):
            (answer,) = answers(received(connection))
            assert (answer.status, answer.headers["connection"]) == (200, "close")


def test_a_connection_that_asks_for_nothing_is_not_waited_for_long(embedder: Embedder) -> None:
    with running(Settings(), embedder) as server, server.connect() as silent:
        until(lambda: server.connections == 1)
        assert server.server is not None
        server.server.stop()
        assert received(silent) == b""
        assert refuses(server.port)


@pytest.mark.parametrize("family", [socket.AF_INET, socket.AF_INET6, socket.AF_UNIX])
def test_a_socket_that_refuses_keeps_its_queue(family: socket.AddressFamily, tmp_path: Path) -> None:
    address: Any = {socket.AF_INET: ("127.0.0.1", 0), socket.AF_INET6: ("::1", 0)}.get(family, str(tmp_path / "s"))
    with socket.socket(family) as listener, socket.socket(family) as early, socket.socket(family) as late:
        listener.bind(address)
        listener.listen()
        early.connect(listener.getsockname())
        early.sendall(b"early")
        serving.refuse_networks(listener)
        serving.refuse_loopback(listener)
        late.settimeout(0.2)
        with pytest.raises((TimeoutError, ConnectionRefusedError)):
            late.connect(listener.getsockname())
        listener.settimeout(PATIENCE)
        with listener.accept()[0] as accepted:
            assert accepted.recv(5) == b"early"


@pytest.mark.skipif(os.geteuid() != 0 or not Path("/dev/net/tun").exists(), reason="only root makes networks")
@once_of_three  # a process of Python's carries the packets, and has to within the service's 50 ms
def test_of_clients_that_are_far_away_none_is_lost_amid_a_handshake() -> None:
    script = Path(__file__).with_name("far_clients.py")
    found = subprocess.run(
        [sys.executable, str(script), "4"],
        env={**os.environ, "PYTHONPATH": str(script.parents[1])}, capture_output=True, text=True, timeout=4 * PATIENCE,
    )  # fmt: skip
    assert found.returncode == 0, found.stderr
    counts = json.loads(found.stdout)
    print(counts)  # noqa: T201
    assert counts.pop("200") >= 4 * 3 * far_clients.CLIENTS
    assert counts == {"refused": 4 * far_clients.CLIENTS, "exit code 0": 4}


@needs_nginx
@pytest.mark.parametrize("workers", ["1", "2"])
def test_behind_nginx_no_request_is_lost_while_a_replica_stops(workers: str) -> None:
    """Of 10,000, with connections that are kept and nginx's default retries."""
    options = ["--model", str(MODEL), "--workers", workers, "--device", "cpu"]
    with served_process(*options) as (first, one), served_process(*options) as (_, two):
        until(lambda: serves(one) and serves(two))
        with nginx([f"127.0.0.1:{one}", f"127.0.0.1:{two}"]) as port:
            statuses: Counter[int] = Counter()

            async def client() -> None:
                connection = Connection(port)
                while statuses.total() < REQUESTS:
                    answer = await connection.ask(post_bytes(b'{"inputs": "a fast car"}'))
                    statuses[answer.status] += 1
                    if statuses.total() == REQUESTS // 4:
                        first.send_signal(signal.SIGTERM)
                await connection.close()

            async def load() -> None:
                await asyncio.gather(*(client() for _ in range(CLIENTS)))

            uvloop.run(asyncio.wait_for(load(), PATIENCE))
        assert first.wait(PATIENCE) == 0
    assert set(statuses) == {200}
