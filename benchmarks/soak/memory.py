"""Memory of a process under load, and its slope."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from scipy import stats

from benchmarks.soak.client import Connection, Tally
from benchmarks.soak.requests import Mixture

MB = 2**20
# Bodies differ by the model; every status is expected by the request.
CONNECTIONS = 16


@dataclass(frozen=True)
class Sample:
    """Seconds since the load began, and megabytes: all of the process, and what of it is no file's."""

    seconds: float
    resident: float
    anonymous: float


@dataclass(frozen=True)
class Slope:
    """Theil and Sen's slope in megabytes a minute with its 95 % interval, and the least-squares one with its error."""

    per_minute: float
    low: float
    high: float
    least_squares: float
    standard_error: float

    def __str__(self) -> str:
        return (
            f"{self.per_minute:+.3f} MB/minute, 95 % interval {self.low:+.3f} to {self.high:+.3f}; "
            f"least squares {self.least_squares:+.3f} ± {self.standard_error:.3f}"
        )

    def as_json(self) -> dict[str, float]:
        """Return the slope for the JSON file."""
        return asdict(self)


def sample(process: int, began: float) -> Sample:
    """Read the memory of a process."""
    sizes = {}
    for line in Path(f"/proc/{process}/status").read_text().splitlines():
        name, _, value = line.partition(":")
        if name in ("VmRSS", "RssAnon"):
            sizes[name] = int(value.split()[0]) * 1024 / MB
    return Sample(time.perf_counter() - began, sizes["VmRSS"], sizes["RssAnon"])


def slope(seconds: list[float], megabytes: list[float]) -> Slope:
    """Fit a line through at least three samples."""
    minutes = [one / 60 for one in seconds]
    robust = stats.theilslopes(megabytes, minutes, alpha=0.95)
    line = stats.linregress(minutes, megabytes)
    return Slope(*(float(one) for one in (robust.slope, robust.low_slope, robust.high_slope, line.slope, line.stderr)))


async def load(port: int, process: int, *, seconds: float, seed: int) -> tuple[list[Sample], Tally]:
    """Send requests of all sizes for a time, check the statuses, and take a sample a second."""
    began = time.perf_counter()
    samples: list[Sample] = []
    tally = Tally()
    mixture = Mixture(seed)

    def unending() -> Iterator[bytes]:
        while time.perf_counter() - began < seconds:
            for request in mixture.take(50):
                statuses.append(request.status)
                yield request.wire()

    statuses: list[int] = []
    requests = unending()

    async def work() -> None:
        connection = Connection(port)
        for sent in requests:
            expected = statuses[-1]
            tally.sent += 1
            try:
                answer = await connection.ask(sent)
            except (OSError, asyncio.IncompleteReadError, TimeoutError):
                tally.lost += 1
                continue
            tally.statuses[answer.status] += 1
            if answer.status != expected:
                tally.wrong += 1
                tally.first_wrong = [*tally.first_wrong, f"{answer.status} for {expected}: {answer.body[:100]!r}"][:5]
        await connection.close()

    async def look() -> None:
        while True:
            samples.append(sample(process, began))
            await asyncio.sleep(1.0)

    looking = asyncio.create_task(look())
    await asyncio.gather(*(work() for _ in range(CONNECTIONS)))
    looking.cancel()
    return samples, tally
