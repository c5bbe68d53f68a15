"""The connections of one server: what they share, and what is done with all of them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine
from email.utils import formatdate
from typing import TYPE_CHECKING, Any, Protocol

from starlette.types import Receive, Scope, Send

from gramvec.server.http1.limits import Limits
from gramvec.server.http1.parser import END, RequestHead

if TYPE_CHECKING:
    from gramvec.server.http1.connection import Connection

# 1,000 heads of 200 bytes, as most are; a client that numbers its requests fills this with heads that never come again.
MOST_HEADS = 1_000
LONGEST_HEAD = 2_048


class CountingApp(Protocol):
    """An ASGI application that counts what the server refuses by itself."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request (ASGI)."""
        ...

    def count_unread(self, status: int, *, begun: bool) -> None:
        """Count a refusal; `begun`: of a request that the application has seen."""
        ...


class KnownHeads:
    """Heads that were parsed before: a client sends the same bytes again and again, but for the length of the body.

    They take 15 % off the CPU time of a short request (`make bench PARTS=protocol`). A head ends with its first empty
    line for every reader, so there is no doubt where a known one ends.
    """

    def __init__(self) -> None:
        self._known: dict[bytes, RequestHead] = {}

    def find(self, data: bytes) -> tuple[RequestHead, int] | None:
        """Return the known head that `data` begins with, and its bytes."""
        size = data.find(END, 0, LONGEST_HEAD) + len(END)
        head = self._known.get(data[:size])
        return None if head is None else (head, size)

    def add(self, raw: bytes, head: RequestHead) -> None:
        """Remember a parsed head, unless it is long."""
        if len(raw) <= LONGEST_HEAD:
            if len(self._known) >= MOST_HEADS:
                self._known.clear()
            self._known[raw] = head


class Connections:
    """All connections of one server, on one event loop.

    Args:
        app: the application.
        limits: of each connection, and of all together.

    Attributes:
        retiring: each answer closes its connection.
        tasks: requests that are being answered.
    """

    def __init__(self, app: CountingApp, limits: Limits) -> None:
        self.app = app
        self.limits = limits
        self.known_heads = KnownHeads()
        self.retiring = False
        self.tasks: set[asyncio.Task[None]] = set()
        self.members: set[Connection] = set()
        self._unread_bytes = 0
        self._second = 0
        self._date = b""

    def __len__(self) -> int:
        return len(self.members)

    def hold(self, more: int) -> bool:
        """Count `more` bytes that belong to no request yet; return False if all connections hold too much."""
        self._unread_bytes += more
        return more <= 0 or self._unread_bytes <= self.limits.unread_bytes

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        """Run a coroutine as a task, which `tasks` keeps."""
        task = asyncio.get_running_loop().create_task(work)
        if not task.done():  # as an eager task may be
            self.tasks.add(task)
            task.add_done_callback(self.tasks.discard)

    def date(self) -> bytes:
        """Return the Date header line of an answer (RFC 9110, 6.6.1)."""
        now = int(time.time())
        if now != self._second:
            self._second, self._date = now, b"date: %b\r\n" % formatdate(now, usegmt=True).encode()
        return self._date

    @property
    def busy(self) -> bool:
        """Return True while a request is in flight."""
        return bool(self.tasks) or any(one.in_flight for one in self.members)

    @property
    def has_new(self) -> bool:
        """Return True if a connection has not sent a request yet."""
        return any(one.is_new for one in self.members)

    def unsent_bytes(self) -> int:
        """Return the bytes of answers that clients have yet to take."""
        return sum(one.unsent for one in self.members)

    def sweep(self, now: float) -> None:
        """Close connections whose timeouts are over at `now`, the loop's time; call it twice a second."""
        for one in list(self.members):
            one.sweep(now)

    def retire(self) -> None:
        """Close each connection with the next answer that is sent over it."""
        self.retiring = True
        for one in list(self.members):
            if one.in_flight:
                one.shut_down()

    def shut_down(self) -> None:
        """Close idle connections, and the others with the answer that is in flight."""
        for one in list(self.members):
            one.shut_down()
