"""The runtime of our own: a compiled loop over the mapped table, for a CPU.

ONNX Runtime's stock operators copy every row before they add it. These loops add rows where they lie and read the same
file: float rows in the order in which ONNX Runtime adds them, int8 rows that share scales as integers.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gramvec.bundle import Bundle
from gramvec.errors import BackendError, BundleError, DeviceError
from gramvec.features import FeatureBatch

Floats = NDArray[np.float32]

_DTYPES = {"float32": np.float32, "float16": np.uint16, "int8": np.int8}  # float16 by its bits, see kernel.py
# Rows are added as integers where they share at most so many scales.
MOST_STEPS = 16


class NativeRuntime:
    """A Runtime (see gramvec.runtime) over the table of a bundle, mapped from its file.

    Raises DeviceError if numba is missing, BundleError if the bundle does not say where its table lies, or lies.
    """

    name = "native"
    device = "cpu"
    provider = "native"

    def __init__(self, bundle: Bundle) -> None:
        try:
            import gramvec.runtime.kernel as kernel
        except ImportError as error:
            raise DeviceError("runtime native needs numba: pip install numba, or take runtime onnx") from error
        graph, d = bundle.manifest.graph, bundle.manifest.dimension
        stored = graph.stored
        if stored is None:
            raise BundleError(f"{bundle.path}: made before runtime native; export it again, or take runtime onnx")
        path = bundle.path / stored.file
        self._dimension = d
        self._rows = stored.rows
        self._sum: Any = kernel.sum_rows
        self._weights: tuple[NDArray[Any], ...] | None = (
            _mapped(path, _DTYPES[graph.precision], stored.table, (stored.rows, d)),
            _ones(stored.rows) if stored.scales is None else _mapped(path, np.float32, stored.scales, (stored.rows,)),
        )
        steps = np.unique(self._weights[1])[::-1]
        padded = stored.rows * d + kernel.BLOCK
        if graph.precision == "int8" and len(steps) <= MOST_STEPS and stored.table + padded <= path.stat().st_size:
            self._sum = kernel.sum_int8
            kinds = np.searchsorted(-steps, -self._weights[1]).astype(np.uint8)
            self._weights = (_mapped(path, np.int8, stored.table, (padded,)), kinds, steps)
        self._columns = None if stored.columns is None else np.array(stored.columns, np.float32)
        self._bias = None if stored.bias is None else np.array(stored.bias, np.float32)
        self._mean = graph.pooling == "mean"
        self._tanh = graph.activation == "tanh"

    def run(self, batch: FeatureBatch) -> Floats:
        """See Runtime.run."""
        if self._weights is None:
            raise BackendError("the model is closed; load it again")
        vectors = np.empty((len(batch), self._dimension), np.float32)
        wrong = self._sum(batch.ids, batch.offsets, *self._weights, vectors)
        if wrong >= 0:
            raise BackendError(f"row {batch.ids[wrong]} is not in the table of {self._rows} rows; load the model again")
        if self._mean:
            vectors /= np.maximum(batch.counts, 1).astype(np.float32)[:, None]
        if self._columns is not None:
            vectors *= self._columns
        if self._bias is not None:
            vectors += self._bias
        return np.tanh(vectors, out=vectors) if self._tanh else vectors

    def close(self) -> None:
        """Let go of the table; later calls raise BackendError."""
        self._weights = None


def _ones(rows: int) -> Floats:
    ones = np.ones(rows, np.float32)
    ones.setflags(write=False)  # as a mapped array: numba compiles for each kind
    return ones


def _mapped(path: Path, dtype: type, offset: int, shape: tuple[int, ...]) -> NDArray[Any]:
    try:
        return np.memmap(path, dtype, "r", offset, shape).view(np.ndarray)
    except (OSError, ValueError) as error:
        raise BundleError(f"{path}: its table cannot be mapped ({error}); copy or export the model again") from error
