"""Servers for what is hostile: one in this process that is watched, one in its own, and an application."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import httpx
import numpy as np
import pytest

import gramvec
from gramvec import Embedder
from gramvec.jobs.classify.head import Head
from gramvec.server.settings import Settings
from support.http import asking, post_bytes, until
from support.wire import LAST, Served, Watched, ask, closing, is_normal, served_model, watched


@pytest.fixture(scope="module")
def held(embedder: Embedder) -> Iterator[Watched]:
    with watched(Settings(), embedder) as found:
        yield found


@pytest.fixture
def nothing_is_left(held: Watched, caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    yield
    assert is_normal(ask(held.server, LAST)[0])
    until(held.has_let_go)
    assert [record for record in caplog.records if record.levelno >= logging.ERROR] == []


@pytest.fixture(scope="module")
def server() -> Iterator[Served]:
    with served_model("gramvec-en") as found:
        assert is_normal(ask(found.at, LAST)[0])
        explained = b'{"inputs": {"source_sentence": "a", "target_sentence": "b"}}'
        assert ask(found.at, closing(post_bytes(explained, path="/explain")))[0].status == 200
        yield found


@pytest.fixture(scope="module")
def client(embedder: Embedder, tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    for module in ("tantivy", "scipy"):
        pytest.importorskip(module, reason="the extras are not installed: pip install '.[search,match]'")
    folder = tmp_path_factory.mktemp("attached")
    records = [{"text": "a b", "x": "y"}, {"text": "c", "x": 1}]
    gramvec.Index.build(folder / "it.index", records, model=embedder, filter=["x"])
    zeros = np.zeros((2, embedder.dimension), np.float32), np.zeros(2, np.float32)
    Head.of(*zeros, labels=("one", "two"), threshold=0.1, model=embedder.name, digest=embedder.digest).save(
        folder / "it.head"
    )
    chosen = Settings.model_validate(
        {
            **{"max_texts": 50, "queue_texts": 60, "max_characters": 1_000, "max_body_bytes": 100_000},
            **{"index": [f"it={folder / 'it.index'}"], "head": [f"it={folder / 'it.head'}"]},
        }
    )
    with asking(chosen, embedder) as opened:
        yield opened
