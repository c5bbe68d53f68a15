"""Blocking work in a daemon thread that can be abandoned: a read may never return, and the process has to end."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

T = TypeVar("T")


async def run_in_background(
    work: Callable[[], T], *, seconds: float | None = None, unwanted: Callable[[T], object] = lambda _: None
) -> T:
    """Return the result of `work`, or raise its error.

    If the caller is cancelled, or the time is over, the thread continues by itself and does not keep the process alive;
    its result goes to `unwanted`.

    Raises:
        TimeoutError: the work has not returned after `seconds`.
    """
    done: Future[T] = Future()
    done.set_running_or_notify_cancel()  # so that no waiting task cancels it

    def run() -> None:
        try:
            result = work()
        except BaseException as error:  # raised again where the result is awaited
            done.set_exception(error)
        else:
            done.set_result(result)

    threading.Thread(target=run, name="gramvec-background", daemon=True).start()
    try:
        return await asyncio.wait_for(asyncio.wrap_future(done), seconds)
    except BaseException:
        done.add_done_callback(lambda late: late.exception() or unwanted(late.result()))
        raise
