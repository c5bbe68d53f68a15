"""Measurement: interleaved rounds, medians, CPU time and wall time, and the machine."""

from __future__ import annotations

import os
import platform
import statistics
import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from benchmarks.results import Group, rate_rows

ROOT = Path(__file__).parent.parent
PACKAGES = (
    "numpy", "onnxruntime", "onnxruntime-gpu", "torch", "fastapi", "uvicorn",
    "model2vec", "sentence-transformers", "fasttext-community", "scikit-learn", "rapidfuzz",
)  # fmt: skip
# Caches are warm again after some 5 ms. In a round of 15 ms the fastest contestant reached only two thirds of its rate
# after one with a large table.
ROUND_SECONDS = 0.1


@dataclass(frozen=True)
class Setting:
    """Input of every part.

    Args:
        model: A name in models/, or a bundle's folder.
        texts: Real sentences.
        rounds: Number of interleaved rounds.
        data: Folder of the development sets.
    """

    model: str
    texts: list[str]
    rounds: int
    data: Path

    def blocks(self, size: int = 512) -> list[list[str]]:
        """Return the texts in lists of `size`; the last may be shorter."""
        return [self.texts[start : start + size] for start in range(0, len(self.texts), size)]


@dataclass(frozen=True)
class Timing:
    """Medians over rounds, in units of work a second: by CPU time, and by the wall clock.

    `spread` is the quartile range of the CPU rate over its median.
    """

    per_cpu_second: float
    per_second: float
    spread: float


def interleaved(
    tasks: Mapping[str, Callable[[], object]],
    work: float | Mapping[str, float],
    rounds: int,
    *,
    seconds: float = ROUND_SECONDS,
) -> dict[str, Timing]:
    """Run every task once unmeasured, then each in turn, `rounds` times.

    In a round a task is called for `seconds`, at least once. A call does `work` units.
    """
    samples: dict[str, list[tuple[float, float]]] = {name: [] for name in tasks}
    for task in tasks.values():
        task()
    for _ in range(rounds):
        for name, task in tasks.items():
            calls, wall, cpu = 0, time.perf_counter(), time.process_time()
            while not calls or time.perf_counter() - wall < seconds:
                task()
                calls += 1
            samples[name].append(((time.process_time() - cpu) / calls, (time.perf_counter() - wall) / calls))
    units = work if isinstance(work, Mapping) else dict.fromkeys(tasks, work)
    return {name: summary(taken, units[name]) for name, taken in samples.items()}


def summary(samples: list[tuple[float, float]], work: float) -> Timing:
    """Return the medians of samples of (CPU seconds, wall seconds), each of `work` units."""
    rates = [work / max(cpu, 1e-9) for cpu, _ in samples]
    middle = statistics.median(rates)
    return Timing(middle, work / statistics.median(wall for _, wall in samples), spread(rates))


def spread(values: list[float]) -> float:
    """Return the quartile range over the median; 0 for a single value."""
    if len(values) < 2:
        return 0.0
    quarters = statistics.quantiles(values, n=4)
    return (quarters[2] - quarters[0]) / statistics.median(values)


def rates(
    title: str, unit: str, timings: Mapping[str, Timing], against: str | None, *, by: str = "per_cpu_second"
) -> Group:
    """Return a group with a row for each timing and its ratio to the row `against`, or to the first.

    `unit` is the counted thing in the plural; `by` is the column of the ratio.
    """
    values = {name: vars(timing) for name, timing in timings.items()}
    return Group(title, unit, rate_rows(values, against or next(iter(timings)), by), against or next(iter(timings)))


def machine() -> dict[str, str]:
    """Return processor, cores, Python, versions of libraries, and the commit."""
    said = {name.strip(): value.strip() for name, _, value in (one.partition(":") for one in _lines("/proc/cpuinfo"))}
    model = said.get("model name", platform.processor())
    if "cpu family" in said:  # the name may be a maker's alone
        model += f" (family {said['cpu family']}, model {said.get('model', '?')})"
    return {
        "processor": f"{model}, {os.cpu_count()} cores",
        "python": platform.python_version(),
        "packages": ", ".join(f"{name} {found}" for name in PACKAGES if (found := _version(name))),
        "commit": _commit(),
    }


def _lines(path: str) -> list[str]:
    file = Path(path)
    return file.read_text().splitlines() if file.exists() else []


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _commit() -> str:
    command = ["git", "describe", "--always", "--dirty"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.strip() or "unknown"
