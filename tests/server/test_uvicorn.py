"""The application under plain uvicorn, which knows nothing of our connections and processes."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import httpx
import pytest
from starlette.testclient import TestClient
from uvicorn import Config
from uvicorn import Server as Uvicorn

from conftest import MODELS
from gramvec import Embedder, InputError
from gramvec.server.app import create_app
from gramvec.server.settings import Settings, settings_from_environment
from support.http import HELD, PATIENCE, WatchedModel, announced_port, post_bytes, until

COMMAND = [sys.executable, "-m", "uvicorn", "--factory", "gramvec.server.app:create_app", "--port", "0"]


@contextmanager
def uvicorn(*options: str, **variables: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    environment = {**os.environ, **variables}
    with subprocess.Popen([*COMMAND, *options], stderr=subprocess.PIPE, text=True, env=environment) as process:
        try:
            port = announced_port(process)
            until(lambda: accepts(port))  # several workers bind before one listens
            yield process, f"http://127.0.0.1:{port}"
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(PATIENCE)


def accepts(port: int) -> bool:
    with socket.socket() as trial:
        return trial.connect_ex(("127.0.0.1", port)) == 0


@pytest.mark.slow
@pytest.mark.parametrize("options", [(), ("--workers", "2")])
def test_every_answer_is_the_librarys_from_the_first_request_on(options: tuple[str, ...], embedder: Embedder) -> None:
    """It listens when its models are loaded, so no request is answered 503."""
    with uvicorn(*options, GRAMVEC_MODEL=str(embedder.bundle.path)) as (_, url):
        for _ in range(5):
            raw = {"accept": "application/octet-stream"}
            answer = httpx.post(f"{url}/embed", json={"inputs": ["a fast car", ""]}, headers=raw, timeout=PATIENCE)
            assert (answer.status_code, answer.content) == (200, embedder.embed(["a fast car", ""]).tobytes())
            assert httpx.post(f"{url}/embed", json={"inputs": 1}, timeout=PATIENCE).status_code == 422
            assert httpx.get(f"{url}/ready", timeout=PATIENCE).status_code == 200
            assert httpx.get(f"{url}/openapi.json", timeout=PATIENCE).status_code == 200


def test_nothing_is_computed_for_a_client_that_has_gone(embedder: Embedder) -> None:
    model = WatchedModel(embedder)
    app = create_app(Settings(), model)  # type: ignore[arg-type]
    server = Uvicorn(Config(app, port=0, log_config=None))
    with socket.create_server(("127.0.0.1", 0)) as listener, ThreadPoolExecutor(2) as pool:
        running = pool.submit(server.run, [listener])
        until(lambda: server.started)
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/embed"
        held = pool.submit(httpx.post, url, json={"inputs": HELD}, timeout=PATIENCE)
        assert model.holding.wait(PATIENCE)
        batcher = app.state.gramvec.served.batcher
        with socket.create_connection(listener.getsockname()) as leaving:
            # A task watches over large requests.
            leaving.sendall(post_bytes(json.dumps({"inputs": ["nobody waits"] * 65}).encode()))
            until(lambda: batcher.waiting == 65)
        until(lambda: len(server.server_state.connections) == 1)
        model.gate.set()
        assert held.result(PATIENCE).status_code == 200
        until(lambda: batcher.waiting == 0)
        assert not any("nobody waits" in texts for texts in model.calls)
        text = httpx.get(url.replace("embed", "metrics"), timeout=PATIENCE).text
        assert 'gramvec_requests_total{route="/embed",status="499"} 1.0' in text
        server.should_exit = True
        running.result(PATIENCE)


@pytest.mark.slow
def test_it_takes_the_protocol_with_limits(embedder: Embedder) -> None:
    options = ("--http", "gramvec.server.edge.protocol:LimitedProtocol")
    with uvicorn(*options, GRAMVEC_MODEL=str(embedder.bundle.path)) as (_, url), httpx.Client(base_url=url) as client:
        many = {f"x-{number}": "a" for number in range(100)}
        assert client.get("/health", headers=many).status_code == 431
        offer = {"connection": "upgrade", "upgrade": "h2c"}
        for _ in range(3):
            answer = client.post("/embed", json={"inputs": "a fast car"}, headers=offer, timeout=PATIENCE)
            assert answer.status_code == 200


def test_a_length_of_thousands_of_digits_is_no_failure(embedder: Embedder) -> None:
    """uvicorn's own protocol hands it over."""
    with TestClient(create_app(Settings(), embedder)) as client:
        headers = {"content-type": "application/json", "content-length": "0" * 4_300 + "15"}
        assert client.post("/embed", content=b'{"inputs": "a"}', headers=headers).status_code == 200


@pytest.mark.slow
def test_a_model_that_is_not_there_ends_it_before_it_listens() -> None:
    environment = {**os.environ, "GRAMVEC_MODEL": "no-such-model"}
    done = subprocess.run(COMMAND, capture_output=True, text=True, env=environment, timeout=PATIENCE, check=False)
    assert done.returncode != 0
    assert "no-such-model" in done.stderr
    assert "running on" not in done.stderr


def test_without_settings_the_environment_has_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRAMVEC_MODEL", f"{MODELS / 'sif'} {MODELS / 'paragram-phrase'}")
    monkeypatch.setenv("GRAMVEC_MAX_TEXTS", "7")
    monkeypatch.setenv("GRAMVEC_API_KEY", "one two")
    settings = create_app().state.gramvec.settings
    assert settings.model == (str(MODELS / "sif"), str(MODELS / "paragram-phrase"))
    assert settings.max_texts == 7
    assert [key.get_secret_value() for key in settings.api_key] == ["one", "two"]
    monkeypatch.setenv("GRAMVEC_MAX_TEXTS", "many")
    with pytest.raises(InputError, match="max_texts.*GRAMVEC_MAX_TEXTS"):
        settings_from_environment()
