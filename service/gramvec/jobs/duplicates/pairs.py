"""Near-duplicates: pairs of texts with a score, and the groups that they make."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gramvec.text.arrays import Floats, Int64s


class NearPairs(NamedTuple):
    """left int64[p] < right int64[p]: places of texts; scores float32[p]. In order of left, then right."""

    left: Int64s
    right: Int64s
    scores: Floats


NO_PAIRS = NearPairs(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.float32))


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
