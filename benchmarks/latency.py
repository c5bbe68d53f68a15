"""One text a call in this process: gramvec beside its peers, median and 99th percentile."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

import numpy as np

import gramvec
from benchmarks.measure import Setting
from benchmarks.peers import peers
from benchmarks.results import Group, Part

OURS = "gramvec"


def run(setting: Setting) -> Part:
    part = Part()
    native = gramvec.load(setting.model, device="cpu", runtime="native", threads=1)
    onnx = gramvec.load(setting.model, device="cpu", runtime="onnx", threads=1)
    tasks: dict[str, Callable[[str], object]] = {
        name: lambda text, embed=embed: embed([text])  # type: ignore[misc]
        for name, embed in peers(native, setting.texts, part.note).items()
    }
    against = next(iter(tasks))  # model2vec where it is installed
    tasks[f"{OURS}, native"] = lambda text: native.embed([text])
    tasks[f"{OURS}, ONNX Runtime"] = lambda text: onnx.embed([text])
    title = "latency: one text a call, one thread"
    part.add("latency", percentiles(title, tasks, setting.texts, setting.rounds, against))
    native.close()
    onnx.close()
    return part


def percentiles(
    title: str, tasks: Mapping[str, Callable[[str], object]], texts: list[str], rounds: int, against: str
) -> Group:
    """Each task on each text, a round of one task after a round of the other; over all rounds, microseconds.

    ratio: how many times shorter the median is than that of `against`.
    """
    samples: dict[str, list[int]] = {name: [] for name in tasks}
    for task in tasks.values():
        for text in texts[:100]:
            task(text)
    for _ in range(rounds):
        for name, task in tasks.items():
            for text in texts:
                start = time.perf_counter_ns()
                task(text)
                samples[name].append(time.perf_counter_ns() - start)
    points = {name: (np.percentile(taken, (50, 99)) / 1e3).tolist() for name, taken in samples.items()}
    rows = [
        {"name": name, "p50_us": round(p50, 1), "p99_us": round(p99, 1), "ratio": round(points[against][0] / p50, 2)}
        for name, (p50, p99) in points.items()
    ]
    return Group(title, "microseconds", rows, against)
