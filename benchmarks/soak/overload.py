"""Overload: waiting times of accepted requests, and the accuracy of Retry-After."""

from __future__ import annotations

import asyncio
import bisect
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from benchmarks.soak.client import Answer, Connection


@dataclass
class Taken:
    """Outcome of a request: when it was sent (seconds from the start), its status, and the seconds until the answer.

    `status` is 0 where there was no answer; `retry_after` is what a 429 said, in seconds; `inside` is the total of
    server-timing, from when the service began with the request: without the way there and back, and the client's own
    delays.
    """

    sent: float
    status: int
    seconds: float
    retry_after: float | None = None
    inside: float = 0.0


@dataclass
class Overload:
    """Outcomes of a run, in the order of sending."""

    requests: list[Taken] = field(default_factory=list)

    @property
    def accepted(self) -> list[Taken]:
        """Return the answered requests."""
        return [one for one in self.requests if one.status == 200]

    @property
    def refused(self) -> list[Taken]:
        """Return the requests that got a 429."""
        return [one for one in self.requests if one.status == 429]

    @property
    def others(self) -> list[int]:
        """Return every other status."""
        return [one.status for one in self.requests if one.status not in (200, 429)]

    def latency(self, percent: float) -> float:
        """Return a percentile of the seconds until accepted requests were answered."""
        return float(np.percentile([one.seconds for one in self.accepted], percent))

    def time_inside(self, percent: float) -> float:
        """Return a percentile of the seconds by the service's own clock."""
        return float(np.percentile([one.inside for one in self.accepted], percent))

    def retry_after_ratios(self) -> list[float]:
        """Return for each refusal its Retry-After over the time until everything accepted before it was served."""
        accepted = self.accepted
        sent = [one.sent for one in accepted]
        ends = np.maximum.accumulate([one.sent + one.seconds for one in accepted]).tolist()
        ratios = []
        for refusal in self.refused:
            before = bisect.bisect(sent, refusal.sent) - 1
            if before >= 0 and refusal.retry_after is not None:
                # By the clock of the refusal's arrival, which is when the service looked at its queue.
                ratios.append(refusal.retry_after / max(ends[before] - refusal.sent - refusal.seconds, 1e-3))
        return ratios


async def capacity(port: int, sent: Sequence[bytes], *, connections: int, seconds: float) -> float:
    """Return the answered requests a second with one in flight on each of `connections`."""
    end = time.perf_counter() + seconds
    done = 0

    async def work(number: int) -> None:
        nonlocal done
        connection = Connection(port)
        while time.perf_counter() < end:
            answer = await connection.ask(sent[number % len(sent)])
            if answer.status != 200:
                raise RuntimeError(f"{answer.status} {answer.body[:200]!r}")
            done += 1
            number += connections
        await connection.close()

    began = time.perf_counter()
    await asyncio.gather(*(work(number) for number in range(connections)))
    return done / (time.perf_counter() - began)


async def overload(port: int, sent: Sequence[bytes], *, rate: float, seconds: float) -> Overload:
    """Send `rate` requests a second, whether or not the earlier ones were answered."""
    found = Overload()
    free: list[Connection] = []
    began = time.perf_counter()

    async def one(number: int) -> None:
        connection = free.pop() if free else Connection(port)
        taken = Taken(time.perf_counter() - began, 0, 0.0)
        found.requests.append(taken)
        try:
            answer = await connection.ask(sent[number % len(sent)])
        except (OSError, asyncio.IncompleteReadError, TimeoutError):
            return
        taken.seconds = time.perf_counter() - began - taken.sent
        taken.status = answer.status
        taken.retry_after = told(answer)
        taken.inside = float(answer.headers["server-timing"].partition("dur=")[2].partition(",")[0]) / 1e3
        free.append(connection)

    tasks = []
    for number in range(round(rate * seconds)):
        await asyncio.sleep(max(0.0, began + number / rate - time.perf_counter()))
        tasks.append(asyncio.create_task(one(number)))
    await asyncio.gather(*tasks)
    for connection in free:
        await connection.close()
    return found


def told(answer: Answer) -> float | None:
    """Return the seconds of Retry-After, or None."""
    value = answer.headers.get("retry-after")
    return None if value is None else float(value)
