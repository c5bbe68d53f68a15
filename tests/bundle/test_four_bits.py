"""Rows of four bits: how codes are packed, and which codes, weights and step stand for a table."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gramvec.bundle import four_bits
from gramvec.bundle.four_bits import LEVELS, MAX_WEIGHT, bytes_a_row, pack_codes, quantize_rows, unpack_levels
from gramvec.text.arrays import Floats

ONE = np.float32(1)


def restored(table: Floats, columns: Floats | np.float32 = ONE) -> Floats:
    fours = quantize_rows(table, columns)
    scales = fours.weights * fours.step
    return unpack_levels(fours.codes, table.shape[1]) * scales[:, None] * columns


def test_codes_are_packed_as_the_format_says() -> None:
    even, odd = np.array([[1, 2, 3, 4]], np.uint8), np.array([[15, 0, 7], [8, 9, 10]], np.uint8)
    assert pack_codes(even).tolist() == [[1 | 2 << 4, 3 | 4 << 4]]
    assert pack_codes(odd).tolist() == [[15 | 0 << 4, 7], [8 | 9 << 4, 10]]
    assert pack_codes(np.array([[5]], np.uint8)).tolist() == [[5]]
    assert unpack_levels(pack_codes(odd), 3).tolist() == [[21, -21, -1], [1, 3, 5]]
    assert (bytes_a_row(1), bytes_a_row(2), bytes_a_row(300), bytes_a_row(301)) == (1, 1, 150, 151)


@given(st.integers(0, 2**32 - 1), st.integers(0, 9), st.integers(1, 70))
def test_what_is_packed_is_unpacked(seed: int, rows: int, d: int) -> None:
    codes = np.random.default_rng(seed).integers(0, 16, (rows, d)).astype(np.uint8)
    packed = pack_codes(codes)
    assert packed.shape == (rows, bytes_a_row(d))
    assert np.array_equal(unpack_levels(packed, d), LEVELS[codes])


def test_levels_by_hand() -> None:
    # The first row is of levels times 127 steps of 0.5, and has the largest scale; so the second row weighs 2.
    table = np.array([LEVELS * 63.5, LEVELS * 1.0, np.zeros(16)], np.float32)
    fours = quantize_rows(table, ONE)
    assert (fours.step, fours.weights.tolist()) == (0.5, [127, 2, 0])
    assert unpack_levels(fours.codes[:2], 16).tolist() == [LEVELS.tolist()] * 2
    assert np.array_equal(restored(table), table)
    columns = np.arange(1, 17).astype(np.float32)
    assert np.array_equal(restored(table * columns, columns), table * columns)


def test_tables_of_zeros_and_of_nothing() -> None:
    for table in (np.zeros((3, 5), np.float32), np.zeros((0, 5), np.float32)):
        fours = quantize_rows(table, ONE)
        assert (fours.step, fours.weights.tolist(), fours.codes.shape) == (1, [0] * len(table), (len(table), 3))
        assert not restored(table).any()


@given(st.integers(0, 2**32 - 1), st.floats(0, 12), st.integers(1, 20), st.integers(1, 40))
def test_each_number_has_its_nearest_level(seed: int, spread: float, rows: int, d: int) -> None:
    random = np.random.default_rng(seed)
    table = (random.normal(0, 1, (rows, d)) * np.exp(random.uniform(-spread, 0, (rows, 1)))).astype(np.float32)
    fours = quantize_rows(table, ONE)
    weighed = fours.weights > 0
    scales = (fours.weights * fours.step)[weighed, None]
    levels = unpack_levels(fours.codes, d)[weighed]
    apart = np.abs(levels * scales - table[weighed])
    nearest = np.abs(LEVELS[None, None] * scales[..., None] - table[weighed][..., None]).min(axis=-1)
    assert np.all(apart <= nearest + 1e-5 * scales)
    assert fours.weights.max() >= MAX_WEIGHT - 1  # the quotient is rounded


def test_no_other_weight_loses_much_less() -> None:
    random = np.random.default_rng(2)
    table = (random.normal(size=(40, 200)) * np.exp(random.uniform(-6, 0, (40, 1)))).astype(np.float32)
    step = float(quantize_rows(table, ONE).step)
    lost, best = np.square(restored(table) - table).sum(axis=1), np.full(40, np.inf)
    for scale in np.arange(MAX_WEIGHT + 1) * step:
        nearest = LEVELS[np.abs(LEVELS * scale - table[..., None]).argmin(axis=-1)] * scale
        best = np.minimum(best, np.square(nearest - table).sum(axis=1))
    assert np.all(lost <= 1.05 * best)


def test_normal_numbers_lose_what_the_best_sixteen_levels_do() -> None:
    """0.0095 of the square (Max, 1960, table I), and less where each row has the scale that suits its own numbers."""
    table = np.random.default_rng(1).normal(size=(500, 300)).astype(np.float32)
    lost = np.square(restored(table) - table).sum() / np.square(table).sum()
    assert lost == pytest.approx(0.0089, abs=2e-4)


def test_parts_are_those_of_the_whole_table(monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(1)
    table, columns = random.normal(0, 1, (50, 7)).astype(np.float32), random.uniform(0.1, 9, 7).astype(np.float32)
    whole = quantize_rows(table, columns)
    monkeypatch.setattr(four_bits, "_PART_ROWS", 8)
    parts = quantize_rows(table, columns)
    assert (whole.step, whole.codes.tobytes(), whole.weights.tobytes()) == (
        parts.step, parts.codes.tobytes(), parts.weights.tobytes(),
    )  # fmt: skip
