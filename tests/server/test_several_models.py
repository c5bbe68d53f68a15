"""Several models at once, by name: one queue each, the first is the default."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import numpy as np
import pytest

import gramvec
from conftest import MODELS
from gramvec import Embedder
from gramvec.errors import BundleError
from gramvec.server.app import create_app
from gramvec.server.settings import Settings
from gramvec.server.state import models as http_models
from gramvec.server.state.models import load_models
from support.errors import refused
from support.http import HELD, PATIENCE, RunningServer, WatchedModel, running, served_process, until

NAMES = ("gramvec-en", "charagram-phrase", "sif")
RAW = {"accept": "application/octet-stream"}


@pytest.fixture(scope="module")
def embedders() -> Iterator[dict[str, Embedder]]:
    opened = {name: gramvec.load(MODELS / name, device="cpu") for name in NAMES}
    yield opened
    for embedder in opened.values():
        embedder.close()


@pytest.fixture(scope="module")
def server(embedders: dict[str, Embedder]) -> Iterator[RunningServer]:
    with running(Settings(), list(embedders.values())) as started:
        yield started


def embedded(url: str, text: str, model: str | None) -> httpx.Response:
    return httpx.post(f"{url}/embed", json={"inputs": text, "model": model}, headers=RAW, timeout=PATIENCE)


def test_the_name_in_the_body_chooses(server: RunningServer, embedders: dict[str, Embedder]) -> None:
    for name in (None, *NAMES):
        embedder = embedders[name or NAMES[0]]
        answer = embedded(server.url, "a fast car", name)
        assert answer.content == embedder.embed(["a fast car"]).tobytes()
        assert answer.headers["x-model"] == f"{embedder.name}@{embedder.digest[:12]}"
        body = {"inputs": {"source_sentence": "a fast car", "sentences": ["vehicles"]}, "model": name}
        compared = httpx.post(f"{server.url}/similarity", json=body)
        assert compared.json() == pytest.approx(embedder.similarity(["a fast car"], ["vehicles"])[0].tolist())
        assert compared.headers["x-model"] == answer.headers["x-model"]
        as_openai = httpx.post(f"{server.url}/v1/embeddings", json={"input": "a fast car", "model": name}).json()
        assert as_openai["model"] == embedder.name
        assert np.float32(as_openai["data"][0]["embedding"]).tobytes() == answer.content


def test_requests_for_all_of_them_at_once(server: RunningServer, embedders: dict[str, Embedder]) -> None:
    asked = [(NAMES[number % 3], f"text {number}" * (1 + number % 50)) for number in range(60)]
    with ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(lambda one: embedded(server.url, one[1], one[0]), asked))
    for (name, text), answer in zip(asked, answers, strict=True):
        assert answer.content == embedders[name].embed([text]).tobytes()


def test_an_unknown_name_lists_those_that_are_served(server: RunningServer) -> None:
    answer = embedded(server.url, "x", "gpt")
    assert (answer.status_code, answer.json()["error_type"]) == (404, "not_found")
    assert answer.json()["error"] == "model 'gpt' is not served here; 'gramvec-en', 'charagram-phrase', 'sif' are"


def test_info_lists_all_of_them(server: RunningServer, embedders: dict[str, Embedder]) -> None:
    info = httpx.get(f"{server.url}/info").json()
    assert info["default_model"] == NAMES[0]
    assert [one["id"] for one in httpx.get(f"{server.url}/v1/models").json()["data"]] == list(NAMES)
    assert [(one["name"], one["digest"], one["dimension"]) for one in info["models"]] == [
        (name, embedder.digest, embedder.dimension) for name, embedder in embedders.items()
    ]
    assert {one["runtime"] for one in info["models"]} == {embedder.runtime for embedder in embedders.values()}


def test_a_model_that_is_held_up_does_not_hold_up_another(embedders: dict[str, Embedder]) -> None:
    stuck = WatchedModel(embedders["gramvec-en"])
    settings = Settings(max_texts=2, queue_texts=2)
    with running(settings, [stuck, embedders["sif"]]) as server, ThreadPoolExecutor(4) as pool:
        held = pool.submit(embedded, server.url, HELD, None)
        assert stuck.holding.wait(PATIENCE)
        waits = pool.submit(httpx.post, f"{server.url}/embed", json={"inputs": ["x", "y"]}, timeout=PATIENCE)
        until(lambda: server.service.models["gramvec-en"].batcher.waiting == 2)
        assert embedded(server.url, "x", None).status_code == 429
        ready = httpx.get(f"{server.url}/ready")
        assert (ready.status_code, ready.json()["error"]) == (503, "the queue of gramvec-en is full")
        assert httpx.get(f"{server.url}/health").status_code == 200
        assert embedded(server.url, "x", "sif").content == embedders["sif"].embed(["x"]).tobytes()
        stuck.gate.set()
        assert held.result(PATIENCE).status_code == waits.result(PATIENCE).status_code == 200
        assert httpx.get(f"{server.url}/ready").status_code == 200


def test_it_is_alive_and_names_the_model_that_is_loading(monkeypatch: pytest.MonkeyPatch) -> None:
    go_on = threading.Event()
    load = http_models.load_model

    def slow(settings: Settings, source: str) -> Embedder:
        assert source == "sif" or go_on.wait(PATIENCE)
        return load(settings, source)

    monkeypatch.setattr(http_models, "load_model", slow)
    with running(Settings(model=("sif", "paragram-phrase")), loaded=False) as server:
        sentence = "the model paragram-phrase is being loaded (2 of 2)"
        until(lambda: httpx.get(f"{server.url}/ready").json().get("error") == sentence)
        assert httpx.get(f"{server.url}/health").status_code == 200
        for answer in (
            embedded(server.url, "x", "sif"),
            *(httpx.get(server.url + path) for path in ("/ready", "/info")),
        ):
            assert (answer.status_code, answer.json()) == (503, {"error": sentence, "error_type": "unhealthy"})
            assert answer.headers["retry-after"] == "1"
            assert "x-model" not in answer.headers
        go_on.set()
        until(lambda: httpx.get(f"{server.url}/ready").status_code == 200)
        assert list(server.service.models) == ["sif", "paragram-phrase"]


def test_two_models_of_one_name_are_refused(tmp_path: Path, embedders: dict[str, Embedder]) -> None:
    copy = Path(shutil.copytree(MODELS / "sif", tmp_path / "copy"))
    with pytest.raises(BundleError, match="two models .*'sif', .*sif .*copy"):
        load_models(Settings(model=("sif", str(copy))))
    with refused(BundleError, "'sif'"):
        create_app(Settings(), [embedders["sif"], embedders["sif"]])


def test_workers_share_all_of_them(embedders: dict[str, Embedder]) -> None:
    options = ["--workers", "2", "--model", "sif", "--model", "charagram-phrase"]
    with served_process(*options) as (_, port):
        asked: set[str] = set()

        def both_have_answered() -> bool:
            for name in ("sif", "charagram-phrase"):
                answer = embedded(f"http://127.0.0.1:{port}", "a fast car", name)
                assert answer.content == embedders[name].embed(["a fast car"]).tobytes()
                asked.add(answer.headers["x-request-id"][:16])
            return len(asked) == 2

        until(both_have_answered)
