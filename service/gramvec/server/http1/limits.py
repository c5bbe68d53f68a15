"""What one client may send, hold and delay."""

from __future__ import annotations

from typing import NamedTuple

from gramvec.server.settings import Settings

# Bytes a second below which a body is too slow, once `body_timeout_seconds` have gone by.
LEAST_RATE = 500
# What is read on behind an answer that was given before its request had come: more than that closes the connection.
MOST_DISCARDED_BYTES = 256 * 1024
# A client that is refused while it still sends would lose the answer if the connection were closed under it.
LINGER_SECONDS = 1.0
# What a connection may hold of heads and of requests sent ahead without being counted.
UNCOUNTED_BYTES = 4 * 1024
# A body that nobody takes stops the reading from here on.
HIGH_WATER_BYTES = 64 * 1024
# Before other connections have their turn: requests that lie one behind the other, and chunks of a body.
REQUESTS_A_TURN = 16
CHUNKS_A_TURN = 4096


class Limits(NamedTuple):
    """Seconds for the head of a request, its body, an answer that is not taken, between requests; then counts, bytes.

    header_bytes: of the request line too. extension_bytes: of all chunks of a body. unread_bytes: of unfinished heads
    and of requests sent ahead, of all connections together.
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
        """Those of the settings."""
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
