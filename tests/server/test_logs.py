"""Log lines: one for each request where asked for, for each failure always, and never a word of a user's."""

from __future__ import annotations

import asyncio
import gc
import io
import json
import logging
import re
import signal
import socket
from collections.abc import Iterator, Sequence
from typing import Any

import httpx
import pytest
import uvloop
from hypothesis import given
from hypothesis import strategies as st

from gramvec import Embedder
from gramvec.embed.vectors import RawEmbeddings
from gramvec.server.settings import Settings
from gramvec.server.telemetry import logs
from support.http import PATIENCE, post_bytes, read_all, running, served_process, until

# What a user sends, in a text, a path, a query, a header or as a key; in no line may any of it be found.
SECRET = "zebra-crossing-4711"


class Telltale:
    """The real model, which fails on some texts and says in its exception on what."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder

    def raw(self, texts: Sequence[str]) -> RawEmbeddings:
        if any("poison" in text for text in texts):
            try:
                raise KeyError(texts[0])
            except KeyError as error:
                raise ValueError(f"cannot embed {texts}") from error
        return self._embedder.raw(texts)

    def prepare(self, texts: Sequence[str], **options: Any) -> list[str]:
        if "bög" in texts[0]:
            raise RuntimeError(f"no idea what {texts} is")
        return self._embedder.prepare(texts, **options)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._embedder, name)


@pytest.fixture(params=["text", "json"])
def written(request: pytest.FixtureRequest) -> Iterator[io.StringIO]:
    """All that is logged in this process, as `configure` would write it."""
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(logs.JsonFormatter() if request.param == "json" else logs.TextFormatter())
    logging.getLogger().addHandler(handler)
    logging.getLogger("gramvec").setLevel(logging.INFO)
    try:
        yield stream
    finally:
        logging.getLogger("gramvec").setLevel(logging.NOTSET)
        logging.getLogger().removeHandler(handler)


def fields(line: str) -> dict[str, str]:
    """What a line says of a request, from either form."""
    if line.startswith("{"):
        return {name: str(value) for name, value in json.loads(line).items()}
    return dict(re.findall(r"(\w+)=(\S*)", line))


def of_requests(stream: io.StringIO) -> list[dict[str, str]]:
    return [fields(line) for line in stream.getvalue().splitlines() if "request_id" in line]


def test_every_request_has_a_line_if_asked_for(embedder: Embedder, written: io.StringIO) -> None:
    with running(Settings(access_log="on"), embedder) as server, httpx.Client(base_url=server.url) as client:
        answer = client.post("/embed", json={"inputs": ["abc", "de"]}, headers={"x-request-id": "first"})
        client.post("/embed", json={"inputs": 5}, headers={"x-request-id": "second"})
        client.get("/nowhere", headers={"x-request-id": "third"})
        client.get("/health", headers={"x-request-id": "fourth"})
    first, second, third, fourth = of_requests(written)
    assert first["request_id"] == "first"
    assert (first["method"], first["route"], first["status"]) == ("POST", "/embed", "200")
    assert (first["texts"], first["characters"]) == ("2", "5")
    assert first["model"] == answer.headers["x-model"]
    names = ("total", "queue", "inference")
    times = ", ".join(f"{name};dur={float(first[f'{name}_ms']):.3f}" for name in names)
    assert answer.headers["server-timing"] == times
    # As Text Embeddings Inference has them.
    assert [answer.headers[f"x-{name}-time"] for name in names] == [
        str(int(float(first[f"{name}_ms"]))) for name in names
    ]
    assert (second["status"], second["reason"]) == ("422", "validation")
    assert (third["route"], third["status"], third["reason"]) == ("unknown", "404", "not_found")
    assert (fourth["method"], fourth["route"], fourth["status"]) == ("GET", "/health", "200")
    assert "reason" not in fourth
    assert "texts" not in fourth


@pytest.mark.parametrize(
    ("given", "known"),
    [
        (f"00-{'a' * 32}-{'b' * 16}-01", True),
        (f"cc-{'a' * 32}-{'b' * 16}-00", True),
        (f"ff-{'a' * 32}-{'b' * 16}-01", False),
        (f"00-{'0' * 32}-{'b' * 16}-01", False),
        (f"00-{'a' * 32}-{'0' * 16}-01", False),
        (f"00-{'A' * 32}-{'b' * 16}-01", False),
        ("x status=200", False),
    ],
)
def test_the_trace_of_the_caller_is_told(embedder: Embedder, written: io.StringIO, given: str, known: bool) -> None:
    with running(Settings(access_log="on"), embedder) as server:
        httpx.post(f"{server.url}/embed", json={"inputs": "a"}, headers={"traceparent": given})
    (line,) = of_requests(written)
    assert (line.get("trace_id"), line.get("parent_id")) == (("a" * 32, "b" * 16) if known else (None, None))


def test_failures_have_theirs_always_and_the_rest_none(embedder: Embedder, written: io.StringIO) -> None:
    with running(Settings(), Telltale(embedder)) as server, httpx.Client(base_url=server.url) as client:
        for number, text in enumerate(("fine", "poison", "bög")):
            client.post("/embed", json={"inputs": [text]}, headers={"x-request-id": f"id-{number}"})
        client.post("/embed", json={"inputs": 5})
        client.get("/nowhere")
    failed, bug = of_requests(written)
    assert (failed["request_id"], failed["status"]) == ("id-1", "424")
    assert (bug["request_id"], bug["status"]) == ("id-2", "500")
    text = written.getvalue()
    assert "request id-1 failed" in text
    assert "request id-2 failed" in text
    # Where it went wrong is there: the types, the chain, the lines of code.
    assert text.index("KeyError") < text.index("ValueError") < text.index("RuntimeError")
    assert "raise KeyError(texts[0])" in text


def test_no_word_of_a_user_is_in_any_line(embedder: Embedder, written: io.StringIO) -> None:
    chosen = Settings.model_validate({"access_log": "on", "api_key": [f"{SECRET}-key"], "cors_origins": ["*"]})
    key = {"authorization": f"Bearer {SECRET}-key"}
    with running(chosen, Telltale(embedder)) as server, httpx.Client(base_url=server.url, headers=key) as client:
        statuses = [
            client.post("/embed", json=body, headers=headers).status_code
            for body, headers in (
                ({"inputs": SECRET}, {}),
                ({"inputs": f"poison {SECRET}"}, {}),
                ({"inputs": [f"bög {SECRET}"]}, {}),
                ({"inputs": [SECRET, 5]}, {}),
                ({SECRET: 1}, {}),
                ({"inputs": "a", "model": SECRET, f"{SECRET} x": 1}, {}),
                ({"inputs": "a", "truncation_direction": SECRET}, {}),
                ({"inputs": "a"}, {"content-type": SECRET}),
                ({"inputs": "a"}, {"authorization": SECRET}),
                ({"inputs": "a"}, {"accept": SECRET, "origin": f"https://{SECRET}", "referer": SECRET}),
            )
        ]
        assert statuses == [200, 424, 500, 422, 422, 200, 422, 415, 401, 200]
        assert client.post("/embed", content=f'{{"inputs": "{SECRET}'.encode()).status_code in (400, 415)
        surrogate = f'{{"inputs": "{SECRET}\\ud800"}}'.encode()
        assert client.post("/embed", content=surrogate, headers={"content-type": "application/json"}).status_code == 422
        for path in (f"/{SECRET}", f"/embed?key={SECRET}", f"/v1/models/{SECRET}"):
            client.get(path)
        with server.connect() as connection:
            connection.sendall(f"GET /{SECRET}\x01 HTTP/1.1\r\n\r\n".encode())
            read_all(connection)
    assert len(of_requests(written)) >= 15
    assert SECRET not in written.getvalue()
    assert "crossing" not in written.getvalue()


def test_nobody_writes_lines_of_his_own(embedder: Embedder, written: io.StringIO) -> None:
    body = b'{"inputs": "a"}'
    forged = [
        b"a\tINFO request served request_id=b",
        b"a status=500",
        b'a","status":500,"b":"',
        b"\xc2\x85line",
        b"a" * 129,
    ]
    with running(Settings(access_log="on"), embedder) as server:
        for request_id in forged:
            with server.connect() as connection:
                head = post_bytes(body).replace(b"\r\n\r\n", b"\r\nx-request-id: " + request_id + b"\r\n\r\n", 1)
                connection.sendall(head.replace(b"host: test", b"host: test\r\nconnection: close"))
                assert b" 200 " in read_all(connection)
        for path in ("/%0A2026-11-22T00:00:00Z ERROR forged", "/%1b[2J", "/%E2%80%A8line"):
            httpx.get(server.url + path.replace(" ", "%20"))
    lines = [line for line in written.getvalue().split("\n") if "request" in line]
    assert len(lines) == len(forged) + 3
    assert all(line.isprintable() for line in lines)
    assert "forged" not in written.getvalue()
    for line in lines[: len(forged)]:
        assert fields(line)["status"] == "200"
    # Four were replaced; the third is sane, and quoted where quotes mean something.
    ids = [fields(line)["request_id"] for line in lines[: len(forged)]]
    assert [one for one in ids if not re.fullmatch(r"[0-9a-f]{24}", one)] == [forged[2].decode()]


@pytest.mark.parametrize("workers", ["1", "2"])
def test_every_line_of_a_process_is_in_the_chosen_form(workers: str) -> None:
    options = ("--log-format", "json", "--access-log", "on", "--workers", workers)
    with served_process(*options) as (process, port):
        url = f"http://127.0.0.1:{port}"
        until(lambda: httpx.get(f"{url}/ready").status_code == 200)
        httpx.post(f"{url}/embed", json={"inputs": "a"}, headers={"x-request-id": "of-mine"})
        # What the HTTP parser itself refuses goes the same way.
        for garbage in (b"nonsense\r\n\r\n", b"GET / HTTP/1.1\r\ncontent-length: x\r\n\r\n"):
            with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE) as connection:
                connection.sendall(garbage)
                assert read_all(connection).startswith(b"HTTP/1.1 400 ")
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=PATIENCE) == 0
        assert process.stderr is not None
        lines = [json.loads(line) for line in process.stderr.read().splitlines()]
    assert [line["status"] for line in lines if line.get("request_id") == "of-mine"] == [200]
    assert "gramvec-en is ready on cpu" in {line["message"] for line in lines}
    assert all({"time", "level", "logger", "message"} <= line.keys() for line in lines)


def formatted(formatter: logging.Formatter, message: str, error: Exception | None = None, **extra: object) -> str:
    record = logging.LogRecord(
        "gramvec.test", logging.ERROR, __file__, 1, message, None, error and (type(error), error, None)
    )
    record.__dict__.update(extra)
    return formatter.format(record)


@given(message=st.text())
def test_a_message_is_one_line(message: str) -> None:
    text = formatted(logs.TextFormatter(), message.replace("%", "%%"))
    assert text.isprintable()
    assert len(formatted(logs.JsonFormatter(), message.replace("%", "%%")).splitlines()) == 1


def test_an_exception_is_quoted_only_where_no_user_can_be_in_it() -> None:
    error = ValueError("bad\nthing")
    error.__cause__ = OSError("disk")
    for formatter in (logs.TextFormatter(), logs.JsonFormatter()):
        hidden = formatted(formatter, "failed", error)
        assert "ValueError" in hidden
        assert "OSError" in hidden
        assert "bad" not in hidden
        assert "disk" not in hidden
        assert "bad\\nthing" in formatted(formatter, "failed", error, **logs.NO_USER_TEXT).replace("\\\\n", "\\n")


def test_what_asyncio_complains_of_is_not_shown_with_what_it_holds(written: io.StringIO) -> None:
    async def fail() -> None:
        raise ValueError(SECRET)

    def call(text: str) -> None:
        raise ValueError(text)

    async def work() -> None:
        task = asyncio.get_running_loop().create_task(fail())
        asyncio.get_running_loop().call_soon(call, SECRET)
        await asyncio.sleep(0.01)
        assert task.done()
        del task
        gc.collect()

    gc.collect()  # tasks that other tests have left are told of now
    written.truncate(written.seek(0))
    for loop in (asyncio.new_event_loop(), uvloop.new_event_loop()):
        loop.run_until_complete(work())
        loop.close()
    text = written.getvalue()
    assert text.count("Task exception was never retrieved") == 2
    assert text.count("Exception in callback") == 2
    assert "raise ValueError(text)" in text
    assert SECRET not in text
