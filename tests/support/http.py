"""Applications and servers for the tests, and a real model that can be watched, held up and broken."""

from __future__ import annotations

import re
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
from fastapi.testclient import TestClient

from gramvec import Embedder
from gramvec.embed.vectors import RawEmbeddings
from gramvec.server.app import Application, create_app
from gramvec.server.edge.server import Server
from gramvec.server.settings import Settings
from gramvec.server.state.service import Service

PATIENCE = 60.0
COMMAND = [str(Path(sys.executable).with_name("gramvec")), "serve"]
# Too long for the event loop, so that holding it up holds up the worker thread.
HELD = "held " * 4_000
# A watched model is never faster than this, so that no batcher learns that `HELD` is short enough for the loop.
SECONDS_A_CHARACTER = 1e-6


class WatchedModel:
    """The real model. Texts that contain "poison" make a call fail; `HELD` waits until the gate is opened."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self.calls: list[list[str]] = []
        self.threads: list[str] = []
        self.gate = threading.Event()
        self.holding = threading.Event()
        self.overlapped = False
        self._inside = threading.Lock()

    def raw(self, texts: Sequence[str]) -> RawEmbeddings:
        if not self._inside.acquire(blocking=False):
            self.overlapped = True
            raise RuntimeError("two calls at once")
        try:
            self.calls.append(list(texts))
            self.threads.append(threading.current_thread().name)
            if HELD in texts:
                self.holding.set()
                assert self.gate.wait(PATIENCE)
            if any("poison" in text for text in texts):
                raise RuntimeError("injected fault")
            time.sleep(SECONDS_A_CHARACTER * sum(map(len, texts)))
            return self._embedder.raw(texts)
        finally:
            self._inside.release()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._embedder, name)


class RunningServer:
    """A server on a free port of this host."""

    def __init__(self, app: Application, port: int, server: Server | None = None) -> None:
        self.app = app
        self.server = server
        self.port = port
        self.url = f"http://127.0.0.1:{port}"

    @property
    def service(self) -> Service:
        service = self.app.state.gramvec
        assert isinstance(service, Service)
        return service

    @property
    def connections(self) -> int:
        """How many the server holds."""
        assert self.server is not None
        return len(self.server.connections)

    def connect(self) -> socket.socket:
        """A bare connection, for what a well-behaved client would not do."""
        return socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE)


@contextmanager
def running(settings: Settings, embedder: Any = None, *, loaded: bool = True) -> Iterator[RunningServer]:
    """Serve from a thread of this process, with the very server that `gramvec serve` runs.

    It listens while it loads; unless `loaded` is false, its models are there, or cannot be, before it is used.
    """
    with running_app(create_app(settings, embedder)) as server:
        until(lambda: not loaded or server.service.models or server.service.failure)
        yield server


@contextmanager
def asking(settings: Settings, embedder: Any = None, **options: Any) -> Iterator[TestClient]:
    """FastAPI's client, with these options, of an application in this process: there is no server and no socket."""
    options = {"base_url": "http://127.0.0.1", "raise_server_exceptions": False, **options}
    with TestClient(create_app(settings, embedder), **options) as client:
        yield client


@contextmanager
def running_app(app: Application) -> Iterator[RunningServer]:
    """The same with an application that exists."""
    listener = socket.create_server(("127.0.0.1", 0))
    server = Server(app)
    thread = threading.Thread(target=server.run, args=[[listener]], name="server")
    thread.start()
    try:
        until(lambda: server.started or not thread.is_alive())
        yield RunningServer(app, listener.getsockname()[1], server)
    finally:
        server.stop()
        thread.join(PATIENCE)
        listener.close()
        assert not thread.is_alive()


@contextmanager
def kept_port() -> Iterator[int]:
    """A port of this host at which nobody listens, for what has to be told one.

    It is bound until the block ends, so that no other process gets it meanwhile; who asks for this very port may listen
    there, as every server does that can be started anew at once (SO_REUSEADDR).
    """
    with socket.socket() as holder:
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        holder.bind(("127.0.0.1", 0))
        yield holder.getsockname()[1]


@contextmanager
def served_process(*options: str, start_new_session: bool = False) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """`gramvec serve` on a free port: the process and its port, as soon as it listens; several workers, as soon as they
    serve. What it logs must be little."""
    process = subprocess.Popen(
        [*COMMAND, "--port", "0", *options],
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=start_new_session,
    )
    try:
        port = announced_port(process)
        if "--workers" in options:
            until(lambda: serves(port))
        yield process, port
    finally:
        assert process.stderr is not None
        process.kill()
        process.wait()
        process.stderr.close()


def announced_port(process: subprocess.Popen[str]) -> int:
    """The port that a starting server names in its log."""
    assert process.stderr is not None
    for line in process.stderr:
        if found := re.search(r"https?://127\.0\.0\.1:(\d+)", line):
            return int(found[1])
    raise AssertionError("ended without listening")


def children(process: subprocess.Popen[str]) -> set[int]:
    """The ids of a process's children, as a server's workers."""
    return set(map(int, Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()))


def serves(port: int) -> bool:
    """Whether /ready says so."""
    try:
        return httpx.get(f"http://127.0.0.1:{port}/ready", timeout=PATIENCE).status_code == 200
    except httpx.TransportError:  # no worker accepts yet
        return False


def serves_at(path: Path) -> bool:
    """Whether /ready says so at a Unix socket. Its path is there a moment before anything listens."""
    with socket.socket(socket.AF_UNIX) as trial:  # httpcore leaves one open that could not be connected
        if trial.connect_ex(str(path)):
            return False
    with client_at(path) as client:
        try:
            return client.get("/ready").status_code == 200
        except httpx.TransportError:
            return False


def reloaded(client: httpx.Client) -> httpx.Response:
    """The answer to a reload; asked for again while another is under way, as that of workers which follow one."""
    answers: list[httpx.Response] = []
    until(lambda: answers.append(client.post("/admin/reload")) or answers[-1].status_code != 409)
    return answers[-1]


def client_at(path: Path) -> httpx.Client:
    """A client of what listens at a Unix socket."""
    return httpx.Client(transport=httpx.HTTPTransport(uds=str(path)), base_url="http://here", timeout=PATIENCE)


def until(condition: Callable[[], object]) -> None:
    """Wait until the condition holds; fail if it never does."""
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.005)


def post_bytes(body: bytes, *, path: str = "/embed", length: int | None = None) -> bytes:
    """A POST request as it goes over the wire; `length` announces more than the body holds."""
    announced = len(body) if length is None else length
    head = (
        f"POST {path} HTTP/1.1\r\nhost: test\r\ncontent-type: application/json\r\ncontent-length: {announced}\r\n\r\n"
    )
    return head.encode() + body


def read_all(connection: socket.socket) -> bytes:
    """Everything until the other side closes."""
    received = b""
    while part := connection.recv(65_536):
        received += part
    return received
