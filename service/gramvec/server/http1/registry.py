"""All connections of one server: what they share, and what is done with all of them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Container, Coroutine
from email.utils import formatdate
from typing import Any, Protocol

from starlette.types import Receive, Scope, Send

from gramvec.server.http1.known_heads import KnownHeads
from gramvec.server.http1.limits import Limits


class Application(Protocol):
    """An ASGI application, and what this server asks of one besides."""

    @property
    def prompt_paths(self) -> Container[str]:
        """Where a POST may be begun without a task, see `gramvec.server.batching.task_free`."""
        ...

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """ASGI's."""
        ...

    def count_unread(self, status: int, *, begun: bool) -> None:
        """Hears of a refusal that it has not given itself; `begun`: of a request that it has."""
        ...


class Member(Protocol):
    """One of them."""

    @property
    def under_way(self) -> bool:
        """Whether a request has begun and is not answered yet."""
        ...

    @property
    def is_new(self) -> bool:
        """Whether nothing has been asked yet."""
        ...

    @property
    def unsent(self) -> int:
        """Bytes of answers that the client has yet to take."""
        ...

    def sweep(self, now: float) -> None:
        """Close it if its client has been waited for too long."""
        ...

    def shut_down(self) -> None:
        """Close it, at once or with the answer that is under way."""
        ...


class Connections:
    """Those of one server, on one loop.

    Args:
        app: answers.
        limits: hold for each of them, or for all.
    """

    def __init__(self, app: Application, limits: Limits) -> None:
        self.app = app
        self.limits = limits
        self.known_heads = KnownHeads()
        self.tasks: set[asyncio.Task[None]] = set()  # requests that have one
        self.retiring = False  # each answer closes its connection
        self._members: set[Member] = set()
        self._unread_bytes = 0
        self._second = 0
        self._date = b""

    def __len__(self) -> int:
        return len(self._members)

    def add(self, member: Member) -> None:
        """One more."""
        self._members.add(member)

    def discard(self, member: Member) -> None:
        """One less."""
        self._members.discard(member)

    def hold(self, more: int) -> bool:
        """Count so many bytes more that are no request yet, or fewer; False where that is too many for all."""
        self._unread_bytes += more
        return more <= 0 or self._unread_bytes <= self.limits.unread_bytes

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        """Run it as a task."""
        task = asyncio.get_running_loop().create_task(work)
        task.add_done_callback(self.tasks.discard)
        self.tasks.add(task)

    def date(self) -> bytes:
        """The line of an answer that tells the time (RFC 9110, 6.6.1)."""
        now = int(time.time())
        if now != self._second:
            self._second, self._date = now, b"date: %b\r\n" % formatdate(now, usegmt=True).encode()
        return self._date

    @property
    def busy(self) -> bool:
        """Whether a request is under way."""
        return bool(self.tasks) or any(one.under_way for one in self._members)

    @property
    def has_new(self) -> bool:
        """Whether one of them has not asked for anything yet."""
        return any(one.is_new for one in self._members)

    def unsent_bytes(self) -> int:
        """Of answers, of all of them."""
        return sum(one.unsent for one in self._members)

    def sweep(self, now: float) -> None:
        """Close those whose clients have been waited for too long by now, the loop's time; call it twice a second."""
        for one in list(self._members):
            one.sweep(now)

    def retire(self) -> None:
        """Close each connection with the next answer that is sent over it."""
        self.retiring = True
        for one in list(self._members):
            if one.under_way:
                one.shut_down()

    def shut_down(self) -> None:
        """Close all that are idle, the others with the answer that is under way."""
        for one in list(self._members):
            one.shut_down()
