"""The files that one POST /embed passes: as many as docs/architecture.md lists, and no more than `MOST`."""

from __future__ import annotations

import re
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import httpx
import pytest

import gramvec
from gramvec import Embedder
from gramvec.server.settings.settings import Settings
from http_support import PATIENCE, RunningServer, running

PACKAGE = Path(gramvec.__file__).parent
PAGE = Path(__file__).parents[2] / "docs" / "architecture.md"
MOST = 22


@pytest.fixture
def server(embedder: Embedder) -> Iterator[RunningServer]:
    with running(Settings(), embedder) as started:
        yield started


def files_passed(server: RunningServer, client: httpx.Client) -> list[str]:
    """Return the files of the package whose functions are called for one request, in that order."""
    found: dict[str, None] = {}
    tracing = threading.Event()

    def profile(frame: FrameType, event: str, _: Any) -> None:
        path = Path(frame.f_code.co_filename)
        if event == "call" and PACKAGE in path.parents:
            found.setdefault(str(path.relative_to(PACKAGE)))

    def begin() -> None:
        sys.setprofile(profile)
        tracing.set()

    loop = server.server.loop if server.server is not None else None
    assert loop is not None
    loop.call_soon_threadsafe(begin)
    assert tracing.wait(PATIENCE)
    response = client.post(server.url + "/embed", json={"inputs": "a fast car"})
    loop.call_soon_threadsafe(sys.setprofile, None)
    assert response.status_code == 200
    return list(found)


def test_a_post_embed_passes_the_files_that_the_page_lists(server: RunningServer) -> None:
    with httpx.Client() as client:
        # The first request of a connection and of a process is read in full and makes the rows of its counters.
        client.post(server.url + "/embed", json={"inputs": "a fast car"})
        passed = files_passed(server, client)
    section = PAGE.read_text().partition("### The way of a request")[2].partition("\n### ")[0]
    assert passed == re.findall(r"^\d+\. `([\w/]+\.py)`", section, re.MULTILINE)
    assert len(passed) <= MOST
