"""HAProxy and nginx as people have them in front: checks, a prefix, kept connections, Unix sockets, and a stop."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import httpx
import pytest

from conftest import MODELS
from gramvec import Embedder
from gramvec.server.settings import Settings
from support.http import PATIENCE, running, served_process, serves, serves_at, until
from support.proxy import haproxy, needs_haproxy, needs_nginx, nginx

pytestmark = pytest.mark.slow

BODY = {"inputs": "a fast car"}


def asking(port: int, prefix: str = "") -> httpx.Client:
    return httpx.Client(base_url=f"http://127.0.0.1:{port}{prefix}", trust_env=False, timeout=PATIENCE)


@needs_haproxy
@pytest.mark.parametrize("check", ["option httpchk HEAD /health", "option httpchk", "option httpchk GET /ready"])
def test_haproxy_finds_a_service_up_by_each_of_its_checks(small: Embedder, check: str) -> None:
    with (
        running(Settings(), small) as server,
        haproxy([f"127.0.0.1:{server.port}"], check) as port,
        asking(port) as client,
    ):
        until(lambda: client.post("/embed", json=BODY).status_code == 200)
        assert {client.post("/embed", json=BODY).status_code for _ in range(300)} == {200}


@needs_haproxy
def test_haproxy_loses_no_request_while_a_replica_stops() -> None:
    options = ["--model", str(MODELS / "paragram-phrase")]
    with served_process(*options) as (first, one), served_process(*options) as (_, two):
        until(lambda: serves(one) and serves(two))
        with haproxy([f"127.0.0.1:{one}", f"127.0.0.1:{two}"]) as port:
            statuses: Counter[int] = Counter()
            with asking(port) as client:
                until(lambda: client.post("/embed", json=BODY).status_code == 200)
                for number in range(1_000):
                    if number == 300:
                        first.send_signal(signal.SIGTERM)
                    statuses[client.post("/embed", json=BODY).status_code] += 1
            assert statuses == {200: 1_000}
        assert first.wait(PATIENCE) == 0


@needs_haproxy
def test_haproxy_asks_at_a_unix_socket(tmp_path: Path) -> None:
    path = tmp_path / "x.sock"
    options = ["serve", "--model", str(MODELS / "paragram-phrase"), "--unix-socket", str(path)]
    with subprocess.Popen([sys.executable, "-m", "gramvec", *options], stderr=subprocess.DEVNULL) as service:
        try:
            until(lambda: serves_at(path))
            with haproxy([f"unix@{path}"]) as port, asking(port) as client:
                until(lambda: client.post("/embed", json=BODY).status_code == 200)
        finally:
            service.terminate()


@needs_nginx
def test_nginx_adds_a_prefix_and_the_document_names_no_other_address(small: Embedder) -> None:
    with running(Settings(), small) as server, nginx([f"127.0.0.1:{server.port}"], prefix="/gv/") as port:
        client = asking(port, "/gv")
        assert client.post("/embed", json=BODY).status_code == 200
        assert client.get("/openapi.json").json()["servers"] == [{"url": "."}]
        assert "docs/swagger-ui-bundle.js" in client.get("/docs").text
        client.close()
