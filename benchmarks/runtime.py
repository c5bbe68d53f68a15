"""Features to vectors, and texts to vectors: ONNX Runtime against torch's EmbeddingBag and against the memory.

The limit is a copy of every row that the texts gather, once, which is the least that ONNX Runtime's Gather does.
"""

from __future__ import annotations

import numpy as np
import onnx
import torch

import gramvec
from benchmarks.measure import interleaved, table
from gramvec.runtime.onnx import OnnxRuntime


def run(embedder: gramvec.Embedder, texts: list[str], rounds: int) -> list[dict[str, object]]:
    torch.set_num_threads(1)
    weights = _weights(embedder)
    batches = [embedder.bundle.featuriser(texts[start : start + 32]) for start in range(0, len(texts), 32)]
    runtime = OnnxRuntime(embedder.bundle.graph_path, embedder.dimension, "cpu")
    matrix = torch.from_numpy(weights)
    longest = max(len(batch.ids) for batch in batches)
    copied = np.empty((longest, embedder.dimension), np.float32)

    def bag() -> None:
        for batch in batches:
            ids = torch.from_numpy(batch.ids.astype(np.int64))
            torch.tanh(torch.nn.functional.embedding_bag(ids, matrix, torch.from_numpy(batch.offsets[:-1]), mode="sum"))

    def copy() -> None:
        for batch in batches:
            np.take(weights, batch.ids, axis=0, out=copied[: len(batch.ids)], mode="clip")

    blocks = [texts[start : start + 512] for start in range(0, len(texts), 512)]
    timings = interleaved(
        {
            "torch EmbeddingBag, float32": bag,
            "one copy of the rows, float32": copy,
            f"ONNX Runtime, {embedder.manifest.graph.precision}": lambda: [runtime.run(b) for b in batches],
            "texts to vectors, 512 a call": lambda: [embedder.embed(block) for block in blocks],
            "texts to vectors, one a call": lambda: [embedder.embed([text]) for text in texts],
        },
        len(texts),
        rounds,
    )
    return table(f"runtime: {embedder.name}, one thread", "texts", timings, "torch EmbeddingBag, float32")


def _weights(embedder: gramvec.Embedder) -> np.ndarray:
    model = onnx.load(embedder.bundle.graph_path)
    arrays = {one.name: onnx.numpy_helper.to_array(one) for one in model.graph.initializer}
    return np.ascontiguousarray(arrays["table"] * arrays.get("scales", np.float32(1)), np.float32)
