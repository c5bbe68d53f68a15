"""Clients that are slow, silent, or too many, on the raw socket. Every wait is bounded by the server's own limits."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack

import httpx
import pytest

from gramvec import Embedder
from gramvec.server.settings import Settings
from support.http import PATIENCE, RunningServer, post_bytes, read_all, running, until

SHORT = {"header_timeout_seconds": 0.5, "body_timeout_seconds": 0.5, "send_timeout_seconds": 0.5}
BODY = b'{"inputs": "a fast car"}'
HEAD = post_bytes(BODY)[: -len(BODY)]


@pytest.fixture(scope="module")
def server(embedder: Embedder) -> Iterator[RunningServer]:
    with running(Settings.model_validate(SHORT | {"max_connections": 5}), embedder) as started:
        yield started


@pytest.fixture(scope="module")
def patient(embedder: Embedder) -> Iterator[RunningServer]:
    """With the limits that are there without a setting."""
    with running(Settings(), embedder) as started:
        yield started


def answered(connection: socket.socket) -> tuple[int, str]:
    """The status and the error of the one answer on a connection that the server then closes."""
    head, _, body = read_all(connection).partition(b"\r\n\r\n")
    assert b"connection: close" in head.lower()
    assert json.loads(body)["error_type"] in ("validation", "unhealthy")
    return int(head.split()[1]), json.loads(body)["error"]


@pytest.mark.parametrize("sent", [b"P", HEAD[:-2], HEAD[:-1]])
def test_headers_that_do_not_come_to_an_end(server: RunningServer, sent: bytes) -> None:
    with server.connect() as connection:
        connection.sendall(sent)
        assert answered(connection) == (408, "the headers did not arrive within 0.5 s; send the request again")


def test_headers_that_come_in_drops(server: RunningServer) -> None:
    with server.connect() as connection, Drip(connection, b"GET /health HTTP/1.1\r\nx: " + b"x" * 10_000):
        assert answered(connection)[0] == 408


@pytest.mark.parametrize("sent", [b"", BODY[:-1]])
def test_a_body_that_does_not_come(server: RunningServer, sent: bytes) -> None:
    with server.connect() as connection:
        connection.sendall(HEAD + sent)
        status, sentence = answered(connection)
        assert (status, sentence) == (408, "the body did not arrive within 0.5 s or so; send it again, faster")


@pytest.mark.parametrize(
    "head", [post_bytes(b"", length=100_000), HEAD.replace(b"content-length: 24", b"transfer-encoding: chunked")]
)
def test_a_body_that_comes_in_drops(server: RunningServer, head: bytes) -> None:
    drops = b"1\r\nx\r\n" * 5_000 if b"chunked" in head else b"x" * 100_000
    with server.connect() as connection:
        connection.sendall(head)
        with Drip(connection, drops):
            assert answered(connection)[0] == 408


class Drip:
    """Send a byte at a time, slowly, from a thread, until the block ends."""

    def __init__(self, connection: socket.socket, data: bytes) -> None:
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._send, args=(connection, data))

    def _send(self, connection: socket.socket, data: bytes) -> None:
        for number in range(len(data)):
            if self._over.wait(0.02):
                return
            try:
                connection.sendall(data[number : number + 1])
            except OSError:
                return

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()


def test_a_second_request_may_be_slow_too(server: RunningServer) -> None:
    with server.connect() as connection:
        connection.sendall(post_bytes(BODY))
        assert connection.recv(65_536).startswith(b"HTTP/1.1 200 ")
        time.sleep(1.2)  # between requests: neither limit is its own
        connection.sendall(post_bytes(BODY))
        assert connection.recv(65_536).startswith(b"HTTP/1.1 200 ")
        connection.sendall(HEAD[:-2])
        assert answered(connection)[0] == 408


def test_a_silent_connection_is_closed_in_the_end(embedder: Embedder) -> None:
    with (
        running(Settings(keep_alive_seconds=0.5), embedder) as server,
        server.connect() as silent,
        server.connect() as empty_lines,
        Drip(empty_lines, b"\r\n" * 10_000),
    ):
        assert read_all(silent) == read_all(empty_lines) == b""


def test_what_crosses_the_end_of_an_idle_connection_does_not_reset_it(patient: RunningServer) -> None:
    with patient.connect() as connection:
        assert patient.server is not None
        until(lambda: patient.connections == 1)
        loop = patient.server.loop
        assert loop is not None

        def send_and_sweep() -> None:  # in one turn of the loop, so that nothing is read between the two
            connection.sendall(post_bytes(BODY))
            for one in [*patient.server.connections]:  # type: ignore[union-attr]
                one.sweep(loop.time() + 1_000)

        loop.call_soon_threadsafe(send_and_sweep)
        assert read_all(connection) == b""


def test_an_answer_that_is_not_taken(server: RunningServer) -> None:
    body = json.dumps({"inputs": ["x"] * 2_000}).encode()
    with server.connect() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        connection.sendall(post_bytes(body) * 5)
        until(lambda: server.connections == 1)
        until(lambda: server.connections == 0)


def test_an_answer_that_is_taken_in_drops(server: RunningServer) -> None:
    """Each drop is progress, and a hundred bytes a second are not worth a connection."""
    body = json.dumps({"inputs": ["x"] * 2_000}).encode()
    with server.connect() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        connection.sendall(post_bytes(body) * 5)
        until(lambda: server.connections == 1)

        def is_closed() -> bool:
            connection.recv(10)
            return server.connections == 0

        until(is_closed)


def test_one_connection_too_many(server: RunningServer) -> None:
    with httpx.Client(base_url=server.url) as first:
        assert first.get("/health").status_code == 200
        others = [server.connect() for _ in range(4)]
        try:
            with server.connect() as turned_away:
                turned_away.sendall(post_bytes(BODY))
                assert answered(turned_away) == (
                    503,
                    "the service has as many connections as it takes; try again later, or use one for many requests",
                )
            assert first.post("/embed", json={"inputs": "x"}).status_code == 200
            with server.connect() as silent:
                assert answered(silent)[0] == 503
            # A full service that is started anew for a failed probe serves nobody.
            for path in ("/health", "/ready", "/v2/health/live"):
                probe = httpx.get(f"{server.url}{path}")
                assert (probe.status_code, probe.headers["connection"]) == (200, "close")
        finally:
            for other in others:
                other.close()
    until(lambda: httpx.get(f"{server.url}/health").status_code == 200)


def test_who_connects_to_a_busy_service_does_not_wait_a_turn_for_each_before(patient: RunningServer) -> None:
    """libuv accepts one connection in a turn of the loop."""
    assert patient.server is not None and patient.server.loop is not None
    loop, connected, before = patient.server.loop, threading.Event(), patient.connections
    turns = 0

    def turn() -> None:
        nonlocal turns
        turns += 1
        time.sleep(0.02)  # requests of others
        if patient.connections < before + 100:
            loop.call_soon(turn)

    loop.call_soon_threadsafe(lambda: connected.wait(PATIENCE) and turn())
    with ExitStack() as stack:
        for _ in range(100):
            stack.enter_context(patient.connect())
        connected.set()
        until(lambda: patient.connections == before + 100)
    until(lambda: patient.connections <= before)
    assert turns < 50


@pytest.mark.parametrize("size", [60_000, 70_000, 150_000])
def test_a_body_that_nobody_took_does_not_stop_the_next_request(server: RunningServer, size: int) -> None:
    refused = post_bytes(b"x" * size).replace(b"application/json", b"text/plain")
    with server.connect() as connection:
        connection.settimeout(10)
        for _ in range(3):
            connection.sendall(refused)
            assert b" 415 " in read_some(connection)
            connection.sendall(b"GET /health HTTP/1.1\r\nhost: t\r\n\r\n")
            assert b" 200 " in read_some(connection)


def read_some(connection: socket.socket) -> bytes:
    """Until there is a whole short answer."""
    received = b""
    while not (received.endswith(b"}")):
        received += connection.recv(65_536)
    return received
