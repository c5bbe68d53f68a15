"""The file of signs: loops in C against slow ones, rows in any parts, a file that grows, candidates that are near."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gramvec.errors import InputError
from gramvec.jobs.search import signs
from gramvec.jobs.search.rows import RowSet
from gramvec.jobs.search.signs import BLOCK_ROWS, SignFile, SignWriter, scan_slowly, signs_of, tables_of, turn_vectors
from gramvec.native import loops

needs_loops = pytest.mark.skipif(loops is None, reason="the loops in C are not built")


def vectors_of(seed: int, n: int, d: int) -> np.ndarray:
    drawn = np.random.default_rng(seed).normal(size=(n, d))
    return np.rint(127 * drawn / np.abs(drawn).max(axis=1, keepdims=True, initial=1e-9)).astype(np.int8)


def written(path: Path, vectors: np.ndarray) -> SignFile:
    writer = SignWriter(path, vectors.shape[1], 0)
    writer.append(signs_of(vectors))
    writer.save()
    writer.close()
    return SignFile(path, vectors.shape[1], len(vectors))


@needs_loops
@given(seed=st.integers(0, 2**32 - 1), n=st.integers(0, 20), d=st.integers(1, 70))
def test_the_loop_turns_as_numpy_does(seed: int, n: int, d: int) -> None:
    vectors = np.random.default_rng(seed).integers(-128, 128, (n, d)).astype(np.int8)
    found = turn_vectors(vectors)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(signs, "loops", None)
        np.testing.assert_array_equal(found, turn_vectors(vectors))


@pytest.mark.parametrize("d", [1, 2, 8, 64, 300, 512])
def test_turning_keeps_lengths_and_angles(d: int) -> None:
    vectors = vectors_of(d, 40, d)
    wide, far = vectors.astype(np.float64), turn_vectors(vectors).astype(np.float64)
    wide /= np.linalg.norm(wide, axis=1, keepdims=True)
    far /= np.linalg.norm(far, axis=1, keepdims=True)
    np.testing.assert_allclose(far @ far.T, wide @ wide.T, atol=0.05)


@needs_loops
@given(
    seed=st.integers(0, 2**32 - 1), rows=st.integers(1, 400), d=st.integers(1, 40), q=st.integers(1, 3),
    most=st.integers(1, 90), some=st.booleans(), alike=st.booleans(),
)  # fmt: skip
def test_the_loop_finds_what_numpy_finds(
    seed: int, rows: int, d: int, q: int, most: int, some: bool, alike: bool
) -> None:
    rng = np.random.default_rng(seed)
    blocks = rng.integers(0, 3 if alike else 256, (-(-rows // BLOCK_ROWS), -(-d // 8), BLOCK_ROWS)).astype(np.uint8)
    tables = tables_of(turn_vectors(vectors_of(seed, q, d)))
    allowed = rng.integers(0, 2**64, len(blocks), dtype=np.uint64) if some else None
    expected = scan_slowly(blocks, rows, tables, allowed, most)
    found = signs.scan_signs(blocks, rows, tables, allowed, most)
    for (mine, sums), (theirs, slow) in zip(found, expected, strict=True):
        assert mine.tolist() == theirs.tolist()
        assert sums.tolist() == slow.tolist()


@needs_loops
def test_arrays_that_do_not_fit_are_refused() -> None:
    blocks, tables = np.zeros((2, 1, BLOCK_ROWS), np.uint8), np.zeros((1, 1, 2, 16), np.uint8)
    rows, sums = np.zeros((1, 8), np.int32), np.zeros((1, 8), np.uint16)
    assert loops.scan(blocks, 128, tables, 1, None, 4, rows, sums) == (4,)
    for changed in (
        {1: 129},
        {1: -1},
        {3: 2},
        {3: 0},
        {5: 3},
        {5: 0},
        {4: np.zeros(1, np.uint64)},
        {7: sums[:, :4].copy()},
    ):
        given_ = [blocks, 128, tables, 1, None, 4, rows, sums]
        for place, value in changed.items():
            given_[place] = value
        with pytest.raises(ValueError, match="fit together"):
            loops.scan(*given_)
    for size, length, shift in ((3, 1, 0), (8, 1, 0), (4, 0, 0), (4, 2, 32), (0, 1, 0)):
        with pytest.raises(ValueError, match="fit together"):
            loops.turn(np.zeros((2, 5), np.int32), np.ones((4, 5), np.int32), size, length, shift)


@given(seed=st.integers(0, 2**32 - 1), cuts=st.lists(st.integers(0, 200), min_size=1, max_size=4))
def test_a_file_grows_in_any_steps(seed: int, cuts: list[int], tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("signs") / "signs.bin"
    vectors = vectors_of(seed, sum(cuts), 20)
    done = 0
    for cut in cuts:
        writer = SignWriter(path, 20, done)
        writer.append(signs_of(vectors[done : done + cut]))
        writer.save()
        writer.append(signs_of(vectors[:3]))  # of a commit that was lost
        writer.save()
        writer.close()
        done += cut
    found = SignFile(path, 20, done).signs(np.arange(done))
    np.testing.assert_array_equal(found, signs_of(vectors))


@given(seed=st.integers(0, 2**32 - 1), n=st.integers(1, 500), q=st.integers(1, 5), some=st.booleans())
def test_candidates_are_equal_in_any_parts(
    seed: int, n: int, q: int, some: bool, tmp_path_factory: pytest.TempPathFactory
) -> None:
    vectors, queries = vectors_of(seed, n, 16), vectors_of(seed + 1, q, 16)
    file = written(tmp_path_factory.mktemp("signs") / "signs.bin", vectors)
    among = np.arange(0, n, 3) if some else None
    bits = RowSet.of(np.arange(n) % 3 == 0).bits if some else None
    with ThreadPoolExecutor(3) as pool:
        alone = file.candidates(queries, 20, bits, pool, 1)
        for threads in (2, 3):
            found = file.candidates(queries, 20, bits, pool, threads)
            assert [rows.tolist() for rows in found] == [rows.tolist() for rows in alone]
    for rows in alone:
        assert len(rows) == min(20, n if among is None else len(among))
        assert among is None or set(rows.tolist()) <= set(among.tolist())


def test_candidates_hold_the_nearest(tmp_path: Path) -> None:
    vectors, queries = vectors_of(1, 20_000, 300), vectors_of(2, 5, 300)
    exact = vectors.astype(np.float64)
    exact /= np.linalg.norm(exact, axis=1, keepdims=True)
    with ThreadPoolExecutor(2) as pool:
        found = written(tmp_path / "signs.bin", vectors).candidates(queries, 1_000, None, pool, 2)
    for query, rows in zip(queries, found, strict=True):
        nearest = np.argsort(-(exact @ query))[:10]
        assert len(np.intersect1d(nearest, rows)) >= 9


def test_a_file_that_is_cut_off_or_a_link_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "signs.bin"
    written(path, vectors_of(1, 100, 16))
    with pytest.raises(InputError, match="damaged"):
        SignFile(path, 16, 129)
    (tmp_path / "link").symlink_to(path)
    with pytest.raises(InputError, match="unreadable"):
        SignFile(tmp_path / "link", 16, 100)
