"""GET /metrics: what happened is what is counted, by all workers together, under names that the documents list."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse

from conftest import ROOT
from gramvec import Embedder, __version__
from gramvec.server.batching.batcher import BatchResult
from gramvec.server.routes import operations as exposition
from gramvec.server.settings import Settings
from gramvec.server.state.service import Service
from gramvec.server.telemetry import shared_counters
from gramvec.server.telemetry.metrics import QUEUES, SECONDS, SILENT_SECONDS, TOTALS, Metrics
from gramvec.server.telemetry.shared_counters import SharedCounters
from support.http import (
    HELD,
    PATIENCE,
    RunningServer,
    WatchedModel,
    children,
    post_bytes,
    read_all,
    running,
    served_process,
    until,
)

UNKNOWN = "\N{EGYPTIAN HIEROGLYPH A001}"
Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]


def samples(text: str) -> Samples:
    return {(one.name, frozenset(one.labels.items())): one.value for family in parse(text) for one in family.samples}


def scraped(url: str) -> Samples:
    answer = httpx.get(f"{url}/metrics", timeout=PATIENCE)
    assert answer.status_code == 200
    return samples(answer.text)


def value(found: Samples, name: str, **labels: str) -> float:
    return found.get((name, frozenset(labels.items())), 0.0)


@pytest.fixture
def server(embedder: Embedder) -> Iterator[RunningServer]:
    with running(Settings(max_texts=10, queue_texts=10, max_body_bytes=10_000), embedder) as one:
        yield one


def test_requests_texts_and_times_are_counted(server: RunningServer, embedder: Embedder) -> None:
    model = embedder.name
    with httpx.Client(base_url=server.url) as client:
        assert client.post("/embed", json={"inputs": ["abc", UNKNOWN, ""]}).status_code == 200
        assert client.post("/embed", json={"inputs": ["de"]}).status_code == 200
        body = {"inputs": {"source_sentence": "a", "sentences": ["b", "b", "a"]}}
        assert client.post("/similarity", json=body).status_code == 200
        assert client.get("/health").status_code == 200
        found = scraped(server.url)
    for route, count in (("/embed", 2), ("/similarity", 1), ("/health", 1)):
        assert value(found, "gramvec_requests_total", route=route, status="200") == count
        assert value(found, "gramvec_request_duration_seconds_count", route=route) == count
        assert value(found, "gramvec_request_duration_seconds_sum", route=route) > 0
    assert value(found, "gramvec_texts_total", model=model) == 4 + 2  # each distinct one is computed once
    assert value(found, "gramvec_characters_total", model=model) == 4 + 2 + 2
    assert value(found, "gramvec_texts_without_known_features_total", model=model) == 2
    for name in ("queue", "inference", "encode"):
        assert value(found, f"gramvec_{name}_duration_seconds_count", model=model) == 3
    assert value(found, "gramvec_inference_duration_seconds_sum", model=model) > 0
    assert value(found, "gramvec_call_texts_sum", model=model) == 6
    assert value(found, "gramvec_call_texts_bucket", model=model, le="1.0") == 1
    assert value(found, "gramvec_call_texts_bucket", model=model, le="4.0") == 3
    assert value(found, "gramvec_call_duration_seconds_count", model=model) == 3
    assert value(found, "gramvec_workers") == value(found, "gramvec_workers_ready") == 1
    assert value(found, "process_resident_memory_bytes") > 1e6


def test_the_model_and_its_device_are_named(server: RunningServer, embedder: Embedder) -> None:
    (labels,) = (dict(labels) for name, labels in scraped(server.url) if name == "gramvec_model_info")
    assert labels == {
        "model": embedder.name,
        "digest": embedder.digest,
        "kind": embedder.kind,
        "precision": embedder.manifest.graph.precision,
        "device": "cpu",
        "provider": embedder.provider,
        "runtime": embedder.runtime,
    }


def test_paths_and_methods_that_nobody_knows_make_no_label(server: RunningServer) -> None:
    with httpx.Client(base_url=server.url) as client:
        for number in range(5):
            assert client.get(f"/secret-{number}").status_code == 404
            assert client.get(f"/v1/models/secret-{number}").status_code == 404
        assert client.get("/embed").status_code == 405
        text = client.get("/metrics").text
    found = samples(text)
    assert "secret" not in text
    assert value(found, "gramvec_requests_total", route="unknown", status="404") == 5
    (model,) = (
        dict(labels)["route"]
        for name, labels in found
        if "/v1/models/" in str(dict(labels).get("route")) and name == "gramvec_requests_total"
    )
    assert value(found, "gramvec_requests_total", route=model, status="404") == 5
    assert value(found, "gramvec_requests_total", route="/embed", status="405") == 1
    assert value(found, "gramvec_rejected_total", reason="not_found") == 11


def test_refusals_are_counted_by_reason(embedder: Embedder) -> None:
    chosen = Settings.model_validate({"api_key": ["key"], "max_texts": 10, "queue_texts": 10, "max_body_bytes": 1024})
    key = {"authorization": "Bearer key"}
    with running(chosen, embedder) as server, httpx.Client(base_url=server.url) as client:
        assert client.post("/embed", json={"inputs": "a"}).status_code == 401
        assert client.get("/info").status_code == 401
        assert client.get("/nowhere").status_code == 401
        assert client.post("/embed", json={"inputs": ["a"] * 11}, headers=key).status_code == 413
        assert client.post("/embed", json={"inputs": "a" * 2000}, headers=key).status_code == 413
        assert client.post("/embed", json={"inputs": 5}, headers=key).status_code == 422
        assert client.post("/embed", json={"inputs": []}, headers=key).status_code == 422
        assert client.post("/embed", content=b"{", headers=key).status_code == 415
        assert client.post("/api/embed", json={"input": "a", "model": "other"}, headers=key).status_code == 404
        found = scraped(server.url)
        server.service.stop()
        late = client.post("/embed", json={"inputs": "a"}, headers=key)
        assert (late.status_code, late.json()["error"]) == (503, "the service is shutting down")
        assert client.get("/health").status_code == 200
        stopped = scraped(server.url)
    expected = {"unauthorized": 3, "too_large": 2, "validation": 3, "not_found": 1}
    counted = {
        dict(labels)["reason"]: count for (name, labels), count in found.items() if name == "gramvec_rejected_total"
    }
    assert counted == expected
    assert value(stopped, "gramvec_rejected_total", reason="shutting_down") == 1
    assert value(stopped, "gramvec_workers_ready") == 0


def test_what_is_no_request_is_counted_too(server: RunningServer) -> None:
    for garbage in (b"nonsense\r\n\r\n", b"GET / HTTP/1.1\r\nx: " + b"y" * 70_000 + b"\r\n\r\n"):
        with server.connect() as connection:
            connection.sendall(garbage)
            read_all(connection)
    found = scraped(server.url)
    assert value(found, "gramvec_requests_total", route="unknown", status="400") == 1
    assert value(found, "gramvec_requests_total", route="unknown", status="431") == 1
    assert value(found, "gramvec_rejected_total", reason="validation") == 1
    assert value(found, "gramvec_rejected_total", reason="too_large") == 1
    assert value(found, "gramvec_request_duration_seconds_count", route="unknown") == 0


def test_clients_that_are_too_slow_are_counted(embedder: Embedder) -> None:
    with running(Settings(header_timeout_seconds=0.2, body_timeout_seconds=0.2), embedder) as server:
        for torn in (b"POST /embed HTTP/1.1\r\nho", post_bytes(b'{"inp', length=100)):
            with server.connect() as connection:
                connection.sendall(torn)
                assert b" 408 " in read_all(connection)
        until(lambda: value(scraped(server.url), "gramvec_requests_total", route="/embed", status="499") == 1)
        found = scraped(server.url)
    assert value(found, "gramvec_requests_total", route="unknown", status="408") == 1
    assert value(found, "gramvec_rejected_total", reason="timeout") == 2


@pytest.mark.parametrize("route", ["/embed", "/explain", "/rerank"])
def test_clients_that_go_before_their_body_has_come_are_no_failures(
    server: RunningServer, route: str, caplog: pytest.LogCaptureFixture
) -> None:
    with server.connect() as connection:
        connection.sendall(post_bytes(b'{"inp', length=100, path=route))
    until(lambda: value(scraped(server.url), "gramvec_requests_total", route=route, status="499") == 1)
    assert not [record for record in caplog.records if record.levelname == "ERROR"]


def test_connections_turned_away_are_counted(embedder: Embedder) -> None:
    with running(Settings(max_connections=1), embedder) as server:
        with server.connect() as first:
            first.sendall(b"GET /health HTTP/1.1\r\nhost: a\r\n\r\n")
            assert first.recv(1_000).startswith(b"HTTP/1.1 200 ")
            with server.connect() as second:
                assert read_all(second).startswith(b"HTTP/1.1 503 ")
        # The one place may still be taken for a moment.
        answers = [httpx.get(f"{server.url}/metrics")]
        until(lambda: answers[-1].status_code == 200 or answers.append(httpx.get(f"{server.url}/metrics")))
    refused = len(answers)  # the second connection, and all but the last of these
    assert value(samples(answers[-1].text), "gramvec_rejected_total", reason="connections") == refused
    assert value(samples(answers[-1].text), "gramvec_requests_total", route="unknown", status="503") == refused


def test_the_queue_is_seen_while_it_is_one(embedder: Embedder) -> None:
    model = WatchedModel(embedder)
    with running(Settings(max_texts=10, queue_texts=10), model) as server, ThreadPoolExecutor(8) as pool:
        ask = lambda texts: httpx.post(f"{server.url}/embed", json={"inputs": texts}, timeout=PATIENCE)  # noqa: E731
        held = pool.submit(ask, HELD)
        assert model.holding.wait(PATIENCE)
        waiting = pool.submit(ask, ["abc"] * 9)
        try:
            until(lambda: value(scraped(server.url), "gramvec_queue_texts", model=embedder.name) == 9)
            found = scraped(server.url)
            assert value(found, "gramvec_queue_characters", model=embedder.name) == 27
            first = value(found, "gramvec_queue_oldest_seconds", model=embedder.name)
            assert first > 0
            until(lambda: value(scraped(server.url), "gramvec_queue_oldest_seconds", model=embedder.name) > first)
            assert ask(["a", "b"]).status_code == 429
        finally:
            model.gate.set()
        assert held.result().status_code == waiting.result().status_code == 200
        found = scraped(server.url)
    assert value(found, "gramvec_rejected_total", reason="queue_texts") == 1
    assert value(found, "gramvec_queue_texts", model=embedder.name) == 0
    assert value(found, "gramvec_queue_oldest_seconds", model=embedder.name) == 0


def test_a_request_that_failed_is_counted_by_its_status_alone(embedder: Embedder) -> None:
    with running(Settings(), WatchedModel(embedder)) as server:
        assert httpx.post(f"{server.url}/embed", json={"inputs": "poison"}).status_code == 424
        found = scraped(server.url)
    assert value(found, "gramvec_requests_total", route="/embed", status="424") == 1
    assert not [name for name, _ in found if name == "gramvec_rejected_total"]


def workers_of(found: Samples) -> set[str]:
    return {dict(labels)["worker"] for name, labels in found if name == "process_resident_memory_bytes"}


def test_one_worker_answers_for_all_and_a_dead_one_is_not_forgotten() -> None:
    with served_process("--workers", "2") as (process, port):
        url = f"http://127.0.0.1:{port}"
        until(lambda: value(scraped(url), "gramvec_workers_ready") == 2)
        asked: dict[str, int] = {}

        def ask() -> None:
            answer = httpx.post(f"{url}/embed", json={"inputs": ["a", "bc"]}, timeout=PATIENCE)
            asked[answer.headers["x-request-id"][:16]] = asked.get(answer.headers["x-request-id"][:16], 0) + 1

        def all_are_counted() -> bool:
            # Each scrape is a connection of its own, so either may answer: eight in a row have the same sums.
            found = [scraped(url) for _ in range(8)]
            total = sum(asked.values())
            return all(
                value(one, "gramvec_requests_total", route="/embed", status="200") == total
                and value(one, "gramvec_texts_total", model="gramvec-en") == 2 * total
                and value(one, "gramvec_request_duration_seconds_count", route="/embed") == total
                for one in found
            )

        until(lambda: ask() or len(asked) == 2)
        until(all_are_counted)  # an answer is counted a moment after it is sent
        assert workers_of(scraped(url)) == {"1", "2"}
        os.kill(killed := min(children(process)), signal.SIGKILL)
        until(lambda: killed not in children(process) and len(children(process)) == 2)
        until(lambda: len(asked) < 3 and (ask() or len(asked) == 3))  # the replacement has answered, too
        until(all_are_counted)


def documented() -> dict[str, tuple[str, set[str]]]:
    rows = re.findall(
        r"^\| `(gramvec_\w+|process_\w+)` \| (\w+) \|([^|]*)\|",
        (ROOT / "docs" / "operating.md").read_text(),
        re.MULTILINE,
    )
    return {name: (kind, set(re.findall(r"`(\w+)`", labels))) for name, kind, labels in rows}


def test_the_documents_list_what_is_there(server: RunningServer) -> None:
    httpx.post(f"{server.url}/embed", json={"inputs": "a"})
    httpx.post(f"{server.url}/embed", json={"inputs": 1})
    found = {}
    for family in parse(httpx.get(f"{server.url}/metrics").text):
        name = family.name + "_total" if family.type == "counter" else family.name
        found[name] = (family.type, {label for one in family.samples for label in one.labels} - {"le"})
        assert family.documentation
    assert documented() == found


def test_openmetrics_is_given_to_those_who_ask(server: RunningServer) -> None:
    httpx.post(f"{server.url}/embed", json={"inputs": "a"})
    accept = "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5"
    answer = httpx.get(f"{server.url}/metrics", headers={"accept": accept})
    assert answer.headers["content-type"].startswith("application/openmetrics-text; version=1.0.0")
    names = {family.name for family in parse_openmetrics(answer.text)}
    assert {"gramvec_requests", "gramvec_request_duration_seconds", "gramvec_model"} <= names
    plain = httpx.get(f"{server.url}/metrics", headers={"accept": "*/*"})
    assert plain.headers["content-type"].startswith("text/plain; version=0.0.4")


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(accept=st.text(st.characters(max_codepoint=255, exclude_categories=["Cc"])) | st.builds(
    "{};version={};escaping={}".format,
    st.sampled_from(["application/openmetrics-text", "text/plain"]),
    st.text("0123456789.abc", max_size=6),
    st.sampled_from(["allow-utf-8", "dots", "values", "x"]),
))  # fmt: skip
def test_no_accept_whatever_breaks_it(embedder: Embedder, accept: str) -> None:
    service = Service(Settings())
    body, media_type = exposition.expose_metrics(service, accept)
    assert __version__.encode() in body
    assert media_type.encode("latin-1")


@pytest.mark.parametrize(("setting", "without", "with_key"), [("open", 200, 200), ("key", 401, 200), ("off", 401, 404)])
def test_who_may_read_them(embedder: Embedder, setting: str, without: int, with_key: int) -> None:
    chosen = Settings.model_validate({"api_key": ["key"], "metrics": setting})
    with running(chosen, embedder) as server:
        assert httpx.get(f"{server.url}/metrics").status_code == (404 if setting == "off" else without)
        assert httpx.get(f"{server.url}/metrics", headers={"authorization": "Bearer key"}).status_code == with_key
        assert httpx.post(f"{server.url}/metrics").status_code == 401


def test_a_value_at_a_bound_is_below_it() -> None:
    metrics = Metrics()
    for seconds in (*SECONDS, 60.0):
        metrics.observe_request("/embed", 200, seconds)
    ((_, numbers),) = metrics.read()["gramvec_request_duration_seconds", "/embed"]
    assert numbers[:-1] == [1.0] * (len(SECONDS) + 1)
    assert numbers[-1] == pytest.approx(sum(SECONDS) + 60)


def test_a_part_that_is_full_loses_new_names_and_nothing_else() -> None:
    shared = SharedCounters(2)
    first = shared.row(("first",), 2)
    shared.numbers[first] = 7.0
    wasted = [shared.row((f"name {number}",), 18) for number in range(2_000)]
    assert wasted[-1] == shared_counters.HEAD
    shared.numbers[wasted[-1]] += 1
    shared.claim(1)
    shared.numbers[shared.row(("first",), 2)] = 5.0
    found = [(part, list(numbers)) for part, key, numbers in shared.read() if key == ("first",)]
    assert found == [(0, [7.0, 0.0]), (1, [5.0, 0.0])]
    assert all(sum(numbers) == 0 for _, key, numbers in shared.read() if key != ("first",))
    shared.claim(0)
    assert shared.row(("first",), 2) == first


def test_a_successor_counts_on_but_has_nobody_waiting() -> None:
    metrics = Metrics(2)
    metrics.calls_of("model")(BatchResult((), 3, 9, 0.001, 1, 2, 0.0005))
    metrics.publish(True, {"model": (3, 9, 1.5)})
    assert [metrics.read()[family.name, "model"] for family in QUEUES] == [[(0, [one])] for one in (3.0, 9.0, 1.5)]
    metrics.claim(0)
    metrics.calls_of("model")(BatchResult((), 1, 1, 0.001, 0, 0, 0.0005))
    totals = [metrics.read()[family.name, "model"] for family in TOTALS]
    assert totals == [[(0, [one])] for one in (4.0, 10.0, 1.0, 2.0)]
    assert [metrics.read()[family.name, "model"] for family in QUEUES] == [[], [], []]


def test_nothing_is_said_of_the_queue_of_a_worker_that_is_silent(embedder: Embedder) -> None:
    service = Service(Settings(workers=2))
    service.attach(embedder)
    metrics = service.metrics
    service.publish()
    metrics.claim(1)
    service.publish()
    assert [worker for worker, _ in metrics.read()["gramvec_queue_texts", embedder.name]] == [0, 1]
    metrics.counters.numbers[metrics.counters.row(("worker",), 3)] -= SILENT_SECONDS
    assert [worker for worker, _ in metrics.read()["gramvec_queue_texts", embedder.name]] == [0]
    body, _ = exposition.expose_metrics(service, "")
    assert b"gramvec_workers 1.0" in body
