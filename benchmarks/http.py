"""POST /embed against a bare ASGI application that does the same work, and against infinity-emb's dummy engine.

The client is one process on the same machine with as many kept-alive connections as a case says, each with one
request in flight. CPU time is the server's alone; requests a second are by the wall clock, so the client is in them.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import ExitStack
from dataclasses import dataclass
from math import ceil

import orjson
import uvloop

from benchmarks.measure import Setting, Timing, rates, summary
from benchmarks.results import Part
from benchmarks.servers import INFINITY_MODEL, Server, bare, gramvec_serve, infinity

NO_INFINITY = "infinity-emb is left out: it is not installed; 'make bench-peers' puts it into an environment of its own"


@dataclass(frozen=True)
class Case:
    """Number of texts in a request and of connections."""

    texts: int
    connections: int

    @property
    def unit(self) -> str:
        """Return the counted thing in the plural."""
        return f"requests of {self.texts} text{'s' * (self.texts > 1)}"

    @property
    def name(self) -> str:
        """Return the case's part of the group's name: texts, and connections where they are not 16."""
        return f"{self.texts}" if self.connections == 16 else f"{self.texts}_c{self.connections}"

    def bodies(self, texts: list[str]) -> list[list[str]]:
        """Return the texts of each request, at least one request for each connection."""
        count = max(self.connections, len(texts) // 2 if self.texts == 1 else 2 * len(texts) // self.texts)
        repeated = texts * (self.texts // len(texts) + 2)
        return [repeated[(i * self.texts) % len(texts) :][: self.texts] for i in range(count)]


# Accepting a connection takes as long as several requests: 64 were an eighth of a round of 2,048 requests.
ROUND_SECONDS = 0.5

CASES = (Case(1, 16), Case(1, 64), Case(32, 16), Case(256, 16))
INFINITY_CASES = (Case(1, 16), Case(1, 64), Case(32, 16))
INFINITY_COLUMNS = 13  # what the dummy engine answers


def run(setting: Setting) -> Part:
    part = Part()
    with ExitStack() as stack:
        served = stack.enter_context(Server(gramvec_serve(setting.model)))
        coalescing, plain = bare(setting.model, coalesce=True), bare(setting.model, coalesce=False)
        servers = [*(stack.enter_context(Server(one)) for one in (coalescing, plain)), served]
        for case in CASES:
            title = f"http: {case.unit}, {case.connections} connections"
            timings = interleaved(servers, case, setting)
            part.add(f"http_{case.name}", rates(title, case.unit, timings, coalescing.name))
        _against_infinity(part, setting, served, stack)
    return part


def _against_infinity(part: Part, setting: Setting, served: Server, stack: ExitStack) -> None:
    peer = infinity()
    if peer is None:
        part.note(NO_INFINITY)
        return
    other = stack.enter_context(Server(peer))
    for case in INFINITY_CASES:
        title = f"http: {case.unit}, {case.connections} connections; the peer computes nothing; both answer 13 columns"
        timings = interleaved([other, served], case, setting, columns=INFINITY_COLUMNS)
        part.add(f"http_infinity_{case.name}", rates(title, case.unit, timings, peer.name))


def interleaved(
    servers: list[Server], case: Case, setting: Setting, *, columns: int | None = None
) -> dict[str, Timing]:
    bodies = case.bodies(setting.texts)
    requests = {server.name: [_request(server.name, texts, columns) for texts in bodies] for server in servers}
    samples: dict[str, list[tuple[float, float]]] = {server.name: [] for server in servers}
    passes = dict.fromkeys(samples, 1)
    for turn in range(setting.rounds + 1):
        for server in servers:
            name, wall, cpu = server.name, time.perf_counter(), server.cpu_seconds()
            uvloop.run(_load(server.port, requests[name] * passes[name], case.connections))
            spent, passed = server.cpu_seconds() - cpu, time.perf_counter() - wall
            if turn:
                samples[name].append((spent / passes[name], passed / passes[name]))
            else:  # the first round warms up, and tells how often the requests have to be sent
                passes[name] = ceil(ROUND_SECONDS / passed)
    return {name: summary(taken, len(bodies)) for name, taken in samples.items()}


async def _load(port: int, requests: list[bytes], connections: int) -> None:
    loop = asyncio.get_running_loop()
    clients = [_Client(requests[i::connections], loop.create_future()) for i in range(connections)]
    for client in clients:
        await loop.create_connection(lambda client=client: client, "127.0.0.1", port)  # type: ignore[misc]
    await asyncio.gather(*(client.done for client in clients))


class _Client(asyncio.Protocol):
    """Connection that sends its requests one after the other, each after the last answer.

    asyncio's streams took as long for a request as the server, so they measured the client.
    """

    def __init__(self, requests: list[bytes], done: asyncio.Future[None]) -> None:
        self.done = done
        self._requests = iter(requests)
        self._received = bytearray()
        self._expected = 0  # bytes of the whole answer; 0 while its head is not there

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport
        self._send()

    def data_received(self, data: bytes) -> None:
        self._received += data
        if not self._expected:
            end = self._received.find(b"\r\n\r\n")
            if end < 0:
                return
            head = bytes(self._received[:end]).lower()
            if not head.startswith(b"http/1.1 200"):
                self.done.set_exception(RuntimeError(head.decode()))
                return
            self._expected = end + 4 + int(head.split(b"\r\ncontent-length:")[1].split(b"\r\n")[0])
        if len(self._received) >= self._expected:
            self._received.clear()
            self._expected = 0
            self._send()

    def connection_lost(self, error: Exception | None) -> None:
        if not self.done.done():
            self.done.set_exception(error or RuntimeError("the server closed the connection"))

    def _send(self) -> None:
        request = next(self._requests, None)
        if request is None:
            self.done.set_result(None)
            self._transport.close()
        else:
            self._transport.write(request)  # type: ignore[attr-defined]


def _request(name: str, texts: list[str], columns: int | None) -> bytes:
    """Return a request in the native shape, or in OpenAI's for infinity-emb."""
    ours = not name.startswith("infinity")
    given = texts[0] if len(texts) == 1 else texts
    wanted = {"inputs": given} if columns is None else {"inputs": given, "dimensions": columns}
    body = orjson.dumps(wanted if ours else {"model": INFINITY_MODEL, "input": given})
    head = (
        f"POST /{'embed' if ours else 'embeddings'} HTTP/1.1\r\nhost: bench\r\n"
        f"content-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body
