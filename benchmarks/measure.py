"""Interleaved rounds, medians, CPU time beside wall time, and where it all ran."""

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

ROOT = Path(__file__).parent.parent


@dataclass(frozen=True)
class Timing:
    """Medians over rounds, in units of work a second: by this process's CPU time, and by the wall clock.

    `spread` is the quartile range of the CPU rate over its median.
    """

    per_cpu_second: float
    per_second: float
    spread: float


def interleaved(tasks: Mapping[str, Callable[[], object]], work: float, rounds: int) -> dict[str, Timing]:
    """Run every task once unmeasured, then each in turn, `rounds` times; a task does `work` units a call."""
    samples: dict[str, list[tuple[float, float]]] = {name: [] for name in tasks}
    for task in tasks.values():
        task()
    for _ in range(rounds):
        for name, task in tasks.items():
            wall, cpu = time.perf_counter(), time.process_time()
            task()
            samples[name].append((time.process_time() - cpu, time.perf_counter() - wall))
    return {name: summary(taken, work) for name, taken in samples.items()}


def summary(samples: list[tuple[float, float]], work: float) -> Timing:
    """The medians of samples of (CPU seconds, wall seconds), each of `work` units."""
    rates = [work / max(cpu, 1e-9) for cpu, _ in samples]
    quarters = statistics.quantiles(rates, n=4) if len(rates) > 1 else [rates[0]] * 3
    middle = statistics.median(rates)
    return Timing(middle, work / statistics.median(wall for _, wall in samples), (quarters[2] - quarters[0]) / middle)


def machine() -> dict[str, str]:
    """Processor, cores, Python, the versions that matter, and the commit."""
    model = next(
        (line.split(":")[1].strip() for line in _lines("/proc/cpuinfo") if line.startswith("model name")),
        platform.processor(),
    )
    packages = ["numpy", "numba", "onnxruntime", "onnxruntime-gpu", "torch", "fastapi", "uvicorn"]
    return {
        "processor": f"{model}, {os.cpu_count()} cores",
        "python": platform.python_version(),
        "packages": ", ".join(f"{name} {found}" for name in packages if (found := _version(name))),
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


def table(title: str, unit: str, timings: Mapping[str, Timing], against: str) -> list[dict[str, object]]:
    """Print the timings as a table with each one's ratio to `against`; return the rows for the JSON file."""
    base = timings[against].per_cpu_second
    width = max(map(len, timings))
    print(f"\n{title} ({unit} a CPU second; ratio to {against})")
    rows: list[dict[str, object]] = []
    for name, timing in timings.items():
        ratio = timing.per_cpu_second / base
        print(f"  {name:<{width}}  {timing.per_cpu_second:>12,.0f}  x {ratio:<6.2f} +-{timing.spread:.0%}")
        rows.append(
            {
                "name": name,
                "per_cpu_second": round(timing.per_cpu_second, 1),
                "per_second": round(timing.per_second, 1),
                "ratio": round(ratio, 3),
                "spread": round(timing.spread, 3),
            }
        )
    return rows
