"""Texts to vectors in this process, beside other libraries: 512 texts a call, one text a call, two threads."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np

import gramvec
from benchmarks.measure import Setting, interleaved, rates
from benchmarks.peers import peers
from benchmarks.results import Group, Part
from gramvec.bundle.bundle import open_bundle
from gramvec.native import loops
from gramvec.runtime.native import NativeRuntime
from gramvec_training.export.convert import convert

WIDTHS = {512: "all that the processor has", 256: "vectors of 256 bits, or NEON", 0: "the plain loop"}
# A large table with n-grams, a small one, and one of words.
WIDTH_MODELS = ("gramvec-en", "charagram-phrase", "paragram-phrase")
FLOAT_COLUMNS = 300


def run(setting: Setting) -> Part:
    part = Part()
    native = gramvec.load(setting.model, device="cpu", runtime="native", threads=1)
    onnx = gramvec.load(setting.model, device="cpu", runtime="onnx", threads=1)
    embeds: dict[str, Callable[[list[str]], object]] = {
        **peers(setting.texts, part.note),  # model2vec first, where it is installed
        f"{native.name}, native": native.embed,
        f"{native.name}, ONNX Runtime": onnx.embed,
    }
    against = next(iter(embeds))
    blocks = setting.blocks()
    tasks = {name: lambda embed=embed: [embed(block) for block in blocks] for name, embed in embeds.items()}
    timings = interleaved(tasks, len(setting.texts), setting.rounds)
    part.add("embedder", rates("embedder: texts to vectors, 512 a call, one thread", "texts", timings, against))
    singles = {name: lambda text, embed=embed: embed([text]) for name, embed in embeds.items()}
    title = "latency: one text a call, one thread"
    part.add("latency", percentiles(title, singles, setting.texts, setting.rounds, against))
    part.add("threads", _threads(setting))
    for name in WIDTH_MODELS:
        part.add(f"widths_{name}", _widths(setting, name))
    part.add("precisions", _precisions(setting))
    for kind in (np.float16, np.float32):
        part.add(f"widths_{kind.__name__}", _float_widths(setting, kind))
    native.close()
    onnx.close()
    return part


def percentiles(
    title: str, tasks: Mapping[str, Callable[[str], object]], texts: list[str], rounds: int, against: str
) -> Group:
    """Time each task on each text, in interleaved rounds, and return the median and 99th percentile in microseconds.

    The column `ratio` is the median of `against` divided by the task's.
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


def _threads(setting: Setting) -> Group:
    embedders = {
        f"{threads} thread{'s' * (threads > 1)}": gramvec.load(
            setting.model, device="cpu", runtime="native", threads=threads
        )
        for threads in (1, 2)
    }
    tasks = {name: lambda one=one: one.embed(setting.texts) for name, one in embedders.items()}
    timings = interleaved(tasks, len(setting.texts), setting.rounds)
    for one in embedders.values():
        one.close()
    return rates("threads: all texts in one call, by the wall clock", "texts", timings, "1 thread", by="per_second")


def _widths(setting: Setting, model: str) -> Group:
    """Measure the loops by hand for AVX-512, AVX2 or NEON against the plain loop, which the compiler made of C."""
    bundle = open_bundle(model)
    runtimes = {name: NativeRuntime(bundle, width=width) for width, name in WIDTHS.items()}
    blocks = setting.blocks()
    tasks = {
        name: lambda one=one: [one.embed(bundle.memoized, block) for block in blocks] for name, one in runtimes.items()
    }
    timings = interleaved(tasks, len(setting.texts), setting.rounds)
    return rates(f"loops in C, {model}: texts to sums, 512 a call, one thread", "texts", timings, WIDTHS[512])


def _precisions(setting: Setting) -> Group:
    """Measure the model as it is stored against the same in rows of four bits."""
    with tempfile.TemporaryDirectory() as folder:
        convert(setting.model, Path(folder) / "int4", precision="int4")
        bundles = [open_bundle(setting.model), open_bundle(Path(folder) / "int4")]
        runtimes = {bundle.manifest.graph.precision: (bundle, NativeRuntime(bundle)) for bundle in bundles}
        blocks = setting.blocks()
        tasks = {
            name: lambda bundle=bundle, native=native: [native.embed(bundle.memoized, block) for block in blocks]
            for name, (bundle, native) in runtimes.items()
        }
        timings = interleaved(tasks, len(setting.texts), setting.rounds)
    title = f"stored precision, {setting.model}: texts to sums, 512 a call, one thread"
    return rates(title, "texts", timings, next(iter(tasks)))


def _float_widths(setting: Setting, kind: type[np.floating]) -> Group:
    """Measure the loop by hand for tables of floats, which is for AVX-512, against the plain one, over random rows."""
    bundle = open_bundle(setting.model)
    assert bundle.weights is not None
    featurizer, rows = bundle.memoized, len(bundle.weights.table)
    table = np.random.default_rng(0).standard_normal((rows, FLOAT_COLUMNS), np.float32).astype(kind)
    sums = np.empty((len(setting.texts), FLOAT_COLUMNS), np.float32)

    def embed(width: int) -> Callable[[], object]:
        shape = (rows, FLOAT_COLUMNS, FLOAT_COLUMNS * table.itemsize, table.itemsize)
        loop = loops.Table(memoryview(table).cast("B"), *shape, None, None, 1.0, True, None, None, width)
        memoized = featurizer.memo is not None
        return lambda: [loop.embed(featurizer.loops, one, memoized, sums[: len(one)]) for one in setting.blocks()]

    tasks = {WIDTHS[width]: embed(width) for width in (512, 0)}
    timings = interleaved(tasks, len(setting.texts), setting.rounds)
    title = f"loops in C, a table of {kind.__name__}, {FLOAT_COLUMNS} columns: texts to sums, 512 a call, one thread"
    return rates(title, "texts", timings, WIDTHS[512])
