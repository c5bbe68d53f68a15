"""Features to vectors: runtime native, ONNX Runtime and torch's EmbeddingBag on the same ids, in each precision.

The limit is a copy of every row that the texts gather, once, which is the least that ONNX Runtime's Gather does.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.bags import embedding_bag
from benchmarks.measure import Setting, interleaved, rates
from benchmarks.results import Group, Part
from benchmarks.tables import dequantised, distances, precisions, stored
from gramvec.bundle.bundle import Precision, open_bundle
from gramvec.runtime.native import NativeRuntime
from gramvec.runtime.select import open_runtime
from gramvec.text.batch import FeatureBatch

TORCH = "torch EmbeddingBag"
# 1 - cosine to torch's float32 bag of the same stored values, beyond which something else was measured. torch's own
# half and 8-bit tables are rounded once more.
TOLERANCE = 1e-4
TORCH_TOLERANCE = 2e-2
ROWS_A_COPY = 2_500  # as ONNX Runtime is called: beyond it the copy leaves the caches


def run(setting: Setting) -> Part:
    part = Part()
    torch.set_num_threads(1)
    with precisions(setting.model) as folders:
        for precision, folder in folders.items():
            part.add(f"runtime_{precision}", _compare(setting, precision, folder))
    return part


def _compare(setting: Setting, precision: Precision, folder: Path) -> Group:
    bundle = open_bundle(folder)
    native, onnx = NativeRuntime(bundle), open_runtime(bundle, "cpu", "onnx")
    batches = [bundle.memoised(block) for block in setting.blocks()]
    values = dequantised(bundle)
    bag, exact = (embedding_bag(bundle, values, one) for one in (precision, "float32"))
    table = stored(bundle)["table"]
    copied = np.empty((ROWS_A_COPY, table.shape[1]), table.dtype)

    def copy(batch: FeatureBatch) -> None:
        for start in range(0, len(batch.ids), ROWS_A_COPY):
            ids = batch.ids[start : start + ROWS_A_COPY]
            np.take(table, ids, axis=0, out=copied[: len(ids)], mode="clip")

    tasks: dict[str, Any] = {
        TORCH: bag,
        "one copy of the rows": copy,
        "ONNX Runtime": onnx.run,
        "native": native.run,
    }
    for name, limit in ((TORCH, TORCH_TOLERANCE), ("ONNX Runtime", TOLERANCE), ("native", TOLERANCE)):
        worst = distances(np.asarray(tasks[name](batches[0])), np.asarray(exact(batches[0]))).max()
        if worst > limit:
            raise SystemExit(f"{name}, {precision}: 1 - cosine to float32 is {worst:.1e}; it computes something else")
    whole: dict[str, Callable[[], object]] = {
        name: lambda task=task: [task(batch) for batch in batches]  # type: ignore[misc]
        for name, task in tasks.items()
    }
    timings = interleaved(whole, len(setting.texts), setting.rounds)
    native.close()
    onnx.close()
    return rates(f"runtime: {precision} table, 512 texts a call, one thread", "texts", timings, TORCH)
