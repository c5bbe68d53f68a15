"""The nearest rows of a table of int8 vectors, all of which are looked at.

Products of int8 are added as integers, exactly, so neither the processor nor the number of threads shows in a result.
What has the largest products is scored again with the query as it was before it was rounded.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gramvec.embed.quantization import quantize
from gramvec.embed.vectors import Vectors
from gramvec.errors import InputError

Ids = NDArray[np.int64]
Table = NDArray[np.int8]

# Rows and queries of a tile: 64 columns of 8,192 int32 are 2 MB, in a core's cache.
TILE_ROWS, TILE_QUERIES = 8192, 64
# Under so many rows a thread costs more than it saves.
THREAD_ROWS = 65_536
# Of the rows that are scored again, beyond k: rounding both sides moves a cosine by some 0.003.
SPARE, SPARE_TIMES = 64, 4
ROW_BITS = 32
# What a vector is rounded by in int8 is half a step at most, and kept in 254 steps.
REMAINDER_SCALE = 254


def kernels() -> Any:
    """numkong. Raises InputError where it is not installed."""
    try:
        return import_module("numkong")
    except ImportError as error:
        raise InputError("searching needs numkong: pip install 'gramvec[search]'") from error


def nearest(
    units: Vectors,
    table: Table,
    k: int,
    *,
    remainders: Table | None = None,
    threads: int = 1,
    allowed: NDArray[np.bool_] | None = None,
) -> tuple[Ids, Vectors]:
    """The k nearest rows of int8[n, d] for each of float32[q, d] (length 1, or 0), the nearest first.

    remainders: int8[n, d] as `split` gives them; cosines are then those of the vectors before they were rounded, within
    0.0001. allowed: bool[n], the rows that may be found; None for all n.
    Rows int64[q, min(k, allowed rows)] and their cosines float32 with the stored vectors; equal ones by row. A row or
    query of zeros has cosine 0.
    """
    found = min(k, len(table) if allowed is None else int(np.count_nonzero(allowed)))
    rows = np.empty((len(units), found), np.int64)
    scores = np.empty((len(units), found), np.float32)
    for start in range(0, len(units), TILE_QUERIES):
        some = units[start : start + TILE_QUERIES]
        for at, candidates in enumerate(_candidates(some, table, SPARE_TIMES * k + SPARE, threads, allowed), start):
            wide = table[candidates].astype(np.float32)
            if remainders is not None:
                wide += remainders[candidates] * np.float32(1 / REMAINDER_SCALE)
            cosines = _cosines(units[at], wide)
            order = np.lexsort((candidates, -cosines))[:found]
            rows[at], scores[at] = candidates[order], cosines[order]
    return rows, scores


def split(units: Vectors, *, fine: bool) -> tuple[Table, Table]:
    """float32[n, d], of length 1 or 0, as int8[n, d] and what that rounds off: int8[n, d], [0, d] unless `fine`."""
    rounded = np.ascontiguousarray(quantize(units, "int8"), np.int8)
    if not fine:
        return rounded, rounded[:0]
    return rounded, np.rint((units * np.float32(127) - rounded) * np.float32(REMAINDER_SCALE)).astype(np.int8)


def _candidates(
    units: Vectors, table: Table, most: int, threads: int, allowed: NDArray[np.bool_] | None = None
) -> list[Ids]:
    """For each query the `most` rows of the largest products of integers, of equal ones the first."""
    queries = np.ascontiguousarray(quantize(units, "int8"))
    parts = max(1, min(threads, len(table) // THREAD_ROWS))
    edges = np.linspace(0, len(table), parts + 1).astype(int).tolist()
    # Packed once for all tiles: 64 queries take a third of the time that each alone does.
    packed, dots = kernels().dots_pack(queries), kernels().dots_packed
    with ThreadPoolExecutor(parts, thread_name_prefix="gramvec-search") as pool:

        def strip(first: int, last: int) -> list[Ids]:
            return _strip(dots, packed, len(queries), table, first, last, most, allowed)

        strips = list(pool.map(strip, edges[:-1], edges[1:]))
    joined = [_largest(np.concatenate(keys), most) for keys in zip(*strips, strict=True)]
    return [np.sort((1 << ROW_BITS) - 1 - (keys & ((1 << ROW_BITS) - 1))) for keys in joined]


def _strip(
    dots: Any,
    packed: Any,
    number: int,
    table: Table,
    first: int,
    last: int,
    most: int,
    allowed: NDArray[np.bool_] | None,
) -> list[Ids]:
    """For each query the keys of its best rows from first to last: the product, and the lower the row the higher."""
    best = [np.empty(0, np.int64) for _ in range(number)]
    least = np.full(number, np.iinfo(np.int64).min)
    for start in range(first, last, TILE_ROWS):
        piece = slice(start, min(start + TILE_ROWS, last))
        vectors, places = table[piece], np.arange(start, piece.stop)
        if allowed is not None:
            kept = np.flatnonzero(allowed[piece])
            if not len(kept):
                continue
            vectors, places = vectors[kept], places[kept]
        tile = np.ascontiguousarray(np.asarray(dots(vectors, packed)).T)
        for at, products in enumerate(tile):
            rows = np.flatnonzero(products > least[at])
            if len(rows):
                keys = (products[rows].astype(np.int64) << ROW_BITS) | ((1 << ROW_BITS) - 1 - places[rows])
                best[at] = _largest(np.concatenate([best[at], keys]), most)
                if len(best[at]) == most:
                    least[at] = best[at].min() >> ROW_BITS
    return best


def _largest(keys: Ids, most: int) -> Ids:
    return keys if len(keys) <= most else np.partition(keys, len(keys) - most)[len(keys) - most :]


def _cosines(one: Vectors, wide: Vectors) -> Vectors:
    """float32[n]: the cosine with each row, added in numpy's fixed order."""
    lengths = np.sqrt(np.add.reduce(wide * wide, axis=1))
    cosines = np.add.reduce(wide * one, axis=1) / np.where(lengths == 0, np.float32(1), lengths)
    found: Vectors = np.clip(cosines, -1, 1, dtype=np.float32)
    return found
