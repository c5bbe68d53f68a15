"""Several workers on one port: the same answers, a dead one replaced, an orderly end."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from click.testing import CliRunner

from gramvec import Embedder, native
from gramvec.cli.serve import serve
from gramvec.runtime.ort import why_no_cuda
from gramvec.server.settings import Settings
from http_support import COMMAND, PATIENCE, post_bytes, read_all, served_process, serves, until

pytestmark = pytest.mark.slow

RAW = {"accept": "application/octet-stream"}


def children(process: subprocess.Popen[str]) -> set[int]:
    return set(map(int, Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()))


def embedded(port: int, text: str) -> httpx.Response:
    """On a connection of its own, so that any worker may take it."""
    answer = httpx.post(f"http://127.0.0.1:{port}/embed", json={"inputs": text}, headers=RAW, timeout=PATIENCE)
    assert answer.status_code == 200
    return answer


def running_workers(port: int) -> int:
    answer = httpx.get(f"http://127.0.0.1:{port}/ready", timeout=PATIENCE)
    assert (answer.status_code, answer.json()["status"], answer.json()["workers"]) == (200, "ready", 2)
    return int(answer.json()["workers_running"])


def process_of(answer: httpx.Response) -> str:
    """What all ids of one process begin with."""
    return answer.headers["x-request-id"][:16]


def test_workers_give_the_same_bytes_and_ids_of_their_own(embedder: Embedder) -> None:
    texts = ["a fast car", "", "ripe bananas \N{GRINNING FACE}", "x" * 20_000]
    expected = [embedder.embed([text]).astype("<f4").tobytes() for text in texts]
    asked: set[str] = set()
    ids: list[str] = []
    with served_process("--workers", "2") as (process, port):
        until(lambda: len(children(process)) == 2)

        def both_have_answered() -> bool:
            found = [embedded(port, text) for text in texts]
            assert [answer.content for answer in found] == expected
            asked.update(map(process_of, found))
            ids.extend(answer.headers["x-request-id"] for answer in found)
            return len(asked) == 2

        until(both_have_answered)
    assert len(set(ids)) == len(ids)


def test_a_killed_worker_is_replaced_and_requests_go_on() -> None:
    with served_process("--workers", "2") as (process, port):
        until(lambda: len(children(process)) == 2)
        before = children(process)
        killed = min(before)
        until(lambda: running_workers(port) == 2)
        expected = embedded(port, "text").content
        os.kill(killed, signal.SIGKILL)
        until(lambda: killed not in children(process))
        (survivor,) = before - {killed}

        def one_is_missing() -> bool:
            # Once more, should another have started before it was asked; the pause before that gets longer.
            if len(children(process)) == 2 and running_workers(port) == 2:
                os.kill(*(children(process) - {survivor}), signal.SIGKILL)
            return running_workers(port) == 1

        until(one_is_missing)
        assert all(embedded(port, "text").content == expected for _ in range(10))
        until(lambda: len(children(process)) == 2)
        os.kill(survivor, signal.SIGKILL)
        until(lambda: not children(process) & before)
        # Only the replacement is left to answer.
        assert all(embedded(port, "text").content == expected for _ in range(10))
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=PATIENCE) == 0
        assert process.stderr is not None
        log = process.stderr.read()
    assert len(re.findall(rf"worker \d \(process ({killed}|{survivor})\) was ended by SIGKILL; replaced in", log)) == 2
    assert "Traceback" not in log


@pytest.mark.parametrize("sent", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_all_workers_after_the_requests_in_flight(sent: signal.Signals) -> None:
    body = b'{"inputs": "slow to arrive"}'
    with served_process("--workers", "2", "--graceful-shutdown-seconds", "60") as (process, port):
        until(lambda: len(children(process)) == 2)
        workers = children(process)
        assert embedded(port, "started")
        with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE) as slow:
            slow.sendall(post_bytes(body)[:-10].replace(b"host: test\r\n", b"host: test\r\nexpect: 100-continue\r\n"))
            assert slow.recv(1_000).startswith(b"HTTP/1.1 100 ")  # a worker has it
            process.send_signal(sent)
            # The worker with nothing to do leaves, the other waits.
            until(lambda: len(children(process)) == 1)
            slow.sendall(body[-10:])
            answer = read_all(slow)
        assert answer.startswith(b"HTTP/1.1 200 ")
        assert len(json.loads(answer.partition(b"\r\n\r\n")[2])[0]) > 1
        assert process.wait(timeout=PATIENCE) == 0
        assert not any(Path(f"/proc/{pid}").exists() for pid in workers)
        socket.create_server(("127.0.0.1", port)).close()


def test_workers_end_when_their_parent_is_killed() -> None:
    with served_process("--workers", "2") as (process, port):
        until(lambda: len(children(process)) == 2)
        assert embedded(port, "started")
        workers = children(process)
        process.kill()
        process.wait()
        until(lambda: not any(running(pid) for pid in workers))


def running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_a_model_that_is_not_there_is_one_sentence() -> None:
    result = subprocess.run(
        [*COMMAND, "--port", "0", "--workers", "2", "--model", "no-such-model"],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert result.returncode == 1
    assert result.stderr.splitlines()[-1].startswith("Error: ")
    assert "no-such-model" in result.stderr.splitlines()[-1]
    assert "Traceback" not in result.stderr


def test_cuda_is_refused_with_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gramvec.server.run.serve", lambda _: pytest.fail("served"))
    result = CliRunner().invoke(serve, ["--workers", "2", "--device", "cuda"])
    assert result.exit_code == 2
    (error,) = (line for line in result.output.splitlines() if line.startswith("Error: "))
    assert "CUDA" in error
    assert "workers" in error
    assert Settings(device="cuda").workers == 1


@contextmanager
def supervising(
    work: str, renew: str = "{'result': {}}", *, answer_seconds: float = 600
) -> Iterator[subprocess.Popen[str]]:
    """A process that supervises two workers which do this; killed if it is still there at the end."""
    script = (
        "import logging, os, signal, sys, time\n"
        "from gramvec.errors import GramvecError\n"
        "from gramvec.server.processes.workers import signals_held, supervise\n"
        "logging.basicConfig()\n"
        f"def work(parent):\n    {work}\n"
        f"def renew(is_wanted):\n    return {renew}\n"
        "try:\n"
        "    with signals_held():\n"
        f"        supervise(work, 2, 1.0, renew, answer_seconds={answer_seconds})\n"
        "except GramvecError as error:\n"
        "    sys.exit(f'Error: {error}')\n"
    )
    with subprocess.Popen([sys.executable, "-c", script], stderr=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


@pytest.mark.parametrize("work", ["1 / 0", "os.kill(os.getpid(), signal.SIGKILL)", "pass"])
def test_workers_that_cannot_start_end_it_all(work: str) -> None:
    with supervising(work) as process:
        log = process.communicate(timeout=PATIENCE)[1]
    assert process.returncode == 1
    assert re.search(r"^Error: worker [12] could not start \(.*\); the lines above say why$", log, re.MULTILINE)
    assert ("ZeroDivisionError" in log) == ("1 / 0" in work)


def test_workers_that_keep_dying_are_replaced_less_and_less_often() -> None:
    with supervising("parent.tell_started(); os._exit(3)") as process:
        assert process.stderr is not None
        pauses: list[str] = []
        while "1.0" not in pauses:
            found = re.search(r"ended with exit code 3; replaced in ([\d.]+) s", process.stderr.readline())
            assert found
            pauses.append(found[1])
        assert set(pauses) == {"0.5", "1.0"}
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=PATIENCE) == 0


def test_a_worker_that_does_not_end_is_killed() -> None:
    with supervising(
        # One write a worker: print makes two, and the other worker's may come between.
        "parent.tell_started(); os.write(2, b'%d\\n' % os.getpid()); time.sleep(600)"
    ) as process:
        assert process.stderr is not None
        workers = {int(process.stderr.readline()) for _ in range(2)}
        # Its signals are held back still: only SIGKILL ends it.
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=PATIENCE) == 0
        assert not any(running(pid) for pid in workers)


def test_a_renewal_that_outlives_the_workers_ends_in_order() -> None:
    work = "parent.tell_started(); signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGTERM]); time.sleep(600)"
    with supervising(work, "print('renewing', file=sys.stderr), time.sleep(1), {'result': {}}") as process:
        assert process.stderr is not None
        until(lambda: len(children(process)) == 2)
        process.send_signal(signal.SIGHUP)
        while "renewing" not in process.stderr.readline():
            pass
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=PATIENCE) == 0


def test_a_worker_whose_last_word_is_that_it_could_not_reload_is_not_signalled_once_it_is_gone() -> None:
    """Its number may be another process's by then, or nobody's, which is an error."""
    work = (
        "parent.tell_started()\n"
        "    while not any('renew' in one for one in parent.channel.receive()): time.sleep(0.01)\n"
        "    os.write(2, b'asked\\n')\n"
        "    signal.sigwait([signal.SIGTERM])\n"
        "    parent.channel.send({'renewed': 'stopping'})\n"
    )
    with supervising(work, "{'renew': [], 'result': {}}") as process:
        assert process.stderr is not None
        until(lambda: len(children(process)) == 2)
        process.send_signal(signal.SIGHUP)
        assert process.stderr.readline() == "asked\n"
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=PATIENCE) == 0
        assert "Traceback" not in process.stderr.read()


# Answers, as a server's loop does, and takes so many seconds for it.
ANSWERING = """parent.tell_started()
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    parent.release_signals()
    os.write(2, b'up\\n')
    while True:
        time.sleep({seconds})
        if any('ping' in one for one in parent.channel.receive()): parent.answer_ping()
"""


def both_up(process: subprocess.Popen[str]) -> set[int]:
    assert process.stderr is not None
    assert [process.stderr.readline() for _ in range(2)] == ["up\n"] * 2
    return children(process)


def stopped(pid: int) -> bool:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"


def test_a_worker_that_does_not_answer_is_killed_and_replaced() -> None:
    with supervising(ANSWERING.format(seconds=0.05), answer_seconds=3) as process:
        before = both_up(process)
        os.kill(min(before), signal.SIGSTOP)
        until(lambda: min(before) not in children(process) and len(children(process)) == 2)
        assert max(before) in children(process)
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=PATIENCE) == 0
        assert process.stderr is not None
        log = process.stderr.read()
    assert re.search(rf"worker \d \(process {min(before)}\) has not answered for 3 s", log)
    assert f"(process {min(before)}) was ended by SIGKILL" in log
    assert f"(process {max(before)})" not in log


def test_a_worker_that_is_slow_to_answer_lives() -> None:
    with supervising(ANSWERING.format(seconds=2.5), answer_seconds=10) as process:
        before = both_up(process)
        time.sleep(6)
        assert children(process) == before


def test_workers_that_stood_still_with_their_parent_are_not_killed() -> None:
    """As on a machine that is paused, or whose processes are all stopped and continued."""
    with supervising(ANSWERING.format(seconds=0.05), answer_seconds=2) as process:
        before = both_up(process)
        for pid in (process.pid, *before):
            os.kill(pid, signal.SIGSTOP)
        until(lambda: all(stopped(pid) for pid in (process.pid, *before)))
        time.sleep(5)
        for pid in (process.pid, *before):
            os.kill(pid, signal.SIGCONT)
        time.sleep(1.5)
        assert children(process) == before
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=PATIENCE) == 0
        assert process.stderr is not None
        assert "has not answered" not in process.stderr.read()


def test_the_process_is_alive_while_its_models_are_loaded(tmp_path: Path) -> None:
    script = f"""
import pathlib, time
from gramvec.server import run as server
from gramvec.server.settings import Settings
load = server.load_models
def slow(settings):
    while not pathlib.Path({str(tmp_path / "go")!r}).exists():
        time.sleep(0.01)
    return load(settings)
server.load_models = slow
server.serve(Settings(workers=2, port=0, device="cpu", model=("sif",)))
"""
    with subprocess.Popen([sys.executable, "-c", script], stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        try:
            port = int(re.search(r"http://127\.0\.0\.1:(\d+)", process.stderr.readline())[1])  # type: ignore[index]
            url = f"http://127.0.0.1:{port}"
            assert httpx.get(f"{url}/health", timeout=PATIENCE).status_code == 200
            ready = httpx.get(f"{url}/ready", timeout=PATIENCE)
            assert (ready.status_code, "being loaded" in ready.json()["error"]) == (503, True)
            assert httpx.post(f"{url}/embed", json={"inputs": "a"}, timeout=PATIENCE).status_code == 503
            with socket.create_connection(("127.0.0.1", port)) as stalled:
                stalled.sendall(b"POST /embed HTTP/1.1\r\nhost: test\r\ncontent-length: 99\r\n\r\n{")
                (tmp_path / "go").touch()
                until(lambda: serves(port))
            assert httpx.post(f"{url}/embed", json={"inputs": "a"}, timeout=PATIENCE).status_code == 200
        finally:
            process.terminate()
        assert process.wait(PATIENCE) == 0
        assert "Traceback" not in process.stderr.read()


@pytest.mark.skipif(native.loops is None or why_no_cuda() is None, reason="then it is there")
def test_no_process_has_onnxruntime_and_the_parent_lets_go_of_what_it_has_read() -> None:
    with served_process("--workers", "2") as (process, port):
        until(lambda: running_workers(port) == 2)
        for pid in (process.pid, *children(process)):
            assert "onnxruntime" not in Path(f"/proc/{pid}/maps").read_text()
        assert embedded(port, "text").content
        # Beside the program and a few libraries, which it runs; it has read 100 MB of models and 30 MB of libraries.
        assert of_files(process.pid) < 12_000_000


def of_files(pid: int) -> int:
    """Bytes of mapped files that are in a process's memory."""
    found = re.search(r"^RssFile:\s+(\d+) kB$", Path(f"/proc/{pid}/status").read_text(), re.MULTILINE)
    assert found is not None
    return int(found[1]) * 1024


LETTING_GO = """
import ctypes, gc, re, sys, tempfile
from pathlib import Path
import numpy as np
import gramvec
from gramvec.server import run as server
from gramvec.server.processes import allocator
embedder = gramvec.load("gramvec-en", device="cpu", runtime="native")
changed = np.memmap(sys.argv[1], np.uint8, "c")
changed[:] = 7
ctypes.CDLL(None).mprotect(ctypes.c_void_p(changed.ctypes.data), len(changed), 1)  # as a loader does with relocations
def rss(): return int(re.search(r"RssFile:\\s+(\\d+)", Path("/proc/self/status").read_text())[1])
expected, before = embedder.embed(["a fast car"]).tobytes(), rss()
for _ in range(3):
    allocator.let_go_of_files()
    after = rss()
    assert embedder.embed(["a fast car"]).tobytes() == expected
    assert np.linalg.norm(np.ones((9, 9)) @ np.ones((9, 9))) == 81
    gc.collect()
assert (changed == 7).all()
print(before, after)
"""


def test_files_are_let_go_of_and_come_back(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(bytes(100_000))
    done = subprocess.run(
        [sys.executable, "-c", LETTING_GO, tmp_path / "file"], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    before, after = map(int, done.stdout.split())
    assert after < before / 2
