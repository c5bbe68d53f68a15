"""Coroutines that are run without a task, for as long as they await nothing but a `Notify`.

A task is made, scheduled, and scheduled again for each time that it awaits: of a short request's CPU 14 % over one
connection, 10 % over 16, and what is within the spread over 64. `make bench PARTS=protocol` has it with and without; to
take it out, start every request in `Connection._start`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Generator
from typing import Any


class Notify:
    """Something that comes again and again: whoever awaits it goes on when it comes next.

    A coroutine that runs in a task goes on in the next turn of the loop, so `notify_all` has to be called before that.
    """

    __slots__ = ("waiting",)

    def __init__(self) -> None:
        self.waiting: list[Callable[[], None]] = []

    def __await__(self) -> Generator[Notify | None]:
        yield self if asyncio.current_task() is None else None

    def notify_all(self) -> None:
        """Let all go on that wait. None of them raises."""
        waiting, self.waiting = self.waiting, []
        for go_on in waiting:
            go_on()


class TaskFree:
    """A coroutine outside any task: each call runs it up to its next `await` of a `Notify`, or to its end.

    If it awaits anything else it is given to a task and goes on there; until then `asyncio.current_task()` is None, so
    that `asyncio.timeout` and its like need an `await asyncio.sleep(0)` before them. What it raises is told to the
    loop's exception handler.

    Args:
        running: the coroutine.
        make_task: starts a task for the rest of it.
    """

    __slots__ = ("_make_task", "_running")

    def __init__(
        self, running: Coroutine[Any, Any, None], make_task: Callable[[Coroutine[Any, Any, None]], object]
    ) -> None:
        self._running = running
        self._make_task = make_task

    def __call__(self) -> None:
        """Go on."""
        try:
            awaited = self._running.send(None)
        except StopIteration:
            return
        except BaseException as error:
            context = {"message": "a coroutine that was run without a task has failed", "exception": error}
            asyncio.get_running_loop().call_exception_handler(context)
            return
        if type(awaited) is Notify:
            awaited.waiting.append(self)
        else:
            rest = _finish(_Rest(self._running, awaited))
            rest.send(None)  # so that a task that is cancelled before it begins has somebody to tell
            self._make_task(rest)


class _Rest:
    """What is left of a coroutine that has already given out what it waits for."""

    __slots__ = ("_awaited", "_running")

    def __init__(self, running: Coroutine[Any, Any, None], awaited: Any) -> None:
        self._running = running
        self._awaited = awaited

    def __await__(self) -> Generator[Any, Any, None]:
        running, given = self._running, None
        begun = False
        try:
            while True:
                try:
                    sent = yield given
                except BaseException as error:
                    given = running.throw(error)
                else:
                    given = running.send(sent) if begun else self._awaited
                begun = True
        except StopIteration:
            return


async def _finish(rest: _Rest) -> None:
    await rest
