"""Bodies and answers of all requests together are bounded: many clients cannot take the memory that one may not."""

from __future__ import annotations

import json
import time
from contextlib import suppress

import httpx
import pytest

from gramvec import Embedder
from gramvec.errors import Overloaded
from gramvec.server.settings import Settings
from gramvec.server.state.memory_budget import MemoryBudget
from support.errors import refused
from support.http import PATIENCE, RunningServer, running, until

SETTINGS = Settings(max_bytes_in_flight=1_000_000, max_body_bytes=900_000, send_timeout_seconds=PATIENCE)


def test_a_refusal_means_later_and_never_never() -> None:
    unsent = 0
    traffic = MemoryBudget(100, lambda: unsent)
    traffic.reserve(250)  # larger than the limit, but nothing else is held
    with refused(Overloaded, "250 bytes", "100") as caught:
        traffic.reserve(1)
    assert caught.value.reason == "memory"
    traffic.release(250)
    traffic.reserve(60)  # what was released is not unsent when it is looked at
    unsent = 30
    with pytest.raises(Overloaded, match="hold 90 bytes"):
        traffic.reserve(41)
    traffic.reserve(10)
    with pytest.raises(Overloaded, match="hold 100 bytes"):
        traffic.reserve(1)


def held(server: RunningServer) -> int:
    return server.service.memory._reserved


def embed(server: RunningServer, texts: list[str]) -> httpx.Response:
    return httpx.post(f"{server.url}/embed", json={"inputs": texts}, timeout=PATIENCE)


@pytest.mark.parametrize("chunked", [False, True])
def test_bodies_that_are_on_their_way_are_counted(embedder: Embedder, chunked: bool) -> None:
    head = b"POST /embed HTTP/1.1\r\nhost: test\r\ncontent-type: application/json\r\n"
    piece = b'{"inputs": "' + b"x" * 800_000
    with running(SETTINGS, embedder) as server, server.connect() as slow:
        if chunked:
            slow.sendall(head + b"transfer-encoding: chunked\r\n\r\n%x\r\n%b\r\n" % (len(piece), piece))
        else:
            slow.sendall(head + b"content-length: 890000\r\n\r\n" + piece)
        until(lambda: held(server) >= 800_000)
        refused = embed(server, ["a text"] * 100)  # an answer of 30,000 numbers
        assert (refused.status_code, refused.json()["error_type"]) == (429, "overloaded")
        assert refused.headers["retry-after"] == "1"
        assert embed(server, ["a small one"]).status_code == 200
        slow.close()
        until(lambda: held(server) == 0)
        assert embed(server, ["a text"] * 100).status_code == 200


def test_answers_that_are_not_taken_are_counted(embedder: Embedder) -> None:
    body = json.dumps({"inputs": ["x"] * 2_048}).encode()
    request = (
        b"POST /embed HTTP/1.1\r\nhost: test\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%b"
        % (len(body), body)
    )
    with running(SETTINGS, embedder) as server, server.connect() as slow:
        slow.sendall(request)  # and reads nothing of 7 MB, more than lies in sockets
        until(lambda: server.service.process.unsent_bytes() > 500_000)
        refused = embed(server, ["a text"] * 150)
        assert refused.status_code == 429
        assert "yet to be taken" in refused.json()["error"]
        received = 0
        while received < 5_500_000:
            received += len(slow.recv(65_536))
        slow.settimeout(0.5)
        deadline = time.monotonic() + PATIENCE
        while embed(server, ["a text"] * 150).status_code != 200:
            assert time.monotonic() < deadline
            with suppress(TimeoutError):
                slow.recv(1 << 20)
        counted = httpx.get(f"{server.url}/metrics").text
    assert 'gramvec_rejected_total{reason="memory"}' in counted
