"""Threads, locks and calls into libraries that a fork does not break.

Of a process's threads only the one that forks lives on in the child: a pool's queue waits for the others for ever, and
what one of them had locked stays locked. What is made here is made anew in a child.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType
from typing import TypeVar
from weakref import WeakSet

# Seconds that a fork waits for calls into a library to end.
MAX_WAIT_SECONDS = 10.0

Given = TypeVar("Given")
Made = TypeVar("Made")


def count_cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0))


def map_in_order(blocks: Iterable[Given], work: Callable[[Given], Made], threads: int) -> Iterator[Made]:
    """Yield what `work` makes of each block, in order, `threads` at a time, while at most two more wait."""
    with ThreadPoolExecutor(threads, thread_name_prefix="gramvec-job") as pool:
        waiting: deque[Future[Made]] = deque()
        try:
            for block in blocks:
                waiting.append(pool.submit(work, block))
                if len(waiting) > threads + 1:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()


class ThreadPool(ThreadPoolExecutor):
    """Pool whose threads start at the first call, in each process its own."""

    def __init__(self, threads: int, name: str) -> None:
        super().__init__(threads, thread_name_prefix=name)
        self._of_process = threads, name
        _renewed.add(self)

    def renew(self) -> None:
        """Forget the parent's threads, and the work that they had."""
        threads, name = self._of_process
        super().__init__(threads, thread_name_prefix=name)


class ProcessLock:
    """Lock of one process, as a context: a child's is free."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        _renewed.add(self)

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._lock.release()

    def renew(self) -> None:
        """Free the lock."""
        self._lock = threading.Lock()


class RenewedAfterFork:
    """Call of `make` in each child of a fork, as long as this object lives."""

    def __init__(self, make: Callable[[], None]) -> None:
        self.renew = make
        _renewed.add(self)


class LibraryCalls:
    """Calls into a library that has locks of its own, as a context: a fork waits for their end.

    It waits for MAX_WAIT_SECONDS.
    usable: False in a child of a fork that did not wait long enough. There the library may wait for ever.
    """

    def __init__(self) -> None:
        self.usable = True
        self._running = 0
        self._ended = threading.Condition()
        os.register_at_fork(before=self._wait, after_in_parent=self._resume, after_in_child=self._begin)

    def __enter__(self) -> None:
        with self._ended:
            self._running += 1

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._ended:
            self._running -= 1
            self._ended.notify_all()

    def _wait(self) -> None:
        self._ended.acquire()
        self._ended.wait_for(lambda: self._running == 0, MAX_WAIT_SECONDS)

    def _resume(self) -> None:
        self._ended.release()

    def _begin(self) -> None:
        self.usable, self._running = self.usable and self._running == 0, 0
        self._ended = threading.Condition()


_renewed: WeakSet[ThreadPool | ProcessLock | RenewedAfterFork] = WeakSet()


def _renew() -> None:
    for renewed in list(_renewed):
        renewed.renew()


os.register_at_fork(after_in_child=_renew)
