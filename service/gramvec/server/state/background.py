"""Blocking work in a daemon thread that can be abandoned: a read may never return, and the process has to end."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Generic, TypeVar

T = TypeVar("T")


async def in_background(
    work: Callable[[], T], *, seconds: float | None = None, unwanted: Callable[[T], None] = lambda _: None
) -> T:
    """Return the result of `work`, or raise its error.

    If the caller is cancelled, or the time is over, the thread continues by itself and does not keep the process alive;
    its result goes to `unwanted`.

    Raises:
        TimeoutError: the work has not returned after `seconds`.
    """
    own = _Work(work, unwanted)
    try:
        await asyncio.wait_for(own.done, seconds)
    except BaseException:
        own.abandon()
        raise
    return own.result()


class _Work(Generic[T]):
    def __init__(self, work: Callable[[], T], unwanted: Callable[[T], None]) -> None:
        self._work = work
        self._unwanted = unwanted
        self._lock = threading.Lock()
        self._abandoned = False
        self._results: list[T] = []
        self._error: BaseException | None = None
        self._loop = asyncio.get_running_loop()
        self.done: asyncio.Future[None] = self._loop.create_future()
        threading.Thread(target=self._run, name="gramvec-background", daemon=True).start()

    def result(self) -> T:
        if self._error is not None:
            raise self._error
        return self._results[0]

    def abandon(self) -> None:
        with self._lock:
            self._abandoned = True
            results, self._results = self._results, []
        for one in results:
            self._unwanted(one)

    def _run(self) -> None:
        try:
            result = self._work()
        except BaseException as error:  # raised again where the result is awaited
            self._error = error
        else:
            with self._lock:
                self._results.append(result)
                abandoned = self._abandoned
            if abandoned:
                self.abandon()
        with suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(self._wake)

    def _wake(self) -> None:
        if not self.done.done():
            self.done.set_result(None)
