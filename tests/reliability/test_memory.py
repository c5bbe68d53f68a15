"""What is refused is not kept: huge bodies and texts, and connections that have ended."""

from __future__ import annotations

import json
from collections.abc import Iterator

import httpx
import pytest

from support.http import PATIENCE, post_bytes, until
from support.wire import (
    LAST,
    NORMAL,
    Served,
    answers,
    ask,
    closing,
    descriptors,
    forget_peak,
    is_normal,
    peak,
    received,
    resident,
    send_as_far_as_taken,
    served_model,
)

pytestmark = pytest.mark.slow

MB = 2**20
GIGABYTE = 10**9
# A body up to the limit of 8 MiB may be read, parsed and embedded; a gigabyte is far beyond what that takes.
ROOM = 120 * MB
PIECE = b"x" * MB


@pytest.fixture(scope="module")
def server() -> Iterator[Served]:
    with served_model("paragram-phrase") as found:
        yield found


@pytest.fixture(autouse=True)
def nothing_is_left(server: Served) -> Iterator[None]:
    # Once around, so that what is loaded at the first request is loaded.
    assert is_normal(ask(server.at, LAST)[0])
    before = descriptors(server.process)
    forget_peak(server.process)
    start = resident(server.process)
    yield
    until(lambda: descriptors(server.process) <= before)
    grown = peak(server.process) - start
    assert grown < ROOM, f"{grown / MB:.0f} MB"
    assert is_normal(ask(server.at, LAST)[0])


HEAD = b"POST /embed HTTP/1.1\r\nhost: test\r\ncontent-type: application/json\r\n"


@pytest.mark.parametrize("path", [b"/embed", b"/v1/embeddings", b"/explain", b"/", b"/nowhere", b"/health"])
@pytest.mark.parametrize("chunked", [False, True])
def test_a_body_of_a_gigabyte_is_refused(server: Served, path: bytes, chunked: bool) -> None:
    head = closing(HEAD.replace(b"/embed", path))
    with server.at.connect() as connection:
        if chunked:
            connection.sendall(head + b"transfer-encoding: chunked\r\n\r\n")
            piece = b"%x\r\n%b\r\n" % (len(PIECE), PIECE)
        else:
            connection.sendall(head + b"content-length: %d\r\n\r\n" % GIGABYTE)
            piece = PIECE
        sent = 0
        connection.settimeout(PATIENCE)
        try:
            while sent < GIGABYTE:
                connection.sendall(piece)
                sent += len(piece)
        except (BrokenPipeError, ConnectionResetError):
            pass
        data = received(connection)
    # The answer may be lost to the reset of a connection that is closed under the sender.
    for answer in answers(data):
        assert answer.status in ((413,) if path not in (b"/nowhere", b"/health") else (404, 405, 413))


def test_ten_bodies_of_a_gigabyte_at_once(server: Served) -> None:
    connections = [server.at.connect() for _ in range(10)]
    for connection in connections:
        connection.sendall(HEAD + b"transfer-encoding: chunked\r\n\r\n")
    for _ in range(40):
        for connection in connections:
            send_as_far_as_taken(connection, b"%x\r\n%b\r\n" % (len(PIECE), PIECE))
    for connection in connections:
        connection.close()


def test_a_text_over_its_limit_in_a_body_within_it_is_refused_again_and_again(server: Served) -> None:
    body = json.dumps({"inputs": "long text " * 800_000}).encode()
    with httpx.Client(base_url=server.at.url, timeout=PATIENCE) as client:
        for _ in range(10):
            answer = client.post("/embed", content=body, headers={"content-type": "application/json"})
            assert (answer.status_code, answer.json()["error_type"]) == (422, "validation")
            assert "8000000 characters" in answer.json()["error"]


@pytest.mark.parametrize("sent", [b"", NORMAL, NORMAL[:50], NORMAL[:-5]], ids=["nothing", "all", "head", "body"])
def test_connections_that_end_give_their_descriptors_back(server: Served, sent: bytes) -> None:
    for _ in range(4):
        connections = [server.at.connect() for _ in range(100)]
        for connection in connections:
            connection.sendall(sent)
        for connection in connections:
            connection.close()


def test_a_head_without_end_is_refused(server: Served) -> None:
    for begin in (b"GET /", HEAD + b"x: ", HEAD):
        with server.at.connect() as connection:
            send_as_far_as_taken(connection, begin)
            for _ in range(300):
                send_as_far_as_taken(connection, PIECE if begin != HEAD else b"y: z\r\n" * 100_000)
            assert all(answer.status in (400, 431) for answer in answers(received(connection)))


def test_pipelining_without_reading_is_bounded(server: Served) -> None:
    """A client that sends on and on and takes no answer: the server stops to read."""
    body = json.dumps({"inputs": ["a fast car"] * 100}).encode()
    with server.at.connect() as connection:
        connection.setblocking(False)
        sent = 0
        many = post_bytes(body) * 50
        with pytest.raises(BlockingIOError):
            while sent < GIGABYTE:
                sent += connection.send(many)
        connection.settimeout(PATIENCE)
        assert sent < GIGABYTE / 10
