"""Messages between a worker and its parent: JSON objects, one a line, over a pair of sockets that never block."""

from __future__ import annotations

import contextlib
import socket
from typing import Any

import orjson

Message = dict[str, Any]

READ_BYTES = 65_536


class Channel:
    """One end. Messages are far smaller than a socket's buffer, so that sending one never has to wait."""

    def __init__(self, end: socket.socket) -> None:
        end.setblocking(False)
        self._end = end
        self._received = b""

    @classmethod
    def pair(cls) -> tuple[Channel, Channel]:
        """Two ends of one channel."""
        one, other = socket.socketpair()
        return cls(one), cls(other)

    def fileno(self) -> int:
        """The descriptor, readable when there is something to receive."""
        return self._end.fileno()

    def send(self, message: Message) -> None:
        """Send one message; it is lost where the other side has gone."""
        with contextlib.suppress(OSError):
            self._end.sendall(orjson.dumps(message, option=orjson.OPT_APPEND_NEWLINE))

    def receive(self) -> list[Message]:
        """What has arrived since the last time."""
        try:
            while part := self._end.recv(READ_BYTES):
                self._received += part
        except OSError:  # nothing more at the moment, or for ever
            pass
        *lines, self._received = self._received.split(b"\n")
        return [orjson.loads(line) for line in lines]

    def close(self) -> None:
        """Let go of this end."""
        self._end.close()
