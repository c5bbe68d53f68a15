"""gramvec.client against real servers: that refuse, are overloaded, restart, and such as are none of ours."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from multiprocessing import get_context
from typing import Any

import numpy as np
import pytest

import gramvec
from conftest import MODELS, ROOT
from gramvec.client import AsyncClient, Client
from gramvec.errors import BackendError, GramvecError, InputError, ServiceError
from gramvec.server.settings import Settings
from support.errors import refused
from support.http import HELD, PATIENCE, RunningServer, WatchedModel, kept_port, running, until

pytestmark = pytest.mark.slow

TEXTS = ["cheap flights", "low-cost air fares", "", 'café "quoted"\n', "日本語 🙂", "x" * 3_000, "cheap flights"]
SMALL = {"max_texts": 4, "queue_texts": 4, "max_characters": 4_000, "queue_characters": 4_000, "max_body_bytes": 12_000}


def settings(**given: Any) -> Settings:
    return Settings.model_validate(given)


@pytest.fixture(scope="module", params=[{}, SMALL], ids=["limits of every day", "small limits"])
def server(request: pytest.FixtureRequest, embedder: gramvec.Embedder) -> Iterator[RunningServer]:
    with running(settings(**request.param), embedder) as opened:
        yield opened


@pytest.fixture
def client(server: RunningServer) -> Iterator[Client]:
    with Client(server.url) as opened:
        yield opened


def test_it_answers_what_the_model_does(client: Client, embedder: gramvec.Embedder) -> None:
    assert (client.name, client.digest, client.dimension) == (embedder.name, embedder.digest, embedder.dimension)
    assert client.embed(TEXTS).tobytes() == embedder.embed(TEXTS).tobytes()
    assert client.embed(iter(TEXTS)).flags.writeable
    options: Any = {"normalize": False, "dimensions": 7}
    assert client.embed(TEXTS, **options).tobytes() == embedder.embed(TEXTS, **options).tobytes()
    assert client.embed([]).shape == (0, embedder.dimension)
    assert client.similarity(TEXTS, TEXTS[:3]).tobytes() == embedder.similarity(TEXTS, TEXTS[:3]).tobytes()
    assert client.similarity([], TEXTS).shape == (0, len(TEXTS))
    pairs = client.pair_similarity(TEXTS, TEXTS[::-1])
    assert pairs.tobytes() == embedder.pair_similarity(TEXTS, TEXTS[::-1]).tobytes()
    blocks = list(client.stream(iter(TEXTS), batch_size=3))
    assert [len(block) for block in blocks] == [3, 3, 1]
    assert np.concatenate(blocks).tobytes() == embedder.embed(TEXTS).tobytes()
    assert client.encode(TEXTS[0]).tobytes() == embedder.encode(TEXTS[0]).tobytes()
    small = client.encode(TEXTS, normalize_embeddings=True, precision="int8")
    assert small.tobytes() == embedder.encode(TEXTS, normalize_embeddings=True, precision="int8").tobytes()


def test_it_does_so_without_blocking_an_event_loop(server: RunningServer, embedder: gramvec.Embedder) -> None:
    async def asked() -> None:
        async with AsyncClient(server.url) as client:
            one, other = await asyncio.gather(client.embed(TEXTS), client.similarity(TEXTS, TEXTS[:2]))
            assert one.tobytes() == embedder.embed(TEXTS).tobytes()
            assert other.tobytes() == embedder.similarity(TEXTS, TEXTS[:2]).tobytes()
            pairs = await client.pair_similarity(TEXTS[:2], TEXTS[1:3])
            assert pairs.tobytes() == embedder.pair_similarity(TEXTS[:2], TEXTS[1:3]).tobytes()
            blocks = [block async for block in client.stream(TEXTS, batch_size=5)]
            assert np.concatenate(blocks).tobytes() == one.tobytes()
            with pytest.raises(InputError, match="wrap it in a list"):
                await client.embed("hello")

    asyncio.run(asked())


def test_the_example_of_the_quickstart_runs(embedder: gramvec.Embedder, capsys: pytest.CaptureFixture[str]) -> None:
    page = (ROOT / "docs" / "quickstart.md").read_text(encoding="utf-8")
    (script,) = re.findall(r"^```python\n(from gramvec\.client .*?)^```$", page, re.DOTALL | re.MULTILINE)
    with running(settings(), embedder) as server:
        exec(script.replace("http://127.0.0.1:8000", server.url), {})
    assert capsys.readouterr().out.split("\n") == [*re.findall(r"# (\(.*\))$", script, re.MULTILINE), ""]


@pytest.mark.parametrize(
    ("given", "options", "said"),
    [
        ("hello", {}, "wrap it in a list"),
        (["a", None], {}, "text 1 is missing"),
        (["a", "\ud800"], {}, r"text 1 .*surrogate"),
        (["x" * 70_000], {}, r"text 0 .* 70000"),
        (["a"], {"dimensions": 301}, r"dimensions.* 1 to 300"),
        (["a"], {"truncation_direction": "up"}, r"'left'.*'right'"),
    ],
)
def test_what_cannot_be_embedded_is_refused_as_a_model_does(
    client: Client, given: Any, options: Any, said: str
) -> None:
    with pytest.raises(InputError, match=said):
        client.embed(given, **options)


def test_a_stream_tells_the_place_of_a_text_among_all(client: Client) -> None:
    with refused(InputError, "text 1", "missing") as caught:
        list(client.stream(["a"] * 5 + [None], batch_size=2))  # type: ignore[list-item]
    assert caught.value.index == 5
    with refused(InputError, "batch_size", "1"):
        client.stream(TEXTS, batch_size=0)


def test_vectors_and_lists_of_two_lengths_are_not_compared(client: Client) -> None:
    with refused(InputError, "texts"):
        client.similarity(np.zeros((1, 300), np.float32), TEXTS)  # type: ignore[arg-type]
    with refused(InputError, "2 left", "1 right"):
        client.pair_similarity(["a", "b"], ["a"])


def test_a_text_that_no_request_can_hold_is_named(embedder: gramvec.Embedder) -> None:
    with running(settings(**SMALL), embedder) as server, Client(server.url) as client:
        with refused(InputError, "text 1", "12002 bytes") as caught:
            client.embed(["a", "\x01" * 2_000])
        assert caught.value.index == 1


def _embedded(client: Client) -> bytes:
    return client.embed(TEXTS).tobytes()


def test_a_client_goes_to_other_processes(client: Client, embedder: gramvec.Embedder) -> None:
    assert "key" not in repr(client)
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        assert pool.submit(_embedded, client).result() == embedder.embed(TEXTS).tobytes()


def test_a_refusal_is_the_services_sentence(embedder: gramvec.Embedder) -> None:
    with running(settings(api_key=["right"]), embedder) as server:
        with pytest.raises(ServiceError, match=rf"{server.url}: .*[Kk]ey") as caught:
            Client(server.url, api_key="wrong")
        assert caught.value.status == 401
        with refused(ServiceError, "other", "gramvec-en"):
            Client(server.url, api_key="right", model="other")
        with Client(server.url + "/", api_key="right", model="gramvec-en") as client:
            assert client.embed(TEXTS).tobytes() == embedder.embed(TEXTS).tobytes()
    with running(settings(), WatchedModel(embedder)) as server, Client(server.url) as client:
        with pytest.raises(BackendError, match=server.url):
            client.embed(["poison"])
        assert client.embed(["fine"]).shape == (1, 300)


def test_an_overloaded_service_is_asked_again(embedder: gramvec.Embedder) -> None:
    model = WatchedModel(embedder)
    with (
        running(settings(max_texts=4, queue_texts=4), model) as server,
        Client(server.url) as client,
        Client(server.url, patience=0.5) as hasty,
        ThreadPoolExecutor(3) as pool,
    ):
        held = pool.submit(client.embed, [HELD])
        assert model.holding.wait(PATIENCE)
        waiting = pool.submit(client.embed, ["waits"] * 4)
        until(lambda: server.service.served and server.service.served.batcher.waiting == 4)
        with pytest.raises(ServiceError, match=server.url) as caught:
            hasty.embed(["one more"])
        assert caught.value.status == 429
        assert (caught.value.retry_after or 0) >= 1
        patient = pool.submit(client.embed, ["one more"])
        threading.Timer(0.3, model.gate.set).start()
        assert patient.result(PATIENCE).tobytes() == embedder.embed(["one more"]).tobytes()
        assert held.result(PATIENCE).shape == (1, 300)
        assert waiting.result(PATIENCE).shape == (4, 300)


@contextmanager
def served_on(port: int, *options: str) -> Iterator[None]:
    """`gramvec serve` on this very port, from before it listens."""
    command = [sys.executable, "-m", "gramvec", "serve", "--port", str(port), "--device", "cpu", *options]
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    try:
        yield
    finally:
        process.kill()
        process.wait()


def test_a_restart_is_waited_for_and_other_limits_are_taken(embedder: gramvec.Embedder) -> None:
    model = str(MODELS / "gramvec-en")
    expected = embedder.embed(TEXTS).tobytes()
    with kept_port() as port:
        with served_on(port, "--model", model):
            client = Client(f"http://127.0.0.1:{port}")  # waits for a service that starts
            assert client.embed(TEXTS).tobytes() == expected
        with served_on(port, "--model", model, "--max-texts", "2"):
            assert client.embed(TEXTS).tobytes() == expected
        with served_on(port, "--model", str(MODELS / "sif")), pytest.raises(ServiceError) as caught:
            client.embed(TEXTS)
    assert "gramvec-en" in str(caught.value)
    client.close()


def test_nobody_there_is_said_within_the_patience() -> None:
    with kept_port() as port, refused(ServiceError, f"127.0.0.1:{port}", "ConnectError"):
        Client(f"http://127.0.0.1:{port}", patience=0.3)


@pytest.mark.parametrize("url", ["127.0.0.1:8000", "ftp://a", "http://key@127.0.0.1:8000", "", None])
def test_what_is_no_url_is_refused(url: Any) -> None:
    with refused(InputError, "http://127.0.0.1:8000") as caught:
        Client(url)
    assert "key@" not in str(caught.value)


class Stranger(BaseHTTPRequestHandler):
    """Answers what the test has put there."""

    info: bytes
    status = 200
    headers_sent: dict[str, str]
    body: bytes

    def do_GET(self) -> None:
        self._answer(200, {}, self.info)

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        self._answer(self.status, self.headers_sent, self.body)

    def _answer(self, status: int, headers: dict[str, str], body: bytes) -> None:
        self.send_response(status)
        for name, value in {"content-length": str(len(body)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        pass


DIGEST = "0" * 64
INFO = {
    "models": [{"name": "m", "digest": DIGEST, "dimension": 2, "max_characters": 100}],
    "default_model": "m",
    "limits": {"max_texts": 8, "max_body_bytes": 2048, "queue_texts": 8, "queue_characters": 1000},
}
OURS = {"x-model": f"m@{DIGEST[:12]}", "x-dtype": "float32"}


@contextmanager
def stranger(status: int, headers: dict[str, str], body: bytes, info: bytes | None = None) -> Iterator[str]:
    said = {"status": status, "headers_sent": headers, "body": body, "info": info or json.dumps(INFO).encode()}
    with HTTPServer(("127.0.0.1", 0), type("Said", (Stranger,), said)) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.parametrize(
    ("status", "headers", "body", "kind", "said"),
    [
        (200, OURS, b"\0" * 4, ServiceError, "other vectors"),
        (200, {**OURS, "x-dtype": "int8"}, b"\0" * 8, ServiceError, "answered other vectors"),
        (200, OURS, b"\0" * 2_000_000, ServiceError, r"more than the [0-9]+ bytes"),
        (200, {**OURS, "x-model": "n@1"}, b"\0" * 8, ServiceError, r"n@1 .*m@0"),
        (200, {}, b"\0" * 8, ServiceError, "unnamed"),
        (301, {"location": "/there"}, b"", ServiceError, "it answered 301"),
        (500, {}, b'{"error": "a fault\\u001b[2J"}', ServiceError, r"a fault\\x1b"),
        (422, {}, b'{"error": ["no sentence"]}', InputError, "it answered 422"),
        (413, {}, b"[]", ServiceError, "it answered 413"),
        (503, {"retry-after": "9" * 400}, b"{}", ServiceError, "it answered 503"),
        (503, {"retry-after": "1000"}, b"no JSON", ServiceError, "it answered 503"),
        (503, {"retry-after": "0"}, b'{"error": "never"}', ServiceError, "never"),
        (200, {"content-length": "nine"}, b"", GramvecError, "gave no answer"),
        (200, {**OURS, "content-length": "9"}, b"\0" * 8, GramvecError, "gave no answer"),
    ],
)  # fmt: skip
def test_a_strangers_answer_is_one_sentence(
    status: int, headers: dict[str, str], body: bytes, kind: type[Exception], said: str
) -> None:
    with stranger(status, headers, body) as url, Client(url, patience=0.3, timeout=5) as client:
        with pytest.raises(kind, match=said) as caught:
            client.embed(["a"])
        assert str(caught.value).isascii()
        assert "\n" not in str(caught.value)
        assert client.embed([]).shape == (0, 2)


@pytest.mark.parametrize("info", [b"<html>", b"{}", b'{"models": [], "default_model": "m", "limits": {}}', b"\xff"])
def test_what_is_no_service_of_ours_is_said(info: bytes) -> None:
    with stranger(200, {}, b"", info) as url, refused(ServiceError, "gramvec service"):
        Client(url)


@pytest.mark.parametrize("body", [b"[]", b"[[1.0, 2.0]]", b'[["a"]]', b"{}", b"[[1], [2, 3]]", b"no", b"[[1e300]]"])
def test_a_strangers_scores_are_looked_at(body: bytes) -> None:
    with stranger(200, OURS, body) as url, Client(url) as client, pytest.raises(ServiceError, match="scores"):
        client.similarity(["a"], ["b"])


def test_httpx_is_wanted_by_a_client_alone() -> None:
    script = (
        "import sys; sys.modules['httpx'] = None; import gramvec, gramvec.client\n"
        "try: gramvec.client.Client('http://127.0.0.1:1')\n"
        "except gramvec.ServiceError as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-W", "error", "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "gramvec.client needs httpx; install it with: pip install httpx\n"
