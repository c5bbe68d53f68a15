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
from support.http import PATIENCE, children, post_bytes, read_all, served_process, until

pytestmark = pytest.mark.slow

RAW = {"accept": "application/octet-stream"}


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


def test_a_signal_to_all_processes_is_one_signal() -> None:
    """systemd sends it to each process of a unit; workers wait for the supervisor's word."""
    body = b'{"inputs": "slow to arrive"}'
    with served_process("--workers", "2", "--graceful-shutdown-seconds", "60", start_new_session=True) as (
        process,
        port,
    ):
        with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE) as slow:
            slow.sendall(post_bytes(body)[:-10].replace(b"host: test\r\n", b"host: test\r\nexpect: 100-continue\r\n"))
            assert slow.recv(1_000).startswith(b"HTTP/1.1 100 ")
            os.killpg(process.pid, signal.SIGTERM)
            until(lambda: len(children(process)) == 1)
            time.sleep(1.5)  # the supervisor has looked again
            assert len(children(process)) == 1
            slow.sendall(body[-10:])
            assert read_all(slow).startswith(b"HTTP/1.1 200 ")
        assert process.wait(timeout=PATIENCE) == 0
        assert process.stderr is not None
        assert "ERROR" not in process.stderr.read()


def test_a_signal_to_one_worker_leaves_the_socket_open() -> None:
    """What shuts it does so for all, so a worker leaves with the others only."""
    with served_process("--workers", "2") as (process, port):
        workers = children(process)
        for pid in workers:
            for sent in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
                os.kill(pid, sent)
            assert embedded(port, "still here").status_code == 200
        time.sleep(1)  # the supervisor has looked
        assert children(process) == workers
        assert embedded(port, "still here").status_code == 200


def test_a_second_signal_does_not_wait_for_requests() -> None:
    with (
        served_process("--workers", "2", "--graceful-shutdown-seconds", "60") as (process, port),
        socket.create_connection(("127.0.0.1", port), timeout=PATIENCE) as slow,
    ):
        slow.sendall(post_bytes(b'{"inputs": "never whole"}')[:-10])
        until(lambda: len(children(process)) == 2)
        process.send_signal(signal.SIGTERM)
        until(lambda: len(children(process)) == 1)
        begun = time.monotonic()
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=PATIENCE) == 0
        assert time.monotonic() - begun < 20  # the body's timeout is 30


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


def test_cuda_is_refused_with_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gramvec.server.edge.run.serve", lambda _: pytest.fail("served"))
    result = CliRunner().invoke(serve, ["--workers", "2", "--device", "cuda"])
    assert result.exit_code == 2
    (error,) = (line for line in result.output.splitlines() if line.startswith("Error: "))
    assert "CUDA" in error
    assert "workers" in error
    assert Settings(device="cuda").workers == 1


SUPERVISED = """
import logging, os, signal, socket, sys, time
from gramvec.errors import GramvecError
from gramvec.server.edge.server import LEAVE, RELOAD, Condition
from gramvec.server.edge import supervisor
from gramvec.server.settings import settings_from
logging.basicConfig()
supervisor.FIRST_PAUSE_SECONDS = supervisor.LONGEST_PAUSE_SECONDS = {pause}
UP = Condition(True, 0, False)
def answer(pipe, refused=False):
    reloads = 0
    while True:
        message = pipe.recv()
        if message == LEAVE:
            sys.exit()
        if message == RELOAD:
            os.write(2, b"reloads %d\\n" % os.getpid())
            time.sleep(1)
            reloads += 1
        pipe.send(Condition(True, reloads, refused))
def work(number, pipe, sockets):
    {work}
settings = settings_from({{"workers": 2, "graceful_shutdown_seconds": 0, "worker_timeout_seconds": {timeout}}})
try:
    with supervisor.block_signals():
        supervisor.supervise(work, settings, [socket.create_server(("127.0.0.1", 0))])
except GramvecError as error:
    sys.exit(f"Error: {{error}}")
"""


@contextmanager
def supervising(work: str, *, timeout: float = 60, pause: float = 0.5) -> Iterator[subprocess.Popen[str]]:
    """A process that supervises two workers which do this; killed if it is still there at the end."""
    script = SUPERVISED.format(work=work, timeout=timeout, pause=pause)
    with subprocess.Popen([sys.executable, "-c", script], stderr=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            if process.poll() is None:
                for pid in children(process):
                    os.kill(pid, signal.SIGKILL)
                process.kill()


UP = "os.write(2, b'up\\n'); "


def both_up(process: subprocess.Popen[str]) -> set[int]:
    assert process.stderr is not None
    assert [process.stderr.readline() for _ in range(2)] == ["up\n"] * 2
    return children(process)


@pytest.mark.parametrize("work", ["1 / 0", "os.kill(os.getpid(), signal.SIGKILL)", "pass"])
def test_workers_that_cannot_start_end_it_all(work: str) -> None:
    with supervising(work) as process:
        log = process.communicate(timeout=PATIENCE)[1]
    assert process.returncode == 1
    assert re.search(r"^Error: a worker could not start \(.*\); the lines above say why$", log, re.MULTILINE)
    assert ("ZeroDivisionError" in log) == ("1 / 0" in work)


def test_where_one_of_two_has_served_the_death_of_both_is_no_failure_to_start() -> None:
    """The one that was still starting has the first place, so it is looked at first."""
    with supervising("number == 1 and pipe.send(UP); " + UP + "answer(pipe)") as process:
        before = both_up(process)
        for pid in before:
            os.kill(pid, signal.SIGKILL)
        until(lambda: len(children(process) - before) == 2)


def test_where_all_workers_die_again_and_again_one_is_replaced_without_a_pause() -> None:
    with supervising("pipe.send(UP); " + UP + "answer(pipe)", pause=1_000) as process:
        assert process.stderr is not None
        dead = both_up(process)
        for _ in range(4):
            for pid in dead:
                os.kill(pid, signal.SIGKILL)
            while (line := process.stderr.readline()) != "up\n":
                assert line
            (alive,) = children(process)  # the other waits for its pause
            assert alive not in dead
            dead = {alive}


def reloading(process: subprocess.Popen[str]) -> int:
    """The next process that begins to reload."""
    assert process.stderr is not None
    while not (line := process.stderr.readline()).startswith("reloads "):
        assert line
    return int(line.split()[1])


def test_a_hang_up_has_one_worker_after_the_other_reload_and_one_amid_it_begins_again() -> None:
    with supervising("pipe.send(UP); " + UP + "answer(pipe)") as process:
        workers = both_up(process)
        process.send_signal(signal.SIGHUP)
        first = reloading(process)
        process.send_signal(signal.SIGHUP)
        second = reloading(process)
        assert {first, second} == workers
        assert reloading(process) == first  # the other one's was begun after the second signal
        assert children(process) == workers


def test_where_one_cannot_reload_the_others_are_not_asked() -> None:
    with supervising("pipe.send(UP); " + UP + "answer(pipe, refused=True)") as process:
        both_up(process)
        process.send_signal(signal.SIGHUP)
        asked = reloading(process)
        assert process.stderr is not None
        assert f"not reloaded, the other workers stay as they are: see the line of process {asked}" in (
            process.stderr.readline()
        )


def test_where_all_have_died_and_a_file_is_damaged_they_start_once_it_is_mended(bundle_copy: Path) -> None:
    table = bundle_copy / "model.onnx.data"
    content = table.read_bytes()
    with served_process("--model", str(bundle_copy), "--workers", "2") as (process, port):
        expected = embedded(port, "text").content
        table.unlink()
        table.write_bytes(content[:1_000] + b"\xff\x00\xff\x00" + content[1_004:])
        for pid in children(process):
            os.kill(pid, signal.SIGKILL)
        assert process.stderr is not None
        for _ in range(4):  # each worker, and each of its successors
            while "ended with exit code 3 and is replaced" not in (line := process.stderr.readline()):
                assert line
        assert process.poll() is None
        table.write_bytes(content)
        until(lambda: running_workers(port) == 2)
        assert embedded(port, "text").content == expected
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=PATIENCE) == 0


def test_a_worker_that_does_not_end_is_killed() -> None:
    with supervising(UP + "time.sleep(600)") as process:
        before = both_up(process)
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=PATIENCE) == 0
        assert not any(running(pid) for pid in before)


def test_a_worker_that_does_not_answer_is_killed_and_replaced() -> None:
    with supervising(UP + "answer(pipe)", timeout=3) as process:
        before = both_up(process)
        os.kill(min(before), signal.SIGSTOP)
        until(lambda: min(before) not in children(process) and len(children(process)) == 2)
        assert max(before) in children(process)
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=PATIENCE) == 0
        assert process.stderr is not None
        log = process.stderr.read()
    assert f"a worker (process {min(before)}) has not answered for 3 s" in log
    assert f"a worker (process {min(before)}) was ended by SIGKILL and is replaced" in log
    assert f"(process {max(before)})" not in log


def test_workers_that_stood_still_with_their_parent_are_not_killed() -> None:
    """As on a machine that is paused, or whose processes are all stopped and continued."""
    with supervising(UP + "answer(pipe)", timeout=2) as process:
        before = both_up(process)
        for pid in (process.pid, *before):
            os.kill(pid, signal.SIGSTOP)
        until(lambda: all(stopped(pid) for pid in (process.pid, *before)))
        time.sleep(4)
        for pid in (process.pid, *before):
            os.kill(pid, signal.SIGCONT)
        time.sleep(1.5)
        assert children(process) == before


def stopped(pid: int) -> bool:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"


@pytest.mark.skipif(native.loops is None or why_no_cuda() is None, reason="then it is there")
def test_no_process_has_onnxruntime_and_the_parent_has_no_model() -> None:
    with served_process("--workers", "2") as (process, port):
        until(lambda: running_workers(port) == 2)
        for pid in (process.pid, *children(process)):
            assert "onnxruntime" not in Path(f"/proc/{pid}/maps").read_text()
        assert embedded(port, "text").content
        assert "model.onnx.data" not in Path(f"/proc/{process.pid}/maps").read_text()
