"""The loops that sum rows of a table, compiled by numba. Importing this module needs numba and takes half a second."""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic
from numpy.typing import NDArray

from gramvec.features.kernels import compiled

# Rows are asked for so many rows ahead of their sum: 20 % faster than without, and 4 to 16 are alike.
ROWS_AHEAD = 8
CACHE_LINE = 64
# Columns that one step of sum_int8 adds: whole vector registers on every CPU. A plain loop takes twice as long.
BLOCK = 64
# int16 holds 256 numbers from -127 to 127.
ROWS_IN_INT16 = 256
_BYTE, _SHORT, _INT, _FLOAT = ir.IntType(8), ir.IntType(16), ir.IntType(32), ir.FloatType()


@intrinsic
def _prefetch(_: Any, array: Any, byte: Any) -> Any:
    """Ask for the cache line of the array's byte `byte`; an address outside of it does no harm."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        address = builder.gep(_address(context, builder, signature, arguments, 0, _BYTE), [arguments[1]])
        kind = ir.FunctionType(ir.VoidType(), [_BYTE.as_pointer(), _INT, _INT, _INT])
        function = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")  # type: ignore[no-untyped-call]
        read, keep, data_cache = (ir.Constant(_INT, value) for value in (0, 3, 1))
        builder.call(function, [address, read, keep, data_cache])
        return context.get_dummy_value()

    return types.void(array, types.intp), generate


@intrinsic
def _as_float(_: Any, value: Any) -> Any:
    """A stored number as float32: int8, float32, or float16 as its bits in a uint16, which numba cannot read."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        if value == types.uint16:
            return builder.fpext(builder.bitcast(arguments[0], ir.HalfType()), _FLOAT)
        return context.cast(builder, arguments[0], value, types.float32)

    return types.float32(value), generate


@intrinsic
def _add_block(_: Any, sums: Any, at: Any, table: Any, begin: Any) -> Any:
    """sums[at : at + BLOCK] += table[begin : begin + BLOCK], int16 and int8, both flat."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        shorts = ir.VectorType(_SHORT, BLOCK)
        own = builder.load(_block_address(context, builder, signature, arguments, 2, _BYTE), align=1)
        place = _block_address(context, builder, signature, arguments, 0, _SHORT)
        total = builder.add(builder.load(place, align=2), builder.sext(own, shorts))
        builder.store(total, place, align=2)
        return context.get_dummy_value()

    return types.void(sums, types.intp, table, types.intp), generate


@intrinsic
def _flush_block(_: Any, total: Any, at: Any, sums: Any, begin: Any, scale: Any) -> Any:
    """total[at : at + BLOCK] += sums[begin : begin + BLOCK] * scale, float32 and int16, both flat; then zero sums."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        floats, shorts = ir.VectorType(_FLOAT, BLOCK), ir.VectorType(_SHORT, BLOCK)
        undefined = ir.Constant(floats, ir.Undefined)
        one = builder.insert_element(undefined, arguments[4], ir.Constant(_INT, 0))
        scales = builder.shuffle_vector(one, undefined, ir.Constant(ir.VectorType(_INT, BLOCK), [0] * BLOCK))
        source = _block_address(context, builder, signature, arguments, 2, _SHORT)
        place = _block_address(context, builder, signature, arguments, 0, _FLOAT)
        product = builder.fmul(builder.sitofp(builder.load(source, align=2), floats), scales)
        builder.store(builder.fadd(builder.load(place, align=4), product), place, align=4)
        builder.store(ir.Constant(shorts, [0] * BLOCK), source, align=2)
        return context.get_dummy_value()

    return types.void(total, types.intp, sums, types.intp, types.float32), generate


def _address(context: Any, builder: Any, signature: Any, arguments: Any, index: int, kind: Any) -> Any:
    data = context.make_array(signature.args[index])(context, builder, arguments[index]).data
    return builder.bitcast(data, kind.as_pointer())


def _block_address(context: Any, builder: Any, signature: Any, arguments: Any, index: int, kind: Any) -> Any:
    """The address of BLOCK numbers of the array argument `index`, from the position that is the argument after it."""
    first = builder.gep(_address(context, builder, signature, arguments, index, kind), [arguments[index + 1]])
    return builder.bitcast(first, ir.VectorType(kind, BLOCK).as_pointer())


@compiled
def sum_rows(
    ids: NDArray[np.int32],
    offsets: NDArray[np.int64],
    table: NDArray[Any],
    scales: NDArray[np.float32],
    vectors: NDArray[np.float32],
) -> int:
    """Write each text's sum of table[id] * scales[id], one row after the other, into float32[n, d] `vectors`.

    table: int8, float32, or float16 seen as uint16, [rows, d]. Returns the first position of an id that is no row, at
    which it stops, or -1.
    """
    rows, dimension = table.shape
    bytes_a_row = dimension * table.itemsize
    last = len(ids) - 1
    for text in range(len(offsets) - 1):
        total = vectors[text]
        total[:] = 0
        for position in range(offsets[text], offsets[text + 1]):
            row = ids[position]
            if row < 0 or row >= rows:
                return position
            ahead = np.int64(ids[min(position + ROWS_AHEAD, last)]) * bytes_a_row
            for line in range(0, bytes_a_row, CACHE_LINE):
                _prefetch(table, ahead + line)  # type: ignore[call-arg]
            scale = scales[row]
            own = table[row]
            for column in range(dimension):
                total[column] += _as_float(own[column]) * scale  # type: ignore[call-arg]
    return -1


@compiled
def _flush(
    total: NDArray[np.float32],
    sums: NDArray[np.int16],
    kind: int,
    steps: NDArray[np.float32],
    counts: NDArray[np.int64],
) -> None:
    for block in range(0, len(total), BLOCK):
        _flush_block(total, block, sums, kind * len(total) + block, steps[kind])  # type: ignore[call-arg]
    counts[kind] = 0


@compiled
def sum_int8(
    ids: NDArray[np.int32],
    offsets: NDArray[np.int64],
    table: NDArray[np.int8],
    kinds: NDArray[np.uint8],
    steps: NDArray[np.float32],
    vectors: NDArray[np.float32],
) -> int:
    """What sum_rows does where few scales are shared by all rows: rows of one scale are added as integers.

    table: int8[rows * d + BLOCK], flat, the last BLOCK of any value: a row is read in whole blocks, and what follows it
    is dropped. kinds: uint8[rows], which of the float32 `steps` is a row's scale. Integer sums are exact.
    """
    dimension = vectors.shape[1]
    blocks = (dimension + BLOCK - 1) // BLOCK
    width = blocks * BLOCK
    sums = np.zeros(len(steps) * width, np.int16)
    counts = np.zeros(len(steps), np.int64)
    total = np.empty(width, np.float32)
    last = len(ids) - 1
    for text in range(len(offsets) - 1):
        total[:] = 0
        for position in range(offsets[text], offsets[text + 1]):
            row = np.int64(ids[position])
            if row < 0 or row >= len(kinds):
                return position
            ahead = np.int64(ids[min(position + ROWS_AHEAD, last)]) * dimension
            for line in range(0, dimension, CACHE_LINE):
                _prefetch(table, ahead + line)  # type: ignore[call-arg]
            kind = np.int64(kinds[row])
            for block in range(0, width, BLOCK):
                _add_block(sums, kind * width + block, table, row * dimension + block)  # type: ignore[call-arg]
            counts[kind] += 1
            if counts[kind] == ROWS_IN_INT16:
                _flush(total, sums, int(kind), steps, counts)
        for each in range(len(steps)):
            if counts[each] > 0:
                _flush(total, sums, each, steps, counts)
        vectors[text] = total[:dimension]
    return -1
