"""Groups of rows that chains of pairs join."""

from __future__ import annotations

import numpy as np

from gramvec.text.arrays import Int64s


def groups(n: int, left: Int64s, right: Int64s) -> Int64s:
    """Return int64[n], the first member of each row's group; rows are in one group if a chain of pairs joins them."""
    first = np.arange(n)
    while len(left):
        left_first, right_first = first[left], first[right]
        apart = left_first != right_first
        left, right, left_first, right_first = left[apart], right[apart], left_first[apart], right_first[apart]
        np.minimum.at(first, np.maximum(left_first, right_first), np.minimum(left_first, right_first))
        # A first member that has joined another group takes its own with it.
        while (ahead := first[first]).tobytes() != first.tobytes():
            first[:] = ahead
    return first
