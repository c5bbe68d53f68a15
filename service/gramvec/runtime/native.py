"""The runtime of our own: loops in C over the mapped table, for a CPU.

ONNX Runtime's stock operators copy every row before they add it. These loops add rows where they lie and read the same
file: float rows in the order in which ONNX Runtime adds them, int8 rows whose scales have one step, and rows of four
bits, as exact integers.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gramvec import native
from gramvec.bundle.bundle import Bundle
from gramvec.errors import BackendError, BundleError, DeviceError, InputError
from gramvec.features.featurizer import Featurizer
from gramvec.runtime.base import Batching, Runtime, Sums
from gramvec.text.arrays import FeatureBatch, Floats
from gramvec.text.inputs import code_points

# What the loops take for bytes of a number where a byte has two.
FOUR_BITS = 0
# The largest weight of an int8 row: 127 * 128 is the most that half an int32 holds.
MAX_WEIGHT = 128


class NativeRuntime(Runtime):
    """Runtime over the table of a bundle, mapped from its file.

    width: the most bits of a processor's vectors that the loops may use, 512, 256 or 0; sums are the same to the bit.
    Raises DeviceError if the loops were not built or the model is more than a sum of rows, BundleError if the bundle
    does not say where its table is.
    """

    name = "native"
    device = "cpu"
    provider = "native"
    # A long text costs no more than a short one: rows are added as they are read.
    batching = Batching()

    def __init__(self, bundle: Bundle, *, width: int = 512) -> None:
        loops = native.loops
        if loops is None:
            raise DeviceError(f"runtime native: {native.MISSING}; or take runtime onnx")
        graph, mapped = bundle.manifest.graph, bundle.weights
        if graph.beyond_rows is not None:
            raise DeviceError(f"runtime native: {bundle.manifest.name} {graph.beyond_rows}; take runtime onnx")
        if mapped is None:
            raise BundleError(f"{bundle.path}: made before runtime native; export it again, or take runtime onnx")
        rows, item = len(mapped.table), mapped.table.itemsize
        stride = mapped.table.shape[1] * item
        end = mapped.begin + rows * stride
        scales, step = None, 1.0
        if mapped.scales is not None:  # which lie anywhere in the file
            scales = np.require(mapped.scales, requirements="A")
        weights = mapped.weights
        if mapped.step is not None:
            step, item = float(mapped.step), FOUR_BITS
        elif item == 1 and scales is not None and end + loops.BLOCK <= len(mapped.data):
            weights, step = weights_and_step(scales)
        if weights is not None:
            end += loops.BLOCK
        self._dimension = mapped.dimension
        self._rows = rows
        self._tanh = graph.activation == "tanh"
        self._table: Any = loops.Table(
            mapped.data[mapped.begin : end],
            rows,
            mapped.dimension,
            stride,
            item,
            None if weights is not None else scales,
            weights,
            step,
            graph.pooling == "mean",
            mapped.columns,
            mapped.bias,
            width,
        )

    def run(self, batch: FeatureBatch) -> Floats:
        """Sum rows in C."""
        table = self._open_table()
        vectors = np.empty((len(batch), self._dimension), np.float32)
        wrong = table(batch.ids, batch.offsets, vectors)
        if wrong >= 0:
            raise self._no_row(batch.ids[wrong])
        return self._activate(vectors)

    def embed(self, featurizer: Featurizer, texts: Sequence[str]) -> Sums:
        """Featurize and sum; C reads a text while memory fetches the last text's rows."""
        if featurizer.loops is None:
            return super().embed(featurizer, texts)
        table = self._open_table()
        began = time.perf_counter()
        vectors = np.empty((len(texts), self._dimension), np.float32)
        try:
            counts, unknown, share, wrong = table.embed(featurizer.loops, texts, featurizer.memo is not None, vectors)
        except OverflowError as error:
            raise InputError(str(error)) from None
        except (TypeError, ValueError):
            code_points(texts)  # raises an error that names the text
            raise
        seconds = share * (time.perf_counter() - began)
        if wrong is not None:
            raise self._no_row(wrong)
        return Sums(self._activate(vectors), np.frombuffer(counts, np.int64), unknown, seconds)

    def _open_table(self) -> Any:
        if self._table is None:
            raise BackendError("the model is closed; load it again")
        return self._table

    def _no_row(self, row: int) -> BackendError:
        return BackendError(f"row {row} is not in the table of {self._rows} rows; load the model again")

    def _activate(self, vectors: Floats) -> Floats:
        return np.tanh(vectors, out=vectors) if self._tanh else vectors

    def close(self) -> None:
        """Let go of the table."""
        self._table = None


def weights_and_step(scales: Floats) -> tuple[NDArray[np.uint8] | None, float]:
    """Scales as 1 to 128 times the step, which is a 128th of the largest; None where one is not that."""
    step = scales.max(initial=0) / np.float32(MAX_WEIGHT)
    if step <= 0:
        return None, 1.0
    with np.errstate(all="ignore"):  # untrusted scales may be any numbers
        multiples = np.rint(scales / step)
        whole = multiples.min() >= 1 and np.array_equal(multiples * step, scales)
    return (multiples.astype(np.uint8), float(step)) if whole else (None, 1.0)


def vector_of_no_rows(bundle: Bundle) -> Floats | None:
    """Return the vector float32[d] that these loops give a text without rows: the bias, or zeros, activated.

    None for a bundle that is more than a sum of rows, or does not say where its rows lie.
    """
    graph, weights = bundle.manifest.graph, bundle.weights
    if graph.beyond_rows is not None or weights is None:
        return None
    vector = np.zeros(bundle.manifest.dimension, np.float32)
    if weights.columns is not None:
        vector *= weights.columns
    if weights.bias is not None:
        vector += weights.bias
    return np.tanh(vector) if graph.activation == "tanh" else vector
