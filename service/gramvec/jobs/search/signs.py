"""File of signs: which rows of an index are candidates for the nearest, by one bit for each dimension.

A vector is turned by a fixed rotation, after which the signs of its numbers say roughly where it points (Gao and Long
2024, RaBitQ). The product of a turned query with the signs of a row, as numbers 1 and 0, orders rows nearly as their
cosines do, and reads an eighth of the bytes. The rows of the largest products are candidates; their cosines decide.

All numbers are whole, so that neither the processor nor the number of threads changes a result.
"""

from __future__ import annotations

import math
import os
from concurrent.futures import Executor
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gramvec.jobs.search.vectors import map_file, open_behind
from gramvec.lexical.hashing import mix_key
from gramvec.lexical.top_k import top_k
from gramvec.native import loops
from gramvec.text.arrays import Int64s, UInt64s

# As in native/signs.h.
BLOCK_ROWS, ENTRIES, LARGEST_ENTRY, ROUNDS = 64, 16, 31, 4
# Bits of a turned number behind the point.
FRACTION_BITS = 6
# A sum of one entry of each table is at most this.
MAX_SUM = 2**16 - 2
# Rows that one call turns: their numbers take 20 MB at 300 dimensions.
TURNED_TOGETHER = 1 << 14

SignBytes = NDArray[np.uint8]
Whole = NDArray[np.int32]


class SignFile:
    """The signs of the first rows of an index, memory-mapped.

    Args:
        path: the file, which has to be a regular one.
        dimension: signs of a row.
        rows: number of rows; what lies behind them is ignored.

    Raises:
        InputError: the file cannot be read or holds fewer rows.
    """

    def __init__(self, path: Path, dimension: int, rows: int) -> None:
        self._rows = rows
        blocks, columns = -(-rows // BLOCK_ROWS), columns_of(dimension)
        size = blocks * columns * BLOCK_ROWS
        self._blocks: SignBytes = np.frombuffer(map_file(path, size), np.uint8).reshape(blocks, columns, BLOCK_ROWS)

    def signs(self, rows: Int64s) -> SignBytes:
        """Return uint8[n, columns], the signs of some rows."""
        found: SignBytes = self._blocks[rows // BLOCK_ROWS, :, rows % BLOCK_ROWS]
        return found

    def candidates(
        self, queries: NDArray[np.int8], max_rows: int, allowed: UInt64s | None, pool: Executor, threads: int
    ) -> list[Int64s]:
        """Return for each query the `max_rows` rows of the largest products, ascending.

        Args:
            queries: int8[q, d].
            max_rows: rows for each query; of equal products the first rows are taken.
            allowed: uint64[blocks], a bit for each row that may be found; None for all.
            pool: runs the parts into which queries, or the rows of few queries, are cut.
            threads: parts, at least 1.
        """
        tables = tables_of(turn_vectors(queries))

        def scan(some: slice, first: int, last: int) -> list[tuple[Int64s, NDArray[np.uint16]]]:
            start, stop = first * BLOCK_ROWS, min(last * BLOCK_ROWS, self._rows)
            bits = None if allowed is None else allowed[first:last]
            found = scan_signs(self._blocks[first:last], stop - start, tables[some], bits, min(max_rows, stop - start))
            return [(rows.astype(np.int64) + start, sums) for rows, sums in found]

        q, blocks = len(queries), len(self._blocks)
        if q >= threads:
            edges = np.linspace(0, q, threads + 1).astype(int).tolist()
            parts = pool.map(lambda start, stop: scan(slice(start, stop), 0, blocks), edges[:-1], edges[1:])
            return [rows for part in parts for rows, _ in part]
        edges = np.linspace(0, blocks, min(threads, blocks) + 1).astype(int).tolist()
        strips = pool.map(lambda start, stop: scan(slice(q), start, stop), edges[:-1], edges[1:])
        joined = []
        for of_query in zip(*strips, strict=True):
            rows, sums = (np.concatenate(arrays) for arrays in zip(*of_query, strict=True))
            joined.append(np.sort(rows[top_k(sums, max_rows, rows)]))
        return joined


class SignWriter:
    """The signs of rows behind those of the first `rows` rows of a file, which is made where it is not there."""

    def __init__(self, path: Path, dimension: int, rows: int) -> None:
        self._columns = columns_of(dimension)
        size = self._columns * BLOCK_ROWS
        self._file = open_behind(path, -(-rows // BLOCK_ROWS) * size)
        self._waiting = np.zeros((0, self._columns), np.uint8)
        if held := rows % BLOCK_ROWS:
            self._file.seek(-size, os.SEEK_CUR)
            block = np.frombuffer(self._file.read(size), np.uint8).reshape(self._columns, BLOCK_ROWS)
            self._waiting = block.T[:held].copy()
            self._file.seek(-size, os.SEEK_CUR)

    def append(self, signs: SignBytes) -> None:
        """Add what `signs_of` returns for some rows."""
        signs = np.concatenate([self._waiting, signs])
        full = len(signs) // BLOCK_ROWS * BLOCK_ROWS
        self._write(signs[:full])
        self._waiting = signs[full:]

    def save(self) -> None:
        """Write everything that was added to the disk."""
        if len(self._waiting):
            size = self._columns * BLOCK_ROWS
            self._write(np.pad(self._waiting, ((0, BLOCK_ROWS - len(self._waiting)), (0, 0))))
            self._file.seek(-size, os.SEEK_CUR)
        self._file.flush()
        os.fsync(self._file.fileno())

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _write(self, signs: SignBytes) -> None:
        blocks = signs.reshape(-1, BLOCK_ROWS, self._columns).transpose(0, 2, 1)
        self._file.write(np.ascontiguousarray(blocks).data)


def columns_of(dimension: int) -> int:
    """Return the bytes that hold the signs of a row."""
    return -(-dimension // 8)


def signs_of(vectors: NDArray[np.int8]) -> SignBytes:
    """Return uint8[n, columns], a bit for each number of turned int8[n, d] vectors: 1 where it is above 0."""
    parts = [vectors[at : at + TURNED_TOGETHER] for at in range(0, len(vectors), TURNED_TOGETHER)]
    found = [np.packbits(turn_vectors(part) > 0, axis=1, bitorder="little") for part in parts]
    return np.concatenate(found) if found else np.zeros((0, columns_of(vectors.shape[1])), np.uint8)


def turn_vectors(vectors: NDArray[np.int8]) -> Whole:
    """Return int32[n, d], int8[n, d] vectors after the rotation.

    Four rounds give each number a sign and turn the first or the last numbers, as many as the largest power of 2, by a
    Hadamard matrix.
    """
    d = vectors.shape[1]
    values = vectors.astype(np.int32) << FRACTION_BITS
    size = 1 << (d.bit_length() - 1)
    length, shift = round(math.sqrt(size)), (d.bit_length() - 1) // 2
    if loops is not None:
        loops.turn(values, _flips(d), size, length, shift)
    else:
        values = turn_slowly(values, size, length, shift)  # type: ignore[unreachable]
    return values


def turn_slowly(values: Whole, size: int, length: int, shift: int) -> Whole:
    """Return what the loop `turn` in C makes of int32[n, d]."""
    n, d = values.shape
    for at, flips in enumerate(_flips(d)):
        first = at % 2 * (d - size)
        values = values * flips
        part = values[:, first : first + size]
        half = 1
        while half < size:
            pairs = part.reshape(n, size // (2 * half), 2, half)
            low, high = pairs[:, :, 0], pairs[:, :, 1]
            part = np.stack([low + high, low - high], axis=2).reshape(n, size)
            half *= 2
        values = values * np.int32(length)
        values[:, first : first + size] = part
        values >>= shift
    return values


@lru_cache(4)
def _flips(dimension: int) -> Whole:
    """Return int32[ROUNDS, d] of 1 and -1."""
    hashes = mix_key(np.arange(1, ROUNDS * dimension + 1, dtype=np.uint64), 0)
    return np.where(hashes >> np.uint64(63), np.int32(1), np.int32(-1)).reshape(ROUNDS, dimension)


def tables_of(queries: Whole) -> SignBytes:
    """Return uint8[q, columns, 2, 16] tables of turned queries int32[q, d].

    An entry is the sum of those of four numbers whose bits are set in the entry's place, less the least of such sums,
    times what makes the largest entry of a query LARGEST_ENTRY, or less where the sums of all columns would be too
    large.
    """
    q, d = queries.shape
    groups = 2 * columns_of(d)
    fours = np.zeros((q, groups * 4), np.int64)
    fours[:, :d] = queries
    bits = np.arange(ENTRIES)[:, None] >> np.arange(4) & 1
    sums = fours.reshape(q, groups, 1, 4) @ bits.T[None, None]
    sums = sums[:, :, 0] - sums[:, :, 0].min(axis=2, keepdims=True)
    largest = np.maximum(sums.max(axis=(1, 2), keepdims=True), 1)
    entries = (sums * min(LARGEST_ENTRY, MAX_SUM // groups) + largest // 2) // largest
    return np.ascontiguousarray(entries.astype(np.uint8).reshape(q, groups // 2, 2, ENTRIES))


def scan_signs(
    blocks: SignBytes, rows: int, tables: SignBytes, allowed: UInt64s | None, max_rows: int
) -> list[tuple[Whole, NDArray[np.uint16]]]:
    """Return for each query the rows of the largest sums, ascending, and the sums.

    Args:
        blocks: uint8[b, columns, 64], contiguous.
        rows: rows in the blocks.
        tables: uint8[q, columns, 2, 16], of entries up to LARGEST_ENTRY.
        allowed: uint64[b], a bit for each row that may be found; None for all.
        max_rows: rows for each query; of equal sums the first rows are taken.
    """
    q = len(tables)
    if loops is not None:
        found, sums = np.empty((q, 2 * max_rows), np.int32), np.empty((q, 2 * max_rows), np.uint16)
        counts = loops.scan(blocks, rows, tables, q, allowed, max_rows, found, sums)
        best = [(found[at, :count], sums[at, :count]) for at, count in enumerate(counts)]
    else:
        best = scan_slowly(blocks, rows, tables, allowed, max_rows)  # type: ignore[unreachable]
    return best


def scan_slowly(
    blocks: SignBytes, rows: int, tables: SignBytes, allowed: UInt64s | None, max_rows: int
) -> list[tuple[Whole, NDArray[np.uint16]]]:
    """Return what the loop `scan` in C finds."""
    found = []
    for table in tables:
        total = np.zeros((len(blocks), BLOCK_ROWS), np.uint16)
        for column, (low, high) in enumerate(table):
            total += low[blocks[:, column] & 15]
            total += high[blocks[:, column] >> 4]
        sums = total.reshape(-1)[:rows]
        places = np.arange(rows, dtype=np.int32)
        if allowed is not None:
            places = places[np.unpackbits(allowed.view(np.uint8), bitorder="little")[:rows].astype(np.bool_)]
        kept = np.sort(top_k(sums[places], max_rows))
        found.append((places[kept], sums[places[kept]]))
    return found
