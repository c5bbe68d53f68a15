"""What 60 kB of a request cost without a key: of no form more than ten times the CPU of a plain body of as many bytes,
nor twenty times its size in memory. What is compared are processor times of this thread, the least of several."""

from __future__ import annotations

import asyncio
import gc
import time
import tracemalloc
from collections.abc import Iterator
from typing import Any

import pytest
import uvicorn
from fastapi import Depends, FastAPI
from hypothesis import Phase, given
from hypothesis import settings as options
from hypothesis import strategies as st
from test_protocol import Pipe
from uvicorn.server import ServerState

from gramvec import Embedder
from gramvec.server import create_app, router
from gramvec.server.edge.protocol import Guard, Limits, limit_protocol
from gramvec.server.settings import Settings

SIZE = 60_000
MAX_TIMES_THE_CPU, MAX_TIMES_THE_SIZE = 10, 20
TRIES = 3
HOST = b"Host: a\r\n"
JSON = HOST + b"Content-Type: application/json\r\n"
CHUNKED = JSON + b"Transfer-Encoding: chunked\r\n\r\n"
PLAIN = b"POST /embed HTTP/1.1\r\n" + JSON + b"Content-Length: %d\r\n\r\n" % SIZE + b" " * SIZE
PLACES = ["query", "cookie", "quoted", "cookies", "path", "value", "name", "lines", "extension", "trailer", "body",
          "chunks"]  # fmt: skip
BYTES = [b"a", b"=", b"&", b";", b"%41", b"/", b",", b'"', b"\\", b"[", b"{", b":", b" "]


def form(place: str, unit: bytes, target: bytes = b"/health") -> bytes:
    """Return a request whose 60 kB are this unit, again and again, in one place of it."""
    filled = (unit * (SIZE // len(unit) + 1))[:SIZE]
    get = b"GET " + target
    post = b"POST /embed HTTP/1.1\r\n"
    return {
        "query": get + b"?" + filled + b" HTTP/1.1\r\n" + HOST + b"\r\n",
        "path": b"GET /" + filled + b" HTTP/1.1\r\n" + HOST + b"\r\n",
        "cookie": get + b" HTTP/1.1\r\n" + HOST + b"Cookie: " + filled + b"\r\n\r\n",
        "quoted": get + b" HTTP/1.1\r\n" + HOST + b'Cookie: a="' + filled + b'"\r\n\r\n',
        "cookies": get + b" HTTP/1.1\r\n" + (b"Cookie: " + unit + b"\r\n") * (SIZE // (len(unit) + 10)) + b"\r\n",
        "value": get + b" HTTP/1.1\r\n" + HOST + b"x: " + filled + b"\r\n\r\n",
        "accept": post + JSON + b"Accept: " + filled + b'\r\nContent-Length: 14\r\n\r\n{"inputs":"a"}',
        "name": get + b" HTTP/1.1\r\n" + HOST + filled + b": b\r\n\r\n",
        "lines": get + b" HTTP/1.1\r\n" + HOST + (unit + b":\r\n") * (SIZE // (len(unit) + 3)) + b"\r\n",
        "chunks": post + CHUNKED + (b"%x\r\n%b\r\n" % (len(unit), unit)) * (SIZE // (len(unit) + 5)) + b"0\r\n\r\n",
        "extension": post + CHUNKED + (b"1;" + unit + b"\r\n \r\n") * (SIZE // (len(unit) + 7)) + b"0\r\n\r\n",
        "trailer": post + CHUNKED + b"0\r\n" + (unit + b":\r\n") * (SIZE // (len(unit) + 3)) + b"\r\n",
        "body": post + JSON + b"Content-Length: %d\r\n\r\n" % SIZE + filled,
    }[place]  # fmt: skip


class Bench:
    """An application behind the protocol, without a network."""

    def __init__(self, app: FastAPI) -> None:
        self._loop = asyncio.new_event_loop()
        self._life = app.router.lifespan_context(app)
        self._loop.run_until_complete(self._life.__aenter__())
        self._protocol = limit_protocol(Guard(Limits()))
        self._config = uvicorn.Config(app, http=self._protocol, lifespan="off", log_config=None)
        self._config.load()

    def close(self) -> None:
        self._loop.run_until_complete(self._life.__aexit__(None, None, None))
        self._loop.close()

    def exchange(self, sent: bytes) -> bytes:
        """Return what is answered to these bytes, which arrive at once."""

        async def talk() -> bytes:
            pipe = Pipe()
            connection = self._protocol(self._config, ServerState(), {})
            # `serve` has none; pytest listens to each logger, for which uvicorn's quotes each byte of a path.
            connection.access_log = False
            connection.connection_made(pipe)
            connection.data_received(sent)
            for _ in range(200):
                await asyncio.sleep(0)
                if pipe.written and not (connection.in_flight or connection._ahead):
                    break
            connection.connection_lost(None)
            return pipe.written

        return self._loop.run_until_complete(talk())

    def cpu(self, sent: bytes) -> float:
        """Return the seconds of this thread that an answer costs, the least of a few."""
        least = float("inf")
        for _ in range(TRIES):
            began = time.thread_time()
            self.exchange(sent)
            least = min(least, time.thread_time() - began)
        return least

    def memory(self, sent: bytes) -> int:
        """Return the most bytes that Python's objects took meanwhile."""
        tracemalloc.start()
        try:
            self.exchange(sent)
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()


@pytest.fixture(scope="module", params=["ours", "with a dependency of theirs"])
def bench(request: Any, small: Embedder) -> Iterator[Bench]:
    settings = Settings.model_validate({"api_key": ["k"]})
    app: FastAPI = create_app(settings, small)
    if request.param != "ours":
        app = FastAPI()
        app.include_router(router(settings, small), dependencies=[Depends(nothing)])
    bench = Bench(app)
    gc.disable()
    yield bench
    gc.enable()
    bench.close()


async def nothing() -> None:
    """Be a dependency, for whose sake FastAPI solves a route's parameters."""


def check(bench: Bench, sent: bytes) -> None:
    bench.exchange(sent)
    for _ in range(6):  # both again: one of them may have met a busy machine
        times = bench.cpu(sent) / bench.cpu(PLAIN)
        if times < MAX_TIMES_THE_CPU:
            break
    assert times < MAX_TIMES_THE_CPU, (times, sent[:60], bench.exchange(sent)[:60])
    assert bench.memory(sent) < MAX_TIMES_THE_SIZE * SIZE


@pytest.mark.parametrize(
    ("place", "unit"),
    [
        ("query", b"a=&"), ("query", b"a=%41&"), ("query", b"%41"), ("query", b";"), ("query", b"+"),
        ("cookie", b"a=;"), ("cookie", b";"), ("cookie", b'a="\\141";'), ("cookies", b"a=b"), ("cookie", b'"'),
        ("quoted", b"a"), ("quoted", b"\\"), ("quoted", b"\\141"), ("quoted", b'\\"'),
        ("path", b"%41"), ("path", b"/"), ("path", b"a/"), ("path", b"../"), ("path", b"%2f"),
        ("lines", b"a"), ("lines", b"cookie"), ("name", b"a"), ("value", b"a,"), ("accept", b"a/b;q=0.1,"),
        ("chunks", b" "), ("chunks", b"[" * 60), ("extension", b"a"), ("trailer", b"a"), ("trailer", b"host"),
        ("body", b"["), ("body", b'{"a":'), ("body", b'"",'), ("body", b"\\u0041"),
    ],
)  # fmt: skip
def test_a_form_costs_about_as_much_as_a_plain_body(bench: Bench, place: str, unit: bytes) -> None:
    check(bench, form(place, unit))


@options(max_examples=30, phases=[Phase.explicit, Phase.generate], deadline=None)
@given(
    st.sampled_from(PLACES),
    st.lists(st.sampled_from(BYTES), min_size=1, max_size=5),
    st.sampled_from([b"/health", b"/docs", b"/v1/models/a", b"/nowhere"]),
)
def test_no_unit_costs_more(bench: Bench, place: str, unit: list[bytes], target: bytes) -> None:
    check(bench, form(place, b"".join(unit), target))
