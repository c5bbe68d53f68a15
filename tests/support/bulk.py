"""Files of every form, the command in a process of its own, and a run that is killed on its way."""

from __future__ import annotations

import atexit
import csv
import io
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from functools import cache
from pathlib import Path
from typing import Any

from conftest import MODELS, ROOT
from gramvec.jobs.tables.staging import journal_of

MODEL = str(MODELS / "paragram-phrase")
PATIENCE = 60
CURRENT = "PYTEST_CURRENT_TEST"  # pytest's own variable, another in each test


class CommandServer:
    """A process that runs commands in forks of itself: what every command imports is imported once."""

    def __init__(self) -> None:
        self._connection, theirs = socket.socketpair()
        self._connection.settimeout(PATIENCE)
        self._environment = dict(os.environ)
        self._lock = threading.Lock()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, str(ROOT / "tests" / "command_server.py"), str(theirs.fileno())],
                pass_fds=[theirs.fileno()], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            )  # fmt: skip
        self._answers = self._connection.makefile("r")
        atexit.register(self.close)

    def close(self) -> None:
        """End the process."""
        self._answers.close()
        self._connection.close()
        self._process.communicate()

    def run(self, arguments: list[str], stdin: bytes) -> subprocess.CompletedProcess[bytes] | None:
        """Run a command as `subprocess.run` does; None where it would have another environment."""
        if {**os.environ, CURRENT: ""} != {**self._environment, CURRENT: ""} or not self._lock.acquire(blocking=False):
            return None
        with ExitStack() as stack:
            stack.callback(self._lock.release)
            (theirs_in, ours_in), (ours_out, theirs_out), (ours_err, theirs_err) = (os.pipe() for _ in range(3))
            outputs = [stack.enter_context(os.fdopen(one, "rb")) for one in (ours_out, ours_err)]
            line = json.dumps(arguments).encode() + b"\n"
            sent = socket.send_fds(self._connection, [line], [theirs_in, theirs_out, theirs_err])
            self._connection.sendall(line[sent:])
            for one in (theirs_in, theirs_out, theirs_err):
                os.close(one)
            process = int(self._answers.readline())
            timer = threading.Timer(PATIENCE, os.kill, (process, signal.SIGKILL))
            timer.start()
            stack.callback(timer.cancel)
            pool = stack.enter_context(ThreadPoolExecutor(2))
            texts = [pool.submit(output.read) for output in outputs]
            with suppress(BrokenPipeError), os.fdopen(ours_in, "wb") as file:
                file.write(stdin)
            stdout, stderr = (text.result() for text in texts)
            return subprocess.CompletedProcess(arguments, int(self._answers.readline()), stdout, stderr)


command_server = cache(CommandServer)


def gramvec_command(*arguments: object, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    """Run `gramvec` in a process of its own, and return what it wrote and its exit code."""
    given = list(map(str, arguments))
    done = command_server().run(given, stdin)
    if done is None:
        command = [sys.executable, "-m", "gramvec.cli", *given]
        done = subprocess.run(command, input=stdin, capture_output=True, cwd=ROOT, timeout=PATIENCE, check=False)
    assert b"Traceback" not in done.stderr, done.stderr
    return done


def embed(*arguments: object, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    return gramvec_command("embed", "--model", MODEL, *arguments, stdin=stdin)


def embedded(*arguments: object, stdin: bytes = b"") -> bytes:
    done = embed(*arguments, stdin=stdin)
    assert done.returncode == 0, done.stderr
    return done.stdout


def refusal(*arguments: object, stdin: bytes = b"") -> str:
    done = embed(*arguments, stdin=stdin)
    assert done.returncode == 1, done
    assert done.stdout == b""
    return done.stderr.decode()


# The command, which waits to be killed once its journal speaks of rows and more has been written since.
SLOW_EMBED = """
import signal, sys, time
from gramvec.jobs.common.stage import Stage
from gramvec.cli import main
checkpoint, append = Stage._checkpoint, Stage.append
def checkpoint_at_once(stage):
    checkpoint(stage)
    stage._syncing.result()
def append_and_wait(stage, data):
    append(stage, data)
    if stage.journalled:
        time.sleep(60)
Stage._checkpoint, Stage.append = checkpoint_at_once, append_and_wait
signal.signal(signal.SIGINT, signal.default_int_handler)  # tests that run in the background have it ignored
main()
"""


def killed(
    number: signal.Signals, source: Path, output: Path, *options: str, command: Sequence[str] = ("embed",)
) -> None:
    """Run until the journal speaks of rows, and then end it by this signal."""
    command = [sys.executable, "-c", SLOW_EMBED, *command, "--model", MODEL, str(source), "-o", str(output), *options]
    with subprocess.Popen(command, cwd=ROOT, stderr=subprocess.DEVNULL) as process:
        deadline = time.monotonic() + PATIENCE
        while rows_kept(output) == 0 and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.001)
        os.kill(process.pid, number)
    assert process.returncode == (-number if number == signal.SIGKILL else 130), "it had ended before it was told to"
    assert not output.exists()
    assert rows_kept(output) > 0


def rows_kept(output: Path) -> int:
    try:
        return int(json.loads(journal_of(output).read_bytes())["rows"])
    except FileNotFoundError:
        return 0


def as_csv(rows: Sequence[Sequence[Any]], names: Sequence[str]) -> bytes:
    file = io.StringIO()
    writer = csv.writer(file)
    writer.writerow(names)
    writer.writerows(rows)
    return file.getvalue().encode()


def as_jsonl(records: Sequence[dict[str, Any]]) -> bytes:
    return b"".join(json.dumps(record).encode() + b"\n" for record in records)
