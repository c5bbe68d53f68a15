"""Work that is too long for the event loop and belongs to one request alone: in a thread, one after the other."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import NamedTuple, TypeVar

from gramvec.errors import Overloaded

T = TypeVar("T")


class Took(NamedTuple):
    """Milliseconds of waiting, and of work."""

    waited_ms: float
    worked_ms: float


class SerialThread:
    """Belongs to one event loop. `most_waiting`: requests for `what` that may wait beside the one at work."""

    def __init__(self, most_waiting: int, what: str) -> None:
        self._what = what
        self._most_waiting = most_waiting
        self._present = 0
        self._free = asyncio.Lock()
        self._usual_seconds = 0.01

    async def run(self, work: Callable[[], T]) -> tuple[T, Took]:
        """What `work` gives, called in a thread as the only one, and how long it took.

        Raises:
            Overloaded: too many wait already.
        """
        if self._present > self._most_waiting:
            raise Overloaded(
                f"{self._present} {self._what} are being made or waiting; send the request again later",
                retry_after=self._present * self._usual_seconds,
                reason="queue_texts",
            )
        self._present += 1
        began = time.perf_counter()
        try:
            async with self._free:
                started = time.perf_counter()
                done = await asyncio.to_thread(work)
                ended = time.perf_counter()
        finally:
            self._present -= 1
        self._usual_seconds = 0.9 * self._usual_seconds + 0.1 * (ended - started)
        return done, Took((started - began) * 1e3, (ended - started) * 1e3)
