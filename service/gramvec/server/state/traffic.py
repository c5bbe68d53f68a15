"""How many bytes all requests of a process hold: bodies that are read, answers that clients have yet to take."""

from __future__ import annotations

from collections.abc import Callable

from gramvec.errors import Overloaded

# So much a request may hold uncounted: there are at most `max_connections` of them.
UNCOUNTED_BYTES = 16 * 1024
# A number of an answer: 12 in JSON, and twice 4 before.
NUMBER_BYTES = 20
# Of the best scores each is computed, looked through and let go of; each that is told takes 38 in JSON, and 8 before.
SCORE_BYTES = 13
ENTRY_BYTES = 46


class Traffic:
    """Counts what requests reserve and what lies unsent, and refuses what would be over the limit.

    A request that is larger than the limit by itself is let in when nothing else is held, so that a refusal always
    means "later", never "never".

    Args:
        limit: bytes.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._reserved = 0
        self._unsent = 0
        # Bytes of answers in the buffers of all connections, counted one by one: asked for near the limit only.
        self.count_unsent: Callable[[], int] = int

    def reserve(self, size: int, own: int = 0) -> None:
        """Count `size` bytes more for a request that holds `own` bytes already. Raises Overloaded."""
        if self._reserved + self._unsent + size > self._limit:
            self._unsent = self.count_unsent()
            held = self._reserved + self._unsent
            if held > own and held + size > self._limit:
                raise Overloaded(
                    f"requests and answers that have yet to be taken hold {held} bytes, and {size} more would exceed"
                    f" {self._limit}; send the request again later, or a smaller one",
                    retry_after=1.0,
                    reason="memory",
                )
        self._reserved += size

    def release(self, size: int) -> None:
        """What was reserved is held no more by the request; its answer may lie unsent."""
        self._reserved -= size
        self._unsent += size
