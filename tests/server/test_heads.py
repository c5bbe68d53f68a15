"""Heads of requests that were read before: a request is answered alike whether its head was known or not."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gramvec import Embedder
from gramvec.server.http1.head import Head, HeadReader
from gramvec.server.http1.known_heads import LONGEST_HEAD, MOST_HEADS, KnownHeads
from gramvec.server.http1.limits import Limits
from gramvec.server.settings import Settings
from http_support import RunningServer, post_bytes, running
from reliability.support import Wire, answers, closing, received

BODY = b'{"inputs": "a fast car"}'


def head(target: bytes = b"/embed?x=1", *more: bytes) -> bytes:
    lines = [b"POST %b HTTP/1.1" % target, b"host: t", b"content-length: %d" % len(BODY), *more]
    return b"\r\n".join([*lines, b"", b""])


def read(data: bytes) -> Head:
    reader = HeadReader(Limits.of(Settings(), 75.0))
    assert reader.feed(data) == len(data)
    return reader.head


def test_a_head_is_known_whatever_follows_it_and_by_all_of_its_bytes() -> None:
    heads = KnownHeads()
    assert heads.find(head() + BODY) is None
    one = read(head())
    heads.remember(head() + b"what follows is of no account\r\n\r\n", len(head()), one)
    for follows in (b"", BODY, BODY * 2, b"\r\n\r\n"):
        assert heads.find(head() + follows) == (one, len(head()))
    for other in (
        b"",
        head()[:-1],
        b"\r\n" + head(),
        head(b"/embed?x=2"),
        head(b"/embed?x=1", b"x: y"),
        head().upper(),
    ):
        assert heads.find(other) is None


def test_long_ones_are_not_remembered() -> None:
    heads = KnownHeads()
    for size, remembered in ((LONGEST_HEAD, True), (LONGEST_HEAD + 1, False)):
        long = head(b"/embed", b"x: " + b"y" * (size - len(head(b"/embed", b"x: "))))
        assert len(long) == size
        heads.remember(long, size, read(long))
        assert (heads.find(long + BODY) is not None) == remembered


def test_there_is_an_end_to_what_is_remembered() -> None:
    heads = KnownHeads()
    many = [head(b"/embed", b"x-request-id: %d" % number) for number in range(3 * MOST_HEADS)]
    for one in many:
        heads.remember(one, len(one), read(one))
    known = [heads.find(one + BODY) for one in many]
    assert known[-1] is not None
    assert sum(one is not None for one in known) <= MOST_HEADS


@pytest.fixture(scope="module")
def server(embedder: Embedder) -> Iterator[RunningServer]:
    with running(Settings(device="cpu", api_key=["secret"]), embedder) as server:
        yield server


KEY = b"authorization: Bearer secret\r\n"


def with_key(sent: bytes) -> bytes:
    return sent.replace(b"host: test\r\n", b"host: test\r\n" + KEY, 1)


# Of each kind twice and more, so that some heads are known; and what must not be taken for them.
REQUESTS = [
    with_key(post_bytes(BODY)),
    with_key(post_bytes(b'{"inputs": "a slow car"}')),
    with_key(post_bytes(b'{"inputs": ["POST / HTTP/1.1\\r\\n\\r\\n"]}')),
    with_key(post_bytes(b"\r\n\r\n" + BODY)),
    with_key(post_bytes(b'{"inputs": 7}')),
    with_key(post_bytes(BODY, path="/similarity")),
    with_key(post_bytes(BODY, path="/v1/embeddings")),
    with_key(post_bytes(b"")),
    post_bytes(BODY),  # without the key
    with_key(post_bytes(BODY)).replace(b"application/json", b"text/csv"),
    with_key(post_bytes(BODY)).replace(b"host:", b"host:  "),
    with_key(post_bytes(BODY)).replace(b"POST ", b"\r\nPOST "),
    b"GET /health HTTP/1.1\r\nhost: test\r\n\r\n",
    with_key(
        b"POST /embed HTTP/1.1\r\nhost: test\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n"
    )
    + b"%x\r\n%b\r\n0\r\n\r\n" % (len(BODY), BODY),
]
LAST = closing(with_key(post_bytes(BODY)))


def told(answer: Wire) -> tuple[int, bytes, frozenset[str]]:
    return answer.status, answer.body, frozenset(answer.headers)


@pytest.fixture(scope="module")
def expected(server: RunningServer) -> list[tuple[int, bytes, frozenset[str]]]:
    found = []
    for request in REQUESTS:
        with server.connect() as connection:
            for byte in (request + LAST)[:40]:  # in pieces, so that the parser reads it
                connection.sendall(bytes([byte]))
                time.sleep(0.001)
            connection.sendall((request + LAST)[40:])
            first, last = answers(received(connection))
            assert last.status == 200
            found.append(told(first))
    return found


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    chosen=st.lists(st.integers(0, len(REQUESTS) - 1), min_size=1, max_size=8),
    cuts=st.lists(st.integers(1, 400), max_size=6),
)
def test_answers_do_not_depend_on_what_was_read_before_nor_on_the_pieces(
    server: RunningServer, expected: list[tuple[int, bytes, frozenset[str]]], chosen: list[int], cuts: list[int]
) -> None:
    data = b"".join(REQUESTS[i] for i in chosen) + LAST
    with server.connect() as connection:
        for cut in cuts:
            connection.sendall(data[:cut])
            data = data[cut:]
            time.sleep(0.002)  # or the pieces arrive as one
        connection.sendall(data)
        *found, last = answers(received(connection))
    assert [told(one) for one in found] == [expected[i] for i in chosen]
    assert last.status == 200


def test_requests_one_after_the_other_are_told_apart(
    server: RunningServer, expected: list[tuple[int, bytes, frozenset[str]]]
) -> None:
    with server.connect() as connection:
        for turn in range(3 * len(REQUESTS)):
            connection.sendall(REQUESTS[turn % len(REQUESTS)])
            data = b""
            while not (found := answers(data)):
                data += connection.recv(65_536)
            assert [told(one) for one in found] == [expected[turn % len(REQUESTS)]]
