"""Bytes that no client library would send. After each the server answers as before, and holds nothing of it."""

from __future__ import annotations

import json
import logging
import random
import socket
import struct
import time
from collections.abc import Callable, Iterator

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gramvec import Embedder
from gramvec.server.settings import Settings
from http_support import PATIENCE, post_bytes, until
from reliability.support import (
    LAST,
    NORMAL,
    TEXT,
    Watched,
    Wire,
    answers,
    ask,
    is_normal,
    received,
    send_as_far_as_taken,
    watched,
)

pytestmark = pytest.mark.slow

GET = b"GET /health HTTP/1.1\r\nhost: t\r\n"
HEALTH = GET + b"\r\n"
POST = b"POST /embed HTTP/1.1\r\nhost: t\r\ncontent-type: application/json\r\n"
CODING = b"transfer-encoding: chunked\r\n"
CHUNKED = POST + CODING + b"\r\n"
BODY = b"%x\r\n%b\r\n0\r\n\r\n" % (len(TEXT), TEXT)
HIDDEN = b"GET /ready HTTP/1.1\r\nhost: t\r\nx-request-id: smuggled\r\n\r\n"
LENGTH = b"content-length: %d\r\n" % len(TEXT)
UPGRADE = b"connection: Upgrade, HTTP2-Settings\r\nupgrade: h2c\r\nhttp2-settings: AAMAAABkAARAAAAA\r\n"
DIGITS = 20 * b"9"


def with_length(value: bytes) -> bytes:
    return POST + b"content-length: " + value + b"\r\n\r\n" + TEXT


# Statuses in the order of the answers; after "closed" the server has closed, without it the connection is in step.
# With "|" either: it depends on whether the first was answered before the rest arrived.
CASES: dict[str, tuple[bytes, str]] = {
    "a normal request": (NORMAL, "200"),
    "empty lines before it": (b"\r\n\r\n" + NORMAL, "200"),
    "bytes at random": (b"\x00\xff\xfe garbage \x80\r\n\r\n", "400 closed"),
    "a TLS handshake": (bytes.fromhex("16030100c8010000c40303") + b"x" * 200, "400 closed"),
    "HTTP/2": (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "400 closed"),
    "another version": (b"GET /health HTTP/3.7\r\nhost: t\r\n\r\n", "400 closed"),
    "HTTP/1.0": (b"GET /health HTTP/1.0\r\n\r\n", "200 closed"),
    "HTTP/1.0 with a body": (b"POST /embed HTTP/1.0\r\ncontent-type: application/json\r\n" + LENGTH + b"\r\n" + TEXT,
                             "200 closed"),
    "NUL in the target": (b"GET /he\0alth HTTP/1.1\r\nhost: t\r\n\r\n", "400 closed"),
    "NUL in a header": (GET + b"x: a\0b\r\n\r\n", "400 closed"),
    "NUL in the body": (POST + b"content-length: 3\r\n\r\n\0\0\0", "400"),
    "NUL escaped in the target": (b"GET /health%00 HTTP/1.1\r\nhost: t\r\n\r\n", "404"),
    "a target in Latin-1": (b"GET /h\xe9 HTTP/1.1\r\nhost: t\r\n\r\n", "400 closed"),
    "an escaped target that is not UTF-8": (b"GET /%ff%fe HTTP/1.1\r\nhost: t\r\n\r\n", "404"),
    "half an escape": (b"GET /%z HTTP/1.1\r\nhost: t\r\n\r\n", "404"),
    "up and away": (b"GET /../../etc/passwd HTTP/1.1\r\nhost: t\r\n\r\n", "404"),
    "up and away, escaped": (b"GET /%2e%2e/%2e%2e/etc/passwd HTTP/1.1\r\nhost: t\r\n\r\n", "404"),
    "an absolute target": (b"GET http://t/health HTTP/1.1\r\nhost: t\r\n\r\n", "200"),
    "a target for a proxy": (b"CONNECT t:443 HTTP/1.1\r\nhost: t\r\n\r\n", "400 closed"),
    "a tunnel to a path": (b"CONNECT /embed HTTP/1.1\r\nhost: t\r\n\r\n", "400 closed"),
    "no host": (b"GET /health HTTP/1.1\r\n\r\n", "400 closed"),
    "two hosts": (GET + b"host: u\r\n\r\n", "400 closed"),
    "two hosts in HTTP/1.0": (b"GET /health HTTP/1.0\r\nhost: t\r\nhost: t\r\n\r\n", "400 closed"),
    "two keys": (GET + b"authorization: Bearer a\r\nauthorization: Bearer b\r\n\r\n", "400 closed"),
    "a target of the server itself": (b"OPTIONS * HTTP/1.1\r\nhost: t\r\n\r\n", "204"),
    "a target without its slash": (b"GET health HTTP/1.1\r\nhost: t\r\n\r\n", "400 closed"),
    "a method of its own": (b"BREW /health HTTP/1.1\r\nhost: t\r\n\r\n", "400 closed"),
    "line feeds alone": (b"GET /health HTTP/1.1\nhost: t\n\n", "400 closed"),
    "carriage returns alone": (b"GET /health HTTP/1.1\rhost: t\r\r", "400 closed"),
    "a folded header": (GET + b"x: a\r\n b\r\n\r\n", "400 closed"),
    "a space before the colon": (GET + b"x : a\r\n\r\n", "400 closed"),
    "a target of 1 MB": (b"GET /" + b"a" * 1_000_000 + b" HTTP/1.1\r\nhost: t\r\n\r\n", "431 closed"),
    "a header of 10 MB": (GET + b"x: " + b"a" * 10_000_000 + b"\r\n\r\n", "431 closed"),
    "a header of 100 KB": (GET + b"x: " + b"a" * 100_000 + b"\r\n\r\n", "431 closed"),
    "a header of 60 KB": (GET + b"x: " + b"a" * 60_000 + b"\r\n\r\n", "200"),
    "100 headers": (GET + b"x: a\r\n" * 99 + b"\r\n", "200"),
    "101 headers": (GET + b"x: a\r\n" * 100 + b"\r\n", "431 closed"),
    "20,000 headers": (GET + b"".join(b"x%d: a\r\n" % i for i in range(20_000)) + b"\r\n", "431 closed"),
    "a header of 1 MB behind a good request": (NORMAL + GET + b"x: " + b"a" * 1_000_000, "200 closed|200 431 closed"),
    "an offer of HTTP/2": (POST + UPGRADE + LENGTH + b"\r\n" + TEXT, "200"),
    "an offer of HTTP/2, chunked": (POST + UPGRADE + b"transfer-encoding: chunked\r\n\r\n" + BODY, "200"),
    "an offer of HTTP/2 and more": ((POST + UPGRADE + LENGTH + b"\r\n" + TEXT) * 2 + HEALTH, "200 200 200"),
    "an offer of a web socket": (GET + b"connection: upgrade\r\nupgrade: websocket\r\n\r\n", "200"),
    "600 offers": ((GET + b"connection: upgrade\r\nupgrade: websocket\r\n\r\n") * 600, " ".join(["200"] * 600)),
    "a length below zero": (with_length(b"-1"), "400 closed"),
    "a length with a sign": (with_length(b"+24"), "400 closed"),
    "a length in hexadecimal": (with_length(b"0x18"), "400 closed"),
    "a length beyond 64 bits": (with_length(DIGITS), "400 closed"),
    "a length of 4,301 digits": (with_length(b"0" * 4_300 + b"1"), "400 closed"),
    "two lengths": (POST + b"content-length: 3\r\n" + LENGTH + b"\r\n" + TEXT, "400 closed"),
    "the same length twice": (POST + LENGTH + LENGTH + b"\r\n" + TEXT, "400 closed"),
    "a list of lengths": (with_length(b"24, 24"), "400 closed"),
    "a length of 64 bits": (with_length(b"18446744073709551615"), "413 closed"),
    "a length too small": (with_length(b"10"), "400 400 closed"),
    "no length": (POST + b"\r\n", "400"),
    "a body where none belongs": (GET + b"content-length: 3\r\n\r\nabc" + NORMAL, "200 200"),
    "chunks": (CHUNKED + BODY, "200"),
    "chunks of a byte": (CHUNKED + b"".join(b"1\r\n%c\r\n" % one for one in TEXT) + b"0\r\n\r\n", "200"),
    "chunks with an extension and a trailer": (
        CHUNKED + b"18;a=b\r\n" + TEXT + b"\r\n0\r\nx-checksum: 1\r\n\r\n", "200"),
    "extensions of 20 KB": (CHUNKED + b"18;a=" + b"b" * 20_000 + b"\r\n" + TEXT + b"\r\n0\r\n\r\n", "431 closed"),
    "extensions that do not end": (CHUNKED + b"1;a=" + b"b" * 1_000_000, "431 closed"),
    "a trailer of 20 KB": (CHUNKED + BODY[:-2] + b"a:\r\n" * 5_000 + b"\r\n", "431 closed"),
    "a trailer that does not end": (CHUNKED + BODY[:-2] + b"a: " + b"b" * 1_000_000, "431 closed"),
    "a chunk's size in no digits": (CHUNKED + b"zz\r\n" + BODY, "400 closed"),
    "a chunk's size below zero": (CHUNKED + b"-1\r\n" + BODY, "400 closed"),
    "a chunk's size beyond 64 bits": (CHUNKED + b"fffffffffffffffff\r\n" + TEXT, "400 closed"),
    "a chunk longer than it says": (CHUNKED + b"3\r\n" + TEXT + b"\r\n0\r\n\r\n", "400 closed"),
    "a chunk without its end": (CHUNKED + b"18\r\n" + TEXT + b"0\r\n\r\n", "400 closed"),
    "a bad chunk behind good requests": (NORMAL * 2 + CHUNKED + b"zz\r\n", "200 200 400 closed"),
    "100-continue": (POST + b"expect: 100-continue\r\n" + LENGTH + b"\r\n" + TEXT, "200"),
    "small chunks, many": (CHUNKED + b"1\r\n \r\n" * 1_000, "431 closed"),
    "small chunks, many, that nobody reads": (
        CHUNKED.replace(b"/embed", b"/nowhere") + b"1\r\n \r\n" * 10_000, "404 closed|431 closed"),
    "small chunks, a few": (CHUNKED + b"1\r\n \r\n" * 256 + BODY, "200"),
    "a trailer of 100 lines": (CHUNKED + BODY[:-2] + b"a:\r\n" * 100 + b"\r\n", "200"),
    "a trailer of 101 lines": (CHUNKED + BODY[:-2] + b"a:\r\n" * 101 + b"\r\n", "200 closed|431 closed"),
    "a path of 1,000 escapes": (b"GET /" + b"%41" * 1_000 + b" HTTP/1.1\r\nhost: t\r\n\r\n", "404"),
    "a path of 1,001 escapes": (b"GET /" + b"%41" * 1_001 + b" HTTP/1.1\r\nhost: t\r\n\r\n", "414 closed"),
    "two keys of Azure's": (GET + b"api-key: a\r\napi-key: b\r\n\r\n", "400 closed"),
    "pipelining": (NORMAL + HEALTH + NORMAL + HEALTH, "200 200 200 200"),
    "a body that nobody reads": (
        POST.replace(b"/embed", b"/nowhere") + b"content-length: 200000\r\n\r\n" + b"x" * 200_000, "404"),
    "a body that nobody reads, too long": (
        POST.replace(b"/embed", b"/nowhere") + b"content-length: 8000000\r\n\r\n" + b"x" * 2_000_000, "404 closed"),
    "pipelining behind an error": (POST + b"content-length: 1\r\n\r\n{" + HEALTH, "400 200"),
    "100 pipelined": (HEALTH * 100, " ".join(["200"] * 100)),
    "garbage behind a good request": (NORMAL + b"\x00\xff garbage\r\n\r\n", "200 closed|200 400 closed"),
    "garbage behind three": (NORMAL + HEALTH * 2 + b"garbage\r\n\r\n", "200 200 200 closed|200 200 200 400 closed"),
    "more after the last": (LAST + HEALTH, "200 closed"),
    # Two readings of where a request ends: whoever takes the other one must not get HIDDEN answered.
    "length and chunks": (POST + b"content-length: 5\r\n" + CODING + b"\r\n" + BODY + HIDDEN, "400 closed"),
    "chunks and length": (POST + CODING + b"content-length: 5\r\n\r\n" + BODY + HIDDEN, "400 closed"),
    "chunks twice": (POST + CODING + CODING + b"\r\n" + BODY + HIDDEN, "400 closed"),
    "chunks, then as it is": (POST + b"transfer-encoding: chunked, identity\r\n\r\n" + BODY + HIDDEN, "400 closed"),
    "compressed chunks": (POST + b"transfer-encoding: gzip, chunked\r\n\r\n" + BODY + HIDDEN, "400 closed"),
    "a coding nobody knows": (POST + b"transfer-encoding: xchunked\r\n\r\n" + BODY + HIDDEN, "400 closed"),
    "a coding behind a vertical tab": (POST + b"transfer-encoding: \x0bchunked\r\n\r\n" + BODY + HIDDEN, "400 closed"),
    "a coding before a space": (POST + b"transfer-encoding : chunked\r\n\r\n" + BODY + HIDDEN, "400 closed"),
    "chunks in HTTP/1.0": (CHUNKED.replace(b"/1.1", b"/1.0") + BODY + HIDDEN, "200 closed"),
    "a length that hides a request": (
        POST + b"content-length: %d\r\n\r\n" % len(TEXT + HIDDEN) + TEXT + HIDDEN, "400"),
}  # fmt: skip


@pytest.fixture(scope="module")
def held(embedder: Embedder) -> Iterator[Watched]:
    with watched(Settings(), embedder) as found:
        yield found


@pytest.fixture(autouse=True)
def nothing_is_left(held: Watched, caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    yield
    assert is_normal(ask(held.server, LAST)[0])
    until(held.has_let_go)
    assert [record for record in caplog.records if record.levelno >= logging.ERROR] == []


@pytest.mark.parametrize("case", CASES)
def test_bytes_on_the_wire(held: Watched, case: str) -> None:
    sent, expected = CASES[case]
    closes = expected.endswith("closed")
    if not closes:
        # What follows is answered as what it is: both sides agree on where the request ended.
        expected += " 200 closed"
        sent += LAST.replace(b"host: test", b"host: test\r\nx-request-id: in-step")
    found = ask(held.server, sent)
    assert " ".join([*(str(answer.status) for answer in found), "closed"]) in expected.split("|")
    ids = [answer.headers.get("x-request-id") for answer in found]
    assert "smuggled" not in ids
    assert (ids[-1] == "in-step") == (not closes)
    for answer in found:
        assert is_ours(answer)


def is_ours(answer: Wire) -> bool:
    if answer.status < 400:
        return True
    assert answer.headers["content-type"] == "application/json"
    return bool(answer.error_type)


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
