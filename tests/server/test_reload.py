"""Models replaced while they are served: over HTTP or by a signal, in one process and in workers."""

from __future__ import annotations

import gc
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Literal, NamedTuple

import httpx
import pytest

import gramvec
from conftest import MODELS
from gramvec import BundleError, Embedder
from gramvec.server.settings import Settings
from gramvec.server.state import models as http_models
from support import http
from support.errors import refused
from support.http import HELD, PATIENCE, RunningServer, WatchedModel, children, running, served_process, until

pytestmark = pytest.mark.slow

RAW = {"accept": "application/octet-stream"}
KEY = {"authorization": "Bearer secret"}
TEXT = "a fast car"
# A table that no longer has the digest of the manifest.
DAMAGED = "damaged"


class Version(NamedTuple):
    """A bundle named "mine": its folder, its label, and the bytes of `TEXT` and `HELD`."""

    folder: Path
    label: str
    vectors: dict[str, bytes]


@pytest.fixture(scope="module")
def versions(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Version]:
    home = tmp_path_factory.mktemp("versions")
    return {name: _version(home / name, source) for name, source in (("one", "sif"), ("two", "paragram-phrase"))}


def _version(folder: Path, source: str) -> Version:
    shutil.copytree(MODELS / source, folder)
    manifest = json.loads((folder / "manifest.json").read_text())
    (folder / "manifest.json").write_text(json.dumps(manifest | {"name": "mine"}))
    embedder = gramvec.load(folder, device="cpu")
    vectors = {text: embedder.embed([text]).tobytes() for text in (TEXT, HELD)}
    embedder.close()
    return Version(folder, f"mine@{embedder.digest[:12]}", vectors)


class Folder:
    """Where the served model lies: a link, turned to another version at once."""

    def __init__(self, path: Path, versions: dict[str, Version]) -> None:
        self.path = path
        self._versions = versions
        self.turn_to("one")

    def turn_to(self, name: str) -> None:
        target = self._damaged() if name == DAMAGED else self._versions[name].folder
        new = self.path.with_name("new")
        new.symlink_to(target)
        new.replace(self.path)

    def _damaged(self) -> Path:
        folder = self.path.with_name(DAMAGED)
        if not folder.exists():
            shutil.copytree(self._versions["two"].folder, folder)
            with (folder / "model.onnx.data").open("r+b") as file:
                file.seek(1_000)
                file.write(b"\xff\x00\xff\x00")
        return folder


@pytest.fixture
def folder(tmp_path: Path, versions: dict[str, Version]) -> Folder:
    return Folder(tmp_path / "mine", versions)


@pytest.fixture
def server(folder: Folder) -> Iterator[RunningServer]:
    with running(Settings(model=(str(folder.path),), api_key=("secret",))) as started:
        until(lambda: httpx.get(f"{started.url}/ready").status_code == 200)
        yield started


def embedded(url: str, text: str = TEXT, model: str | None = None) -> httpx.Response:
    body = {"inputs": text, "model": model}
    return httpx.post(f"{url}/embed", json=body, headers=RAW | KEY, timeout=PATIENCE)


def reloaded(url: str) -> httpx.Response:
    with httpx.Client(base_url=url, headers=KEY, timeout=PATIENCE) as client:
        return http.reloaded(client)


def is_from(answer: httpx.Response, version: Version, text: str = TEXT) -> bool:
    assert answer.status_code == 200, answer.text
    return (answer.headers["x-model"], answer.content) == (version.label, version.vectors[text])


def model_threads() -> set[threading.Thread]:
    return {thread for thread in threading.enumerate() if thread.name.startswith("gramvec-model")}


def test_the_new_version_takes_its_place_and_the_old_is_let_go_of(folder: Folder, versions: dict[str, Version]) -> None:
    # In a process of its own: what the tests before it in this one have left alive is nothing that a reload lets go of.
    done = subprocess.run(
        [sys.executable, __file__],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        input=json.dumps([str(folder.path), [_told(one) for one in versions.values()]]),
        capture_output=True,
        text=True,
        timeout=2 * PATIENCE,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def _told(version: Version) -> tuple[str, str, dict[str, str]]:
    return str(version.folder), version.label, {text: vector.hex() for text, vector in version.vectors.items()}


def _heard(folder: str, label: str, vectors: dict[str, str]) -> Version:
    return Version(Path(folder), label, {text: bytes.fromhex(vector) for text, vector in vectors.items()})


def let_go_of_the_old() -> None:
    """Serve a link to a first version, turn it to a second, and see that nothing of the first is left."""
    link, versions = json.load(sys.stdin)
    first, second = (_heard(*told) for told in versions)
    with running(Settings(model=(link,), api_key=("secret",))) as server:
        until(lambda: httpx.get(f"{server.url}/ready").status_code == 200)
        # References alone let go of it: a collection may be far away.
        gc.disable()
        # The long text runs on the thread of its model.
        assert all(is_from(embedded(server.url, text), first, text) for text in (TEXT, HELD))
        before = model_threads()
        assert len(before) == 1
        Path(link).unlink()
        Path(link).symlink_to(second.folder)
        answer = reloaded(server.url)
        assert answer.status_code == 200, answer.text
        (model,) = answer.json()["models"]
        assert model["name"] == "mine"
        assert second.label == f"mine@{model['digest'][:12]}"
        assert model["changed"] is True
        assert all(is_from(embedded(server.url, text), second, text) for text in (TEXT, HELD))
        until(lambda: len(model_threads()) == 1 and not before & model_threads())
        until(lambda: f"{first.folder}/" not in Path("/proc/self/maps").read_text())
        assert f"{second.folder}/" in Path("/proc/self/maps").read_text()


def test_the_same_version_stays_as_it_is(server: RunningServer) -> None:
    before = server.service.models
    answer = reloaded(server.url)
    assert [one["changed"] for one in answer.json()["models"]] == [False]
    assert server.service.models["mine"] is before["mine"]


@pytest.mark.parametrize("space", ["both", "lexical"])
def test_a_callers_adapted_model_keeps_its_columns(
    folder: Folder, versions: dict[str, Version], space: Literal["both", "lexical"]
) -> None:
    """Neither the settings nor the bundle name them; another bundle is adapted by the same texts."""
    texts, limit = [TEXT, "a car", "ripe bananas"], 50
    plain = gramvec.load(folder.path, device="cpu", max_characters=limit)
    adapted = plain.adapted(texts, space=space)
    with running(Settings(api_key=("secret",)), adapted) as server:
        before = embedded(server.url)
        assert before.content == adapted.embed([TEXT]).tobytes()
        assert reloaded(server.url).json()["models"] == [{"name": "mine", "digest": adapted.digest, "changed": False}]
        again = embedded(server.url)
        assert (again.headers["x-model"], again.content) == (before.headers["x-model"], before.content)
        folder.turn_to("two")
        assert reloaded(server.url).json()["models"][0]["changed"] is True
        other = gramvec.load(versions["two"].folder, device="cpu").adapted(texts, space=space)
        after = embedded(server.url)
        assert (after.headers["x-model"], after.content) == (f"mine@{other.digest[:12]}", other.embed([TEXT]).tobytes())
        assert embedded(server.url, "x" * (limit + 1)).status_code == 422
        other.close()
    plain.close()


def test_requests_under_way_are_finished_on_the_old_one(folder: Folder, versions: dict[str, Version]) -> None:
    old = gramvec.load(folder.path, device="cpu")
    watched = WatchedModel(old)
    with running(Settings(api_key=("secret",)), watched) as server, ThreadPoolExecutor(2) as pool:
        held = pool.submit(embedded, server.url, HELD)
        assert watched.holding.wait(PATIENCE)
        waits = pool.submit(embedded, server.url, TEXT)
        batcher = server.service.models["mine"].batcher
        until(lambda: batcher.waiting == 1)
        folder.turn_to("two")
        assert reloaded(server.url).status_code == 200
        assert is_from(embedded(server.url), versions["two"])
        assert not held.done()
        watched.gate.set()
        assert is_from(held.result(PATIENCE), versions["one"], HELD)
        assert is_from(waits.result(PATIENCE), versions["one"])
    # It was the caller's, and still is.
    assert old.embed([TEXT]).tobytes() == versions["one"].vectors[TEXT]
    old.close()


def test_a_bad_bundle_leaves_the_old_one_serving(
    server: RunningServer, folder: Folder, versions: dict[str, Version], caplog: pytest.LogCaptureFixture
) -> None:
    folder.turn_to(DAMAGED)
    answer = reloaded(server.url)
    assert (answer.status_code, answer.json()["error_type"]) == (422, "validation")
    sentence = answer.json()["error"]
    assert sentence.startswith("not reloaded, the models stay as they are: ")
    assert "model.onnx.data" in sentence
    assert sentence in caplog.text
    folder.path.unlink()
    assert "mine" in reloaded(server.url).json()["error"]
    assert httpx.get(f"{server.url}/ready").status_code == 200
    assert is_from(embedded(server.url), versions["one"])
    folder.path.symlink_to(versions["two"].folder)
    assert reloaded(server.url).status_code == 200
    assert is_from(embedded(server.url), versions["two"])


def test_of_several_models_all_change_or_none(folder: Folder, versions: dict[str, Version], embedder: Embedder) -> None:
    one = gramvec.load(folder.path, device="cpu")
    with running(Settings(api_key=("secret",)), [embedder, one]) as server:
        folder.turn_to(DAMAGED)
        assert reloaded(server.url).status_code == 422
        assert is_from(embedded(server.url, model="mine"), versions["one"])
        folder.turn_to("two")
        answer = reloaded(server.url).json()["models"]
        assert [(model["name"], model["changed"]) for model in answer] == [(embedder.name, False), ("mine", True)]
        assert is_from(embedded(server.url, model="mine"), versions["two"])
        assert embedded(server.url).content == embedder.embed([TEXT]).tobytes()
        # Not another's name either.
        folder.path.unlink()
        folder.path.symlink_to(MODELS / embedder.name)
        assert embedder.name in reloaded(server.url).json()["error"]
        assert is_from(embedded(server.url, model="mine"), versions["two"])
    one.close()


def test_a_name_that_no_header_takes_is_refused_at_the_start_and_by_a_reload(
    server: RunningServer, folder: Folder, versions: dict[str, Version], tmp_path: Path
) -> None:
    long = Path(shutil.copytree(versions["two"].folder, tmp_path / "long"))
    manifest = json.loads((long / "manifest.json").read_text())
    (long / "manifest.json").write_text(json.dumps(manifest | {"name": "\N{GRINNING FACE}" * 102}))  # ten bytes each
    folder.path.unlink()
    folder.path.symlink_to(long)
    answer = reloaded(server.url)
    assert answer.status_code == 422
    assert "1024 bytes" in answer.text
    assert is_from(embedded(server.url), versions["one"])
    with refused(BundleError, "shorter"):
        http_models.load_models(Settings(model=(str(long),)))


def test_it_needs_a_key(embedder: Embedder, server: RunningServer) -> None:
    with running(Settings(), embedder) as open_to_all:
        answer = httpx.post(f"{open_to_all.url}/admin/reload")
    assert (answer.status_code, answer.json()["error_type"]) == (403, "unauthorized")
    assert "--api-key" in answer.json()["error"]
    assert httpx.post(f"{server.url}/admin/reload").status_code == 401
    assert httpx.get(f"{server.url}/admin/reload", headers=KEY).status_code == 405


def test_one_at_a_time_and_ready_meanwhile(
    server: RunningServer, folder: Folder, versions: dict[str, Version], monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, go_on = threading.Event(), threading.Event()
    load = http_models.load_model

    def slow(settings: Settings, source: str) -> Embedder:
        begun.set()
        assert go_on.wait(PATIENCE)
        return load(settings, source)

    monkeypatch.setattr(http_models, "load_model", slow)
    folder.turn_to("two")
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(reloaded, server.url)
        assert begun.wait(PATIENCE)
        second = httpx.post(f"{server.url}/admin/reload", headers=KEY, timeout=PATIENCE)
        assert (second.status_code, second.headers["retry-after"]) == (409, "1")
        assert "another reload" in second.json()["error"]
        assert httpx.get(f"{server.url}/ready").status_code == 200
        assert is_from(embedded(server.url), versions["one"])
        go_on.set()
        assert first.result(PATIENCE).status_code == 200
    assert is_from(embedded(server.url), versions["two"])


@contextmanager
def asking(url: str, versions: dict[str, Version]) -> Iterator[set[str]]:
    """Four clients ask without a pause; each answer has to be one version's. What versions they have seen."""
    seen: set[str] = set()
    done = threading.Event()
    labels = {version.label: version for version in versions.values()}

    def ask() -> None:
        with httpx.Client(base_url=url, timeout=PATIENCE, headers=RAW | KEY) as client:
            while not done.is_set():
                for text in (TEXT, HELD):
                    answer = client.post("/embed", json={"inputs": text})
                    assert answer.status_code == 200, answer.text
                    assert answer.content == labels[answer.headers["x-model"]].vectors[text]
                    seen.add(answer.headers["x-model"])

    with ThreadPoolExecutor(4) as pool:
        clients = [pool.submit(ask) for _ in range(4)]
        yield seen
        done.set()
        for client in clients:
            client.result(PATIENCE)


def test_no_search_is_answered_from_two_indexes_or_by_another_ones_model(
    folder: Folder, versions: dict[str, Version], tmp_path: Path
) -> None:
    pytest.importorskip("tantivy", reason="tantivy is not installed: pip install '.[search]'")
    link, bodies = tmp_path / "index", [{"queries": [f"fast car {row}" for row in range(40)]}, {"queries": "cars"}]

    def turn_to(name: str) -> None:
        folder.turn_to(name)
        (tmp_path / "new").symlink_to(tmp_path / f"{name}.index")
        (tmp_path / "new").replace(link)

    for name, number in (("one", 30), ("two", 50)):
        rows = [{"text": f"a {name} car {row}", "of": name} for row in range(number)]
        model = gramvec.load(versions[name].folder, device="cpu")
        gramvec.Index.build(tmp_path / f"{name}.index", rows, model=model)
        model.close()
    turn_to("one")
    watched = WatchedModel(gramvec.load(folder.path, device="cpu"))
    settings = Settings(api_key=("secret",), index=(f"cars={link}",))
    with (
        running(settings, watched) as server,
        httpx.Client(base_url=server.url, headers=KEY, timeout=PATIENCE) as client,
        ThreadPoolExecutor(4) as pool,
    ):

        def answers() -> list[bytes]:
            return [client.post("/search", json=body).content for body in bodies]

        def origins(content: bytes) -> set[str]:
            return {hit["record"]["of"] for hits in json.loads(content)["results"] for hit in hits}

        expected = {"one": answers()}
        held = pool.submit(client.post, "/search", json={"queries": [HELD, "cars"]})
        assert watched.holding.wait(PATIENCE)
        turn_to("two")
        assert reloaded(server.url).status_code == 200
        expected["two"] = answers()
        watched.gate.set()
        assert origins(held.result(PATIENCE).content) == {"one"}
        assert all(origins(content) == {name} for name, of in expected.items() for content in of)
        done, seen = threading.Event(), set()

        def ask() -> None:
            while not done.is_set():
                for at, body in enumerate(bodies):
                    answer = client.post("/search", json=body)
                    assert answer.status_code == 200, answer.text
                    (name,) = [name for name, of in expected.items() if of[at] == answer.content]
                    seen.add(name)

        clients = [pool.submit(ask) for _ in range(4)]
        for number in range(6):
            turn_to(("one", "two")[number % 2])
            changed = reloaded(server.url).json()
            assert changed["models"][0]["changed"]
            assert changed["indexes"][0]["changed"]
        done.set()
        for one in clients:
            one.result(PATIENCE)
    assert seen == {"one", "two"}


@contextmanager
def serving(folder: Folder, *options: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """`gramvec serve` of the folder, ready: the process and its URL."""
    with served_process("--model", str(folder.path), "--api-key", "secret", *options) as (process, port):
        url = f"http://127.0.0.1:{port}"
        until(lambda: httpx.get(f"{url}/ready").status_code == 200)
        yield process, url


def test_a_hang_up_reloads(folder: Folder, versions: dict[str, Version]) -> None:
    with serving(folder) as (process, url):
        assert process.stderr is not None
        folder.turn_to("two")
        process.send_signal(signal.SIGHUP)
        until(lambda: is_from(embedded(url), versions["two"]))
        folder.turn_to(DAMAGED)
        process.send_signal(signal.SIGHUP)
        while "not reloaded" not in (line := process.stderr.readline()):
            assert line
        assert "SHA-256" in line
        assert is_from(embedded(url), versions["two"])
        # One that comes while another is under way is not lost: the folder may have changed in between.
        for name in ("two", "one", "two", "one"):
            folder.turn_to(name)
            process.send_signal(signal.SIGHUP)
        until(lambda: is_from(embedded(url), versions["one"]))


@pytest.mark.parametrize("workers", ["1", "2"])
def test_sigterm_during_a_reload_ends_it_all(folder: Folder, workers: str) -> None:
    # Much longer than it takes, or the wait below would raise.
    options = ("--workers", workers, "--graceful-shutdown-seconds", "60")
    with serving(folder, *options) as (process, url), ThreadPoolExecutor(1) as pool:
        folder.turn_to("two")
        asked = pool.submit(reloaded, url)
        process.send_signal(signal.SIGHUP)
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=PATIENCE) == 0
        assert process.stderr is not None
        assert "Traceback" not in process.stderr.read()
        with suppress(httpx.TransportError):  # the port may have been closed before it came
            assert asked.result(PATIENCE).status_code in (200, 409, 503)


def test_sigterm_amid_reloads_ends_every_time(folder: Folder) -> None:
    """It comes while the parent prepares, while a worker follows, and while there is nothing to do."""
    for pause in (0.0, 0.05, 0.1, 0.2, 0.4, 0.8):
        with serving(folder, "--workers", "2", "--graceful-shutdown-seconds", "60") as (process, _):
            assert process.stderr is not None
            for name in ("two", "one"):
                folder.turn_to(name)
                process.send_signal(signal.SIGHUP)
                time.sleep(pause)
            process.send_signal(signal.SIGTERM)
            assert process.wait(timeout=PATIENCE) == 0
            assert "Traceback" not in process.stderr.read()


def test_a_reload_goes_on_without_a_worker_that_is_stopped(folder: Folder, versions: dict[str, Version]) -> None:
    with serving(folder, "--workers", "2", "--worker-timeout-seconds", "3") as (process, url):
        stopped = min(children(process))
        os.kill(stopped, signal.SIGSTOP)
        folder.turn_to("two")
        process.send_signal(signal.SIGHUP)
        until(lambda: stopped not in children(process) and len(children(process)) == 2)
        until(lambda: versions_of_workers(url, 2) == {versions["two"].label})


def versions_of_workers(url: str, number: int) -> set[str]:
    """The label that each worker answers with, asked until all have answered."""
    labels: dict[str, str] = {}

    def all_have_answered() -> bool:
        answer = embedded(url)
        labels[answer.headers["x-request-id"][:16]] = answer.headers["x-model"]
        return len(labels) >= number

    until(all_have_answered)
    return set(labels.values())


@pytest.mark.parametrize("by_signal", [True, False])
def test_workers_reload_in_turn(folder: Folder, versions: dict[str, Version], by_signal: bool) -> None:
    with serving(folder, "--workers", "2") as (process, url):
        before = children(process)
        with asking(url, versions):
            folder.turn_to("two")
            if by_signal:
                process.send_signal(signal.SIGHUP)
                until(lambda: versions_of_workers(url, 2) == {versions["two"].label})
            else:
                answer = reloaded(url)
                assert answer.json()["models"][0]["changed"] is True
                assert versions["two"].label == f"mine@{answer.json()['models'][0]['digest'][:12]}"
            until(lambda: versions_of_workers(url, 2) == {versions["two"].label})
        assert children(process) == before
        # A bad one changes nothing, and says why.
        folder.turn_to(DAMAGED)
        answer = reloaded(url)
        assert answer.status_code == 422
        assert "SHA-256" in answer.json()["error"]
        process.send_signal(signal.SIGHUP)
        assert process.stderr is not None
        while "not reloaded, the other workers stay" not in (line := process.stderr.readline()):
            assert line
        assert versions_of_workers(url, 2) == {versions["two"].label}
        # One that replaces a dead worker has the new version too.
        folder.turn_to("two")
        for worker in before:
            os.kill(worker, signal.SIGKILL)
            until(lambda worker=worker: worker not in children(process))  # type: ignore[misc]
            until(lambda: len(children(process)) == 2)
        assert versions_of_workers(url, 2) == {versions["two"].label}
        # And nobody holds the old one's files.
        for pid in (process.pid, *children(process)):
            assert f"{versions['one'].folder}/" not in Path(f"/proc/{pid}/maps").read_text()
        folder.turn_to("one")
        assert reloaded(url).status_code == 200
        until(lambda: versions_of_workers(url, 2) == {versions["one"].label})
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=PATIENCE) == 0
        assert process.stderr is not None
        log = process.stderr.read()
    assert "Traceback" not in log
    assert len(re.findall("was ended by SIGKILL", log)) == 2


if __name__ == "__main__":
    let_go_of_the_old()
