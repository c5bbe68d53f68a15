"""The flat file of vectors: the nearest rows are those of brute force."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gramvec.errors import InputError
from gramvec.jobs.search import vectors
from gramvec.jobs.search.vectors import VectorFile, quantize_rows, stride_of
from gramvec.native import loops
from support.errors import refused


def written(folder: Path, units: np.ndarray) -> VectorFile:
    path = folder / "vectors.bin"
    path.write_bytes(quantize_rows(units).tobytes() + b"behind")
    return VectorFile(path, units.shape[1], len(units))


def drawn(seed: int, n: int, d: int) -> np.ndarray:
    units = np.random.default_rng(seed).normal(size=(n, d)).astype(np.float32)
    return units / np.linalg.norm(units, axis=1, keepdims=True)


@given(
    seed=st.integers(0, 2**32 - 1), n=st.integers(1, 300), d=st.integers(2, 70), k=st.integers(1, 30),
    spare=st.sampled_from([0, 300]), some=st.booleans(),
)  # fmt: skip
def test_the_nearest_rows_are_those_of_brute_force(
    seed: int, n: int, d: int, k: int, spare: int, some: bool, tmp_path_factory: pytest.TempPathFactory
) -> None:
    units = drawn(seed, n + 11, d)
    table, queries = units[:n].copy(), units[n:]
    table[::11] = 0
    table[n // 2 :: 7] = table[0]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(vectors, "SPARE", spare)
        among = np.arange(0, n, 3) if some else None
        file = written(tmp_path_factory.mktemp("v"), table)
        found = [file.nearest(query, k, among) for query in queries]
    rows = quantize_rows(table)[:, :d].astype(np.float64)
    exact = rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-9)
    places = np.arange(n) if among is None else among
    for query, (near, cosines) in zip(queries, found, strict=True):
        expected = exact[places] @ query
        assert len(near) == min(k, len(places))
        assert set(near.tolist()) <= set(places.tolist())
        # Without spare rows, the products of rounded queries decide.
        np.testing.assert_allclose(cosines, -np.sort(-expected)[:k], atol=2e-6 if spare else 0.03)
        np.testing.assert_allclose(cosines, exact[near] @ query, atol=2e-6)
        pairs = list(zip(-cosines, near, strict=True))
        assert pairs == sorted(pairs)


def test_cosines_are_near_those_before_rounding(tmp_path: Path) -> None:
    units = drawn(0, 500, 300)
    file = written(tmp_path, units)
    np.testing.assert_allclose(file.cosines(units[7], np.arange(500)), units @ units[7], atol=0.006)


@pytest.mark.skipif(loops is None, reason="the loops in C are not built")
@given(seed=st.integers(0, 2**32 - 1), n=st.integers(1, 100), d=st.integers(1, 70), some=st.booleans())
def test_the_loop_multiplies_as_numpy_does(seed: int, n: int, d: int, some: bool) -> None:
    rng = np.random.default_rng(seed)
    table, query = rng.integers(-128, 128, (n, d + 5)).astype(np.int8), rng.integers(-128, 128, d).astype(np.int16)
    rows = rng.integers(0, n, 40) if some else None
    products = np.empty(40 if some else n, np.int32)
    loops.multiply(table, d + 5, rows, query, products)
    assert products.tolist() == ((table if rows is None else table[rows])[:, :d].astype(np.int64) @ query).tolist()


@pytest.mark.skipif(loops is None, reason="the loops in C are not built")
@pytest.mark.parametrize(
    ("stride", "rows", "d", "n"),
    [(3, [0], 4, 1), (4, [10], 4, 1), (4, [-1], 4, 1), (4, [0, 1], 4, 1), (4, None, 4, 11), (4, None, 0, 1)],
)
def test_the_loop_refuses_rows_that_are_not_there(stride: int, rows: list[int] | None, d: int, n: int) -> None:
    table, given_rows = np.zeros((10, 4), np.int8), None if rows is None else np.array(rows, np.int64)
    with refused(ValueError, "fit"):
        loops.multiply(table, stride, given_rows, np.zeros(d, np.int16), np.zeros(n, np.int32))


def test_forged_lengths_and_files_do_no_harm(tmp_path: Path) -> None:
    path = tmp_path / "vectors.bin"
    rows = quantize_rows(drawn(2, 4, 8))
    for row, inverse in enumerate((np.nan, np.inf, -1.0, 1e30)):
        rows[row, -4:] = np.array([inverse], "<f4").view(np.int8)
    path.write_bytes(rows.tobytes())
    file = VectorFile(path, 8, 4)
    assert np.isfinite(file.cosines(drawn(2, 4, 8)[0], np.arange(4))).all()
    assert len(file.nearest(drawn(3, 2, 8)[0], 3)[0]) == 3
    with pytest.raises(InputError, match="damaged"):
        VectorFile(path, 8, 5)
    with pytest.raises(InputError, match="unreadable"):
        VectorFile(tmp_path / "none", 8, 4)
    (tmp_path / "link").symlink_to(path)
    with pytest.raises(InputError, match="unreadable"):
        VectorFile(tmp_path / "link", 8, 4)
    assert stride_of(8) == 12
    assert stride_of(9) == 16
