"""The largest products of two tables' rows, without ever holding all of them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gramvec.text.arrays import Doubles, Int64s

# Products held at a time, in float32: 16 MB.
BLOCK = 4 * 2**20


def largest(one: Doubles, other: Doubles, k: int) -> list[tuple[int, int, float]]:
    """(i, j, product) of the k largest products of rows of float64[n, d] and float64[m, d], by size, whatever the sign.

    Of equal ones that of the first rows comes first. They are found in float32 and told in float64.
    """
    if not len(one) or not len(other):
        return []
    left, right = one.astype(np.float32), other.astype(np.float32).T
    width = right.shape[1]
    step = max(1, BLOCK // width)
    places, sizes = np.zeros(0, np.int64), np.zeros(0, np.float32)
    for start in range(0, len(left), step):
        block = np.abs(left[start : start + step] @ right).ravel()
        chosen = _first_of_largest(block, k)
        places = np.append(places, chosen + start * width)
        sizes = np.append(sizes, block[chosen])
        kept = _first_of_largest(sizes, k)
        places, sizes = places[kept], sizes[kept]
    i, j = np.divmod(places, width)
    contributions = np.add.reduce(one[i] * other[j], axis=1)
    order = np.lexsort((places, -np.abs(contributions)))
    return [(int(i[at]), int(j[at]), float(contributions[at])) for at in order]


def _first_of_largest(values: NDArray[np.float32], k: int) -> Int64s:
    # The places of the k largest, ascending; of equal ones the first.
    if len(values) <= k:
        return np.arange(len(values))
    limit = np.partition(values, len(values) - k)[len(values) - k]
    above = np.flatnonzero(values > limit)
    equal = np.flatnonzero(values == limit)[: k - len(above)]
    return np.sort(np.append(above, equal))
