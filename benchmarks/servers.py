"""Server processes of their own: started on a free port, waited for, weighed and stopped."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import mkstemp

from benchmarks.measure import ROOT

PATIENCE = 120.0  # seconds for a server to become ready
GIVEN_UP = "{name} did not become ready in {seconds:.0f} s (exit code {code}); its last lines:\n{log}"
# The dummy engine answers with each text's length, 13 times; its address is the last two parts of the folder.
INFINITY_MODEL = "benchmarks/dummy"


@dataclass(frozen=True)
class Command:
    """Command that starts a server: arguments for a port, the path that answers 200 when ready, variables."""

    name: str
    arguments: Callable[[int], list[str]]
    ready: str
    variables: dict[str, str] = field(default_factory=dict)


def gramvec_serve(model: str, *options: str, runtime: str = "auto") -> Command:
    """`gramvec serve` of this environment."""
    start = [sys.executable, "-m", "gramvec.cli", "serve", "--model", model, "--runtime", runtime, "--device", "cpu"]
    return Command("gramvec serve", lambda port: [*start, *options, "--port", str(port)], "/ready")


def bare(model: str, *, coalesce: bool, runtime: str = "auto") -> Command:
    """benchmarks.bare under uvicorn, with the loop and the parser that the service has."""
    start = [
        sys.executable, "-m", "uvicorn", "benchmarks.bare:application", "--loop", "uvloop", "--http", "httptools",
        "--no-access-log", "--log-level", "warning",
    ]  # fmt: skip
    return Command(
        f"bare ASGI, {'coalescing' if coalesce else 'a call a request'}",
        lambda port: [*start, "--port", str(port)],
        "/",
        {"BENCH_MODEL": model, "BENCH_RUNTIME": runtime, "BENCH_COALESCE": str(int(coalesce))},
    )


def infinity() -> Command | None:
    """infinity-emb with its dummy engine, from an environment of its own; None where it is not installed."""
    given = os.environ.get("BENCH_INFINITY") or shutil.which("infinity_emb")
    path = Path(given) if given else Path(sys.prefix) / "infinity" / "bin" / "infinity_emb"
    if not path.is_file():
        return None
    start = [str(path), "v2", "--engine", "debugengine", "--model-id", INFINITY_MODEL, "--no-model-warmup"]
    return Command(
        "infinity-emb, dummy engine",
        lambda port: [*start, "--log-level", "error", "--port", str(port)],
        "/health",
        {"DO_NOT_TRACK": "1", "HF_HUB_OFFLINE": "1"},
    )


class Server:
    """A started server. A context manager: ready when the block begins, gone after it.

    Raises SystemExit with the server's last lines if it does not become ready.
    """

    def __init__(self, command: Command) -> None:
        self.name = command.name
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = int(probe.getsockname()[1])
        self._log = _log_file()
        begin = time.perf_counter()
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                command.arguments(self.port),
                cwd=ROOT,
                env={**os.environ, **command.variables},
                stdout=log,
                stderr=log,
            )
        try:
            self._wait(command.ready, begin)
        except BaseException:
            self.stop()
            raise
        self.seconds_to_ready = time.perf_counter() - begin

    def _wait(self, path: str, begin: float) -> None:
        while time.perf_counter() < begin + PATIENCE and self._process.poll() is None:
            with suppress(OSError, urllib.error.HTTPError):
                urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=5).close()
                return
            time.sleep(0.005)
        tail = "\n".join(self._log.read_text(errors="replace").splitlines()[-5:])
        code, seconds = self._process.poll(), time.perf_counter() - begin
        raise SystemExit(GIVEN_UP.format(name=self.name, seconds=seconds, code=code, log=tail))

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()

    def processes(self) -> list[int]:
        """Return the ids of the server's process and its descendants."""
        found = [self._process.pid]
        for parent in found:  # grows while it is walked
            for children in Path(f"/proc/{parent}/task").glob("*/children"):
                with suppress(OSError):
                    found += map(int, children.read_text().split())
        return found

    def cpu_seconds(self) -> float:
        """User and system time of all its processes so far, those that have ended included."""
        return sum(_cpu_seconds(process) for process in self.processes())

    def memory(self, kind: str) -> int:
        """Bytes of "Rss" or "Pss", summed over its processes."""
        return sum(memory(str(process), kind) for process in self.processes())

    def stop(self) -> None:
        """Ask it to leave and wait; after ten seconds it is made to."""
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
            try:
                self._process.wait(10)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        self._log.unlink(missing_ok=True)


def memory(process: str, kind: str) -> int:
    """Bytes of "Rss" or "Pss" of one process ("self" for this one)."""
    for line in Path(f"/proc/{process}/smaps_rollup").read_text().splitlines():
        if line.startswith(f"{kind}:"):
            return int(line.split()[1]) * 1024
    raise ValueError(f"no {kind} in smaps_rollup")


def _cpu_seconds(process: int) -> float:
    """By the scheduler's clock (nanoseconds), and for children that it has waited for in the kernel's ticks (10 ms)."""
    with suppress(OSError):
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
        return _own_seconds(process) + (int(fields[13]) + int(fields[14])) / os.sysconf("SC_CLK_TCK")
    return 0.0


def _own_seconds(process: int) -> float:
    total = 0.0
    for file in Path(f"/proc/{process}/task").glob("*/schedstat"):
        with suppress(OSError):  # a thread may end meanwhile
            total += int(file.read_text().split()[0]) / 1e9
    return total


def _log_file() -> Path:
    handle, name = mkstemp(prefix="bench-", suffix=".log")
    os.close(handle)
    return Path(name)
