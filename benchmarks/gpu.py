"""CUDA against the CPU: the embedder at growing batches, where they cross, and the share of the memory's bandwidth.

The limit is a copy on the device, measured in the same run with ONNX Runtime. The share is what a call reads of the
table (its rows, once each time they occur) over the call's whole time, features and transfers left out of the bytes
but not out of the time.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Mapping
from typing import Any

import numpy as np
import onnxruntime
from onnx import TensorProto, helper

import gramvec
from benchmarks.measure import Setting, Timing, interleaved, rates
from benchmarks.results import Group, Part
from gramvec.errors import GramvecError

SIZES = (1, 8, 64, 512, 4096, 32_768)
COPY_BYTES = 2**28
STAGES_TEXTS = 4096
BYTES = {"float32": 4, "float16": 2, "int8": 1}


def run(setting: Setting) -> Part:
    part = Part()
    try:
        device = gramvec.load(setting.model, device="cuda")
    except GramvecError as error:
        part.note(f"gpu is left out: no CUDA device ({error})")
        return part
    host = gramvec.load(setting.model, device="cpu")
    compare(part, setting, {"cpu": host, "cuda": device}, SIZES)
    return part


def compare(part: Part, setting: Setting, embedders: Mapping[str, gramvec.Embedder], sizes: tuple[int, ...]) -> None:
    """Add the groups: rates at each size by the wall clock, the crossover, stages, and the share of the bandwidth.

    embedders: the CPU's and the device's, in this order. What fails is a note, and the rest goes on.
    """
    cpu, device = embedders
    timings: dict[int, dict[str, Timing]] = {}
    for size in sizes:
        with part.failures_noted(f"{size:,} text(s) a call"):
            timings[size] = _rates(part, setting, embedders, size)
    if timings:
        faster = [size for size, found in timings.items() if found[device].per_second > found[cpu].per_second]
        crossover = f"{device} is faster from {faster[0]:,} texts a call on" if faster else f"{device} is never faster"
        part.note(f"gpu: {crossover} (of {', '.join(f'{size:,}' for size in timings)})")
    with part.failures_noted("stages"):
        part.add("gpu_stages", _stages(setting, embedders, min(STAGES_TEXTS, sizes[-1])))
    with part.failures_noted("bandwidth"):
        part.add("gpu_bandwidth", _bandwidth(setting, embedders[device], sizes[-1]))


def _texts(setting: Setting, size: int) -> list[str]:
    return (setting.texts * (size // len(setting.texts) + 1))[:size]


def _rates(part: Part, setting: Setting, embedders: Mapping[str, gramvec.Embedder], size: int) -> dict[str, Timing]:
    texts = _texts(setting, size)
    calls = max(1, min(64, 4096 // size))
    found = interleaved(
        {
            name: lambda one=one: [one.embed(texts) for _ in range(calls)]  # type: ignore[misc]
            for name, one in embedders.items()
        },
        size * calls,
        setting.rounds,
    )
    title = f"gpu: {size:,} text(s) a call, by the wall clock"
    part.add(f"gpu_{size}", rates(title, "texts", found, next(iter(embedders)), by="per_second"))
    return found


def _stages(setting: Setting, embedders: Mapping[str, gramvec.Embedder], size: int) -> Group:
    """What one thread spends on features, which no device does, and on sums: their ratio bounds what one gains."""
    bundle = next(iter(embedders.values())).bundle
    texts = _texts(setting, size)
    batch = bundle.memoised(texts)
    tasks: dict[str, Any] = {"features": lambda: bundle.memoised(texts)}
    tasks |= {f"sums, {name}": lambda one=one: one._runtime.run(batch) for name, one in embedders.items()}  # type: ignore[misc]
    found = interleaved(tasks, size, setting.rounds)
    return rates(f"gpu: stages of {size:,} texts, one thread", "texts", found, "features", by="per_second")


def _bandwidth(setting: Setting, embedder: gramvec.Embedder, size: int) -> Group:
    texts = _texts(setting, size)
    bundle = embedder.bundle
    batch = bundle.memoised(texts)
    read = len(batch.ids) * embedder.dimension * BYTES[bundle.manifest.graph.precision]
    embedder.embed(texts)
    seconds = []
    for _ in range(setting.rounds):
        start = time.perf_counter()
        embedder.raw(texts)
        seconds.append(time.perf_counter() - start)
    limit = copy_bandwidth(embedder.device)
    reached = read / statistics.median(seconds)
    rows = [
        {"name": "copy on the device", "gb_per_second": round(limit / 1e9, 2), "ratio": 1.0},
        {
            "name": f"rows read, {size:,} texts a call",
            "gb_per_second": round(reached / 1e9, 2),
            "ratio": reached / limit,
        },
    ]
    return Group("gpu: share of the bandwidth of a copy", "GB/s", rows, "copy on the device")


def copy_bandwidth(device: str, size: int = COPY_BYTES, rounds: int = 5) -> float:
    """Bytes a second, read and written, of x + 1 over `size` bytes that lie on the device ("cpu" or "cuda")."""
    one = helper.make_tensor("one", TensorProto.FLOAT, [1], [1.0])
    sides = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n"]) for name in ("x", "y")]
    graph = helper.make_graph([helper.make_node("Add", ["x", "one"], ["y"])], "copy", sides[:1], sides[1:], [one])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)
    provider = "CUDAExecutionProvider" if device == "cuda" else "CPUExecutionProvider"
    session: Any = onnxruntime.InferenceSession(model.SerializeToString(), providers=[provider])
    source = onnxruntime.OrtValue.ortvalue_from_numpy(np.zeros(size // 4, np.float32), device, 0)
    target = onnxruntime.OrtValue.ortvalue_from_shape_and_type([size // 4], np.float32, device, 0)
    binding = session.io_binding()
    binding.bind_ortvalue_input("x", source)
    binding.bind_ortvalue_output("y", target)
    seconds = []
    for _ in range(rounds + 1):
        binding.synchronize_inputs()
        start = time.perf_counter()
        session.run_with_iobinding(binding)
        binding.synchronize_outputs()
        seconds.append(time.perf_counter() - start)
    return 2 * size / statistics.median(seconds[1:])
