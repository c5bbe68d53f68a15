"""Weights of a bundle: memory-mapped views of the verified file, and the check that all of them are in their ranges.

No digest detects NaN and infinity, because digests cover whatever was written.
"""

from __future__ import annotations

import mmap
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gramvec.bundle.four_bits import MAX_WEIGHT, bytes_a_row, unpack_levels
from gramvec.bundle.manifest import Manifest, StoredWeights
from gramvec.errors import BundleError
from gramvec.text.arrays import Floats

_DTYPES: dict[str, np.dtype[Any]] = {
    "float32": np.dtype("<f4"),
    "float16": np.dtype("<f2"),
    "int8": np.dtype("i1"),
    "int4": np.dtype("u1"),
}
# Bytes of the file behind the last row of four bits: the loops in C read so many beyond it.
BYTES_BEHIND = 64


class MappedWeights(NamedTuple):
    """A vector is activation(pool(table[id] * scales[id]) * columns + bias).

    path: of the file. data: uint8[bytes], all of it. table: [rows, d] of the stored precision, which begins at
    `data[begin]`; of int4 uint8[rows, bytes]. dimension: d. scales: float32[rows] or None, in whatever place of the
    file, so not always aligned. weights: uint8[rows], and step, of int4, or None. columns, bias: float32[d] or None.
    """

    path: Path
    data: NDArray[np.uint8]
    begin: int
    table: NDArray[Any]
    dimension: int
    scales: Floats | None
    weights: NDArray[np.uint8] | None
    step: np.float32 | None
    columns: Floats | None
    bias: Floats | None

    def rows(self, ids: NDArray[np.integer[Any]]) -> Floats:
        """Return these rows as float32[n, d], times their scales, but not the columns'."""
        if self.weights is not None and self.step is not None:
            unpacked = unpack_levels(self.table[ids], self.dimension)
            whole: Floats = (unpacked * self.weights[ids].astype(np.int16)[:, None]).astype(np.float32)
            return whole * self.step
        levels: Floats = np.asarray(self.table[ids], np.float32)
        return levels if self.scales is None else levels * np.asarray(self.scales[ids])[:, None]


def map_weights(path: Path, data: mmap.mmap, stored: StoredWeights, manifest: Manifest) -> MappedWeights:
    """Return the weights that the manifest places in this file.

    Raises:
        BundleError: they do not fit into the file; the message names it.
    """
    rows, d, precision = stored.rows, manifest.dimension, manifest.graph.precision
    width, dtype, size = bytes_a_row(d) if precision == "int4" else d, _DTYPES[precision], len(data)
    for what, begin, length in (
        ("table", stored.table, rows * width * dtype.itemsize + (BYTES_BEHIND if precision == "int4" else 0)),
        ("scales", stored.scales or 0, 4 * rows if stored.scales is not None else 0),
        ("weights", stored.weights or 0, rows if stored.weights is not None else 0),
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
        np.frombuffer(data, dtype, rows * width, stored.table).reshape(rows, width),
        d,
        None if stored.scales is None else np.frombuffer(data, "<f4", rows, stored.scales),
        None if stored.weights is None else np.frombuffer(data, np.uint8, rows, stored.weights),
        None if stored.step is None else np.float32(stored.step),
        None if stored.columns is None else np.array(stored.columns, np.float32),
        None if stored.bias is None else np.array(stored.bias, np.float32),
    )


# Numbers looked at together: a few megabytes, so that a large table is not copied.
PIECE = 2**20
REMEDY = "the training had diverged; train and export the model again"


def check_numbers(weights: MappedWeights) -> None:
    """Look at every number of the file that can be wrong: a float table and scales, which must be finite, and weights.

    A table of whole numbers holds neither NaN nor infinity; its scales or weights are one number a row. A float32 table
    takes 0.3 ms a megabyte, once.

    Raises:
        BundleError: naming the file and the row.
    """
    path, table = weights.path, weights.table
    if table.dtype.kind == "f":
        where = _first_odd(table.reshape(-1))
        if where is not None:
            raise BundleError(f"{path}: row {where // table.shape[1]} holds NaN or infinity; {REMEDY}")
    if weights.scales is not None:
        where = _first_odd(weights.scales)
        if where is not None:
            raise BundleError(f"{path}: the scale of row {where} is NaN or infinite; {REMEDY}")
    if weights.weights is not None and weights.weights.max(initial=0) > MAX_WEIGHT:
        row = int((weights.weights > MAX_WEIGHT).argmax())
        raise BundleError(
            f"{path}: the weight of row {row} is {weights.weights[row]}, and not 0 to {MAX_WEIGHT}; "
            "copy or export the model again"
        )


def _first_odd(numbers: NDArray[Any]) -> int | None:
    for start in range(0, len(numbers), PIECE):
        finite = np.isfinite(numbers[start : start + PIECE])
        if not finite.all():
            return start + int(finite.argmin())
    return None
