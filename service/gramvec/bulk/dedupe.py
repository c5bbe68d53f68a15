"""Near-duplicates: all pairs of vectors above a cosine, exactly, without ever holding the matrix of all cosines.

Vectors are turned so that their first coordinates hold most of their length (principal components). For unit vectors
a = (a1, a2), b = (b1, b2), Cauchy and Schwarz give a.b <= a1.b1 + |a2| |b2|, which is one product of 65 numbers instead
of 300; only pairs that it cannot rule out are scored, each by itself and always in the same order of additions. So the
result is that of comparing all pairs, to the bit.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager
from importlib import import_module
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gramvec.embed.vectors import Vectors
from gramvec.errors import InputError

# A tile of cosines, 4 MB, stays in a core's cache while it is looked through.
TILE_ROWS, TILE_COLUMNS = 512, 2048
LEADING = 64
# More than a bound in float32 is ever rounded by.
SLACK = 1e-4
SAMPLE = 20_000
SCORED = 65_536

Ids = NDArray[np.int64]


class Pairs(NamedTuple):
    """left int64[p] < right int64[p]: rows; scores float32[p]: their cosines. In order of left, then right."""

    left: Ids
    right: Ids
    scores: Vectors


def near_pairs(
    units: Vectors,
    threshold: float,
    *,
    threads: int = 1,
    most: int | None = None,
    watch: Callable[[int], None] | None = None,
) -> Pairs:
    """All pairs of rows of float32[n, d], each of length 1 or 0, whose cosine is at least `threshold`.

    most: raise InputError beyond so many pairs. watch: called with the pairs compared since the last time.
    Memory: 65 numbers a row, 6 MB a thread, 24 bytes a pair. Time grows with n^2.
    """
    if not 0 < threshold <= 1:
        raise InputError(f"the threshold must be above 0 and at most 1, not {threshold:g}", field="threshold")
    bounds = turned(units, leading_axes(units))
    found: list[Pairs] = []
    count = 0
    # Each thread has tiles of its own: BLAS's threads beside them took ten times the CPU time.
    with one_blas_thread(), ThreadPoolExecutor(threads, thread_name_prefix="gramvec-dedupe") as pool:
        waiting: deque[tuple[int, Future[Pairs]]] = deque()
        try:
            for first in range(0, len(units), TILE_ROWS):
                last = min(first + TILE_ROWS, len(units))
                compared = (last - first) * (2 * len(units) - first - last - 1) // 2
                waiting.append((compared, pool.submit(_strip, units, bounds, first, last, threshold, most)))
                if len(waiting) > threads + 1 or last == len(units):
                    for compared, future in _taken(waiting, all_of_them=last == len(units)):
                        pairs = future.result()
                        count += len(pairs.left)
                        _check_count(count, most)
                        found.append(pairs)
                        if watch:
                            watch(compared)
        finally:
            for _, future in waiting:
                future.cancel()
    found = found or [Pairs(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.float32))]
    left, right, scores = (np.concatenate(arrays) for arrays in zip(*found, strict=True))
    return Pairs(left, right, scores)


def pairs_within(units: Vectors, threshold: float, axes: Vectors) -> Pairs:
    """`near_pairs` in the calling thread, by axes that `leading_axes` has of rows like these."""
    bounds = turned(units, axes)
    parts = [
        _strip(units, bounds, first, min(first + TILE_ROWS, len(units)), threshold, None)
        for first in range(0, len(units), TILE_ROWS)
    ]
    return Pairs(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))


def one_blas_thread() -> AbstractContextManager[object]:
    """While it lasts, BLAS works in the calling thread alone. Raises InputError without threadpoolctl."""
    try:
        limits: type[AbstractContextManager[object]] = import_module("threadpoolctl").threadpool_limits
    except ImportError as error:
        raise InputError("gramvec dedupe needs threadpoolctl: pip install 'gramvec[bulk]'") from error
    return limits(1)  # type: ignore[call-arg]


def _taken(waiting: deque[tuple[int, Future[Pairs]]], *, all_of_them: bool) -> Iterator[tuple[int, Future[Pairs]]]:
    while waiting:
        yield waiting.popleft()
        if not all_of_them:
            return


def _check_count(count: int, most: int | None) -> None:
    if most is not None and count > most:
        raise InputError(f"more than {most:,} pairs; raise --threshold, or --max-pairs if you want them all")


def leading_axes(units: Vectors) -> Vectors:
    """float32[d, k]: the directions that hold most of the length of float32[n, d]; all of them where d is small."""
    n, d = units.shape
    if d <= LEADING or n <= LEADING:
        return np.eye(d, dtype=np.float32)
    sample = units[:: max(1, n // SAMPLE)].astype(np.float64)
    _, axes = np.linalg.eigh(sample.T @ sample)
    return np.ascontiguousarray(axes[:, ::-1][:, :LEADING], np.float32)


def turned(units: Vectors, axes: Vectors) -> Vectors:
    """float32[n, k + 1], of whose rows the product is no less than the cosine of those of float32[n, d]."""
    n, d = units.shape
    if axes.shape[1] == d:
        return units
    bounds = np.empty((n, axes.shape[1] + 1), np.float32)
    for start in range(0, n, SCORED):
        block = units[start : start + SCORED]
        ahead = block @ axes
        bounds[start : start + SCORED, :-1] = ahead
        rest = np.einsum("ij,ij->i", block, block) - np.einsum("ij,ij->i", ahead, ahead)
        bounds[start : start + SCORED, -1] = np.sqrt(np.maximum(rest, 0) + SLACK**2)
    return bounds


def _strip(units: Vectors, bounds: Vectors, first: int, last: int, threshold: float, most: int | None) -> Pairs:
    """The pairs of rows first to last with all rows after them; a few more than `most` at the most."""
    found: list[Pairs] = []
    for start in range(first, len(units), TILE_COLUMNS):
        tile = bounds[first:last] @ bounds[start : start + TILE_COLUMNS].T
        left, right = np.divmod(np.flatnonzero(tile >= threshold - SLACK), tile.shape[1])
        ahead = left + first < right + start
        left, right = left[ahead] + first, right[ahead] + start
        scores = cosines(units, left, units, right)
        kept = scores >= np.float32(threshold)
        found.append(Pairs(left[kept], right[kept], scores[kept]))
        if most is not None and sum(len(one.left) for one in found) > most:
            break
    left, right, scores = (np.concatenate(arrays) for arrays in zip(*found, strict=True))
    order = np.lexsort((right, left))
    return Pairs(left[order], right[order], scores[order])


def cosines(units: Vectors, left: Ids, others: Vectors, right: Ids) -> Vectors:
    """float32[p]: the cosine of each row left[i] with row right[i] of the others, added in numpy's fixed order."""
    scores = np.empty(len(left), np.float32)
    for start in range(0, len(left), SCORED // 16):
        part = slice(start, start + SCORED // 16)
        scores[part] = np.add.reduce(units[left[part]] * others[right[part]], axis=1)
    return np.minimum(scores, np.float32(1))


def groups(n: int, left: Ids, right: Ids) -> Ids:
    """int64[n]: the first member of each row's group; rows are in one group if a chain of pairs joins them."""
    first = np.arange(n)
    join(first, left, right)
    return first


def join(first: Ids, left: Ids, right: Ids) -> None:
    """Change `first`, which `groups` gives, to what it is with these pairs as well."""
    while len(left):
        one, other = first[left], first[right]
        apart = one != other
        left, right, one, other = left[apart], right[apart], one[apart], other[apart]
        np.minimum.at(first, np.maximum(one, other), np.minimum(one, other))
        # A first member that has joined another group takes its own with it.
        while (ahead := first[first]).tobytes() != first.tobytes():
            first[:] = ahead
