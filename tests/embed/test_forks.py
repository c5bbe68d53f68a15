"""What was opened and has worked before a fork goes on in the child: models, indexes, clients, and what forks them."""

from __future__ import annotations

import multiprocessing
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import numpy as np
import pytest

import gramvec
from conftest import MODELS
from gramvec.bundle.bundle import open_bundle
from gramvec.client import Client
from gramvec.embed.embedder import Embedder
from gramvec.errors import BackendError, DeviceError
from gramvec.runtime import cuda, ort
from gramvec.runtime.cuda import CudaRuntime
from gramvec.runtime.ort import OnnxRuntime, cpu_session
from gramvec.server.app import create_app
from gramvec.server.edge.server import Server
from gramvec.server.settings import Settings
from gramvec.threads import LibraryCalls, ProcessLock, ThreadPool
from support.errors import refused
from support.http import PATIENCE, kept_port, running, until

# Python 3.12 warns of what is tested here.
pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")
TEXTS = [f"parcel {number} of several" for number in range(1_200)]


def forked(call: Callable[[], object]) -> int:
    """The id of a child that makes the call and ends, with status 0 if it returned."""
    child = os.fork()
    if child:
        return child
    try:
        call()
    except BaseException:
        traceback.print_exc()
        os._exit(1)
    os._exit(0)


def ended(child: int) -> int:
    """The status of a child; one that hangs is killed, and fails the test."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.005)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    raise AssertionError("a child of a fork hangs")


def in_child(call: Callable[[], object]) -> None:
    assert ended(forked(call)) == 0


def expect(condition: object) -> None:
    assert condition


@pytest.fixture(params=["native", "onnx"])
def model(request: pytest.FixtureRequest) -> Iterator[Embedder]:
    """A model whose two threads have worked."""
    opened = gramvec.load(MODELS / "charagram-phrase", device="cpu", runtime=request.param, threads=2)
    opened.embed(TEXTS)
    yield opened
    opened.close()


def test_a_child_and_its_child_embed_with_threads_of_their_own(model: Embedder) -> None:
    expected = model.embed(TEXTS).tobytes()

    def embeds() -> None:
        expect(model.embed(TEXTS).tobytes() == expected)
        expect(model.raw(TEXTS).vectors.shape == (len(TEXTS), model.dimension))
        expect(model.similarity(["a"], ["a", "b"]).shape == (1, 2))

    in_child(lambda: [embeds(), in_child(embeds)])
    embeds()


def test_a_fork_in_one_thread_while_others_embed(model: Embedder) -> None:
    expected, stop = model.embed(TEXTS[:40]).tobytes(), threading.Event()

    def works() -> None:
        while not stop.is_set():
            model.embed(TEXTS[:40])

    others = [threading.Thread(target=works) for _ in range(2)]
    for one in others:
        one.start()
    try:
        for _ in range(8):  # as pytest-xdist does, whose worker runs tests beside a thread that talks
            in_child(lambda: expect(model.embed(TEXTS[:40]).tobytes() == expected))
    finally:
        stop.set()
        for one in others:
            one.join()


def test_an_index_is_searched_and_extended_in_a_child(tmp_path: Path) -> None:
    model = gramvec.load("paragram-phrase", device="cpu", threads=2)
    index = gramvec.Index.build(tmp_path / "x.index", TEXTS[:60], model=model)
    queries = ["parcel 7", "several", "parcel 31"]
    expected = index.search(queries)

    def searches() -> None:
        expect(index.search(queries) == expected)
        expect(index.search("parcel 7", k=1)[0][0].id == expected[0][0].id)

    in_child(searches)
    in_child(lambda: gramvec.Index(tmp_path / "x.index", model=model).add(["another parcel"]))
    searches()
    assert len(gramvec.Index(tmp_path / "x.index", model=model)) == 61
    model.close()


def _embedded(given: tuple[Embedder, list[str]]) -> bytes:
    model, texts = given
    return model.embed(texts).tobytes()


_SHARED: list[Embedder] = []  # what workers inherit


def _with_shared(texts: list[str]) -> bytes:
    return _SHARED[0].embed(texts).tobytes()


@pytest.fixture
def shared(model: Embedder) -> Iterator[Embedder]:
    _SHARED.append(model)
    yield model
    _SHARED.clear()


def test_a_pool_of_multiprocessing(shared: Embedder) -> None:
    expected = shared.embed(TEXTS).tobytes()
    with multiprocessing.get_context("fork").Pool(2) as pool:
        assert pool.map_async(_with_shared, [TEXTS] * 3).get(PATIENCE) == [expected] * 3
        assert pool.map_async(_embedded, [(shared, TEXTS)] * 2).get(PATIENCE) == [expected] * 2


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["loky", "multiprocessing", "threading"])
def test_joblib(model: Embedder, backend: str) -> None:
    joblib = pytest.importorskip("joblib")
    run = joblib.Parallel(n_jobs=2, backend=backend, timeout=PATIENCE)
    expected = model.embed(TEXTS).tobytes()
    assert run(joblib.delayed(_embedded)((model, TEXTS)) for _ in range(3)) == [expected] * 3


@pytest.mark.slow
def test_workers_of_a_data_loader(model: Embedder) -> None:
    data = pytest.importorskip("torch.utils.data")
    loader = data.DataLoader(
        TEXTS, batch_size=600, num_workers=2, collate_fn=model.embed, multiprocessing_context="fork", timeout=PATIENCE
    )
    assert np.concatenate(list(loader)).tobytes() == model.embed(TEXTS).tobytes()


def test_servers_forked_after_the_application_was_made(model: Embedder) -> None:
    """As gunicorn --preload does: one application and one socket, made before, in two processes."""
    app = create_app(Settings(), model)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        children = [forked(lambda: Server(app).run([listener])) for _ in range(2)]
        try:
            url = f"http://127.0.0.1:{listener.getsockname()[1]}"
            for _ in range(6):
                answer = httpx.post(f"{url}/embed", json={"inputs": TEXTS}, timeout=PATIENCE)
                assert np.array(answer.json(), np.float32).tobytes() == model.embed(TEXTS).tobytes()
        finally:
            for child in children:
                os.kill(child, signal.SIGTERM)
        assert [ended(child) for child in children] == [0, 0]


PRELOADED = """
import gramvec
from gramvec.server.app import create_app
from gramvec.server.settings import Settings

model = gramvec.load({model!r})
texts = [f"parcel {{number}} of several" for number in range(1_200)]
expected = model.embed(texts).tobytes()
app = create_app(Settings(), model)

def wsgi(environ, start):
    start("200 OK", [("content-type", "text/plain")])
    return [str(model.embed(texts).tobytes() == expected).encode()]
"""


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["sync", "asgi", "uvicorn.workers.UvicornWorker"])
def test_gunicorn_with_preload(tmp_path: Path, small: Embedder, kind: str) -> None:
    pytest.importorskip("gunicorn")
    (tmp_path / "preloaded.py").write_text(PRELOADED.format(model=str(MODELS / "paragram-phrase")))
    name = "wsgi" if kind == "sync" else "app"
    command = [
        sys.executable, "-m", "gunicorn", f"preloaded:{name}", "--preload", "--workers", "2", "--worker-class", kind,
        "--no-control-socket",
    ]  # fmt: skip
    with (
        kept_port() as port,
        subprocess.Popen([*command, "--bind", f"127.0.0.1:{port}"], cwd=tmp_path, stderr=subprocess.DEVNULL) as master,
    ):
        try:
            until(lambda: _listens(port))
            for _ in range(6):
                answer = httpx.post(f"http://127.0.0.1:{port}/embed", json={"inputs": TEXTS}, timeout=PATIENCE)
                if kind == "sync":
                    assert answer.text == "True"
                else:
                    assert np.array(answer.json(), np.float32).tobytes() == small.embed(TEXTS).tobytes()
        finally:
            master.terminate()
            assert master.wait(PATIENCE) == 0


def _listens(port: int) -> bool:
    with socket.socket() as one:
        return one.connect_ex(("127.0.0.1", port)) == 0


def test_a_clients_connections_are_not_shared(small: Embedder) -> None:
    with running(Settings(), small) as server:
        client = Client(server.url)
        client.embed(["before"])

        def embeds(name: str) -> None:
            for number in range(40):
                expect(client.embed([f"{name} {number}"]).tobytes() == small.embed([f"{name} {number}"]).tobytes())

        children = [forked(lambda name=name: embeds(name)) for name in ("one", "two", "three")]  # type: ignore[misc]
        embeds("parent")
        assert [ended(child) for child in children] == [0, 0, 0]
        client.close()


# ---- What they are made of ----


def test_a_lock_that_another_thread_holds_is_free_in_a_child() -> None:
    lock, held, stop = ProcessLock(), threading.Event(), threading.Event()

    def holds() -> None:
        with lock:
            held.set()
            stop.wait(PATIENCE)

    other = threading.Thread(target=holds)
    other.start()
    held.wait(PATIENCE)
    try:

        def takes() -> None:
            with lock:
                pass

        in_child(takes)
    finally:
        stop.set()
        other.join()


def test_a_pool_with_work_in_the_parent_takes_other_work_in_a_child() -> None:
    pool, stop = ThreadPool(1, "test"), threading.Event()
    waiting = [pool.submit(stop.wait, PATIENCE) for _ in range(3)]
    try:
        in_child(lambda: expect(pool.submit(lambda: 7).result(PATIENCE) == 7))
    finally:
        stop.set()
    assert all(one.result(PATIENCE) for one in waiting)
    pool.shutdown()


def test_a_fork_waits_for_calls_into_a_library(monkeypatch: pytest.MonkeyPatch) -> None:
    calls, begun, ready = LibraryCalls(), threading.Event(), threading.Event()

    def works(seconds: float) -> None:
        with calls:
            begun.set()
            ready.wait(seconds)

    other = threading.Thread(target=works, args=[0.2])
    other.start()
    begun.wait(PATIENCE)
    in_child(lambda: [expect(calls.usable), works(0)])
    other.join()
    # One that does not end in time: the child is told, and the parent goes on.
    monkeypatch.setattr("gramvec.threads.MAX_WAIT_SECONDS", 0.01)
    other = threading.Thread(target=works, args=[PATIENCE])
    begun.clear()
    other.start()
    begun.wait(PATIENCE)
    in_child(lambda: expect(not calls.usable))
    ready.set()
    other.join()
    assert calls.usable
    in_child(lambda: expect(calls.usable))


def test_what_cannot_go_on_ends_with_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    bundle = open_bundle(MODELS / "paragram-phrase")
    onnx = OnnxRuntime.from_bundle(bundle)
    with monkeypatch.context() as patch:
        patch.setattr(ort.CALLS, "usable", False)
        with refused(BackendError, "forked", "'spawn'"):
            onnx.embed(bundle.memoized, ["a"])
        with refused(DeviceError, "forked"):
            gramvec.load(bundle.path, device="cpu", runtime="onnx")
    monkeypatch.setattr(cuda, "cuda_session", cpu_session)
    monkeypatch.setattr(cuda, "_cudart", lambda _: None)
    device = CudaRuntime(bundle)
    monkeypatch.setattr(onnx, "device", "cuda")

    def refuses() -> None:
        for runtime in (device, onnx):
            with refused(BackendError, "GPU", "fork"):
                runtime.embed(bundle.memoized, ["a"])

    in_child(refuses)
    assert device.embed(bundle.memoized, ["a"]).vectors.any()


@pytest.mark.parametrize("package", ["client", "embed", "explain", "lexical", "runtime", "search", "server/batching"])
def test_what_lives_longer_than_a_call_is_made_of_these(package: str) -> None:
    for path in Path(gramvec.__path__[0], package).rglob("*.py"):
        text = path.read_text()
        for name in ("ThreadPoolExecutor", "threading.Lock", "RLock", "threading.Condition"):
            assert name not in text, f"{path}: take ThreadPool or ProcessLock of gramvec.threads, not {name}"
