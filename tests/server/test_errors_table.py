"""docs/api.md's table of errors, read from the page: each of its cases is provoked over real HTTP, on both sides.

`pytest tests/server/test_errors_table.py -s` prints what each case answered.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest

from conftest import ROOT
from gramvec import Embedder
from gramvec.bundle.resolve import find_bundle
from gramvec.errors import BundleError
from gramvec.server.errors import reload_failed_error
from gramvec.server.settings import Settings
from gramvec.server.state import service as http_service
from support.http import HELD, PATIENCE, RunningServer, WatchedModel, read_all, running, until

KEY = "a-key-of-this-test"
JSON_TYPE = {"content-type": "application/json"}
LIMITS = {"max_texts": 20, "queue_texts": 20, "max_body_bytes": 100_000}


class Row(NamedTuple):
    """A row of the table. `error_type` or `v1_type` is empty where that side does not have it, `v1_code` for null."""

    case: str
    status: int
    error_type: str
    v1_type: str
    v1_code: str


def read_table() -> list[Row]:
    section = (ROOT / "docs" / "api.md").read_text(encoding="utf-8").partition("\n## Errors\n")[2].partition("\n## ")[0]
    rows = []
    for line in section.split("\n"):
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("|") and re.fullmatch(r"\d{3}", cells[1]):
            case, status, *names = cells
            rows.append(Row(case, int(status), *(name.strip("`") for name in names)))
    return rows


TABLE = read_table()


class Dialect(NamedTuple):
    """How one side is spoken to."""

    path: str
    field: str
    known: str

    def body(self, texts: Any, **fields: Any) -> dict[str, Any]:
        return {self.field: texts, **fields}


TEI = Dialect("/embed", "inputs", "normalize")
OPENAI = Dialect("/v1/embeddings", "input", "user")


class Stage:
    """The servers that the cases are played on."""

    def __init__(self, embedder: Embedder, other: Embedder) -> None:
        self.embedder = embedder
        self.other = other
        self.opened = ExitStack()
        self.plain = self.serve()

    def serve(self, **settings: Any) -> RunningServer:
        model = WatchedModel(self.embedder)
        return self.opened.enter_context(running(Settings.model_validate({**LIMITS, **settings}), model))

    @contextmanager
    def busy(self, **settings: Any) -> Iterator[RunningServer]:
        """A server whose model is held up by one request."""
        model = WatchedModel(self.embedder)
        with running(Settings.model_validate({**LIMITS, **settings}), model) as server, ThreadPoolExecutor(2) as pool:
            held = pool.submit(httpx.post, f"{server.url}/embed", json={"inputs": HELD}, timeout=PATIENCE)
            assert model.holding.wait(PATIENCE)
            try:
                yield server
            finally:
                model.gate.set()
            assert held.result(PATIENCE).status_code == 200


Provoke = Callable[[Stage, Dialect], httpx.Response]


def post(server: RunningServer, dialect: Dialect, texts: Any, **fields: Any) -> httpx.Response:
    return raw(server, dialect, json.dumps(dialect.body(texts, **fields)).encode())


def raw(server: RunningServer, dialect: Dialect, content: bytes, headers: dict[str, str] = JSON_TYPE) -> httpx.Response:
    return httpx.post(server.url + dialect.path, content=content, headers=headers, timeout=PATIENCE, trust_env=False)


def key_is_missing(stage: Stage, dialect: Dialect) -> httpx.Response:
    server = stage.serve(api_key=[KEY])
    wrong = raw(server, dialect, b"{}", {**JSON_TYPE, "authorization": "Bearer wrong"})
    right = raw(server, dialect, b"{}", {**JSON_TYPE, "authorization": f"Bearer {KEY}"})
    assert (wrong.status_code, right.status_code) == (401, 400 if dialect is OPENAI else 422)
    answer = raw(server, dialect, b"{}")
    assert answer.headers["www-authenticate"] == "Bearer"
    return answer


def unknown_route(stage: Stage, dialect: Dialect) -> httpx.Response:
    return httpx.get(f"{stage.plain.url}{dialect.path}/nowhere")


def unknown_model(stage: Stage, dialect: Dialect) -> httpx.Response:
    # Text Embeddings Inference has one model, under any name; where several are served the name counts.
    assert post(stage.plain, TEI, "a", model="other").status_code == 200
    with running(Settings(), [stage.embedder, stage.other]) as server:
        return post(server, dialect, "a", model="other")


def wrong_method(stage: Stage, dialect: Dialect) -> httpx.Response:
    answer = httpx.delete(stage.plain.url + dialect.path)
    assert answer.headers["allow"] == "OPTIONS, POST"
    return answer


def body_too_large(stage: Stage, dialect: Dialect) -> httpx.Response:
    answer = post(stage.plain, dialect, ["x" * 60_000] * 2)
    assert answer.headers["connection"] == "close"
    return answer


def text_is_too_long(stage: Stage, dialect: Dialect) -> httpx.Response:
    return naming(f"{dialect.field}[1]", post(stage.plain, dialect, ["a", "x" * 65_537]))


def queue_is_full(stage: Stage, dialect: Dialect) -> httpx.Response:
    with stage.busy() as server, ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(post, server, TEI, ["waits"] * 20)
        until(lambda: server.service.served and server.service.served.batcher.waiting == 20)
        answer = post(server, dialect, "one more")
        stop_waiting(server)
        assert waiting.result(PATIENCE).status_code == 200
    return answer


def deadline_has_passed(stage: Stage, dialect: Dialect) -> httpx.Response:
    with stage.busy(request_deadline_seconds=0.2) as server:
        answer = post(server, dialect, "waits in vain")
        stop_waiting(server)
    return answer


def stop_waiting(server: RunningServer) -> None:
    served = server.service.served
    assert served is not None
    served.embedder.gate.set()  # type: ignore[attr-defined]


def memory_is_short(stage: Stage, dialect: Dialect) -> httpx.Response:
    server = stage.serve()
    server.service.memory.reserve(server.service.settings.max_bytes_in_flight)
    answer = post(server, dialect, ["a text"] * 20)
    assert int(answer.headers["retry-after"]) >= 1
    return answer


def has_a_fault(stage: Stage, dialect: Dialect) -> httpx.Response:
    class Broken(WatchedModel):
        def prepare(self, *_: object, **__: object) -> list[str]:
            raise ZeroDivisionError

    with running(Settings(), Broken(stage.embedder)) as server:
        return post(server, dialect, ["é"])


def is_loading(stage: Stage, dialect: Dialect) -> httpx.Response:
    go_on = threading.Event()

    def waits(*_: Any) -> Any:
        go_on.wait(PATIENCE)
        return [stage.embedder]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(http_service, "load_models", waits)
        patch.setattr(stage.embedder, "close", lambda: None)
        with running(Settings(), loaded=False) as server:
            answer = post(server, dialect, "a")
            go_on.set()
            until(lambda: server.service.unready is None)
    return answer


def has_too_many_connections(stage: Stage, dialect: Dialect) -> httpx.Response:
    server = stage.serve(max_connections=1)
    with httpx.Client(base_url=server.url, timeout=PATIENCE) as holder:
        assert holder.get("/health").status_code == 200
        answer = post(server, dialect, "a")
    assert answer.headers["connection"] == "close"
    return answer


def is_shutting_down(stage: Stage, dialect: Dialect) -> httpx.Response:
    server = stage.serve()
    server.service.stop()
    return post(server, dialect, "a")


def spoken(server: RunningServer, dialect: Dialect, headers: bytes) -> httpx.Response:
    """The answer to what no client would send."""
    with server.connect() as connection:
        connection.sendall(f"POST {dialect.path} HTTP/1.1\r\nhost: test\r\n".encode() + headers)
        head, _, content = read_all(connection).partition(b"\r\n\r\n")
    first, *lines = head.decode().split("\r\n")
    named = dict(line.split(": ", 1) for line in lines)
    assert named["connection"] == "close"
    request = httpx.Request("POST", server.url + dialect.path)
    return httpx.Response(int(first.split()[1]), headers=named, content=content, request=request)


def read_in_two_ways(stage: Stage, dialect: Dialect) -> httpx.Response:
    coding = b"transfer-encoding: gzip, chunked\r\n\r\n0\r\n\r\n"
    assert spoken(stage.plain, dialect, coding).status_code == 400
    return spoken(stage.plain, dialect, b"host: other\r\n\r\n")


def too_many(stage: Stage, dialect: Dialect) -> httpx.Response:
    answer = post(stage.plain, dialect, [""] * 20_000)  # more than are looked at one by one
    assert answer.status_code == 413
    assert "JSON values" in answer.text
    return post(stage.plain, dialect, ["a"] * 21)


def large_head(stage: Stage, dialect: Dialect) -> httpx.Response:
    assert spoken(stage.plain, dialect, b"x: y\r\n" * 101 + b"\r\n").status_code == 431
    return spoken(stage.plain, dialect, b"x-long: " + b"x" * 70_000 + b"\r\n\r\n")


def large_framing(stage: Stage, dialect: Dialect) -> httpx.Response:
    coding = b"transfer-encoding: chunked\r\n\r\n"
    assert spoken(stage.plain, dialect, coding + b"1;x=" + b"y" * 17_000).status_code == 431
    assert spoken(stage.plain, dialect, coding + b"1\r\n \r\n" * 500).status_code == 431
    return spoken(stage.plain, dialect, coding + b"0\r\n" + b"x: y\r\n" * 4_000)


def escaped(server: RunningServer, dialect: Dialect) -> httpx.Response:
    path = dialect.path + "%41" * 1_001
    return httpx.post(server.url + path, json={})


def naming(place: str, answer: httpx.Response) -> httpx.Response:
    error = answer.json()["error"]
    assert place in (error if isinstance(error, str) else error["message"])
    assert isinstance(error, str) or error["param"] == place
    return answer


CASES: dict[str, Provoke] = {
    "not JSON, or not UTF-8": lambda stage, it: raw(stage.plain, it, b'{"%b": "\xff"}' % it.field.encode()),
    "not HTTP/1.1; the connection is closed": lambda stage, it: spoken(stage.plain, it, b"no colon\r\n\r\n"),
    "a head with [two readings](operating.md#connections), or `CONNECT`; the connection is closed": read_in_two_ways,
    "token ids as `input` of `/v1/embeddings`, without their encoding": lambda stage, it: post(
        stage.plain, it, [[1, 2], [3]]
    ),
    "API key missing or wrong, where one is set; with `WWW-Authenticate`": key_is_missing,
    "unknown route": unknown_route,
    "unknown model": unknown_model,
    "wrong method; with `Allow`": wrong_method,
    "headers or body too slow to arrive; the connection is closed": lambda stage, it: spoken(
        stage.serve(header_timeout_seconds=0.3), it, b"x-slow: y"
    ),
    "body over the limit; the connection is closed": body_too_large,
    "too many texts, or JSON values": too_many,
    "wrong content type, or a body in another encoding than gzip and deflate": lambda stage, it: raw(
        stage.plain, it, b"\x1f\x8b", {**JSON_TYPE, "content-encoding": "br"}
    ),
    "wrong type or value of a field, which is named": lambda stage, it: naming(
        it.known, post(stage.plain, it, "a", **{it.known: 5})
    ),
    "missing field, or an unknown one of `/search`, `/match` and `/explain`; it is named": lambda stage, it: naming(
        it.field, raw(stage.plain, it, b"{}")
    ),
    "text too long without `truncate`; its place is named": text_is_too_long,
    "lone surrogate; the text's place is named": lambda stage, it: naming(
        f"{it.field}[1]", post(stage.plain, it, ["a", "\udfff"])
    ),
    "an empty list": lambda stage, it: post(stage.plain, it, []),
    "the model failed on this request; others are answered": lambda stage, it: post(stage.plain, it, "poison"),
    "request line and headers over `max_header_bytes` or `max_header_lines`; the connection is closed": large_head,
    "a path with more than 1,000 escaped characters; the connection is closed": lambda stage, it: escaped(
        stage.plain, it
    ),
    "a trailer, extensions of chunks, or small chunks, over their limits; the connection is closed": large_framing,
    "queue full, in texts or in characters; with `Retry-After` from the measured speed": queue_is_full,
    "requests and unsent answers hold more than `max_bytes_in_flight`; with `Retry-After`": memory_is_short,
    "waited longer than the deadline, or would; with `Retry-After`": deadline_has_passed,
    "a fault of the service; its log has the request's id": has_a_fault,
    "loading, or failed to load; with `Retry-After`": is_loading,
    "shutting down; with `Retry-After`": is_shutting_down,
    "more connections than `max_connections`, on any path; with `Retry-After`; it is closed": has_too_many_connections,
    "heads that do not end hold more than `max_unread_bytes`; with `Retry-After`; it is closed": lambda stage, it: (
        spoken(stage.serve(max_unread_bytes=2_000), it, b"x-long: " + b"x" * 10_000)
    ),
}


@pytest.fixture(scope="module")
def stage(embedder: Embedder, small: Embedder) -> Iterator[Stage]:
    opened = Stage(embedder, small)
    with opened.opened:
        yield opened


def test_the_page_has_each_case_once_and_no_other() -> None:
    assert [row.case for row in TABLE] == list(CASES)


# How each status is provoked that /openapi.json has an example of.
PROVOKED: dict[int, Provoke] = {
    400: lambda stage, it: raw(stage.plain, it, b"{"),
    401: key_is_missing,
    404: CASES["unknown model"],
    413: lambda stage, it: post(stage.plain, it, ["a"] * 21),
    415: lambda stage, it: raw(stage.plain, it, b"{}", {"content-type": "text/plain"}),
    422: lambda stage, it: raw(stage.plain, it, b"[]"),
    424: CASES["the model failed on this request; others are answered"],
    429: queue_is_full,
    500: has_a_fault,
    503: is_loading,
}


@pytest.mark.parametrize("dialect", [TEI, OPENAI])
def test_the_documents_examples_are_what_is_answered(stage: Stage, dialect: Dialect) -> None:
    document = httpx.get(f"{stage.plain.url}/openapi.json", timeout=PATIENCE).json()
    told = document["paths"][dialect.path]["post"]["responses"]
    provoked = {status: provoke for status, provoke in PROVOKED.items() if dialect is TEI or status != 422}
    assert [int(status) for status in told if status != "200"] == list(provoked)
    for status, provoke in provoked.items():
        answer = provoke(stage, dialect)
        example = told[str(status)]["content"]["application/json"]["example"]
        found = without_numbers(answer.text)
        if status == 404:  # the example has one model
            assert (answer.status_code, found.keys()) == (404, example.keys())
            continue
        assert (answer.status_code, found) == (status, without_numbers(json.dumps(example)))


def test_refusals_of_single_routes_are_what_is_answered(stage: Stage, tmp_path: Path) -> None:
    bare, document = stage.serve(metrics="off"), httpx.get(f"{stage.plain.url}/openapi.json", timeout=PATIENCE).json()
    asked = {
        ("/search", 404): httpx.post(f"{bare.url}/search", json={"queries": "a"}),
        ("/predict", 404): httpx.post(f"{bare.url}/predict", json={"inputs": "a"}),
        ("/metrics", 404): httpx.get(f"{bare.url}/metrics"),
        ("/admin/reload", 403): httpx.post(f"{bare.url}/admin/reload"),
    }
    for (path, status), answer in asked.items():
        assert (answer.status_code, answer.json()) == (status, example_of(document, path, status))
    for path, option in (("/search", "--index NAME=FOLDER"), ("/predict", "--head NAME=FILE")):
        assert option in asked[path, 404].json()["error"]
    with pytest.raises(BundleError) as caught:
        find_bundle(tmp_path)
    told = str(reload_failed_error(str(caught.value).replace(str(tmp_path), "models/gramvec-en")))
    assert example_of(document, "/admin/reload", 422)["error"] == told


def example_of(document: dict[str, Any], path: str, status: int) -> Any:
    (operation,) = document["paths"][path].values()
    return operation["responses"][str(status)]["content"]["application/json"]["example"]


def without_numbers(text: str) -> Any:
    """The JSON value, with the same number for all that sentences have."""
    return json.loads(re.sub(r"\d+", "0", text))


@pytest.mark.parametrize("row", TABLE, ids=lambda row: row.case)
def test_each_case_of_the_page_has_its_status(stage: Stage, row: Row, caplog: pytest.LogCaptureFixture) -> None:
    provoke = CASES[row.case]
    seen = []
    if row.error_type:
        answer = provoke(stage, TEI)
        body = answer.json()
        assert (answer.status_code, body) == (row.status, {"error": body["error"], "error_type": row.error_type})
        seen.append(answer)
    if row.v1_type:
        answer = provoke(stage, OPENAI)
        error = answer.json()["error"]
        expected = {**error, "type": row.v1_type, "code": row.v1_code or None}
        status = 400 if row.status == 422 else row.status  # as OpenAI's
        assert (answer.status_code, answer.json()) == (status, {"error": expected})
        assert error.keys() == {"message", "type", "param", "code"}
        seen.append(answer)
    assert seen
    for one in seen:
        assert one.headers["content-type"] == "application/json"
        assert one.headers["x-request-id"]
        assert ("`Retry-After`" in row.case) == (int(one.headers.get("retry-after", "0")) >= 1)
        print(f"{row.case[:64]:64} {one.request.url.path:24} {one.status_code} {one.text[:100]}")  # noqa: T201
