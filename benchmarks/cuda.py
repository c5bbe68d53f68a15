"""Texts a second on a GPU beside the CPU of the same machine, and whether both give the same bytes.

    python -m benchmarks.cuda TEXTS [MODEL ...] > benchmarks/results/cuda.json

TEXTS is a file of lines. Needs the extra `gpu` and an NVIDIA GPU; what is open in a notebook beside it makes it slower.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from importlib.metadata import version
from pathlib import Path

import numpy as np

import gramvec

RUNTIMES = {
    "native": {"device": "cpu", "runtime": "native"},
    "onnx": {"device": "cpu", "runtime": "onnx"},
    "cuda": {"device": "cuda"},
}
SIZES, REPEATS = (1, 32, 512, 8_192, 16_384), 9


def measure_rate(embedder: gramvec.Embedder, texts: list[str]) -> float:
    """Return the texts a second of a call of all texts, the median of some."""
    embedder.embed(texts)
    times = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        embedder.embed(texts)
        times.append(time.perf_counter() - start)
    return len(texts) / statistics.median(times)


def measure_model(name: str, texts: list[str]) -> dict[str, object]:
    """Return the rates of a model by runtime and texts a call, and whether the bytes are those of the loops in C."""
    embedders = {runtime: gramvec.load(name, **options) for runtime, options in RUNTIMES.items()}  # type: ignore[arg-type]
    vectors = {runtime: embedder.embed(texts[:8_192]).view(np.int32) for runtime, embedder in embedders.items()}
    alone = np.concatenate([embedders["cuda"].embed([text]) for text in texts[:64]]).view(np.int32)
    return {
        "same_bytes": {runtime: bool((vectors[runtime] == vectors["native"]).all()) for runtime in RUNTIMES},
        "cuda_alone_as_in_a_batch": bool((alone == vectors["cuda"][:64]).all()),
        "texts_per_second": {
            str(size): {runtime: round(measure_rate(embedder, texts[:size])) for runtime, embedder in embedders.items()}
            for size in SIZES
        },
    }


def main() -> None:
    """Measure, and print JSON."""
    texts = Path(sys.argv[1]).read_text(encoding="utf-8").splitlines()[: max(SIZES)]
    names = sys.argv[2:] or ["gramvec-en"]
    query = ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]
    card = subprocess.run(query, capture_output=True, text=True, check=True).stdout.strip()
    machine = {"card": card, "cores": os.cpu_count(), "onnxruntime-gpu": version("onnxruntime-gpu")}
    print(json.dumps({"machine": machine} | {name: measure_model(name, texts) for name in names}, indent=1))


if __name__ == "__main__":
    main()
