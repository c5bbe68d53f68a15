"""Connections that send requests and compare every answer with the expected one."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import NamedTuple

import orjson

from benchmarks.soak.requests import Request
from gramvec import Embedder

PATIENCE = 60.0  # seconds for one answer


class Answer(NamedTuple):
    """Status, headers by lower-case name, body."""

    status: int
    headers: dict[str, str]
    body: bytes


class Connection:
    """Connection that is reopened after the server has closed it."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    @property
    def is_open(self) -> bool:
        """Return whether the next request reuses a connection."""
        return self._streams is not None

    async def ask(self, sent: bytes) -> Answer:
        """Send and read one answer. Raises OSError or IncompleteReadError when the connection ends before it does."""
        if self._streams is None:
            self._streams = await asyncio.open_connection("127.0.0.1", self._port, limit=2**20)
        reader, writer = self._streams
        try:
            async with asyncio.timeout(PATIENCE):
                writer.write(sent)
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
                pairs = (line.partition(":") for line in head[1:] if line)
                headers = {name.lower(): value.strip() for name, _, value in pairs}
                body = await reader.readexactly(int(headers["content-length"]))
        except BaseException:
            await self.close()
            raise
        if headers.get("connection") == "close":
            await self.close()
        return Answer(int(head[0].split(" ")[1]), headers, body)

    async def close(self) -> None:
        """Close the socket."""
        if self._streams is not None:
            writer = self._streams[1]
            self._streams = None
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()


@dataclass
class Tally:
    """Counts of sent, lost and wrong requests, the first few mistakes, and answers by x-model."""

    sent: int = 0
    lost: int = 0
    wrong: int = 0
    first_wrong: list[str] = field(default_factory=list)
    statuses: Counter[int] = field(default_factory=Counter)
    models: Counter[str] = field(default_factory=Counter)

    def count(self, request: Request, answer: Answer, models: Mapping[str, Embedder]) -> None:
        """Compare an answer with the expected one."""
        self.statuses[answer.status] += 1
        model = answer.headers.get("x-model", "")
        reason = mistake(request, answer, models.get(model))
        if answer.status == 200:
            self.models[model] += 1
        if reason:
            self.wrong += 1
            if len(self.first_wrong) < 5:
                self.first_wrong.append(f"{request.kind} ({request.body[:80]!r}): {reason}")


def mistake(request: Request, answer: Answer, model: Embedder | None) -> str | None:
    """Return the mistake in an answer, or None."""
    if model is None:
        return f"x-model is {answer.headers.get('x-model')!r}"
    if answer.status != request.status:
        return f"{answer.status} {answer.body[:200]!r}"
    if request.expected is not None:
        return None if answer.body == request.expected(model) else f"other bytes: {answer.body[:100]!r}"
    error = orjson.loads(answer.body)
    if request.path.startswith("/v1"):
        return None if set(error["error"]) == {"message", "type", "param", "code"} else f"{error}"
    return None if error["error"] and error["error_type"] == request.error_type else f"{error}"


async def drive(
    port: int, requests: Iterable[Request], models: Mapping[str, Embedder], *, connections: int, key: str = ""
) -> Tally:
    """Send all requests over `connections`, each with one in flight. `models` are keyed by x-model."""
    tally = Tally()
    waiting = iter(requests)

    async def work() -> None:
        connection = Connection(port)
        for request in waiting:
            tally.sent += 1
            try:
                answer = await connection.ask(request.wire(key))
            except (OSError, asyncio.IncompleteReadError, TimeoutError):
                tally.lost += 1
                continue
            tally.count(request, answer, models)
        await connection.close()

    await asyncio.gather(*(work() for _ in range(connections)))
    return tally


async def beside(port: int, sent: bytes) -> Answer | None:
    """Send a request on its own connection; return None without an answer."""
    connection = Connection(port)
    try:
        with suppress(OSError, asyncio.IncompleteReadError):
            return await connection.ask(sent)
        return None
    finally:
        await connection.close()
