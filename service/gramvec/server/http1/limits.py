"""Limits of one client: numbers, the flow control of its connection, and its timeouts."""

from __future__ import annotations

import asyncio
from typing import NamedTuple

from gramvec.server.settings import Settings

# A body below this many bytes a second is too slow, once `body_timeout_seconds` are over.
LEAST_RATE = 500
# This much is read and dropped of a body whose request was answered before it had arrived; more closes the connection.
MOST_DISCARDED_BYTES = 256 * 1024
# A client that is refused while it still sends would lose the answer if the connection were closed at once.
LINGER_SECONDS = 1.0
# Bytes of unfinished heads and of requests sent ahead that a connection holds without being counted.
UNCOUNTED_BYTES = 4 * 1024
# A body that the application does not take stops the reading at this size.
HIGH_WATER_BYTES = 64 * 1024
# Pipelined requests, and chunks of a body, that are read before other connections have their turn.
REQUESTS_A_TURN = 16
CHUNKS_A_TURN = 4096


class Limits(NamedTuple):
    """Limits of a connection.

    Attributes:
        head, body, send, idle: seconds for the head of a request, its body, an answer that the client does not take,
            and between requests.
        connections: of the server.
        header_lines, header_bytes: of a head; the bytes include the request line.
        extension_bytes: of all chunks of a body together.
        trailer_bytes: of a body.
        unread_bytes: unfinished heads and requests sent ahead, of all connections together.
    """

    head: float
    body: float
    send: float
    idle: float
    connections: int
    header_lines: int
    header_bytes: int
    extension_bytes: int
    trailer_bytes: int
    unread_bytes: int

    @classmethod
    def of(cls, settings: Settings, idle: float) -> Limits:
        """Return the limits of the settings."""
        return cls(
            settings.header_timeout_seconds,
            settings.body_timeout_seconds,
            settings.send_timeout_seconds,
            idle,
            settings.max_connections,
            settings.max_header_lines,
            settings.max_header_bytes,
            settings.max_extension_bytes,
            settings.max_trailer_bytes,
            settings.max_unread_bytes,
        )


class FlowControl:
    """Pauses of one connection, so that neither side fills our memory.

    Reading pauses for any of three reasons: the application does not take a BODY, the client has sent requests AHEAD,
    or other connections have their TURN. `write_paused`: the client is slow to take what was written.
    """

    __slots__ = ("_ended", "_paused", "_transport", "_writable", "write_paused")

    BODY, AHEAD, TURN, ALL = 1, 2, 4, 7

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._paused = 0
        self._writable: asyncio.Future[None] | None = None
        self._ended = False
        self.write_paused = False

    @property
    def read_paused(self) -> bool:
        """Return True while the connection is not read."""
        return self._paused != 0

    def pause_reading(self, reason: int) -> None:
        """Stop reading."""
        if not self._paused:
            self._transport.pause_reading()
        self._paused |= reason

    def resume_reading(self, reasons: int) -> None:
        """Read again, unless another reason is left."""
        if self._paused:
            self._paused &= ~reasons
            if not self._paused and not self._ended:
                self._transport.resume_reading()

    def end_reading(self) -> None:
        """Never resume: the client has closed its side."""
        self._ended = True

    def pause_writing(self) -> None:
        """Make `drain` wait."""
        self.write_paused = True

    def resume_writing(self) -> None:
        """End the wait of `drain`: the client has taken most of the answer, or has gone."""
        self.write_paused = False
        if self._writable is not None and not self._writable.done():
            self._writable.set_result(None)

    async def drain(self) -> None:
        """Wait until more may be written."""
        while self.write_paused:
            self._writable = asyncio.get_running_loop().create_future()
            await self._writable


class Timeouts:
    """Waiting times for one client, in seconds of the event loop.

    All connections are swept twice a second instead of having a timer each.

    Attributes:
        heard: when the last bytes arrived.
        since: when the current phase (idle, head, body) began.
        body_bytes: of this phase.
    """

    __slots__ = ("_limits", "_unsent", "_unsent_since", "body_bytes", "heard", "since")

    def __init__(self, limits: Limits, now: float) -> None:
        self._limits = limits
        self.since = self.heard = self._unsent_since = now
        self.body_bytes = self._unsent = 0

    def begin(self) -> None:
        """Begin a phase with the last bytes that arrived."""
        self.since, self.body_bytes = self.heard, 0

    def restart(self, now: float) -> None:
        """Begin the phase again: the server caused the delay."""
        self.since = self.heard = now

    def takes_nothing(self, unsent: int, now: float) -> bool:
        """Return whether the client has taken nothing of an answer for too long; `unsent` bytes of it are left."""
        if unsent != self._unsent:
            self._unsent, self._unsent_since = unsent, now
        return bool(unsent) and now - self._unsent_since > self._limits.send

    def is_idle(self, now: float) -> bool:
        """Return whether no request has arrived for too long."""
        return now - self.since > self._limits.idle

    def is_slow_head(self, now: float) -> bool:
        """Return whether a head has not ended for too long."""
        return now - self.since > self._limits.head

    def is_slow_body(self, now: float) -> bool:
        """Return whether a body has stopped, or arrives below `LEAST_RATE`."""
        limit = self._limits.body
        return now - self.heard > limit or now - self.since > limit + self.body_bytes / LEAST_RATE
