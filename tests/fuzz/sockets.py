"""Throw requests at a served process over raw sockets: python tests/fuzz/sockets.py --seconds 600 [--seed S]

While they last: the process lives, /health answers, what is answered is well-formed HTTP/1.1 and never a 500, right
requests get their answers in their order, memory stays below a bound, and the log has no traceback. At the end the
process holds no descriptor more than before. The seed decides what is sent; what arrives when is the machine's affair.
"""

from __future__ import annotations

import asyncio
import os
import re
import socket
import struct
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from random import Random, SystemRandom
from typing import NamedTuple

import click

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT)]

from fuzz.requests import Requests  # noqa: E402

MB = 2**20
PLAYERS = 24
# What the process may take beside what it holds when it is idle.
ROOM = 400 * MB
PATIENCE = 120.0
HEALTH_SECONDS = 20.0  # it is a machine with other things to do that this is for
OPTIONS = [
    "--model", str(ROOT / "models" / "paragram-phrase"), "--device", "cpu", "--header-timeout-seconds", "1.5",
    "--body-timeout-seconds", "1.5", "--send-timeout-seconds", "3", "--max-connections", "200",
    "--max-unread-bytes", "1000000", "--max-body-bytes", "2000000", "--max-bytes-in-flight", "8000000",
]  # fmt: skip

BEGINNING = b"HTTP/9.9 999 "
_status_line = re.compile(rb"HTTP/1\.1 ([1-5]\d\d) [ -~]*").fullmatch
_field = re.compile(rb"([a-z0-9-]+): ([\t -~\x80-\xff]*)").fullmatch


class Wrong(AssertionError):
    """What must not happen has happened."""


class Answer(NamedTuple):
    """A whole answer."""

    status: int
    headers: dict[bytes, bytes]
    body: bytes


def answers(data: bytes, *, bodiless: bool = False) -> list[Answer]:
    """The whole answers in these bytes, 1xx left out; the rest must be the beginning of one. Raises Wrong.

    bodiless: a HEAD was among the requests, so that what follows a head may be another one instead of its body.
    """
    found: list[Answer] = []
    while data:
        head, end, rest = data.partition(b"\r\n\r\n")
        if not end:
            if not BEGINNING.startswith(re.sub(rb"\d", b"9", data[: len(BEGINNING)])):
                raise Wrong(f"no status line: {data[:200]!r}")
            break
        status, headers = _head(head)
        length = _length(status, headers, rest if bodiless else None)
        if len(rest) < length:
            break
        if status >= 200:
            found.append(Answer(status, headers, rest[:length]))
        data = rest[length:]
    return found


def _head(head: bytes) -> tuple[int, dict[bytes, bytes]]:
    first, *lines = head.split(b"\r\n")
    status = _status_line(first)
    fields = [_field(line) for line in lines]
    headers = {one[1]: one[2] for one in fields if one}
    if status is None or not all(fields) or len(headers) < len(fields):
        raise Wrong(f"not the head of an answer: {head!r}")
    return int(status[1]), headers


def _length(status: int, headers: dict[bytes, bytes], followed_by: bytes | None) -> int:
    length = headers.get(b"content-length", b"")
    if status < 200 or status == 304 or (followed_by is not None and followed_by[:5] in (b"HTTP/", b"")):
        return 0
    if not length.isdigit():
        raise Wrong(f"an answer without a length: {status} {headers}")
    return int(length)


class Served:
    """A served process."""

    def __init__(self, process: subprocess.Popen[bytes], port: int, log: Path) -> None:
        self.process = process
        self.port = port
        self._log = log

    @property
    def memory(self) -> int:
        """The most bytes that it has had so far."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return next(int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith("VmHWM"))

    @property
    def descriptors(self) -> int:
        """How many it has open."""
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))  # noqa: PTH208

    def check(self) -> None:
        """Raises Wrong if it has ended, or has something to complain of."""
        if self.process.poll() is not None:
            raise Wrong(f"the server has ended ({self.process.returncode}): {self._log.read_text()[-3_000:]}")
        log = self._log.read_text()
        if "Traceback" in log or " ERROR " in log:
            raise Wrong(f"the server's log: {log[-3_000:]}")


@contextmanager
def served() -> Iterator[Served]:
    """`gramvec serve`, ready."""
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "log"
        with log.open("wb") as stream:
            command = [str(Path(sys.executable).with_name("gramvec")), "serve", "--port", "0", *OPTIONS]
            process = subprocess.Popen(command, stderr=stream)
        try:
            deadline = time.monotonic() + PATIENCE
            while not (found := re.search(r"http://127\.0\.0\.1:(\d+)", log.read_text())):
                if time.monotonic() > deadline or process.poll() is not None:
                    raise Wrong(f"the server does not start: {log.read_text()}")
                time.sleep(0.05)
            server = Served(process, int(found[1]), log)
            while not asyncio.run(is_answered(server, b"/ready")):
                time.sleep(0.05)
            yield server
        finally:
            process.kill()
            process.wait()


async def is_answered(server: Served, path: bytes) -> bool:
    """Whether a GET of this path is answered 200."""
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    writer.write(b"GET %b HTTP/1.1\r\nhost: t\r\nconnection: close\r\n\r\n" % path)
    data = await asyncio.wait_for(reader.read(), HEALTH_SECONDS)
    writer.close()
    return data.startswith(b"HTTP/1.1 200 ")


class Fuzzer:
    """Plays against one server until its time is over. `counts` are the statuses that were seen."""

    def __init__(self, server: Served, seed: int, seconds: float) -> None:
        self._server = server
        self._seed = seed
        self._until = time.monotonic() + seconds
        self.counts: Counter[str] = Counter()
        self.worst = 0.0

    async def run(self) -> None:
        """Raises Wrong."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._watch())
            for number in range(PLAYERS):
                group.create_task(self._play(Random(f"{self._seed} {number}")))

    async def _watch(self) -> None:
        limit = self._server.memory + ROOM
        while time.monotonic() < self._until:
            began = time.monotonic()
            if not await is_answered(self._server, b"/health"):
                raise Wrong("/health is not answered 200")
            self.worst = max(self.worst, time.monotonic() - began)
            self._server.check()
            if self._server.memory > limit:
                raise Wrong(f"the server takes {self._server.memory / MB:.0f} MB")
            await asyncio.sleep(0.1)

    async def _play(self, random: Random) -> None:
        requests = Requests(random)
        while time.monotonic() < self._until:
            if random.random() < 0.4:
                await self._play_right(random, requests)
            else:
                await self._play_wrong(random, requests)

    async def _play_right(self, random: Random, requests: Requests) -> None:
        """Requests that nothing is wrong with, however they are cut: each is answered, in their order."""
        sent = [requests.right() for _ in range(random.choice([0, 0, 1, 3, 20]))]
        sent.append(requests.right(last=True))
        data = b"".join(one.data for one in sent)
        # uvicorn answers nothing to a client that has closed its half.
        received = await self._exchange(random, data, half_close=False, gone=False)
        found = answers(received)
        self.counts.update(str(answer.status) for answer in found)
        # Where all hold too much some are told to come again, and what is not there in time is not waited for.
        if any(answer.status in (408, 429, 503) for answer in found):
            return
        expected = [(200, one.number) for one in sent]
        if found and len(found) < len(sent) and found[-1].headers.get(b"connection") == b"close":
            self.counts["closed early, since requests sent ahead held too much"] += 1
            expected = expected[: len(found)]
        if [(answer.status, answer.headers[b"x-request-id"]) for answer in found] != expected:
            raise Wrong(self._told(data, received))

    async def _play_wrong(self, random: Random, requests: Requests) -> None:
        make = random.choice([requests.mutated, requests.mutated, requests.odd, requests.garbage, requests.hiding])
        data = make()
        received = await self._exchange(random, data, half_close=random.random() < 0.7, gone=random.random() < 0.2)
        try:
            found = answers(received, bodiless=b"HEAD" in data)
        except Wrong as wrong:
            raise Wrong(f"{wrong}\n{self._told(data, received)}") from None
        self.counts.update(str(answer.status) for answer in found)
        hidden = make == requests.hiding and any(one.headers.get(b"x-request-id") == b"smuggled" for one in found)
        if hidden or any(answer.status >= 500 and answer.status != 503 for answer in found):
            raise Wrong(self._told(data, received))

    async def _exchange(self, random: Random, data: bytes, *, half_close: bool, gone: bool) -> bytes:
        """What comes back for this until the server closes, or until this side has gone."""
        connection = socket.create_connection(("127.0.0.1", self._server.port))
        connection.setblocking(False)
        reader, writer = await asyncio.open_connection(sock=connection)
        parts: list[bytes] = []
        receiving = asyncio.create_task(_read(reader, parts))
        with suppress(ConnectionError):
            for piece in _pieces(random, data):
                writer.write(piece)
                await asyncio.sleep(random.choice([0, 0, 0, 0.001, 0.02]))
            if gone:
                await asyncio.sleep(random.choice([0, 0.01]))
            elif half_close:
                writer.write_eof()
        if gone:
            receiving.cancel()
            if random.random() < 0.5:
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            writer.transport.abort()
            return b""
        try:
            await asyncio.wait_for(receiving, PATIENCE)
        except TimeoutError:
            raise Wrong(f"no end after {PATIENCE:.0f} s: {self._told(data, b''.join(parts))}") from None
        finally:
            writer.transport.abort()
        return b"".join(parts)

    def _told(self, data: bytes, received: bytes) -> str:
        return f"sent {data[:2_000]!r} ({len(data)} bytes)\nreceived {received[:2_000]!r} ({len(received)} bytes)"


async def _read(reader: asyncio.StreamReader, parts: list[bytes]) -> None:
    with suppress(ConnectionError):
        while part := await reader.read(65_536):
            parts.append(part)


def _pieces(random: Random, data: bytes) -> Iterator[bytes]:
    """The same in one piece or in some."""
    while data:
        size = random.choice([len(data), len(data), 1, 10, 300, 10_000])
        yield data[:size]
        data = data[size:]


def run(seconds: float, seed: int) -> str:
    """Fuzz a server for so many seconds; what was seen, in a line. Raises Wrong."""
    with served() as server:
        before = server.descriptors
        start = server.memory
        fuzzer = Fuzzer(server, seed, seconds)
        try:
            asyncio.run(fuzzer.run())
        except* Wrong as wrong:
            raise wrong.exceptions[0] from None
        deadline = time.monotonic() + PATIENCE
        while server.descriptors > before:
            if time.monotonic() > deadline:
                raise Wrong(f"{server.descriptors} descriptors are open, {before} were")
            time.sleep(0.1)
        server.check()
        if not asyncio.run(is_answered(server, b"/ready")):
            raise Wrong("/ready is not answered 200 any more")
        grown = (server.memory - start) / MB
    seen = ", ".join(f"{count} x {status}" for status, count in sorted(fuzzer.counts.items()))
    return f"{seen}; memory +{grown:.0f} MB; /health within {fuzzer.worst:.2f} s; seed {seed}"


@click.command()
@click.option("--seconds", type=click.FloatRange(min=1), default=600, show_default=True, help="How long.")
@click.option("--seed", type=int, help="Decides what is sent; random if left out, and told.")
def main(seconds: float, seed: int | None) -> None:
    """Throw requests of every kind at a served process, and watch it."""
    chosen = SystemRandom().randrange(1_000_000) if seed is None else seed
    try:
        click.echo(run(seconds, chosen))
    except Wrong as wrong:
        raise click.ClickException(f"seed {chosen}: {wrong}") from None


if __name__ == "__main__":
    main()
