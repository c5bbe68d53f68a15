"""OpenTelemetry's spans on real servers: what they say and hide, whose children they are, where they go."""

from __future__ import annotations

import os
import queue
import signal
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import httpx
import pytest

from conftest import MODELS
from gramvec import Embedder
from gramvec.errors import GramvecError
from gramvec.server.settings import Settings
from gramvec.server.telemetry import tracing
from support.errors import refused
from support.http import COMMAND, PATIENCE, WatchedModel, asking, served_process, until

pytestmark = pytest.mark.slow

trace = pytest.importorskip("opentelemetry.trace", reason="needs the extra `tracing`")
memory = pytest.importorskip("opentelemetry.sdk.trace.export.in_memory_span_exporter", reason="needs it, too")
otlp = pytest.importorskip("opentelemetry.proto.collector.trace.v1.trace_service_pb2", reason="needs it, too")

TRACE, PARENT = "a" * 32, "b" * 16


@pytest.fixture(autouse=True)
def nothing_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in os.environ:
        if name.startswith("OTEL_"):
            monkeypatch.delenv(name)


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The SDK's own exporter into memory; everything else is as it is served."""
    exporter = memory.InMemorySpanExporter()
    monkeypatch.setattr(tracing, "_exporters", lambda: [lambda: exporter])
    return exporter


@contextmanager
def asked(embedder: Any, **settings: Any) -> Iterator[httpx.Client]:
    with asking(Settings(tracing="on", **settings), embedder) as client:
        yield client


def one(kept: Any) -> Any:
    (span,) = kept.get_finished_spans()
    return span


def test_a_span_says_what_was_asked_and_what_came_of_it(embedder: Embedder, kept: Any) -> None:
    with asked(embedder) as client:
        answer = client.post("/embed?secret=1", json={"inputs": ["vehicals", "cars"]}, headers={"x-request-id": "mine"})
        assert answer.status_code == 200
        port = client.base_url.port or 80
    span = one(kept)
    assert (span.name, span.kind, span.parent) == ("POST /embed", trace.SpanKind.SERVER, None)
    found = dict(span.attributes)
    assert 0 <= found.pop("gramvec.queue_seconds") < PATIENCE
    assert 0 < found.pop("gramvec.inference_seconds") < PATIENCE
    assert found == {
        "http.request.method": "POST",
        "http.route": "/embed",
        "http.response.status_code": 200,
        "url.scheme": "http",
        "url.path": "/embed",
        "network.protocol.version": "1.1",
        "server.address": "127.0.0.1",
        "server.port": port,
        "gramvec.request_id": "mine",
        "gramvec.model": f"gramvec-en@{embedder.digest[:12]}",
        "gramvec.texts": 2,
        "gramvec.characters": 12,
    }
    assert span.status.status_code is trace.StatusCode.UNSET
    assert 0 < span.end_time - span.start_time < PATIENCE * 1e9
    assert span.resource.attributes["service.name"] == "gramvec"
    assert "secret" not in span.to_json()
    assert "vehicals" not in span.to_json()


@pytest.mark.parametrize(
    ("given", "known"),
    [
        (f"00-{TRACE}-{PARENT}-01", True),
        (f"ff-{TRACE}-{PARENT}-01", False),
    ],
)
def test_the_span_of_the_caller_is_its_parent(embedder: Embedder, kept: Any, given: str, known: bool) -> None:
    with asked(embedder) as client:
        client.post("/embed", json={"inputs": "a"}, headers={"traceparent": given, "tracestate": "vendor=1"})
    span = one(kept)
    assert (span.parent is not None) == known
    if known:
        assert (span.context.trace_id, span.parent.span_id) == (int(TRACE, 16), int(PARENT, 16))
        assert span.context.trace_state["vendor"] == "1"


def test_a_caller_that_is_not_sampled_is_not_followed(embedder: Embedder, kept: Any) -> None:
    with asked(embedder) as client:
        client.post("/embed", json={"inputs": "a"}, headers={"traceparent": f"00-{TRACE}-{PARENT}-00"})
    assert not kept.get_finished_spans()


def test_failures_refusals_and_routes_of_every_kind(embedder: Embedder, kept: Any) -> None:
    with asked(WatchedModel(embedder)) as client:
        for probe in ("/health", "/ready", "/metrics"):
            client.get(probe)
        client.get("/v1/models/gramvec-en")
        client.get("/no/where")
        client.request("PROPFIND", "/embed")
        client.post("/embed", json={"inputs": 5})
        client.post("/embed", json={"inputs": "poison"})
    found = {span.name: span for span in kept.get_finished_spans()}
    assert set(found) == {"GET /v1/models/{model:path}", "GET", "HTTP /embed", "POST /embed"}
    model, nowhere = found["GET /v1/models/{model:path}"], found["GET"]
    assert (model.attributes["http.route"], model.attributes["url.path"]) == (
        "/v1/models/{model:path}", "/v1/models/gramvec-en",
    )  # fmt: skip
    assert "http.route" not in nowhere.attributes
    assert nowhere.attributes["gramvec.reason"] == "not_found"
    assert {span.attributes["http.request.method"] for span in found.values()} == {"GET", "POST", "_OTHER"}
    refused, failed = [span for span in kept.get_finished_spans() if span.name == "POST /embed"]
    assert refused.status.status_code is trace.StatusCode.UNSET
    assert refused.attributes["gramvec.reason"] == "validation"
    assert failed.status.status_code is trace.StatusCode.ERROR
    assert failed.attributes["error.type"] == "424"
    assert not failed.events  # an exception's message may quote a text


class Collector:
    """Takes OTLP over HTTP on this machine."""

    def __init__(self) -> None:
        self.taken: queue.Queue[tuple[str, bytes]] = queue.Queue()
        taken = self.taken

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                taken.put((self.path, self.rfile.read(int(self.headers["content-length"]))))
                self.send_response(200)
                self.send_header("content-length", "0")
                self.end_headers()

            def log_message(self, *_: Any) -> None:
                pass

        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        self.thread = threading.Thread(target=self.server.serve_forever)

    def __enter__(self) -> Collector:
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()


@pytest.mark.parametrize("workers", ["1", "2"])
def test_spans_go_where_the_variables_say_and_the_last_before_the_end(
    monkeypatch: pytest.MonkeyPatch, workers: str
) -> None:
    with Collector() as collector:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url)
        monkeypatch.setenv("OTEL_SERVICE_NAME", "my-search")
        model = ["--model", str(MODELS / "sif")]
        with served_process(*model, "--tracing", "on", "--workers", workers) as (process, port):
            until(lambda: httpx.get(f"http://127.0.0.1:{port}/ready", timeout=PATIENCE).status_code == 200)
            for _ in range(3):
                httpx.post(f"http://127.0.0.1:{port}/embed", json={"inputs": "a"}, timeout=PATIENCE)
            process.send_signal(signal.SIGTERM)
            assert process.wait(PATIENCE) == 0
        spans = []
        while not collector.taken.empty():
            path, body = collector.taken.get()
            assert path == "/v1/traces"
            for resource in otlp.ExportTraceServiceRequest.FromString(body).resource_spans:
                names = {one.key: one.value.string_value for one in resource.resource.attributes}
                assert names["service.name"] == "my-search"
                spans += [span.name for scope in resource.scope_spans for span in scope.spans]
    assert spans == ["POST /embed"] * 3


def test_a_collector_that_is_not_there_holds_nobody_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9")
    with served_process("--model", str(MODELS / "sif"), "--tracing", "on") as (process, port):
        until(lambda: httpx.get(f"http://127.0.0.1:{port}/ready", timeout=PATIENCE).status_code == 200)
        assert httpx.post(f"http://127.0.0.1:{port}/embed", json={"inputs": "a"}, timeout=PATIENCE).status_code == 200
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE) == 0


@pytest.mark.parametrize(
    ("name", "value"), [("OTEL_TRACES_EXPORTER", "nobody"), ("OTEL_EXPORTER_OTLP_PROTOCOL", "carrier-pigeon")]
)
def test_an_exporter_that_is_not_installed_stops_the_start(
    embedder: Embedder, monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.setenv(name, value)
    with refused(GramvecError, value), asked(embedder):
        pass
    command = [*COMMAND, "--model", str(MODELS / "sif"), "--port", "0", "--tracing", "on"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=PATIENCE)
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1


def test_none_exports_nothing(embedder: Embedder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_TRACES_EXPORTER", "none")
    with asked(embedder) as client:
        assert client.post("/embed", json={"inputs": "a"}).status_code == 200


def test_without_the_sdk_the_extra_is_named(embedder: Embedder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tracing, "find_spec", lambda _: None)
    with refused(GramvecError, "gramvec[tracing]"), asked(embedder):
        pass
