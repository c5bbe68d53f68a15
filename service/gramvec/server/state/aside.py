"""Work in a thread that nobody has to wait for: what it reads may take for ever, and a process has to end."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Generic, TypeVar

T = TypeVar("T")


async def aside(
    work: Callable[[], T], *, seconds: float | None = None, unwanted: Callable[[T], None] = lambda _: None
) -> T:
    """What `work` returns or raises.

    Whoever waits may be cancelled; then the thread goes on by itself, does not keep the process, and what it returns is
    given to `unwanted`.

    Raises:
        TimeoutError: it has not returned after so many seconds; it goes on as above.
    """
    own = _Work(work, unwanted)
    try:
        await asyncio.wait_for(own.done, seconds)
    except BaseException:
        own.leave()
        raise
    return own.result()


class _Work(Generic[T]):
    def __init__(self, work: Callable[[], T], unwanted: Callable[[T], None]) -> None:
        self._work = work
        self._unwanted = unwanted
        self._lock = threading.Lock()
        self._left = False
        self._results: list[T] = []
        self._error: BaseException | None = None
        self._loop = asyncio.get_running_loop()
        self.done: asyncio.Future[None] = self._loop.create_future()
        threading.Thread(target=self._run, name="gramvec-aside", daemon=True).start()

    def result(self) -> T:
        if self._error is not None:
            raise self._error
        return self._results[0]

    def leave(self) -> None:
        with self._lock:
            self._left = True
            results, self._results = self._results, []
        for one in results:
            self._unwanted(one)

    def _run(self) -> None:
        try:
            result = self._work()
        except BaseException as error:  # raised again where somebody waits for it
            self._error = error
        else:
            with self._lock:
                self._results.append(result)
                left = self._left
            if left:
                self.leave()
        with suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(self._wake)

    def _wake(self) -> None:
        if not self.done.done():
            self.done.set_result(None)
