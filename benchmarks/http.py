"""POST /embed against a bare ASGI application that does the same work, and against infinity-emb's dummy engine.

The client is one process on the same machine with as many kept-alive connections as a case says, each with one
request in flight. CPU time is the server's alone; requests a second are by the wall clock, so the client is in them.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import ExitStack
from dataclasses import dataclass

import orjson
import uvloop

from benchmarks.measure import Setting, Timing, rates, summary
from benchmarks.results import Part
from benchmarks.servers import INFINITY_MODEL, Server, bare, gramvec_serve, infinity

NO_INFINITY = "infinity-emb is left out: it is not installed; 'make bench-peers' puts it into an environment of its own"


@dataclass(frozen=True)
class Case:
    """So many texts a request over so many connections; the texts given in all decide how many requests."""

    texts: int
    connections: int

    @property
    def unit(self) -> str:
        """What is counted."""
        return f"requests of {self.texts} text{'s' * (self.texts > 1)}"

    @property
    def name(self) -> str:
        """As the group's name has it: the texts, and the connections where they are not 16."""
        return f"{self.texts}" if self.connections == 16 else f"{self.texts}_c{self.connections}"

    def bodies(self, texts: list[str]) -> list[list[str]]:
        """The texts of each request, at least one for each connection: half as many texts as given for 1 a request."""
        count = max(self.connections, len(texts) // 2 if self.texts == 1 else 2 * len(texts) // self.texts)
        repeated = texts * (self.texts // len(texts) + 2)
        return [repeated[(i * self.texts) % len(texts) :][: self.texts] for i in range(count)]


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
            timings = _interleaved(servers, case, setting)
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
        timings = _interleaved([other, served], case, setting, columns=INFINITY_COLUMNS)
        part.add(f"http_infinity_{case.name}", rates(title, case.unit, timings, peer.name))


def _interleaved(
    servers: list[Server], case: Case, setting: Setting, *, columns: int | None = None
) -> dict[str, Timing]:
    bodies = case.bodies(setting.texts)
    requests = {server.name: [_request(server.name, texts, columns) for texts in bodies] for server in servers}
    samples: dict[str, list[tuple[float, float]]] = {server.name: [] for server in servers}
    for turn in range(setting.rounds + 1):
        for server in servers:
            wall, cpu = time.perf_counter(), server.cpu_seconds()
            uvloop.run(_load(server.port, requests[server.name], case.connections))
            if turn:  # the first round warms up
                samples[server.name].append((server.cpu_seconds() - cpu, time.perf_counter() - wall))
    return {name: summary(taken, len(bodies)) for name, taken in samples.items()}


async def _load(port: int, requests: list[bytes], connections: int) -> None:
    await asyncio.gather(*(_client(port, requests[i::connections]) for i in range(connections)))


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


def _request(name: str, texts: list[str], columns: int | None) -> bytes:
    """The native shape for us and the bare application (a single text as such), OpenAI's for infinity-emb."""
    ours = not name.startswith("infinity")
    given = texts[0] if len(texts) == 1 else texts
    wanted = {"inputs": given} if columns is None else {"inputs": given, "dimensions": columns}
    body = orjson.dumps(wanted if ours else {"model": INFINITY_MODEL, "input": given})
    head = (
        f"POST /{'embed' if ours else 'embeddings'} HTTP/1.1\r\nhost: bench\r\n"
        f"content-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body
