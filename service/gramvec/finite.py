"""No NaN and no infinity in a bundle's weights: its digests hold for whatever the trainer wrote."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gramvec.errors import BundleError

if TYPE_CHECKING:
    from gramvec.bundle import Graph

# Numbers looked at together: a few megabytes, so that a large table is not copied.
PIECE = 2**20
REMEDY = "the training had diverged; train and export the model again"


def check_finite(folder: Path, graph: Graph, dimension: int) -> None:
    """Look at every stored number that can be NaN or infinite: a float table, scales, columns, bias.

    An int8 table holds neither; its scales are one number a row. A float32 table takes 0.3 ms a megabyte, once.

    Raises:
        BundleError: naming the file and the row, or the field of the manifest.
    """
    stored = graph.stored
    if stored is None:
        return
    file = folder / stored.file
    if graph.precision != "int8":
        where = _first_odd(_mapped(file, graph.precision, stored.table, stored.rows * dimension))
        if where is not None:
            raise BundleError(f"{file}: row {where // dimension} holds NaN or infinity; {REMEDY}")
    if stored.scales is not None:
        where = _first_odd(_mapped(file, "float32", stored.scales, stored.rows))
        if where is not None:
            raise BundleError(f"{file}: the scale of row {where} is NaN or infinite; {REMEDY}")
    for name, values in (("columns", stored.columns), ("bias", stored.bias)):
        with np.errstate(over="ignore"):  # 1e300 is a number of JSON, and none of float32
            narrow = np.array(values or (), np.float32)
        if not np.isfinite(narrow).all():
            raise BundleError(f"{folder / 'manifest.json'}: graph.stored.{name} holds no float32; {REMEDY}")


def _mapped(file: Path, dtype: str, offset: int, count: int) -> NDArray[Any]:
    try:
        return np.memmap(file, dtype, "r", offset, (count,))
    except (OSError, ValueError) as error:
        raise BundleError(f"{file}: its table cannot be mapped ({error}); copy or export the model again") from error


def _first_odd(numbers: NDArray[Any]) -> int | None:
    for start in range(0, len(numbers), PIECE):
        finite = np.isfinite(numbers[start : start + PIECE])
        if not finite.all():
            return start + int(finite.argmin())
    return None
