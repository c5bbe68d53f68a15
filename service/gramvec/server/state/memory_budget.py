"""Memory budget for bodies and unsent responses of all requests in a process."""

from __future__ import annotations

from collections.abc import Callable

from gramvec.errors import Overloaded

# A request may hold this much uncounted: there are at most `max_connections` of them.
UNCOUNTED_BYTES = 16 * 1024
# A number of a response: 12 bytes in JSON, and twice 4 before.
NUMBER_BYTES = 20
# A best score while it is computed, and one that is returned: 38 bytes in JSON, and 8 before.
SCORE_BYTES = 13
ENTRY_BYTES = 46


class MemoryBudget:
    """Count of the bytes that requests reserve and that lie unsent; refuses what would exceed the limit.

    A request that is larger than the limit by itself is admitted when nothing else is held, so that a refusal always
    means "later", never "never".

    Args:
        limit: bytes.
        count_unsent: returns the bytes of responses in the buffers of all connections; called only near the limit.
    """

    def __init__(self, limit: int, count_unsent: Callable[[], int] = int) -> None:
        self._limit = limit
        self._reserved = 0
        self._unsent = 0
        self._count_unsent = count_unsent

    def reserve(self, size: int, own: int = 0) -> None:
        """Reserve `size` bytes more for a request that holds `own` bytes already. Raises Overloaded."""
        if self._reserved + self._unsent + size > self._limit:
            self._unsent = self._count_unsent()
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
        """Release reserved bytes; they may lie in an unsent response."""
        self._reserved -= size
        self._unsent += size
