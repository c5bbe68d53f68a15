"""Bounded queue of work that is too long for the event loop and belongs to one request: matches, searches, and others.

Each kind of work has a queue and one thread of its own, so that no kind waits for another. A request states what its
work costs before it is admitted, in characters of work as those of a model: how many it would read meanwhile. Their
seconds are learned. A request is refused where its work could not end before the deadline.

Long work comes in pieces. Requests are in classes by their estimate, each up to eight times as long as the one before.
Shorter classes go first, and within a class the request that was admitted first: serving all requests in turn would
delay every one of them. Where several are present, a piece that would begin after the
deadline of its request is refused, so no wrong estimate makes others late by more than one piece.
"""

from __future__ import annotations

import asyncio
import heapq
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any, TypeVar

from gramvec.errors import Overloaded
from gramvec.server.batching.queue import MIN_MEASURED_COST, ClientGone, Throughput, never_gone
from gramvec.threads import ThreadPool

T = TypeVar("T")

_Piece = tuple[tuple[int, int], int, Callable[[], Any], asyncio.Future[Any], Callable[[], bool]]

# Requests of one kind that may be at work or waiting. Their memory is bounded elsewhere (`max_bytes_in_flight`).
MAX_PRESENT = 1024
# What stands for the past at the start: the first request of a kind may wait for the import of a library.
FIRST_COST = 300_000
# A shorter piece is mostly overhead.
MIN_SECONDS = 0.001
# Turns of the event loop in which a request may submit its next piece before another request begins.
TURNS = 6
# Powers of two in a class of estimates.
CLASS_BITS = 3


class Job:
    """Admitted request, whose pieces of work run in order, between those of other requests.

    Attributes:
        waited_ms, worked_ms: milliseconds of waiting for the thread, and of work, in all pieces so far.
    """

    def __init__(self, queue: WorkQueue, cost: int, number: int, has_gone: Callable[[], bool]) -> None:
        self._queue = queue
        self._has_gone = has_gone
        self._admitted = time.perf_counter()
        self._begun = False
        self.priority = cost.bit_length() // CLASS_BITS, number
        self.left = cost
        self.waited_ms = self.worked_ms = 0.0

    async def run(self, work: Callable[[], T], cost: int | None = None) -> T:
        """Return the result of `work`, called in the thread of the queue.

        Args:
            work: the whole work of the request, or a piece of it.
            cost: the part of the estimate that this piece takes; None for all that is left.

        Raises:
            Overloaded: the deadline of the request is over before the work begins.
            ClientGone: the client of the request has gone before that.
        """
        submitted = time.perf_counter()
        done, started, ended = await self._queue.call(self, lambda: self._time(work), self._has_gone)
        self.waited_ms += (started - submitted) * 1e3
        self.worked_ms += (ended - started) * 1e3
        self._queue.learn(self, self.left if cost is None else min(cost, self.left), ended - started)
        return done

    def _time(self, work: Callable[[], T]) -> tuple[T, float, float]:
        started = time.perf_counter()
        if not (self._begun and self._queue.is_alone):
            self._queue.check_deadline(started - self._admitted)
        self._begun = True
        done = work()
        return done, started, time.perf_counter()


class WorkQueue:
    """Queue of one kind of work. Belongs to one event loop.

    Args:
        kind: named in messages, as in "matches".
        deadline_seconds: the work of a request has to end by then, by estimate, and each piece has to begin by then.
    """

    def __init__(self, kind: str, deadline_seconds: float) -> None:
        self._kind = kind
        self._deadline_seconds = deadline_seconds
        self._present = 0
        self._numbers = count()
        # Heap of the pieces that wait: the priority of the request, the number of the piece, the work, its result, and
        # whether its client has gone.
        self._waiting: list[_Piece] = []
        self._at_work = False
        self._cost = 0  # of what is present
        self._throughput = Throughput(FIRST_COST)
        self._thread = ThreadPool(1, f"gramvec-{kind.replace(' ', '-')}")

    @property
    def wait_seconds(self) -> float:
        """Seconds until what is present now is done, by estimate."""
        return self._cost * self._throughput.cost_seconds

    @property
    def is_alone(self) -> bool:
        """True while at most one request is present, so that none can be late for another."""
        return self._present <= 1

    @contextmanager
    def admit(self, cost: int, has_gone: Callable[[], bool] = never_gone) -> Iterator[Job]:
        """Admit a request whose work costs about as much as this number of characters in a model.

        Before each piece of work `has_gone` is asked whether its client has.

        A request that takes longer than the deadline by itself is admitted where none is present, so that a refusal
        always means "later", never "never".

        Raises:
            Overloaded: too many requests are present, or the work could not end before the deadline.
        """
        if self._present:
            wait = self.wait_seconds
            if self._present >= MAX_PRESENT:
                raise Overloaded(
                    f"{self._present} {self._kind} are being made or waiting; send the request again later",
                    retry_after=wait,
                    reason="queue_texts",
                )
            if (end := wait + cost * self._throughput.cost_seconds) > self._deadline_seconds:
                raise Overloaded(
                    f"{self._present} {self._kind} are being made or waiting, and this one would end in about"
                    f" {end:.1f} s, after its deadline of {self._deadline_seconds:g} s; send the request again later",
                    retry_after=wait,
                    reason="deadline",
                )
        job = Job(self, cost, next(self._numbers), has_gone)
        self._present += 1
        self._cost += cost
        try:
            yield job
        finally:
            self._present -= 1
            self._cost -= job.left

    def call(self, job: Job, work: Callable[[], T], has_gone: Callable[[], bool]) -> asyncio.Future[T]:
        """Return the future result of `work` in the thread of the queue, in the turn of its job."""
        result: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._waiting, (job.priority, next(self._numbers), work, result, has_gone))
        self._begin_next()
        return result

    def _begin_next(self) -> None:
        while self._waiting and not self._at_work:
            _, _, work, result, has_gone = heapq.heappop(self._waiting)
            if result.cancelled():
                continue
            if has_gone():
                result.set_exception(ClientGone())
                continue
            self._at_work = True
            asyncio.get_running_loop().run_in_executor(self._thread, work).add_done_callback(
                lambda done, result=result: self._end(done, result)  # type: ignore[misc]
            )

    def _end(self, done: asyncio.Future[Any], result: asyncio.Future[Any]) -> None:
        if done.cancelled():
            result.cancel()
        elif (error := done.exception()) is not None:
            if not result.done():
                result.set_exception(error)
        elif not result.done():
            result.set_result(done.result())
        self._pass_on(TURNS)

    def _pass_on(self, turns: int) -> None:
        if turns:
            asyncio.get_running_loop().call_soon(self._pass_on, turns - 1)
        else:
            self._at_work = False
            self._begin_next()

    def learn(self, job: Job, cost: int, seconds: float) -> None:
        """Note the seconds that a piece of a job of this cost took."""
        job.left -= cost
        self._cost -= cost
        if cost >= MIN_MEASURED_COST or seconds >= MIN_SECONDS:
            self._throughput.learn(max(cost, MIN_MEASURED_COST), seconds, seconds)

    def check_deadline(self, waited: float) -> None:
        """Raise Overloaded if a request was admitted longer ago than the deadline."""
        if waited > self._deadline_seconds:
            raise Overloaded(
                f"the request waited {waited:.1f} s, longer than its deadline of {self._deadline_seconds:g} s; send it"
                " again later",
                retry_after=self.wait_seconds,
                reason="deadline",
            )

    def close(self) -> None:
        """End the thread after the work that it has begun."""
        for _, _, _, result, _ in self._waiting:
            result.cancel()
        self._waiting.clear()
        self._thread.shutdown(wait=False, cancel_futures=True)
