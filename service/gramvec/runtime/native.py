"""The runtime of our own: loops in C over the mapped table, for a CPU.

ONNX Runtime's stock operators copy every row before they add it. These loops add rows where they lie and read the same
file: float rows in the order in which ONNX Runtime adds them, int8 rows that share scales as exact integers.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gramvec import native
from gramvec.bundle import Bundle
from gramvec.errors import BackendError, BundleError, DeviceError
from gramvec.features import FeatureBatch

Floats = NDArray[np.float32]

_BYTES = {"float32": 4, "float16": 2, "int8": 1}
# The largest weight of an int8 row: 127 * 128 is the most that half an int32 holds.
MOST_WEIGHT = 128


class NativeRuntime:
    """A Runtime (see gramvec.runtime) over the table of a bundle, mapped from its file.

    width: the most bits of a processor's vectors that the loops may use, 512, 256 or 0; sums are the same to the bit.
    Raises DeviceError if the loops were not built, BundleError if the bundle does not say where its table is, or lies.
    """

    name = "native"
    device = "cpu"
    provider = "native"

    def __init__(self, bundle: Bundle, *, width: int = 512) -> None:
        loops = native.loops
        if loops is None:
            raise DeviceError(f"runtime native: {native.MISSING}; or take runtime onnx")
        graph, d = bundle.manifest.graph, bundle.manifest.dimension
        stored = graph.stored
        if stored is None:
            raise BundleError(f"{bundle.path}: made before runtime native; export it again, or take runtime onnx")
        path = bundle.path / stored.file
        item = _BYTES[graph.precision]
        length = stored.rows * d * item
        scales = None if stored.scales is None else _mapped(path, np.float32, stored.scales, stored.rows)
        weights, step = None, 1.0
        if item == 1 and scales is not None and stored.table + length + loops.BLOCK <= path.stat().st_size:
            weights, step = weights_and_step(scales)
            length += loops.BLOCK
        self._dimension = d
        self._rows = stored.rows
        self._tanh = graph.activation == "tanh"
        self._table: Any = loops.Table(
            _mapped(path, np.uint8, stored.table, length),
            stored.rows,
            d,
            d * item,
            item,
            None if weights is not None else scales,
            weights,
            step,
            graph.pooling == "mean",
            None if stored.columns is None else np.array(stored.columns, np.float32),
            None if stored.bias is None else np.array(stored.bias, np.float32),
            width,
        )

    def run(self, batch: FeatureBatch) -> Floats:
        """See Runtime.run."""
        if self._table is None:
            raise BackendError("the model is closed; load it again")
        vectors = np.empty((len(batch), self._dimension), np.float32)
        wrong = self._table(batch.ids, batch.offsets, vectors)
        if wrong >= 0:
            raise BackendError(f"row {batch.ids[wrong]} is not in the table of {self._rows} rows; load the model again")
        return np.tanh(vectors, out=vectors) if self._tanh else vectors

    def close(self) -> None:
        """Let go of the table; later calls raise BackendError."""
        self._table = None


def weights_and_step(scales: Floats) -> tuple[NDArray[np.uint8] | None, float]:
    """Scales as whole multiples of the smallest, the step; None where they are not 1 to 128 times it, all of them."""
    step = scales.min(initial=np.inf)
    if not (step > 0 and scales.max() <= step * MOST_WEIGHT):
        return None, 1.0
    multiples = np.rint(scales / step)
    return (multiples.astype(np.uint8), float(step)) if np.array_equal(multiples * step, scales) else (None, 1.0)


def _mapped(path: Path, dtype: type, offset: int, count: int) -> NDArray[Any]:
    try:
        return np.memmap(path, dtype, "r", offset, (count,)).view(np.ndarray)
    except (OSError, ValueError) as error:
        raise BundleError(f"{path}: its table cannot be mapped ({error}); copy or export the model again") from error
