"""What a process holds, answers as they come over the wire, and small bundles to serve and to damage."""

from __future__ import annotations

import asyncio
import functools
import json
import os
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from starlette.types import Receive, Scope, Send

from conftest import MODELS
from gramvec.features.spec import FeatureSpec
from gramvec.server.app import Application, create_app
from gramvec.server.settings import Settings
from gramvec.text.vocabulary import Entry, Vocabulary
from support.http import RunningServer, post_bytes, running_app, served_process, serves, until
from support.training import export_table

TEXT = b'{"inputs": "a fast car"}'
NORMAL = post_bytes(TEXT)


def once_of_three(test: Callable[..., None]) -> Callable[..., None]:
    """For what is said of seconds, which a machine that stands still for a while makes untrue: three tries."""

    @functools.wraps(test)
    def tried(*arguments: Any, **named: Any) -> None:
        for _ in range(2):
            with suppress(AssertionError):
                return test(*arguments, **named)
        return test(*arguments, **named)

    return tried


def closing(sent: bytes) -> bytes:
    """The same request, the last on its connection."""
    return sent.replace(b"host: test", b"host: test\r\nconnection: close", 1)


LAST = closing(NORMAL)


class Served(NamedTuple):
    """A process that serves: its id, and where."""

    process: int
    at: RunningServer


@contextmanager
def served_model(name: str) -> Iterator[Served]:
    """`gramvec serve` of a shipped model, ready, and alive to the end."""
    with served_process("--model", str(MODELS / name), "--device", "cpu") as (process, port):
        until(lambda: serves(port))
        yield Served(process.pid, RunningServer(None, port))  # type: ignore[arg-type]
        assert process.poll() is None


def descriptors(process: int | str = "self") -> int:
    return sum(1 for _ in Path(f"/proc/{process}/fd").iterdir())


def resident(process: int) -> int:
    """Bytes of a process in memory now."""
    return int(Path(f"/proc/{process}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def forget_peak(process: int) -> None:
    Path(f"/proc/{process}/clear_refs").write_text("5")


def peak(process: int) -> int:
    """The most bytes that a process has had in memory since `forget_peak`."""
    status = Path(f"/proc/{process}/status").read_text()
    return next(int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith("VmHWM"))


class Counted:
    """An application that knows how many requests it is answering, and the loop that it runs on."""

    def __init__(self, app: Application) -> None:
        self.state = app.state
        self.under_way = 0
        self.loop: asyncio.AbstractEventLoop | None = None
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            self.loop = asyncio.get_running_loop()
            await self._app(scope, receive, send)
            return
        self.under_way += 1
        try:
            await self._app(scope, receive, send)
        finally:
            self.under_way -= 1

    @property
    def tasks(self) -> int:
        """Tasks that the loop holds, those of the server itself included."""
        assert self.loop is not None
        return len(asyncio.all_tasks(self.loop))


class Watched(NamedTuple):
    """A server, and what it held when it was idle."""

    server: RunningServer
    counted: Counted
    descriptors: int
    tasks: int

    def has_let_go(self) -> bool:
        return self.counted.under_way == 0 and self.counted.tasks <= self.tasks and descriptors() <= self.descriptors


@contextmanager
def watched(settings: Settings, embedder: Any) -> Iterator[Watched]:
    counted = Counted(create_app(settings, embedder))
    with running_app(counted) as server:  # type: ignore[arg-type]
        assert is_normal(ask(server, LAST)[0])
        until(lambda: counted.under_way == 0 and counted.tasks <= 3)  # uvicorn, the lifespan, the sweeps
        yield Watched(server, counted, descriptors(), counted.tasks)


class Wire(NamedTuple):
    """An answer as it came: status, headers by lower-case name, body."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def error_type(self) -> str:
        return str(json.loads(self.body)["error_type"])


def ask(server: RunningServer, sent: bytes) -> list[Wire]:
    """What comes back for these bytes until the server closes."""
    with server.connect() as connection:
        send_as_far_as_taken(connection, sent)
        return answers(received(connection))


def send_as_far_as_taken(connection: socket.socket, sent: bytes) -> None:
    with suppress(BrokenPipeError, ConnectionResetError):
        connection.sendall(sent)


def received(connection: socket.socket) -> bytes:
    """Everything until the other side closes or resets."""
    parts = []
    try:
        while part := connection.recv(65_536):
            parts.append(part)
    except ConnectionResetError:
        pass
    return b"".join(parts)


def answers(data: bytes) -> list[Wire]:
    """The answers in what was received, 1xx left out; what is cut off at the end is left out too."""
    found = []
    while data:
        head, separator, rest = data.partition(b"\r\n\r\n")
        if not separator:
            break
        first, *lines = head.decode("latin-1").split("\r\n")
        assert first.startswith("HTTP/1."), first
        status = int(first.split(" ")[1])
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        length = 0 if status < 200 or status == 204 else int(headers["content-length"])
        if len(rest) < length:
            break
        if status >= 200:
            found.append(Wire(status, headers, rest[:length]))
        data = rest[length:]
    return found


def is_normal(answer: Wire) -> bool:
    return answer.status == 200 and len(json.loads(answer.body)[0]) > 1


SPEC = FeatureSpec(orders=(2, 3), words=True)
SAMPLES = ["a fast car", "ripe bananas", "", "zzz"]


def small_bundle(path: Path, *, seed: int = 0, **changes: Any) -> Path:
    """A bundle of some twenty n-grams and words with random rows, exported as the trainer does it."""
    entries = [
        Entry("ngram", text, 1) for text in ("fa", "as", "st", "ca", "ar", "an", "na", "fas", "ast", "car", "t c")
    ]
    vocabulary = Vocabulary.build([*entries, *(Entry("word", text, 1) for text in ("a", "fast", "car", "bananas"))])
    arguments: dict[str, Any] = {
        "name": "small",
        "kind": "gramvec",
        "spec": SPEC,
        "vocabulary": vocabulary,
        "table": np.random.default_rng(seed).normal(size=(len(vocabulary), 8)).astype(np.float32),
        "bias": None,
        "pooling": "sum",
        "activation": "linear",
        "parity_texts": SAMPLES,
        "golden_texts": SAMPLES,
        "provenance": {"seed": seed},
        "card": "# small\n",
    }
    export_table(path, **(arguments | changes))
    return path
