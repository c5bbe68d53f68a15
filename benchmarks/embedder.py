"""Texts to vectors in this process, 512 a call: gramvec in each precision beside its peers; what a precision costs."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import gramvec
from benchmarks.measure import Setting, interleaved, rates
from benchmarks.peers import peers
from benchmarks.results import Group, Part
from benchmarks.tables import distances, precisions
from gramvec.bundle.bundle import Precision
from gramvec.runtime.select import RuntimeName


def run(setting: Setting) -> Part:
    part = Part()
    with precisions(setting.model) as folders, ExitStack() as stack:
        _against_peers(part, setting, folders, stack)
        part.add("precisions", _rounding(setting, folders, stack))
    part.add("threads", _threads(setting))
    return part


def _against_peers(part: Part, setting: Setting, folders: dict[Precision, Path], stack: ExitStack) -> None:
    shipped = {runtime: _opened(stack, setting.model, runtime=runtime) for runtime in ("native", "onnx")}
    name = shipped["native"].name
    stored = shipped["native"].manifest.graph.precision
    ours = {
        f"{name} ({stored}, shipped), native": shipped["native"],
        f"{name} ({stored}, shipped), ONNX Runtime": shipped["onnx"],
    }
    for precision, folder in folders.items():
        if precision != stored:
            ours[f"{name} ({precision}), native"] = _opened(stack, folder, runtime="native")
    blocks = setting.blocks()
    tasks: dict[str, Callable[[], object]] = {
        name: lambda embed=embed: [embed(block) for block in blocks]  # type: ignore[misc]
        for name, embed in peers(shipped["native"], setting.texts, part.note).items()
    }
    against = next(iter(tasks))  # model2vec where it is installed
    tasks |= {name: lambda one=one: [one.embed(block) for block in blocks] for name, one in ours.items()}  # type: ignore[misc]
    timings = interleaved(tasks, len(setting.texts), setting.rounds)
    part.add("embedder", rates("embedder: texts to vectors, 512 a call, one thread", "texts", timings, against))


def _rounding(setting: Setting, folders: dict[Precision, Path], stack: ExitStack) -> Group:
    vectors = {
        (precision, runtime): _opened(stack, folder, runtime=runtime).embed(setting.texts)
        for precision, folder in folders.items()
        for runtime in ("onnx", "native")
    }
    rows = []
    for (precision, runtime), found in vectors.items():
        away = distances(found, vectors["float32", "onnx"])
        rows.append({"name": f"{precision}, {runtime}", "max": float(away.max()), "mean": float(away.mean())})
    return Group("precisions: distance to the float32 table through ONNX Runtime", "1 - cosine", rows)


def _threads(setting: Setting) -> Group:
    embedders = {
        f"{threads} thread{'s' * (threads > 1)}": gramvec.load(
            setting.model, device="cpu", runtime="native", threads=threads
        )
        for threads in (1, 2)
    }
    timings = interleaved(
        {name: lambda one=one: one.embed(setting.texts) for name, one in embedders.items()},  # type: ignore[misc]
        len(setting.texts),
        setting.rounds,
    )
    for one in embedders.values():
        one.close()
    return rates("threads: all texts in one call, by the wall clock", "texts", timings, "1 thread", by="per_second")


def _opened(stack: ExitStack, model: str | Path, *, runtime: RuntimeName) -> gramvec.Embedder:
    embedder = gramvec.load(model, device="cpu", runtime=runtime, threads=1)
    stack.callback(embedder.close)
    return embedder
