"""From the start of a process to the first 200, with warm file caches."""

from __future__ import annotations

import statistics

from benchmarks.measure import Setting, spread
from benchmarks.results import Group, Part
from benchmarks.servers import Server, bare, gramvec_serve

BARE = "bare ASGI, model loaded before it listens"


def run(setting: Setting) -> Part:
    part = Part()
    commands = {
        BARE: bare(setting.model, coalesce=True),
        "gramvec serve, native": gramvec_serve(setting.model, runtime="native"),
        "gramvec serve, ONNX Runtime": gramvec_serve(setting.model, runtime="onnx"),
    }
    samples: dict[str, list[tuple[float, float]]] = {name: [] for name in commands}
    for turn in range(setting.rounds + 1):
        for name, command in commands.items():
            with Server(command) as server:
                if turn:  # the first round warms up
                    samples[name].append((server.seconds_to_ready, server.cpu_seconds()))
    walls = {name: statistics.median(wall for wall, _ in taken) for name, taken in samples.items()}
    rows = [
        {
            "name": name,
            "seconds": round(walls[name], 3),
            "cpu_seconds": round(statistics.median(cpu for _, cpu in taken), 3),
            "ratio": round(walls[name] / walls[BARE], 2),
            "spread": round(spread([wall for wall, _ in taken]), 3),
        }
        for name, taken in samples.items()
    ]
    part.add("startup", Group("start-up: process start to the first 200 on /ready", "seconds", rows, BARE))
    return part
