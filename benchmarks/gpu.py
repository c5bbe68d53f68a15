"""CUDA against the CPU: the embedder at growing batches, where they cross, and the share of the memory's bandwidth.

The limit is a copy on the device, measured in the same run with ONNX Runtime. The share is what a call reads of the
table (its rows, once each time they occur) over the call's whole time, features and transfers left out of the bytes
but not out of the time.
"""

from __future__ import annotations

import logging
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
from benchmarks.tables import stored

SIZES = (1, 8, 64, 512, 4096, 32_768)
COPY_BYTES = 2**28


def run(setting: Setting) -> Part:
    part = Part()
    reasons = _Reasons()
    logger = logging.getLogger("gramvec.runtime")
    level = logger.level
    logger.addHandler(reasons)
    logger.setLevel(logging.INFO)
    try:
        device = gramvec.load(setting.model, device="auto", runtime="onnx")
    finally:
        logger.removeHandler(reasons)
        logger.setLevel(level)
    if device.device != "cuda":
        device.close()
        part.note(f"gpu is left out: no CUDA device ({reasons.last})")
        return part
    host = gramvec.load(setting.model, device="cpu")
    compare(part, setting, {"cpu": host, "cuda": device}, SIZES)
    return part


class _Reasons(logging.Handler):
    last = "the log says why"

    def emit(self, record: logging.LogRecord) -> None:
        self.last = record.getMessage()


def compare(part: Part, setting: Setting, embedders: Mapping[str, gramvec.Embedder], sizes: tuple[int, ...]) -> None:
    """Add the groups: rates at each size by the wall clock, the crossover, and the share of the bandwidth.

    embedders: the CPU's and the device's, in this order.
    """
    cpu, device = embedders
    timings: dict[int, dict[str, Timing]] = {}
    for size in sizes:
        texts = (setting.texts * (size // len(setting.texts) + 1))[:size]
        calls = max(1, min(64, 4096 // size))
        timings[size] = interleaved(
            {
                name: lambda one=one, texts=texts, calls=calls: [one.embed(texts) for _ in range(calls)]  # type: ignore[misc]
                for name, one in embedders.items()
            },
            size * calls,
            setting.rounds,
        )
        title = f"gpu: {size:,} text(s) a call, by the wall clock"
        part.add(f"gpu_{size}", rates(title, "texts", timings[size], cpu, by="per_second"))
    faster = [size for size in sizes if timings[size][device].per_second > timings[size][cpu].per_second]
    crossover = f"{device} is faster from {faster[0]:,} texts a call on" if faster else f"{device} is never faster"
    part.note(f"gpu: {crossover} (of {', '.join(f'{size:,}' for size in sizes)})")
    part.add("gpu_bandwidth", _bandwidth(setting, embedders[device], sizes[-1]))


def _bandwidth(setting: Setting, embedder: gramvec.Embedder, size: int) -> Group:
    texts = (setting.texts * (size // len(setting.texts) + 1))[:size]
    bundle = embedder.bundle
    table = stored(bundle)["table"]
    batch = bundle.memoised(texts)
    read = len(batch.ids) * table.shape[1] * table.itemsize
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
