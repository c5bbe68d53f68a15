"""The files that one POST /embed passes: as many as docs/architecture.md lists, and no more than `MAX_FILES`."""

from __future__ import annotations

import re
import socket
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import gramvec
from gramvec import Embedder
from gramvec.server.settings import Settings
from support.http import PATIENCE, RunningServer, post_bytes, running

PACKAGE = Path(gramvec.__file__).parent
PAGE = Path(__file__).parents[2] / "docs" / "architecture.md"
MAX_FILES = 15
# The server does something every half second, too, but not during each of these.
ATTEMPTS = 5
REQUEST = post_bytes(b'{"inputs": "a fast car"}')


@pytest.fixture
def server(embedder: Embedder) -> Iterator[RunningServer]:
    with running(Settings(), embedder) as started:
        yield started


def read_response(connection: socket.socket) -> None:
    """Read one response with a vector."""
    received = b""
    while not received.endswith(b"]]"):
        part = connection.recv(65_536)
        assert part, received
        received += part
    assert received.startswith(b"HTTP/1.1 200 ")


def files_passed(server: RunningServer, connection: socket.socket) -> list[str]:
    """Return the files of the package whose functions are called for one request, in that order."""
    found: dict[str, None] = {}
    tracing, ended = threading.Event(), threading.Event()

    def profile(frame: FrameType, event: str, _: Any) -> None:
        path = Path(frame.f_code.co_filename)
        if event == "call" and PACKAGE in path.parents:
            found.setdefault(str(path.relative_to(PACKAGE)))

    def begin() -> None:
        sys.setprofile(profile)
        tracing.set()

    def end() -> None:
        sys.setprofile(None)
        ended.set()

    loop = server.server.loop if server.server is not None else None
    assert loop is not None
    loop.call_soon_threadsafe(begin)
    assert tracing.wait(PATIENCE)
    connection.sendall(REQUEST)
    read_response(connection)
    loop.call_soon_threadsafe(end)
    assert ended.wait(PATIENCE)
    return list(found)


def test_a_post_embed_passes_the_files_that_the_page_lists(server: RunningServer) -> None:
    section = PAGE.read_text().partition("### The way of a request")[2].partition("\n### ")[0]
    listed = re.findall(r"^\d+\. `([\w/]+\.py)`", section, re.MULTILINE)
    with server.connect() as connection:
        # The first request of a connection and of a process is read in full and makes the rows of its counters.
        connection.sendall(REQUEST)
        read_response(connection)
        for _ in range(ATTEMPTS):
            passed = files_passed(server, connection)
            if passed == listed:
                break
    assert passed == listed
    assert len(passed) <= MAX_FILES
