"""The message behind a request's body, by which ASGI reports that the client has gone: read without waiting."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any

from starlette.types import Message


class NextMessage:
    """A call of `receive` that is begun once, looked at as often as wanted, and closed with its request.

    A call that is closed or cancelled while it waits can make a server believe that the client has gone (gunicorn's
    ASGI worker does), so it is left waiting until the response is sent.

    It is begun in a callback of the loop, outside of all tasks. In a task, a middleware that waits in a group of tasks
    (Starlette's BaseHTTPMiddleware) would take that task into its group, and cancel it with the call.
    """

    def __init__(self, receive: Callable[[], Any]) -> None:
        self._receive = receive
        self._call: Coroutine[Any, Any, Message] | None = None
        # What the call waits for; None before it has begun, and when it can say no more.
        self._waits_for: Any = None
        self._gone = False

    def is_disconnect(self) -> bool:
        """Return True if the client is known to have gone; in a task, if that was known before."""
        if asyncio.current_task() is not None:
            return self._gone
        if self._call is None:
            self._call = self._receive()
            self._resume()
        elif self._waits_for is not None and self._waits_for.done():
            self._resume()
        return self._gone

    def _resume(self) -> None:
        assert self._call is not None
        try:
            self._waits_for = self._call.send(None)
        except StopIteration as ended:
            self._gone = ended.value["type"] == "http.disconnect"
            self._waits_for = None
        except Exception:  # a middleware that wants a task around it
            self._waits_for = None

    def close(self) -> None:
        """Give the call up."""
        if self._call is not None:
            with suppress(RuntimeError, AttributeError):
                self._call.close()
