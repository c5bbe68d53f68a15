"""Weights of a bundle: memory-mapped views of the verified file, and the check that all of them are finite.

No digest detects NaN and infinity, because digests cover whatever was written.
"""

from __future__ import annotations

import mmap
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gramvec.bundle.manifest import Manifest, StoredWeights
from gramvec.errors import BundleError
from gramvec.text.arrays import Floats

_DTYPES: dict[str, np.dtype[Any]] = {"float32": np.dtype("<f4"), "float16": np.dtype("<f2"), "int8": np.dtype("i1")}


class MappedWeights(NamedTuple):
    """A vector is activation(pool(table[id] * scales[id]) * columns + bias).

    path: of the file. data: uint8[bytes], all of it. table: [rows, d] of the stored precision, which begins at
    `data[begin]`. scales: float32[rows] or None, in whatever place of the file, so not always aligned. columns, bias:
    float32[d] or None.
    """

    path: Path
    data: NDArray[np.uint8]
    begin: int
    table: NDArray[Any]
    scales: Floats | None
    columns: Floats | None
    bias: Floats | None


def map_weights(path: Path, data: mmap.mmap, stored: StoredWeights, manifest: Manifest) -> MappedWeights:
    """Return the weights that the manifest places in this file.

    Raises:
        BundleError: they do not fit into the file; the message names it.
    """
    rows, d, dtype = stored.rows, manifest.dimension, _DTYPES[manifest.graph.precision]
    size = len(data)
    for what, begin, length in (
        ("table", stored.table, rows * d * dtype.itemsize),
        ("scales", stored.scales or 0, 4 * rows if stored.scales is not None else 0),
    ):
        if begin + length > size:
            raise BundleError(
                f"{path}: its {what} cannot be mapped (bytes {begin} to {begin + length} of {size}); "
                "copy or export the model again"
            )
    if stored.table % dtype.itemsize:
        raise BundleError(f"{path}: its table begins at byte {stored.table}, inside a number; export the model again")
    return MappedWeights(
        path,
        np.frombuffer(data, np.uint8),
        stored.table,
        np.frombuffer(data, dtype, rows * d, stored.table).reshape(rows, d),
        None if stored.scales is None else np.frombuffer(data, "<f4", rows, stored.scales),
        None if stored.columns is None else np.array(stored.columns, np.float32),
        None if stored.bias is None else np.array(stored.bias, np.float32),
    )


# Numbers looked at together: a few megabytes, so that a large table is not copied.
PIECE = 2**20
REMEDY = "the training had diverged; train and export the model again"


def check_finite(weights: MappedWeights) -> None:
    """Look at every number of the file that can be NaN or infinite: a float table, and scales.

    An int8 table holds neither; its scales are one number a row. A float32 table takes 0.3 ms a megabyte, once.

    Raises:
        BundleError: naming the file and the row.
    """
    path, table = weights.path, weights.table
    if table.dtype != np.int8:
        where = _first_odd(table.reshape(-1))
        if where is not None:
            raise BundleError(f"{path}: row {where // table.shape[1]} holds NaN or infinity; {REMEDY}")
    if weights.scales is not None:
        where = _first_odd(weights.scales)
        if where is not None:
            raise BundleError(f"{path}: the scale of row {where} is NaN or infinite; {REMEDY}")


def _first_odd(numbers: NDArray[Any]) -> int | None:
    for start in range(0, len(numbers), PIECE):
        finite = np.isfinite(numbers[start : start + PIECE])
        if not finite.all():
            return start + int(finite.argmin())
    return None
