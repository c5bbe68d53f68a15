"""Check of a bundle's weights for NaN and infinity, which no digest detects: digests cover whatever was written."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gramvec.bundle.weights import MappedWeights
from gramvec.errors import BundleError

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
