"""`gramvec pull` from a hub that never answers, drips, lies about sizes, or sends nonsense: one sentence, in time."""

from __future__ import annotations

import gzip
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gramvec
from conftest import MODELS
from gramvec.errors import BundleError, GramvecError, ServiceError
from support.errors import refused

pytest.importorskip("huggingface_hub", reason="needs the extra `hub`")

from gramvec.hub import download
from gramvec.hub.models import pull, push
from gramvec.hub.static_models import import_static
from support.static import write_model2vec, write_static_embedding

COMMIT = "a" * 40
SIF = MODELS / "sif"
Answer = Callable[["Handler"], None]


class Handler(BaseHTTPRequestHandler):
    """A hub whose answers a test replaces, by the last part of the path; "api" is the question for the commit."""

    protocol_version = "HTTP/1.1"
    answers: dict[str, Answer]
    sent: dict[str, int]
    seen: list[tuple[str, str | None]]
    stopped: threading.Event

    def log_message(self, *_: Any) -> None:
        pass

    def do_GET(self) -> None:
        name = "api" if self.path.startswith("/api/") else self.path.split("/")[-1]
        self.seen.append((self.path, self.headers.get("authorization")))
        try:
            self.answers.get(name, Handler.usual)(self)
        except OSError:  # the client has gone, as it should
            self.close_connection = True

    def do_POST(self) -> None:
        self.do_GET()

    def usual(self) -> None:
        if self.path.startswith("/api/"):
            listed = [{"rfilename": one.name, "size": one.stat().st_size} for one in SIF.iterdir()]
            self.whole(json.dumps({"id": "org/sif", "sha": COMMIT, "siblings": listed}).encode())
        else:
            self.whole((SIF / self.path.split("/")[-1]).read_bytes())

    def whole(self, data: bytes, **headers: str) -> None:
        self.begin({"content-length": str(len(data)), **headers})
        self.write(data)

    def begin(self, headers: dict[str, str], status: int = 200) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()

    def write(self, data: bytes) -> None:
        self.wfile.write(data)
        self.sent[self.path] = self.sent.get(self.path, 0) + len(data)

    def without_end(self, block: bytes) -> None:
        self.begin({"transfer-encoding": "chunked"})
        while not self.stopped.is_set():
            self.write(b"%x\r\n%b\r\n" % (len(block), block))

    def drip(self, headers: bool) -> None:
        if not headers:
            size = (SIF / "model.onnx.data").stat().st_size  # more than an answer with a commit may have
            self.begin({"content-length": str(size)} if "data" in self.path else {"content-length": "1000"})
        while not self.stopped.wait(0.1):
            self.wfile.write(b"X-A: b\r\n" if headers else b" ")
            self.wfile.flush()


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[type[Handler]]:
    class Own(Handler):
        pass

    Own.answers, Own.sent, Own.seen, Own.stopped = {}, {}, [], threading.Event()
    server = ThreadingHTTPServer(("127.0.0.1", 0), Own)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    url = f"http://127.0.0.1:{server.server_port}"
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", url)
    path = "/{repo_id}/resolve/{revision}/{filename}"
    monkeypatch.setattr("huggingface_hub.constants.HUGGINGFACE_CO_URL_TEMPLATE", url + path)
    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    yield Own
    Own.stopped.set()
    server.shutdown()
    thread.join()
    server.server_close()


def hasten(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a deadline pass; other tests have the usual one, which a machine under load keeps, too."""
    monkeypatch.setattr(download, "MIN_SECONDS", 2.0)
    monkeypatch.setattr(download, "SECONDS_A_BYTE", 1e-7)


def refuse_pull(tmp_path: Path, kind: type[GramvecError], *names: str) -> None:
    with refused(kind, *names) as caught:
        pull("org/sif", tmp_path / "models" / "sif")
    assert str(caught.value).isprintable() and "hf_secret" not in str(caught.value)
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


def never(handler: Handler) -> None:
    handler.stopped.wait(60)


@pytest.mark.parametrize(
    ("name", "answer"),
    [
        ("api", never),
        ("manifest.json", lambda handler: handler.drip(headers=True)),
        ("model.onnx.data", lambda handler: handler.drip(headers=False)),
    ],
)
def test_a_hub_without_end_is_left_at_the_deadline(
    hub: type[Handler], tmp_path: Path, name: str, answer: Answer, monkeypatch: pytest.MonkeyPatch
) -> None:
    hasten(monkeypatch)
    hub.answers[name] = answer
    refuse_pull(tmp_path, ServiceError, "too slow")


@pytest.mark.parametrize(("name", "most"), [("api", 2 << 20), ("manifest.json", 8 << 20), ("model.onnx", 1 << 20)])
def test_no_more_is_taken_than_was_announced(hub: type[Handler], tmp_path: Path, name: str, most: int) -> None:
    hub.answers[name] = lambda handler: handler.without_end(b" " * (1 << 16))
    refuse_pull(tmp_path, ServiceError, "sends over")
    # What the sockets hold was sent, too.
    assert max(sent for path, sent in hub.sent.items() if name in path or name == "api") < most + (16 << 20)


def test_a_length_beyond_what_may_be_is_refused_before_the_body(hub: type[Handler], tmp_path: Path) -> None:
    hub.answers["manifest.json"] = lambda handler: handler.begin({"content-length": str(3 << 30)})
    refuse_pull(tmp_path, ServiceError, "sends over")
    hub.seen.clear()
    serve(hub, SIF, manifest=3 << 30)
    refuse_pull(tmp_path, BundleError, "3221225472", "8388608")
    assert len(hub.seen) == 1


def test_a_file_of_another_size_than_was_announced_is_refused(hub: type[Handler], tmp_path: Path) -> None:
    hub.answers["model.onnx"] = lambda handler: handler.whole((SIF / "model.onnx").read_bytes() + b"x")
    refuse_pull(tmp_path, ServiceError, "model.onnx", "announced")


def test_a_compressed_answer_is_refused(hub: type[Handler], tmp_path: Path) -> None:
    bomb = gzip.compress(bytes(64 << 20))
    hub.answers["api"] = lambda handler: handler.whole(bomb, **{"content-encoding": "gzip"})
    refuse_pull(tmp_path, ServiceError, "compressed")


@pytest.mark.parametrize("sha", [None, 7, "../../evil", "A", "A" * 40])
def test_a_commit_is_40_hexadecimal_digits(hub: type[Handler], tmp_path: Path, sha: object) -> None:
    hub.answers["api"] = lambda handler: handler.whole(json.dumps({"id": "org/sif", "sha": sha}).encode())
    refuse_pull(tmp_path, ServiceError, "commit", "org/sif")
    assert len(hub.seen) == 1


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"[]",
        b"{}",
        b"\xff",
        b"[" * 100_000,
        b'{"id": "a", "siblings": 7}',
        b'{"id": "a", "siblings": [{"size": 1}]}',
    ],
)
def test_an_answer_that_is_none_is_nonsense(hub: type[Handler], tmp_path: Path, answer: bytes) -> None:
    hub.answers["api"] = lambda handler: handler.whole(answer)
    refuse_pull(tmp_path, ServiceError, "nonsense", "org/sif")
    assert len(hub.seen) == 1


def test_a_file_that_ends_early(hub: type[Handler], tmp_path: Path) -> None:
    def cut(handler: Handler) -> None:
        handler.begin({"content-length": str((SIF / "model.onnx").stat().st_size)})
        handler.write(b"x" * 100)
        handler.close_connection = True

    hub.answers["model.onnx"] = cut
    refuse_pull(tmp_path, ServiceError, "cannot be reached")


def test_redirects_end_and_take_no_token_to_another_host(hub: type[Handler], tmp_path: Path) -> None:
    hub.answers["api"] = lambda handler: handler.begin({"location": handler.path, "content-length": "0"}, 302)
    refuse_pull(tmp_path, ServiceError, "cannot be reached")
    assert len(hub.seen) == download.MAX_REDIRECTS + 1
    hub.seen.clear()
    del hub.answers["api"]

    def elsewhere(handler: Handler) -> None:
        host = handler.headers["host"]
        if host.startswith("127"):
            url = f"http://localhost:{host.split(':')[1]}{handler.path}"
            handler.begin({"location": url, "content-length": "0"}, 302)
        else:
            handler.usual()

    hub.answers["model.onnx"] = elsewhere
    assert pull("org/sif", tmp_path / "sif").commit == COMMIT
    assert [token for path, token in hub.seen if path.endswith("model.onnx")] == ["Bearer hf_secret", None]


def test_a_push_that_is_answered_with_nonsense_is_one_sentence(hub: type[Handler]) -> None:
    hub.answers["api"] = lambda handler: handler.whole(b"\xff[[{")
    with refused(ServiceError, "nonsense", "org/sif"):
        push(str(SIF), "org/sif")


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        (lambda handler: handler.drip(False), "too slow"),
        (lambda handler: handler.without_end(b" " * 65_536), "over 2,097,152 bytes"),
        (lambda handler: handler.stopped.wait(60), "too slow"),
        (lambda handler: handler.whole(b"a", **{"content-encoding": "gzip"}), "compressed"),
    ],
    ids=["drip", "endless", "silent", "compressed"],
)
def test_a_push_ends_whatever_the_hub_answers(
    hub: type[Handler], answer: Answer, sentence: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if sentence == "too slow":
        hasten(monkeypatch)
    hub.answers["api"] = answer
    with pytest.raises(ServiceError, match=sentence):
        push(str(SIF), "org/sif")
    assert sum(hub.sent.values()) < 8_000_000


def test_the_librarys_requests_are_afterwards_as_they_were(hub: type[Handler]) -> None:
    library, client = import_module("huggingface_hub"), import_module("httpx2")
    hooks = library.get_session().event_hooks
    library.set_client_factory(lambda: client.Client(event_hooks=hooks, timeout=7, follow_redirects=False))
    try:
        hub.answers["api"] = lambda handler: handler.whole(b"nonsense")
        with pytest.raises(ServiceError):
            push(str(SIF), "org/sif")
        for _ in range(2):  # where a connection failed, the library makes another client
            found = library.get_session()
            assert (found.event_hooks, found.timeout) == (hooks, client.Timeout(7))
            assert not found.follow_redirects and found.headers == client.Client().headers
            library.close_session()
    finally:
        library.set_client_factory(lambda: client.Client(event_hooks=hooks, timeout=None, follow_redirects=True))


def serve(hub: type[Handler], folder: Path, **more: int) -> None:
    """Let the hub hold a model's folder; `more` announces other sizes for files."""
    files = {str(one.relative_to(folder)): one for one in folder.rglob("*") if one.is_file()}
    listed = [{"rfilename": name, "size": more.get(one.stem, one.stat().st_size)} for name, one in files.items()]

    def answer(handler: Handler) -> None:
        name = handler.path.partition(f"/resolve/{COMMIT}/")[2]
        if handler.path.startswith("/api/"):
            handler.whole(json.dumps({"id": "org/sif", "sha": COMMIT, "siblings": listed}).encode())
        elif name in files:
            handler.whole(files[name].read_bytes())
        else:
            handler.begin({"x-error-code": "EntryNotFound", "content-length": "0"}, 404)

    hub.answers.update(dict.fromkeys(["api", "manifest.json", *(name.split("/")[-1] for name in files)], answer))


@pytest.mark.parametrize("write", [write_model2vec, write_static_embedding])
def test_a_static_model_of_another_library_is_pulled_and_imported(
    hub: type[Handler], tmp_path: Path, write: Callable[[Path], Path]
) -> None:
    source = write(tmp_path / "source")
    serve(hub, source)
    pulled = pull("org/sif", tmp_path / "models" / "mine")
    import_static(source, tmp_path / "there")
    with closing(gramvec.load(pulled.folder)) as one, closing(gramvec.load(tmp_path / "there")) as other:
        assert np.array_equal(one.embed(["the cat sat"]), other.embed(["the cat sat"]))
        assert one.name == pulled.name == "mine"
        assert one.manifest.provenance["imported"]["from"] == f"org/sif@{COMMIT}"
    assert [one.name for one in (tmp_path / "models").iterdir()] == ["mine"]
    with refused(BundleError, "digest"):
        pull("org/sif", tmp_path / "models" / "more", digest="a" * 12)


def test_what_is_no_static_model_is_refused_before_its_table_is_downloaded(hub: type[Handler], tmp_path: Path) -> None:
    source = write_model2vec(tmp_path / "source", model_type="bert")
    serve(hub, source)
    refuse_pull(tmp_path / "there", BundleError, "type bert")
    write_model2vec(tmp_path / "other")
    serve(hub, tmp_path / "other", model=17 * 2**30)
    refuse_pull(tmp_path / "there", BundleError, "model.safetensors", "18253611008")
    assert not any("safetensors" in path for path, _ in hub.seen)
