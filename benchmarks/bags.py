"""torch's EmbeddingBag over a bundle's rows, in each precision: the peer of the runtimes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch

from benchmarks.tables import Floats, stored
from gramvec.bundle.bundle import Bundle, Precision
from gramvec.text.batch import FeatureBatch

Bag = Callable[[FeatureBatch], torch.Tensor]


def embedding_bag(bundle: Bundle, table: Floats, precision: Precision) -> Bag:
    """float32[n, d] of a FeatureBatch by torch, with the bundle's pooling, bias and activation.

    float16: a half-precision table, summed by torch as it does. int8: torch's row-wise 8-bit EmbeddingBag, which has
    a scale and an offset a row.
    """
    graph, bias = bundle.manifest.graph, stored(bundle).get("bias")
    add = None if bias is None else torch.from_numpy(bias.copy())
    mean = graph.pooling == "mean"

    def bag(batch: FeatureBatch) -> torch.Tensor:
        vectors = pool(torch.from_numpy(batch.ids), torch.from_numpy(batch.offsets[:-1].astype(np.int32))).float()
        vectors = vectors if add is None else vectors + add
        return torch.tanh(vectors) if graph.activation == "tanh" else vectors

    if precision == "int8":
        packed = torch.ops.quantized.embedding_bag_byte_prepack(torch.from_numpy(table))

        def pool(ids: torch.Tensor, offsets: torch.Tensor) -> torch.Tensor:
            sums = torch.ops.quantized.embedding_bag_byte_rowwise_offsets(packed, ids, offsets, mode=0)
            counts = torch.diff(offsets, append=torch.tensor([len(ids)], dtype=offsets.dtype)).clamp(min=1)[:, None]
            return torch.as_tensor(sums / counts if mean else sums)

    else:
        matrix = torch.from_numpy(table).to(torch.float16 if precision == "float16" else torch.float32)

        def pool(ids: torch.Tensor, offsets: torch.Tensor) -> torch.Tensor:
            return torch.nn.functional.embedding_bag(ids, matrix, offsets, mode=graph.pooling)

    return bag
