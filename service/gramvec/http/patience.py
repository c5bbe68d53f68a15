"""How long a connection is waited for, and how many there may be: uvicorn knows a limit between requests alone."""

from __future__ import annotations

from typing import Any, NamedTuple

import orjson

from gramvec.http.protocol import Protocol
from gramvec.http.settings import Settings

# Bytes a second below which a body is too slow, once `body_timeout_seconds` have gone by.
LEAST_RATE = 500
TOO_MANY = "the service has as many connections as it takes; try again later, or use one connection for many requests"


class Limits(NamedTuple):
    """Seconds for the head of a request, its body, an answer that is not taken, between requests; connections."""

    head: float
    body: float
    send: float
    idle: float
    connections: int

    @classmethod
    def of(cls, settings: Settings, idle: float) -> Limits:
        """Those of the settings."""
        return cls(
            settings.header_timeout_seconds,
            settings.body_timeout_seconds,
            settings.send_timeout_seconds,
            idle,
            settings.max_connections,
        )


class PatientProtocol(Protocol):
    """One connection, closed when it keeps waiting for too long. `sweep` has to be called now and then."""

    def __init__(self, *arguments: Any, limits: Limits, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._limits = limits
        self._unsent = 0
        self._unsent_since = 0.0

    def connection_made(self, transport: Any) -> None:
        """Take the connection, or say that there are too many."""
        super().connection_made(transport)
        if len(self.connections) > self._limits.connections:
            self._turn_away()

    def on_response_complete(self) -> None:
        """Go on with the next request; `sweep` closes an idle connection, so that no timer is set for each."""
        self.server_state.total_requests += 1
        if self.transport.is_closing():
            return
        self.flow.resume_reading()
        if self.pipeline:
            self._start_asgi_task(*self.pipeline.pop())

    def sweep(self, now: float) -> None:
        """Close the connection if its client has been waited for too long; `now` is the loop's time."""
        unsent = self.transport.get_write_buffer_size()
        if unsent != self._unsent:
            self._unsent, self._unsent_since = unsent, now
        elif unsent and now - self._unsent_since > self._limits.send:
            self.transport.abort()
            return
        if self._deaf or self.transport.is_closing():
            return
        if self.flow.read_paused or (self.under_way and not self._begun):
            self._since = self._heard = now  # it is the client who waits
        elif self._in_body:
            if now - self._heard > self._limits.body or self._body_is_too_slow(now):
                self._refuse(408, f"the body did not arrive within {self._limits.body:g} s or so; send it anew, faster")
        elif self._begun:
            if now - self._since > self._limits.head:
                self._refuse(408, f"the headers did not arrive within {self._limits.head:g} s; send the request anew")
        elif now - self._since > self._limits.idle:
            self._part()

    def _body_is_too_slow(self, now: float) -> bool:
        return now - self._since > self._limits.body + self._body_bytes / LEAST_RATE

    def _turn_away(self) -> None:
        self._deaf = True
        if len(self.connections) > 2 * self._limits.connections:
            self.transport.abort()
            return
        self.app.count_unread(503, begun=False)
        body = orjson.dumps({"error": TOO_MANY, "error_type": "unhealthy"})
        self.transport.write(
            b"HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/json\r\ncontent-length: %d\r\n"
            b"retry-after: 1\r\nconnection: close\r\n\r\n%b" % (len(body), body)
        )
        self._part()
