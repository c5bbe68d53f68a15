"""One request and its answer as the server sees them: uvicorn's, with short cuts for what is there as a whole."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, RequestResponseCycle

# Up to here a body is copied behind its head, which costs less than a second write.
SMALL_BYTES = 16 * 1024
# A client that is refused while it still sends would lose the answer if the connection were closed under it.
LINGER_SECONDS = 1.0


class Cycle(RequestResponseCycle):
    """Where a short body has arrived whole and a short answer is ready whole, ASGI's messages cost 8 us of 60."""

    def take_body(self) -> bytes | None:
        """The body, where all of it is there; else None, and `receive` gives it in pieces."""
        if self.more_body or self.disconnected or self.response_complete or self.waiting_for_100_continue:
            return None
        body = bytes(self.body)
        self.body = bytearray()
        self.message_event.clear()
        self.flow.resume_reading()
        return body

    def respond(self, headers: Iterable[bytes], body: bytes | memoryview) -> bool:
        """Send a whole answer, a 200, in one write; False, and nothing is sent, where it has to be done by `send`.

        headers: lines with their ends, with lower-case names and without control characters, the body's content-length
        among them, no connection. uvicorn's `send` checks all that.
        """
        if self.response_started or self.disconnected or self.flow.write_paused or self.scope["method"] == "HEAD":
            return False
        head = (STATUS_LINE[200], *headers, b"\r\n" if self.keep_alive else b"connection: close\r\n\r\n")
        self.response_started = self.response_complete = True
        if len(body) < SMALL_BYTES:
            self.transport.write(b"".join((*head, body)))
        else:
            self.transport.write(b"".join(head))
            self.transport.write(body)
        self.message_event.set()
        if not self.keep_alive:
            self.transport.close()
        self.on_response()
        return True


def cycle_of(receive: Any) -> Cycle | None:
    """The cycle of a request by its `receive`; None under another server."""
    owner = getattr(receive, "__self__", None)
    return owner if isinstance(owner, Cycle) else None
