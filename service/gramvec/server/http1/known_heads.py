"""Heads of requests that were read before: a client sends the same bytes again and again, but for the body's length.

`make bench PARTS=protocol` says what it buys: 8 to 16 % of the CPU of a short request over 1 to 64 connections. To take
it out, take `find` and `remember` out of `Connection._read_head`.
"""

from __future__ import annotations

from gramvec.server.http1.head import END, Head

# 1,000 heads of 200 bytes, as most are; a client that numbers its requests fills this with what never comes again.
MOST_HEADS = 1_000
LONGEST_HEAD = 2_048


class KnownHeads:
    """Those that a server's connections have read, and found nothing wrong with.

    A head ends with its first empty line for whoever reads it, so there is no doubt where a known one ends.
    """

    def __init__(self) -> None:
        self._known: dict[bytes, Head] = {}

    def find(self, data: bytes) -> tuple[Head, int] | None:
        """The head that `data` begins with, if it is known, and its bytes."""
        size = data.find(END, 0, LONGEST_HEAD) + len(END)
        head = self._known.get(data[:size])
        return None if head is None else (head, size)

    def remember(self, data: bytes, size: int, head: Head) -> None:
        """Take in the head that was read from the first `size` bytes of `data`."""
        if size <= LONGEST_HEAD:
            if len(self._known) >= MOST_HEADS:
                self._known.clear()
            self._known[data[:size]] = head
