"""The k largest of some scores, in an order that does not depend on how they were found."""

from __future__ import annotations

import numpy as np

from gramvec.text.arrays import Array, Int64s


def top_k(scores: Array, k: int, rows: Array | None = None) -> Int64s:
    """Return the places of the k largest scores, the largest first; of equal scores that of the lowest row.

    Args:
        scores: float or int[n], without NaN.
        k: places at most, from 1.
        rows: int[n], what orders equal scores; None for their places.

    Returns:
        int64[min(n, k)]. Only what may be returned is sorted.
    """
    places = np.arange(len(scores)) if len(scores) <= k else _candidates(scores, k, rows)
    ties = places if rows is None else rows[places]
    # Negative scores would be others where the type has no sign.
    return places[np.lexsort((-ties, scores[places]))[::-1]]


def _candidates(scores: Array, k: int, rows: Array | None) -> Int64s:
    # The places of the k largest, in any order.
    limit = np.partition(scores, len(scores) - k)[len(scores) - k]
    above = np.flatnonzero(scores > limit)
    equal = np.flatnonzero(scores == limit)
    if rows is not None:
        equal = equal[np.argsort(rows[equal], kind="stable")]
    return np.concatenate([above, equal[: k - len(above)]])


def top_k_of_rows(scores: Array, k: int) -> tuple[Int64s, Array]:
    """Return the columns of the k largest scores of each row and these scores, as `top_k` orders them.

    Args:
        scores: float[n, m], without NaN.
        k: columns at most.

    Returns:
        int64[n, min(m, k)] and float[n, min(m, k)].
    """
    columns: Int64s = np.argsort(-scores, axis=1, kind="stable")[:, :k]
    return columns, np.take_along_axis(scores, columns, axis=1)
