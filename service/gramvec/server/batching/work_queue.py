"""Bounded queue of work that is too long for the event loop and belongs to one request: matches, searches, and others.

Each kind of work has a queue and one thread of its own, so that no kind waits for another. A request states what its
work costs, in seconds of a core, before it is admitted; it is refused where it could not end before the deadline.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

from gramvec.errors import Overloaded

T = TypeVar("T")

# Requests of one kind that may be present. Their memory is bounded elsewhere (`max_bytes_in_flight`).
MOST_PRESENT = 1024
# Share of the past that the measured ratio of real to estimated seconds keeps at each piece of work.
MEMORY = 0.9
# Seconds of estimated work that stand for the past at the start, and the least that a piece adds to it: a shorter piece
# is mostly overhead.
FIRST_SECONDS = 0.1
LEAST_SECONDS = 0.001


class Job:
    """Admitted request, whose pieces of work run in order, between those of other requests.

    Attributes:
        waited_ms, worked_ms: milliseconds of waiting for the thread, and of work, in all pieces so far.
    """

    def __init__(self, queue: WorkQueue, seconds: float) -> None:
        self._queue = queue
        self._admitted = time.perf_counter()
        self._begun = False
        self.left = seconds
        self.waited_ms = self.worked_ms = 0.0

    async def run(self, work: Callable[[], T], seconds: float | None = None) -> T:
        """Return the result of `work`, called in the thread of the queue.

        Args:
            work: the whole work of the request, or a piece of it.
            seconds: the part of the estimate that this piece takes; None for all that is left.

        Raises:
            Overloaded: the request waited longer than its deadline.
        """
        submitted = time.perf_counter()
        done, started, ended = await self._queue.call(lambda: self._timed(work))
        self._begun = True
        self.waited_ms += (started - submitted) * 1e3
        self.worked_ms += (ended - started) * 1e3
        self._queue.learn(self, self.left if seconds is None else min(seconds, self.left), ended - started)
        return done

    def _timed(self, work: Callable[[], T]) -> tuple[T, float, float]:
        started = time.perf_counter()
        if not self._begun:
            self._queue.check_deadline(started - self._admitted)
        done = work()
        return done, started, time.perf_counter()


class WorkQueue:
    """Queue of one kind of work. Belongs to one event loop.

    Args:
        kind: named in messages, as in "matches".
        deadline_seconds: the work of a request has to end by then, by estimate, and has to begin by then.
        most_present: requests that may be at work or waiting.
    """

    def __init__(self, kind: str, deadline_seconds: float, most_present: int = MOST_PRESENT) -> None:
        self._kind = kind
        self._deadline_seconds = deadline_seconds
        self._most_present = most_present
        self._present = 0
        self._estimated = 0.0
        # Seconds of work, real and estimated, weighted towards the last ones.
        self._real_seconds = self._said_seconds = FIRST_SECONDS
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix=f"gramvec-{kind.replace(' ', '-')}")

    @property
    def wait_seconds(self) -> float:
        """Seconds until what is present now is done, by estimate."""
        return self._estimated * self._ratio

    @property
    def _ratio(self) -> float:
        return self._real_seconds / self._said_seconds

    @contextmanager
    def admit(self, seconds: float) -> Iterator[Job]:
        """Admit a request whose work costs about `seconds` of a core.

        A request that takes longer than the deadline by itself is admitted where none is present, so that a refusal
        always means "later", never "never".

        Raises:
            Overloaded: too many requests are present, or the work could not end before the deadline.
        """
        if self._present:
            wait = self.wait_seconds
            if self._present >= self._most_present:
                raise Overloaded(
                    f"{self._present} {self._kind} are being made or waiting; send the request again later",
                    retry_after=wait,
                    reason="queue_texts",
                )
            if (end := wait + seconds * self._ratio) > self._deadline_seconds:
                raise Overloaded(
                    f"{self._present} {self._kind} are being made or waiting, and this one would end in about"
                    f" {end:.1f} s, after its deadline of {self._deadline_seconds:g} s; send the request again later",
                    retry_after=wait,
                    reason="deadline",
                )
        job = Job(self, seconds)
        self._present += 1
        self._estimated += seconds
        try:
            yield job
        finally:
            self._present -= 1
            # Without the rounding of many additions where none is left.
            self._estimated = self._estimated - job.left if self._present else 0.0

    def call(self, work: Callable[[], T]) -> asyncio.Future[T]:
        """Return the result of `work` in the thread of the queue, after what was submitted before."""
        return asyncio.get_running_loop().run_in_executor(self._thread, work)

    def learn(self, job: Job, estimated: float, real: float) -> None:
        """Note that a piece of a job, of `estimated` seconds, took `real` ones."""
        job.left -= estimated
        self._estimated -= estimated
        if estimated >= LEAST_SECONDS or real >= LEAST_SECONDS:
            self._said_seconds = self._said_seconds * MEMORY + max(estimated, LEAST_SECONDS)
            self._real_seconds = self._real_seconds * MEMORY + real

    def check_deadline(self, waited: float) -> None:
        """Raise Overloaded for a request that has waited longer than the deadline."""
        if waited > self._deadline_seconds:
            raise Overloaded(
                f"the request waited {waited:.1f} s, longer than its deadline of {self._deadline_seconds:g} s; send it"
                " again later",
                retry_after=self.wait_seconds,
                reason="deadline",
            )

    def close(self) -> None:
        """End the thread after the work that it has begun."""
        self._thread.shutdown(wait=False, cancel_futures=True)
