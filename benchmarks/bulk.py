"""Files to files: `gramvec embed` for each form of output, beside the library without files; `gramvec dedupe`.

Each run is a process of its own, its start included; 48 lines for each sentence, each line different. The peak is the
process's largest resident set.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import gramvec
from benchmarks.measure import ROOT, Setting
from benchmarks.results import Group, Part, Row

LINES_A_SENTENCE = 48
DEDUPE_A_SENTENCE = (6, 12)
LIMIT = "library, no files"
PEAK_SECONDS = 0.02


class Cost(NamedTuple):
    """What a run took; peak_mb is 0 where it was not measured."""

    seconds: float
    cpu_seconds: float
    peak_mb: float


def run(setting: Setting) -> Part:
    part = Part()
    with TemporaryDirectory(prefix="gramvec-bench-") as name:
        folder = Path(name)
        lines = numbered(setting, LINES_A_SENTENCE)
        source = folder / "in.txt"
        source.write_text("\n".join(lines) + "\n", encoding="utf-8")
        costs = {LIMIT: _median([_library(setting, lines) for _ in range(setting.rounds)])}
        for form in ("npy", "parquet", "jsonl"):
            output, model = str(folder / f"out.{form}"), ("--model", setting.model, "--device", "cpu")
            command = ["embed", str(source), "-o", output, *model]
            costs[f".txt to .{form}"] = _median([command_cost(*command) for _ in range(setting.rounds)])
        title = "bulk: lines of a file a second, all cores, with the start of the process"
        part.add("bulk", Group(title, "lines", _rates(costs, len(lines)), LIMIT))
        part.add("dedupe", Group("dedupe: all pairs of lines", "seconds", _dedupe(setting, folder)))
    return part


def numbered(setting: Setting, times: int) -> list[str]:
    """Lines, each different."""
    return [f"{number} {' '.join(text.split())}" for number in range(times) for text in setting.texts]


def _library(setting: Setting, lines: list[str]) -> Cost:
    embedder = gramvec.load(setting.model, device="cpu")
    wall, cpu = time.perf_counter(), time.process_time()
    for _ in embedder.stream(lines, batch_size=4096):
        pass
    cost = Cost(time.perf_counter() - wall, time.process_time() - cpu, 0.0)
    embedder.close()
    return cost


def command_cost(*arguments: str) -> Cost:
    """Measure a run of the command, in a process of its own."""
    began = time.perf_counter()
    command = [sys.executable, "-m", "gramvec.cli", *arguments]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    peak = 0
    while not os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT | os.WNOHANG):
        # Not ru_maxrss, which begins at this process's own peak.
        peak = max(peak, _peak_kb(process.pid))
        time.sleep(PEAK_SECONDS)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"gramvec {arguments[0]} ended with {process.returncode}")
    return Cost(time.perf_counter() - began, usage.ru_utime + usage.ru_stime, peak / 1e3)


def _peak_kb(process: int) -> int:
    try:
        status = Path(f"/proc/{process}/status").read_text()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM")), 0)


def _median(costs: list[Cost]) -> Cost:
    return Cost(*map(statistics.median, zip(*costs, strict=True)))


def _rates(costs: dict[str, Cost], lines: int) -> list[Row]:
    return [
        {
            "name": name,
            "per_second": round(lines / cost.seconds, 1),
            "per_cpu_second": round(lines / cost.cpu_seconds, 1),
            "peak_mb": round(cost.peak_mb, 1),
            "ratio": round(costs[LIMIT].seconds / cost.seconds, 3),
        }
        for name, cost in costs.items()
    ]


def _dedupe(setting: Setting, folder: Path) -> list[Row]:
    rows: list[Row] = []
    for times in DEDUPE_A_SENTENCE:
        lines = numbered(setting, times)
        source = folder / "dedupe.txt"
        source.write_text("\n".join(lines) + "\n", encoding="utf-8")
        cost = command_cost("dedupe", str(source), "--unique", str(folder / "kept.txt"))
        rows.append(
            {"name": f"{len(lines):,} lines"} | {name: round(value, 2) for name, value in cost._asdict().items()}
        )
    return rows
