"""Whether a connection is read, and whether it takes more of an answer: so that neither side fills our memory."""

from __future__ import annotations

import asyncio
from enum import Enum, auto


class Reason(Enum):
    """Why a connection is not read: nobody takes the body of its request, it has sent requests ahead, others wait."""

    BODY = auto()
    AHEAD = auto()
    TURN = auto()


class FlowControl:
    """Of one connection. `write_paused`: the client is slow to take what was written."""

    __slots__ = ("_ended", "_paused", "_transport", "_writable", "write_paused")

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._paused: set[Reason] = set()
        self._writable: asyncio.Future[None] | None = None
        self._ended = False
        self.write_paused = False

    @property
    def read_paused(self) -> bool:
        """Whether what the client sends is left where it is."""
        return bool(self._paused)

    def pause_reading(self, reason: Reason) -> None:
        """Leave what the client sends where it is."""
        if not self._paused:
            self._transport.pause_reading()
        self._paused.add(reason)

    def resume_reading(self, *reasons: Reason) -> None:
        """Take what the client sends, unless there is a reason beside these not to."""
        if self._paused:
            self._paused.difference_update(reasons)
            if not self._paused and not self._ended:
                self._transport.resume_reading()

    def end_reading(self) -> None:
        """The client has closed its side: there is nothing more to read."""
        self._ended = True

    def pause_writing(self) -> None:
        """The client is slow to take what was written."""
        self.write_paused = True

    def resume_writing(self) -> None:
        """It has taken most of it, or will take no more."""
        self.write_paused = False
        if self._writable is not None and not self._writable.done():
            self._writable.set_result(None)

    async def drain(self) -> None:
        """Wait until more may be written."""
        while self.write_paused:
            self._writable = asyncio.get_running_loop().create_future()
            await self._writable
