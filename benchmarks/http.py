"""POST /embed against a bare ASGI application that does the same work: requests a second of server CPU time."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path

import orjson

from benchmarks.measure import ROOT, Timing, summary, table

CONNECTIONS = 16


class Server:
    """A server process of its own on a free port."""

    def __init__(self, command: Callable[[int], list[str]], model: str, ready: str) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = int(probe.getsockname()[1])
        environment = {**os.environ, "BENCH_MODEL": model}
        self._process = subprocess.Popen(command(self.port), cwd=ROOT, env=environment, stderr=subprocess.DEVNULL)
        for _ in range(300):
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{self.port}{ready}", timeout=1, data=None).close()
                return
            except urllib.error.HTTPError:  # any answer of the bare application will do
                return
            except OSError:
                time.sleep(0.1)
        raise RuntimeError("the server did not start")

    def cpu_seconds(self) -> float:
        """User and system time so far."""
        fields = Path(f"/proc/{self._process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def stop(self) -> None:
        """Ask it to leave and wait."""
        self._process.send_signal(signal.SIGTERM)
        self._process.wait(10)


async def _client(port: int, requests: list[bytes]) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    for request in requests:
        writer.write(request)
        head = await reader.readuntil(b"\r\n\r\n")
        if not head.startswith(b"HTTP/1.1 200"):
            raise RuntimeError(head.decode())
        length = next(int(h.split(b":")[1]) for h in head.split(b"\r\n") if h.lower().startswith(b"content-length"))
        await reader.readexactly(length)
    writer.close()
    await writer.wait_closed()


async def _load(port: int, requests: list[bytes]) -> None:
    await asyncio.gather(*(_client(port, requests[i::CONNECTIONS]) for i in range(CONNECTIONS)))


def _request(texts: str | list[str]) -> bytes:
    body = orjson.dumps({"inputs": texts})
    head = (
        f"POST /embed HTTP/1.1\r\nhost: bench\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


def run(model: str, texts: list[str], rounds: int) -> dict[str, list[dict[str, object]]]:
    servers = {
        "bare ASGI": Server(
            lambda port: [
                sys.executable, "-m", "uvicorn", "benchmarks.bare:application", "--port", str(port),
                "--loop", "uvloop", "--http", "httptools", "--no-access-log", "--log-level", "warning",
            ],
            model,
            "/",
        ),
        "gramvec serve": Server(
            lambda port: [sys.executable, "-m", "gramvec.cli", "serve", "--model", model, "--port", str(port)],
            model,
            "/ready",
        ),
    }  # fmt: skip
    results = {}
    try:
        for size, count in ((1, 4000), (32, 400), (256, 64)):
            blocks = [texts[i * size % (len(texts) - size) :][:size] for i in range(count)]
            requests = [_request(block[0] if size == 1 else block) for block in blocks]
            timings = _interleaved(servers, requests, rounds)
            title = f"HTTP: {size} text(s) a request, {CONNECTIONS} connections"
            results[f"http_{size}"] = table(title, "requests", timings, "bare ASGI")
    finally:
        for server in servers.values():
            server.stop()
    return results


def _interleaved(servers: dict[str, Server], requests: list[bytes], rounds: int) -> dict[str, Timing]:
    samples: dict[str, list[tuple[float, float]]] = {name: [] for name in servers}
    for turn in range(rounds + 1):
        for name, server in servers.items():
            wall, cpu = time.perf_counter(), server.cpu_seconds()
            asyncio.run(_load(server.port, requests))
            if turn:  # the first round warms up
                samples[name].append((server.cpu_seconds() - cpu, time.perf_counter() - wall))
    return {name: summary(taken, len(requests)) for name, taken in samples.items()}
