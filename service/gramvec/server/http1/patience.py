"""How long a client is waited for. There is no timer a request: all connections are looked at now and then."""

from __future__ import annotations

from gramvec.server.http1.limits import LEAST_RATE, Limits
from gramvec.server.http1.refusals import Refused, slow_body, slow_head


class Patience:
    """With the client of one connection; all times are the loop's, in seconds.

    `heard`: when its last bytes came. `since`: when what is waited for began. `body_bytes`: so far.
    """

    __slots__ = ("_limits", "_unsent", "_unsent_since", "body_bytes", "heard", "since")

    def __init__(self, limits: Limits, now: float) -> None:
        self._limits = limits
        self.since = self.heard = now
        self.body_bytes = 0
        self._unsent = 0
        self._unsent_since = now

    def begin(self) -> None:
        """Something else is waited for, from the last bytes on."""
        self.since, self.body_bytes = self.heard, 0

    def restart(self, now: float) -> None:
        """It is the client who has waited until now."""
        self.since = self.heard = now

    def takes_nothing(self, unsent: int, now: float) -> bool:
        """Whether the client has taken nothing of an answer for too long; `unsent` are the bytes left of it."""
        if unsent != self._unsent:
            self._unsent, self._unsent_since = unsent, now
        return bool(unsent) and now - self._unsent_since > self._limits.send

    def is_idle(self, now: float) -> bool:
        """Whether a request has not come for too long."""
        return now - self.since > self._limits.idle

    def slow_head(self, now: float) -> Refused | None:
        """What to tell a client whose headers do not come to an end."""
        return slow_head(self._limits.head) if now - self.since > self._limits.head else None

    def slow_body(self, now: float) -> Refused | None:
        """What to tell a client whose body does not come, or in drops."""
        limit = self._limits.body
        if now - self.heard > limit or now - self.since > limit + self.body_bytes / LEAST_RATE:
            return slow_body(limit)
        return None
