"""Sums that are exact in float32: of int8 rows or rows of four bits that are whole multiples of one step.

Texts are cut so that no sum exceeds 2^24.

A device adds the rows of a text in an order of its own, another one each time. Sums of whole numbers below 2^24 are
the same in every order, so the same text has the same bytes there. What is done to a sum afterwards is done here, in
the order of runtime native, whose bytes it gives.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gramvec.bundle.bundle import Bundle
from gramvec.bundle.four_bits import LARGEST
from gramvec.runtime.native import weights_and_step
from gramvec.text.arrays import Floats, Int64s

# float32 holds every whole number up to here.
MAX_EXACT = 2**24


@dataclass(frozen=True)
class ExactTable:
    """Table whose sums are exact in float32, with the steps from a sum to a vector.

    rows: number of rows of the table, float32[rows, d] in steps. max_rows: the most rows whose sum stays within 2^24.
    A vector is activation((sum * step / rows of the text if `mean`) * columns + bias).
    """

    rows: int
    dimension: int
    max_rows: int
    step: np.float32
    mean: bool
    tanh: bool
    columns: Floats | None
    bias: Floats | None

    @classmethod
    def from_bundle(cls, bundle: Bundle) -> ExactTable | None:
        """Return the exact table of a bundle, or None if its rows are not whole multiples of one step."""
        graph, mapped = bundle.manifest.graph, bundle.weights
        if mapped is None:
            return None
        if mapped.weights is not None and mapped.step is not None:
            weights, step, largest = mapped.weights, float(mapped.step), LARGEST
        elif mapped.scales is not None:
            of_scales, step = weights_and_step(np.require(mapped.scales, requirements="A"))
            if of_scales is None:
                return None
            weights, largest = of_scales, max(int(mapped.table.max()), -int(mapped.table.min()), 1)
        else:
            return None
        return cls(
            rows=len(mapped.table),
            dimension=mapped.dimension,
            max_rows=MAX_EXACT // (largest * max(1, int(weights.max(initial=1)))),
            step=np.float32(step),
            mean=graph.pooling == "mean",
            tanh=graph.activation == "tanh",
            columns=mapped.columns,
            bias=mapped.bias,
        )

    def finish(self, sums: NDArray[Any], counts: Int64s, vectors: Floats) -> None:
        """Write the vectors float32[n, d] of whole sums float32[n, d], which have int64[n] `counts` of rows."""
        np.multiply(sums, self.step, out=vectors)
        if self.mean:
            vectors /= np.maximum(counts, 1).astype(np.float32)[:, None]
        if self.columns is not None:
            vectors *= self.columns
        if self.bias is not None:
            vectors += self.bias
        if self.tanh:
            np.tanh(vectors, out=vectors)


def cut_pieces(offsets: Int64s, max_rows: int) -> tuple[Int64s, Int64s | None]:
    """Cut texts into pieces of at most `max_rows` rows; a text without rows is a piece, too.

    Returns:
        The offsets of the pieces, int64[pieces + 1], and the first piece of each text, int64[n], or None if each text
        is one piece.
    """
    counts = np.diff(offsets)
    if not len(counts) or counts.max() <= max_rows:
        return offsets, None
    pieces = np.maximum(1, -(-counts // max_rows))
    firsts = np.cumsum(pieces) - pieces
    bounds = np.repeat(offsets[:-1], pieces) + (np.arange(pieces.sum()) - np.repeat(firsts, pieces)) * max_rows
    return np.append(bounds, offsets[-1]), firsts


def add_pieces(sums: Floats, firsts: Int64s) -> Floats:
    """Return the sums of each text's pieces float32[pieces, d], added exactly and rounded once, float32[n, d]."""
    return np.add.reduceat(sums, firsts, axis=0, dtype=np.float64).astype(np.float32)
