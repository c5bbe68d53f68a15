"""Connections that are torn, slow, far ahead or mutilated. Afterwards the server holds nothing of them."""

from __future__ import annotations

import json
import random
import socket
import struct
import time
from collections.abc import Callable

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hostile.bounds import is_ours
from hostile.streams import BODY, CHUNKED, HEALTH, POST, UPGRADE
from support.http import PATIENCE, post_bytes, until
from support.wire import (
    LAST,
    NORMAL,
    TEXT,
    Watched,
    answers,
    ask,
    is_normal,
    received,
    send_as_far_as_taken,
)

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("nothing_is_left")]


def cut(sent: bytes) -> list[bytes]:
    return [sent[:place] for place in (1, 10, 30, len(sent) // 2, len(sent) - 1)]


@pytest.mark.parametrize("torn", cut(NORMAL) + cut(CHUNKED + BODY), ids=len)
@pytest.mark.parametrize("how", ["closed", "half closed", "reset"])
def test_a_torn_request_is_forgotten(held: Watched, torn: bytes, how: str) -> None:
    with held.server.connect() as connection:
        connection.sendall(torn)
        if how == "half closed":
            connection.shutdown(socket.SHUT_WR)
            assert received(connection) == b""
        elif how == "reset":
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


LONG = post_bytes(json.dumps({"inputs": ["a text of some length " * 20] * 1_000}).encode())


@pytest.mark.parametrize(("sent", "number"), [(NORMAL, 1), (LONG, 1), (NORMAL * 200, 200), (NORMAL + LONG + NORMAL, 3)])
def test_a_client_that_closes_its_side_gets_its_answers(held: Watched, sent: bytes, number: int) -> None:
    """As `nc -N` does (RFC 9112, 9.6)."""
    for torn in (b"", NORMAL[:50], NORMAL[:-3]):
        with held.server.connect() as connection:
            connection.sendall(sent + torn)
            connection.shutdown(socket.SHUT_WR)
            assert [answer.status for answer in answers(received(connection))] == [200] * number


def test_a_request_that_comes_byte_by_byte(held: Watched) -> None:
    with held.server.connect() as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for byte in LAST:
            connection.sendall(bytes([byte]))
        assert is_normal(answers(received(connection))[0])


def test_nobody_waits_for_clients_that_are_slow(held: Watched) -> None:
    """A hundred that stopped in the middle of a head, and a hundred in the middle of a body."""
    slow = [held.server.connect() for _ in range(200)]
    try:
        for number, connection in enumerate(slow):
            connection.sendall(NORMAL[: 40 if number % 2 else -3])
        assert is_normal(ask(held.server, LAST)[0])
        rest = [NORMAL[40:], NORMAL[-3:]]
        for number, connection in enumerate(slow):
            connection.sendall(rest[1 - number % 2])
        for connection in slow:
            assert connection.recv(17) == b"HTTP/1.1 200 OK\r\n"
    finally:
        for connection in slow:
            connection.close()


def test_pipelined_answers_come_in_order(held: Watched) -> None:
    """A long request before short ones, so that one out of turn would be seen."""
    bodies = [b'{"inputs": "' + b"long text " * (5_000 if number % 7 == 0 else 1) + b'"}' for number in range(30)]
    sent = [
        post_bytes(body).replace(b"host: test", b"host: test\r\nx-request-id: %d" % n) for n, body in enumerate(bodies)
    ]
    found = ask(held.server, b"".join(sent) + LAST)
    assert [answer.headers["x-request-id"] for answer in found[:-1]] == [str(n) for n in range(30)]
    with httpx.Client(base_url=held.server.url, timeout=PATIENCE) as client:
        alone = {body: client.post("/embed", content=body, headers={"content-type": "application/json"}).content
                 for body in set(bodies)}  # fmt: skip
    assert [answer.body for answer in found[:-1]] == [alone[body] for body in bodies]


def test_100_continue_is_said_before_the_body_and_not_for_one_that_is_refused(held: Watched) -> None:
    def first_line(length: int) -> bytes:
        with held.server.connect() as connection:
            connection.sendall(POST + b"expect: 100-continue\r\ncontent-length: %d\r\n\r\n" % length)
            line = connection.recv(1_000).partition(b"\r\n")[0]
            if b" 100 " in line:
                connection.sendall(TEXT)
                assert connection.recv(17) == b"HTTP/1.1 200 OK\r\n"
            return line

    assert first_line(len(TEXT)) == b"HTTP/1.1 100 Continue"
    assert first_line(10**9).startswith(b"HTTP/1.1 413 ")


def test_a_client_that_never_reads_holds_up_nobody(held: Watched) -> None:
    with held.server.connect() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        sent = post_bytes(b'{"inputs": [' + b",".join([b'"a fast car"'] * 2_000) + b"]}") * 4
        connection.setblocking(False)
        connection.send(sent)
        until(lambda: held.counted.under_way >= 1)
        for _ in range(20):
            assert is_normal(ask(held.server, LAST)[0])


PIECES = [
    NORMAL,
    HEALTH,
    CHUNKED + BODY,
    b"\r\n",
    b"\0",
    b": ",
    b"0\r\n\r\n",
    b"content-length: 7\r\n",
    UPGRADE,
    b"\xff",
]


def mutilated(randomness: random.Random, seeds: list[bytes]) -> bytes:
    data = bytearray(b"".join(seeds))
    for _ in range(randomness.randint(1, 6)):
        place = randomness.randrange(len(data) + 1)
        end = min(len(data), place + randomness.choice([1, 1, 2, 8, 40]))
        change: Callable[[], bytes] = randomness.choice(
            [
                lambda: b"",
                lambda: bytes([randomness.randrange(256)]),
                lambda: randomness.choice(PIECES),
                lambda at=place, to=end: bytes(data[at:to]) * 2,
            ]
        )
        data[place:end] = change()
    return bytes(data)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.randoms(use_true_random=False), st.lists(st.sampled_from(PIECES), min_size=1, max_size=4))
def test_requests_with_pieces_lost_doubled_and_changed(
    held: Watched, randomness: random.Random, seeds: list[bytes]
) -> None:
    with held.server.connect() as connection:
        send_as_far_as_taken(connection, mutilated(randomness, seeds))
        time.sleep(0.001)
        connection.shutdown(socket.SHUT_WR)
        data = received(connection)
    for answer in answers(data):
        assert answer.status < 500
        assert is_ours(answer)
    assert is_normal(ask(held.server, LAST)[0])
