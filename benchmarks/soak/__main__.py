"""Long runs under load, and a table at the end: python -m benchmarks.soak (make soak).

Exit code 1 if a request was lost or wrong, or if memory grows.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import platform
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import uvloop

from benchmarks.measure import ROOT, machine
from benchmarks.soak.client import Connection, Tally, beside, drive
from benchmarks.soak.memory import load, slope
from benchmarks.soak.overload import Overload, capacity, overload
from benchmarks.soak.requests import Mixture, Request, dumps
from benchmarks.soak.swap import KEY, Swap

RESULTS = ROOT / "benchmarks" / "results" / "soak.json"
PATIENCE = 120.0
# Seconds that the queue of the overloaded service holds, and how often what it can serve is sent.
QUEUE_SECONDS, TIMES = 4.0, 5.0
LONG_TEXTS, LONG_TEXT = 1, 40_000
# Until then the allocator's pools and the table's pages in use still grow, by less and less.
WARM_UP_SECONDS = 180.0
# Megabytes a minute that count as growth, if the interval of the slope lies above.
GROWTH = 0.5

Row = tuple[str, str]
Part = tuple[list[Row], dict[str, Any], bool]


@contextmanager
def served(*options: str) -> Iterator[tuple[int, int]]:
    """`gramvec serve` on a free port, ready: its process and its port."""
    with tempfile.TemporaryFile("w+") as log:
        command = [sys.executable, "-m", "gramvec.cli", "serve", "--port", "0", "--device", "cpu", *options]
        with subprocess.Popen(command, stderr=log, cwd=ROOT) as process:
            try:
                yield process.pid, _port_when_ready(process, log)
            finally:
                process.terminate()
                try:
                    process.wait(30)
                except subprocess.TimeoutExpired:
                    process.kill()


def _port_when_ready(process: subprocess.Popen[bytes], log: Any) -> int:
    end = time.perf_counter() + PATIENCE
    while time.perf_counter() < end and process.poll() is None:
        log.seek(0)
        found = re.search(r"listening on http://127\.0\.0\.1:(\d+)", log.read())
        if found:
            answer = asyncio.run(beside(int(found[1]), Request("ready", "/ready", b"", method="GET").wire()))
            if answer is not None and answer.status == 200:
                return int(found[1])
        time.sleep(0.1)
    log.seek(0)
    raise SystemExit(f"the service did not become ready; its log:\n{log.read()}")


def mixed(options: argparse.Namespace) -> Part:
    """Send requests of every kind, checked byte for byte, while the model is replaced."""
    rows: list[Row] = []
    values: dict[str, Any] = {}
    good = True
    for workers in (1, 2):
        with tempfile.TemporaryDirectory() as folder:
            swap = Swap(Path(folder))
            arguments = ["--model", str(swap.path), "--api-key", KEY, "--workers", str(workers)]
            began = time.perf_counter()
            with served(*arguments) as (process, port):
                tally = uvloop.run(_swapped(swap, port, process, options))
            seconds = time.perf_counter() - began
            swap.close()
        name = f"mixed, {workers} worker{'s' * (workers > 1)}"
        rows.append((f"{name}: sent / lost / wrong", f"{tally.sent:,} / {tally.lost} / {tally.wrong}"))
        rows.append(
            (f"{name}: models swapped", f"{swap.done} times in {seconds:.0f} s, {options.connections} connections")
        )
        values[f"workers_{workers}"] = {**_counts(tally), "swaps": swap.done, "seconds": round(seconds, 1)}
        good = good and not tally.lost and not tally.wrong and swap.done > 0
    return rows, values, good


async def _swapped(swap: Swap, port: int, process: int, options: argparse.Namespace) -> Tally:
    swapping = asyncio.create_task(swap.repeatedly(port, process, pause=0.2))
    requests = Mixture(options.seed).take(options.requests)
    tally = await drive(port, requests, swap.models, connections=options.connections, key=KEY)
    if swapping.done():
        await swapping
    swapping.cancel()
    return tally


def _counts(tally: Tally) -> dict[str, Any]:
    statuses = {str(status): count for status, count in sorted(tally.statuses.items())}
    return {
        "sent": tally.sent, "lost": tally.lost, "wrong": tally.wrong, "first_wrong": tally.first_wrong,
        "statuses": statuses,
    }  # fmt: skip


def overloaded(options: argparse.Namespace) -> Part:
    """Five times the requests of long texts that one process serves, with the runtime for which they are work.

    The native one takes little longer for a text than the connection does to bring it. A request is one text, so one
    call: several would each wait for their turn.
    """
    serving = ("--model", options.model, "--runtime", options.overload_runtime)
    mixture = Mixture(options.seed)
    bodies = [[" ".join(mixture.texts(1_500, 1_500, 30))[:LONG_TEXT] for _ in range(LONG_TEXTS)] for _ in range(6)]
    sent = [Request("long", "/embed", dumps({"inputs": texts}), {"accept": "application/octet-stream"}).wire()
            for texts in bodies]  # fmt: skip
    with served(*serving) as (_, port):
        rate = uvloop.run(capacity(port, sent, connections=4, seconds=5))
    characters = round(rate * LONG_TEXTS * LONG_TEXT * QUEUE_SECONDS)
    with served(*serving, "--queue-characters", str(characters)) as (_, port):
        uvloop.run(capacity(port, sent, connections=4, seconds=3))  # it learns what a character costs
        found, patient = uvloop.run(_overload_and_wait(port, sent, rate * TIMES, options.overload_seconds))
    ratios = found.retry_after_ratios()
    within = sum(0.5 <= ratio <= 2 for ratio in ratios) / max(1, len(ratios))
    accepted, refused = len(found.accepted), len(found.refused)
    rows = [
        ("overload: requests a second sent / served when not overloaded", f"{rate * TIMES:.1f} / {rate:.1f}"),
        ("overload: answered / 429 / anything else", f"{accepted:,} / {refused:,} / {len(found.others)}"),
        ("overload: answered a second", f"{accepted / options.overload_seconds:.1f}"),
        (
            f"overload: seconds to the answer of those taken, p50 / p99 (the queue holds {QUEUE_SECONDS:.0f})",
            f"{found.latency(50):.2f} / {found.latency(99):.2f}",
        ),
        (
            "overload: the same by the service's clock (server-timing)",
            f"{found.time_inside(50):.2f} / {found.time_inside(99):.2f}",
        ),
        (
            "overload: Retry-After over the time it took, p5 / median / p95",
            " / ".join(f"{one:.2f}" for one in _percentiles(ratios)),
        ),
        ("overload: of these within a factor of two", f"{within:.1%}"),
        ("overload: who waited for Retry-After afterwards got", str(patient)),
    ]
    values = {
        "capacity": rate, "sent_a_second": rate * TIMES, "answered": accepted, "refused": refused,
        "others": found.others, "queue_seconds": QUEUE_SECONDS,
        "inside_p50": found.time_inside(50), "inside_p99": found.time_inside(99),
        "p50": found.latency(50), "p99": found.latency(99), "retry_after_ratio": _percentiles(ratios),
        "retry_after_within_two": within, "patient": patient,
    }  # fmt: skip
    good = not found.others and refused > 0 and patient == 200 and found.latency(99) < 2 * QUEUE_SECONDS + 1
    return rows, values, good


async def _overload_and_wait(port: int, sent: list[bytes], rate: float, seconds: float) -> tuple[Overload, int]:
    running = asyncio.create_task(overload(port, sent, rate=rate, seconds=seconds))
    # One client more, that comes when the load has just ended, and waits as it is told.
    await asyncio.sleep(seconds)
    connection = Connection(port)
    answer = await connection.ask(sent[0])
    if answer.status == 429:
        await asyncio.sleep(float(answer.headers["retry-after"]))
        answer = await connection.ask(sent[0])
    await connection.close()
    return await running, answer.status


def _percentiles(ratios: list[float]) -> list[float]:
    if len(ratios) < 2:
        return ratios * 3
    twentieths = statistics.quantiles(ratios, n=20)
    return [twentieths[0], statistics.median(ratios), twentieths[-1]]


def memory(options: argparse.Namespace) -> Part:
    """Minutes of requests of all sizes."""
    with served("--model", options.model) as (process, port):
        warm_up = min(WARM_UP_SECONDS, options.minutes * 60)
        seconds = warm_up + options.minutes * 60
        samples, tally = uvloop.run(load(port, process, seconds=seconds, seed=options.seed))
        descriptors = sum(1 for _ in Path(f"/proc/{process}/fd").iterdir())
    warm = [one for one in samples if one.seconds >= warm_up]
    clock = [one.seconds for one in warm]
    resident = slope(clock, [one.resident for one in warm])
    anonymous = slope(clock, [one.anonymous for one in warm])
    rows = [
        ("memory: sent / lost / wrong status", f"{tally.sent:,} / {tally.lost} / {tally.wrong}"),
        ("memory: resident MB, first / after warm-up / last",
         f"{samples[0].resident:.1f} / {warm[0].resident:.1f} / {samples[-1].resident:.1f}"),
        ("memory: slope of all that is resident", str(resident)),
        ("memory: slope of what is no file's", str(anonymous)),
    ]  # fmt: skip
    values = {
        **_counts(tally), "minutes": options.minutes, "descriptors": descriptors,
        "resident": resident.as_json(), "anonymous": anonymous.as_json(),
        "samples": [[round(one.seconds, 1), round(one.resident, 2), round(one.anonymous, 2)] for one in samples[::10]],
    }  # fmt: skip
    return rows, values, not tally.lost and not tally.wrong and anonymous.low < GROWTH


PARTS: dict[str, Callable[[argparse.Namespace], Part]] = {
    "mixed": mixed, "overload": overloaded, "memory": memory,
}  # fmt: skip


def main() -> None:
    """Run the parts that were asked for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.soak", description=__doc__)
    parser.add_argument("--model", default="gramvec-en", help="what to serve but in the part mixed")
    parser.add_argument("--only", default=",".join(PARTS), help="parts, with commas: %(default)s")
    parser.add_argument("--requests", type=int, default=10_000, help="mixed requests for each number of workers")
    parser.add_argument("--connections", type=int, default=64)
    parser.add_argument(
        "--minutes", type=float, default=5.0, help="of load for the memory, after a warm-up of three or as many"
    )
    parser.add_argument("--overload-seconds", type=float, default=30.0)
    parser.add_argument("--overload-runtime", choices=["native", "onnx"], default="onnx")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", type=Path, default=RESULTS)
    options = parser.parse_args()
    unknown = [name for name in options.only.split(",") if name not in PARTS]
    if unknown:
        parser.error(f"no part is named {unknown[0]!r}; there are {', '.join(PARTS)}")
    rows: list[Row] = []
    results: dict[str, Any] = {"machine": machine(), "python": platform.python_version(), "parts": {}}
    failed = []
    for name in options.only.split(","):
        print(f"{name} ...", flush=True)
        found, values, good = PARTS[name](options)
        rows += found
        results["parts"][name] = {"good": good, **values}
        if not good:
            failed.append(name)
    width = max(len(label) for label, _ in rows)
    print("\n".join(["", *(f"{label:<{width}}  {value}" for label, value in rows)]))
    options.json.parent.mkdir(parents=True, exist_ok=True)
    options.json.write_text(json.dumps(results, indent=1) + "\n")
    if failed:
        raise SystemExit(f"not good: {', '.join(failed)}; {options.json} has the details")


if __name__ == "__main__":
    main()
