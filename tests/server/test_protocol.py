"""uvicorn's protocol with limits, without a network: what a request becomes does not depend on how it is cut."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import uvicorn
from hypothesis import given
from hypothesis import strategies as st
from starlette.types import Receive, Scope, Send
from uvicorn.server import ServerState

from gramvec.server.edge.protocol import PIECE_BYTES, Guard, Limits, limit_protocol

LIMITS = Limits(header_bytes=3_000, header_lines=5, framing_bytes=4_000, unread_bytes=10**6)
GET = b"GET /a?b=c HTTP/1.1\r\nhost: t\r\n\r\n"
POST = b"POST /p HTTP/1.1\r\nhost: t\r\ncontent-length: %d\r\n\r\n"
CHUNKED = b"POST /c HTTP/1.1\r\nhost: t\r\ntransfer-encoding: chunked\r\n\r\n"
OFFER = GET.replace(b"host: t", b"host: t\r\nconnection: upgrade\r\nupgrade: h2c")
OFFER_OF_BODY = (POST % 3).replace(b"host: t", b"host: t\r\nconnection: upgrade\r\nupgrade: websocket") + b"abc"


class Pipe:
    """A transport that keeps what is written."""

    def __init__(self) -> None:
        self.written = b""
        self.closed = self.paused = self.ended = False
        self.write_size = 0

    def write(self, data: bytes) -> None:
        self.written += data

    def write_eof(self) -> None:
        self.ended = True

    def close(self) -> None:
        self.closed = True

    abort = close

    def is_closing(self) -> bool:
        return self.closed

    def pause_reading(self) -> None:
        assert not self.paused
        self.paused = True

    def resume_reading(self) -> None:
        assert self.paused
        self.paused = False

    def get_write_buffer_size(self) -> int:
        return self.write_size

    def get_extra_info(self, name: str) -> Any:
        return None


async def echo(scope: Scope, receive: Receive, send: Send) -> None:
    """Answer with the request as it was understood."""
    body, more = b"", True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            return
        body, more = body + message["body"], message["more_body"]
    headers = [[name.decode(), value.decode("latin-1")] for name, value in scope["headers"]]
    content = json.dumps([scope["method"], scope["path"], headers, body.decode("latin-1")]).encode()
    length = (b"content-length", b"%d" % len(content))
    await send({"type": "http.response.start", "status": 200, "headers": [length]})
    await send({"type": "http.response.body", "body": content})


def exchanged(
    pieces: list[bytes],
    limits: Limits = LIMITS,
    watch: Callable[[Any], None] = lambda _: None,
    *,
    draining: bool = False,
) -> Pipe:
    """Return the transport of a connection that these pieces arrived on."""

    async def talk() -> Pipe:
        pipe, guard = Pipe(), Guard(limits)
        guard.draining = draining
        config = uvicorn.Config(echo, http=limit_protocol(guard), lifespan="off", log_config=None)
        config.load()
        connection = limit_protocol(guard)(config, ServerState(), {})
        connection.connection_made(pipe)
        for piece in pieces:
            while pipe.paused:
                await asyncio.sleep(0)
            connection.data_received(piece)
            await asyncio.sleep(0)
        for _ in range(2_000):
            await asyncio.sleep(0)
            watch(connection)
            if not (connection.in_flight or connection._ahead or connection.pipeline):
                break
        connection.connection_lost(None)
        assert guard.unread_bytes == 0
        assert not guard.members
        return pipe

    return asyncio.run(talk())


def cut(data: bytes, places: list[int]) -> list[bytes]:
    edges = sorted({0, len(data), *(place % (len(data) + 1) for place in places)})
    return [data[start:end] for start, end in pairwise(edges)]


GOOD = [
    GET,
    POST % 5 + b"12345",
    POST % 5_000 + b"x" * 5_000,
    CHUNKED + b"3;a=b\r\nabc\r\n2\r\nde\r\n0\r\nx: y\r\n\r\n",
    OFFER,
    OFFER_OF_BODY,
    b"\r\n" + GET,
    GET.replace(b"/a?b=c", b"http://t"),
]
BAD = [
    b"nonsense\r\n\r\n",
    GET.replace(b"host: t\r\n", b""),
    GET.replace(b"host: t", b"host: t\r\nhost: t"),
    GET.replace(b"host: t", b"host: t\r\nx: " + b"y" * 3_000),
    GET.replace(b"host: t", b"host: t" + b"\r\nx: y" * 5),
    GET.replace(b"/a?b=c", b"/" + b"a" * 3_000),
    CHUNKED + b"zz\r\n",
    CHUNKED + b"1;" + b"a" * (4_000 + 2 * PIECE_BYTES),
    CHUNKED.replace(b"chunked", b"gzip, chunked"),
    (POST % 3).replace(b"3", b"0" * 20 + b"3") + b"abc",
]


@given(st.lists(st.sampled_from(GOOD), min_size=1, max_size=5), st.lists(st.integers(0), max_size=8))
def test_requests_are_the_same_however_they_are_cut(requests: list[bytes], places: list[int]) -> None:
    whole = b"".join(exchanged([request]).written for request in requests)
    assert whole.count(b"HTTP/1.1 200 OK") == len(requests)
    assert exchanged(cut(b"".join(requests), places)).written == whole
    assert b"upgrade: " not in whole and b'"x", "y"' not in whole


@given(st.lists(st.sampled_from(GOOD), max_size=3), st.sampled_from(BAD), st.lists(st.integers(0), max_size=8))
def test_a_bad_request_is_refused_behind_the_answers_that_are_due(
    requests: list[bytes], bad: bytes, places: list[int]
) -> None:
    refusal = exchanged([bad])
    assert refusal.written.startswith((b"HTTP/1.1 400 ", b"HTTP/1.1 431 "))
    assert b"connection: close" in refusal.written.lower()
    assert refusal.ended
    due = b"".join(exchanged([request]).written for request in requests)
    found = exchanged(cut(b"".join(requests) + bad + GET, places)).written
    assert without_ids(found) == without_ids(due + refusal.written)


def without_ids(written: bytes) -> bytes:
    return re.sub(rb"x-request-id: \w+", b"x-request-id: -", written)


def test_a_thousand_requests_sent_ahead_are_few_objects_and_all_answered() -> None:
    waiting = [0]
    pipe = exchanged([GET * 1_000], watch=lambda connection: waiting.append(len(connection.pipeline)))
    assert pipe.written.count(b"HTTP/1.1 200 OK") == 1_000
    assert 10 < max(waiting) <= PIECE_BYTES / len(GET)


def test_while_a_server_drains_the_last_answer_closes_the_connection() -> None:
    heads = exchanged([GET * 3], draining=True).written.split(b"HTTP/1.1 200 OK\r\n")[1:]
    assert [b"connection: close" in head for head in heads] == [False, False, True]


def test_more_sent_ahead_than_all_connections_may_hold_is_refused() -> None:
    pipe = exchanged([GET * 1_000], LIMITS._replace(unread_bytes=8_000))
    assert pipe.written.count(b"HTTP/1.1 200 OK") < 100
    assert b"HTTP/1.1 503 " in pipe.written
    assert pipe.ended
