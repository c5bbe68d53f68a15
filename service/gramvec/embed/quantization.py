"""Embeddings in fewer bits: the precisions of sentence-transformers, without a calibration set.

sentence-transformers cuts the range of each component, as seen in a calibration set, into 256 steps. Here the range is
the one that vectors of length 1 have, -1 to 1, for every component: so the bytes depend on the vector alone.
"""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from gramvec.embed.vectors import Vectors
from gramvec.errors import InputError

VectorPrecision = Literal["float32", "int8", "uint8", "binary", "ubinary"]
PRECISIONS: tuple[str, ...] = get_args(VectorPrecision)

# The value of a component of 1.
INT8_SCALE = 127
UINT8_ZERO = 128
OF_UNIT_VECTORS = ("int8", "uint8")


def check_precision(precision: VectorPrecision | None, *, normalize: bool) -> None:
    """Raise InputError for a precision that there is not, and one that has no meaning for vectors of any length."""
    if precision is not None and precision not in PRECISIONS:
        raise InputError(f"precision must be one of {', '.join(PRECISIONS)}, not {precision!r}", field="precision")
    if precision in OF_UNIT_VECTORS and not normalize:
        raise InputError(
            f"precision {precision} is for vectors of length 1; leave out normalize, or ask for float32 or binary",
            field="precision",
        )


def quantize(vectors: Vectors, precision: VectorPrecision | None) -> NDArray[np.generic]:
    """float32[n, k] in another precision; None is float32.

    int8[n, k]: 127 times the component of a vector of length 1, rounded to the nearest (a half to the even one).
    uint8[n, k]: 128 more than that.
    ubinary: uint8[n, ceil(k / 8)], a bit for each component, 1 where it is above 0, the first one the highest;
    missing ones of the last byte are 0. binary: int8 of the same shape, 128 less than that.
    """
    match precision:
        case "int8":
            return np.rint(vectors * INT8_SCALE).astype(np.int8)
        case "uint8":
            return (np.rint(vectors * INT8_SCALE) + UINT8_ZERO).astype(np.uint8)
        case "binary":
            return (np.packbits(vectors > 0, axis=-1) ^ 0x80).view(np.int8)
        case "ubinary":
            return np.packbits(vectors > 0, axis=-1)
        case _:
            return vectors
