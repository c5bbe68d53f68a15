"""Rows of four bits: sixteen levels, two codes a byte, and a whole weight for each row.

A number is its level times its row's weight times one step, so rows are added as integers, and exactly. The levels are
whole numbers near those of the least squared error for normal numbers (Max, 1960, "Quantizing for minimum distortion").
Of gramvec-en's rows they lose 0.0093 of the square; sixteen levels of equal distance lose 0.0119, fifteen 0.0133.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gramvec.text.arrays import Floats

# As in native/four_bits.h.
LEVELS = np.array([-21, -16, -12, -9, -7, -5, -3, -1, 1, 3, 5, 7, 9, 12, 16, 21], np.int8)
LARGEST = int(LEVELS[-1])
# Of a row; 0 for a row of zeros, since no level is 0. The sum of twelve such rows fits an int16.
MAX_WEIGHT = 127
# The levels of each byte's low code and of its high one, int8[256, 2].
LEVELS_OF_BYTES = np.stack([np.tile(LEVELS, 16), np.repeat(LEVELS, 16)], axis=1)

# The scale that suits normal numbers of deviation 1, and what is tried for each row, as a share of it.
_SCALE_OF_NORMAL = 2.73 / LARGEST
_FACTORS = np.geomspace(0.7, 1.5, 12)
_PART_ROWS = 1_024
# The nearest level's code for numbers from each half to the next: all boundaries between two levels are halves.
_HALVES = np.arange(-2 * LARGEST, 2 * LARGEST) / 2
_CODES = np.searchsorted((LEVELS[1:] + LEVELS[:-1].astype(float)) / 2, _HALVES, side="right").astype(np.uint8)


class FourBits(NamedTuple):
    """A table: codes uint8[rows, (d + 1) // 2], weights uint8[rows] of 0 to 127, and the step, a float32 above 0."""

    codes: NDArray[np.uint8]
    weights: NDArray[np.uint8]
    step: np.float32


def bytes_a_row(dimension: int) -> int:
    """Return how many bytes a row of this many columns has."""
    return (dimension + 1) // 2


def pack_codes(codes: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Pack codes uint8[n, d] of 0 to 15: each pair of columns in a byte, the first in its low four bits.

    Where d is odd, the high bits of the last byte are 0.
    """
    packed = codes[:, ::2].copy()
    packed[:, : codes.shape[1] // 2] |= codes[:, 1::2] << 4
    return packed


def unpack_levels(packed: NDArray[np.uint8], dimension: int) -> NDArray[np.int8]:
    """Return the levels int8[n, dimension] of packed codes uint8[n, (dimension + 1) // 2]."""
    return LEVELS_OF_BYTES[packed].reshape(len(packed), 2 * packed.shape[1])[:, :dimension]


def quantize_rows(table: Floats, columns: Floats | np.float32) -> FourBits:
    """Return rows of four bits that approximate table / columns, float32[rows, d], each by the weight that loses least.

    The step is a 127th of the largest scale, so small rows have few weights to choose from, and one far below the step
    has a weight of 0: what that loses is small in a sum with larger rows. Smaller steps, which cut the largest rows,
    lose as much on gramvec-en.
    """
    scales = np.empty(len(table), np.float32)
    for begin in range(0, len(table), _PART_ROWS):
        part = table[begin : begin + _PART_ROWS] / columns
        scales[begin : begin + _PART_ROWS] = _best_scales(part)
    codes = np.empty((len(table), bytes_a_row(table.shape[1])), np.uint8)
    weights = np.empty(len(table), np.uint8)
    step = scales.max(initial=0) / np.float32(MAX_WEIGHT)
    step = np.float32(step if step > 0 else 1)
    for begin in range(0, len(table), _PART_ROWS):
        end = begin + _PART_ROWS
        part = table[begin:end] / columns
        weights[begin:end] = _weigh(part, scales[begin:end], step)
        codes[begin:end] = pack_codes(_nearest_codes(part, weights[begin:end] * step))
    return FourBits(codes, weights, step)


def _nearest_codes(rows: Floats, scales: Floats) -> NDArray[np.uint8]:
    """Return the code uint8[n, d] whose level times the row's scale is nearest to each number."""
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        halves = np.nan_to_num(rows * (np.float32(2) / scales)[:, None])
    places = np.clip(np.floor(halves), -2 * LARGEST, 2 * LARGEST - 1).astype(np.int64)
    codes: NDArray[np.uint8] = _CODES[places + 2 * LARGEST]
    return codes


def _squared_errors(rows: Floats, scales: Floats) -> NDArray[np.float64]:
    """Return the squared error float64[n] of each row at its scale; at 0 its own square."""
    apart = rows - LEVELS[_nearest_codes(rows, scales)] * scales[:, None]
    errors: NDArray[np.float64] = np.einsum("ij,ij->i", apart, apart, dtype=np.float64)
    return errors


def _best_scales(rows: Floats) -> Floats:
    """Return the scale float32[n] at which each row loses least; 0 for a row of zeros."""
    deviations = np.sqrt(np.einsum("ij,ij->i", rows, rows, dtype=np.float64) / rows.shape[1]).astype(np.float32)
    tops = np.abs(rows).max(axis=1) / np.float32(LARGEST)
    tried = [deviations * np.float32(_SCALE_OF_NORMAL * factor) for factor in _FACTORS] + [tops]
    least = np.argmin([_squared_errors(rows, scales) for scales in tried], axis=0)
    best: Floats = np.stack(tried)[least, np.arange(len(rows))]
    return best


def _weigh(rows: Floats, scales: Floats, step: np.float32) -> NDArray[np.uint8]:
    """Return the weight uint8[n] above or below each row's scale, at which it loses less."""
    ideal = scales / step
    tried = [np.clip(weights, 0, MAX_WEIGHT) for weights in (np.floor(ideal), np.ceil(ideal))]
    errors = [_squared_errors(rows, weights * step) for weights in tried]
    chosen: NDArray[np.uint8] = np.where(errors[0] <= errors[1], *tried).astype(np.uint8)
    return chosen
