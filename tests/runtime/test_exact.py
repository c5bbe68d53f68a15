"""Sums that are exact in any order: the arithmetic, and the CUDA runtime with its graph on a CPU.

`make test-cuda` runs the same runtime on the CUDA provider.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from conftest import MODELS
from gramvec.bundle.bundle import Bundle, open_bundle
from gramvec.errors import BackendError, DeviceError
from gramvec.features.spec import FeatureSpec
from gramvec.runtime import cuda
from gramvec.runtime.cuda import CudaRuntime, rows_a_call
from gramvec.runtime.exact import MAX_EXACT, ExactTable, add_pieces, cut_pieces
from gramvec.runtime.native import NativeRuntime
from gramvec.runtime.onnx_graph import quantize_table
from gramvec.runtime.ort import cpu_session
from gramvec.runtime.select import open_runtime
from gramvec.text.vocabulary import Entry, Vocabulary
from support.batches import batch_of
from support.errors import refused
from support.training import export_table

WORDS = ("east", "north", "south", "west")
TEXTS = ["east north", "", "north " * 7_000, "west", "zzz", *["south east"] * 40, "west " * 1_033]
Make = Callable[..., Bundle]


@pytest.fixture
def make(tmp_path: Path) -> Make:
    def _make(d: int = 37, precision: str = "int8", **changes: Any) -> Bundle:
        random = np.random.default_rng(0)
        path = tmp_path / f"{d}-{precision}-{len(changes)}"
        arguments: dict[str, Any] = {
            "name": "small", "kind": "test", "spec": FeatureSpec(orders=(), words=True),
            "vocabulary": Vocabulary.build([Entry("word", word, 1) for word in WORDS]),
            "table": random.normal(size=(4, d)).astype(np.float32),
            "bias": random.normal(size=d).astype(np.float32), "pooling": "sum", "activation": "linear",
            "precision": precision, "golden_texts": ["east", ""], "provenance": {}, "card": "",
        }  # fmt: skip
        export_table(path, **(arguments | changes))
        return open_bundle(path)

    return _make


@pytest.fixture
def on_a_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """The graph for CUDA in a session on the CPU, whose sums are made in order."""
    monkeypatch.setattr(cuda, "cuda_session", cpu_session)
    monkeypatch.setattr(cuda, "_cudart", lambda _: None)


# ---- The arithmetic ----


@given(st.lists(st.integers(0, 40), max_size=12), st.integers(1, 9))
def test_pieces_are_the_texts_and_none_is_longer_than_allowed(counts: list[int], most: int) -> None:
    offsets = np.cumsum([0, *counts]).astype(np.int64)
    bounds, firsts = cut_pieces(offsets, most)
    lengths = np.diff(bounds)
    assert (bounds[0], bounds[-1], lengths.max(initial=0) <= most) == (0, offsets[-1], True)
    if firsts is None:
        assert bounds is offsets
        return
    assert max(counts) > most
    # Each text's pieces: none empty, but for the one of a text without rows.
    of_texts = np.split(lengths, firsts[1:])
    assert [int(one.sum()) for one in of_texts] == counts
    assert [len(one) for one in of_texts] == [max(1, -(-count // most)) for count in counts]


@given(st.integers(0, 2**32 - 1), st.lists(st.integers(0, 30), min_size=1, max_size=5))
def test_pieces_add_up_exactly_whatever_their_order(seed: int, counts: list[int]) -> None:
    random = np.random.default_rng(seed)
    rows = random.integers(-MAX_EXACT // 4, MAX_EXACT // 4, (sum(counts), 3))
    bounds, firsts = cut_pieces(np.cumsum([0, *counts]), 3)
    pieces = np.add.reduceat(np.concatenate([rows, rows[:0]]), bounds[:-1][np.diff(bounds) > 0], axis=0)
    sums = np.zeros((len(bounds) - 1, 3), np.float32)
    sums[np.diff(bounds) > 0] = pieces
    expected = [[sum(column) for column in zip(*part.tolist(), strict=True)] or [0] * 3
                for part in np.split(rows, np.cumsum(counts)[:-1])]  # fmt: skip
    found = sums if firsts is None else add_pieces(sums, firsts)
    assert found.tolist() == np.array(expected, np.float64).astype(np.float32).tolist()


def test_how_many_rows_are_exact_by_hand(make: Make) -> None:
    # The largest row is 127 in its largest column, and weighs 128 steps.
    exact = ExactTable.from_bundle(make())
    assert exact is not None
    assert exact.max_rows == 2**24 // (127 * 128) == 1032
    assert 1032 * 127 * 128 <= 2**24 < 1033 * 127 * 128
    same = ExactTable.from_bundle(make(table=np.ones((4, 2), np.float32), d=2))
    assert same is not None
    assert (same.max_rows, same.step, same.columns) == (1032, np.float32(1 / 127 / 128), pytest.approx([1, 1]))
    fours = ExactTable.from_bundle(make(precision="int4"))
    assert fours is not None
    assert fours.max_rows == 2**24 // (127 * 21) == 6290
    assert 6290 * 127 * 21 <= 2**24 < 6291 * 127 * 21
    nothing = ExactTable.from_bundle(make(precision="int4", table=np.zeros((4, 2), np.float32), d=2))
    assert nothing is not None
    assert (nothing.max_rows, nothing.step) == (2**24 // 21, 1)
    assert ExactTable.from_bundle(make(precision="float32")) is None
    assert ExactTable.from_bundle(make(precision="float16")) is None
    assert ExactTable.from_bundle(make(table=np.zeros((4, 2), np.float32), d=2)) is None
    table, scales = quantize_table(np.array([[127.0], [1.0]], np.float32))
    assert (table.tolist(), scales.tolist()) == ([[127], [64]], [[1.0], [2 / 128]])  # 1 / 127 is 1.008 steps


def test_the_end_of_a_sum_by_hand() -> None:
    sums, counts = np.array([[300.0, -40], [0, 0]], np.float32), np.array([4, 0])
    columns, bias = np.array([2, 3], np.float32), np.array([1, 0.5], np.float32)
    table = ExactTable(9, 2, 1032, np.float32(0.01), mean=True, tanh=False, columns=columns, bias=bias)
    vectors = np.empty((2, 2), np.float32)
    table.finish(sums, counts, vectors)
    np.testing.assert_allclose(vectors, [[3 / 4 * 2 + 1, -0.4 / 4 * 3 + 0.5], [1, 0.5]], rtol=1e-6)
    table = ExactTable(9, 2, 1032, np.float32(0.01), mean=False, tanh=True, columns=None, bias=None)
    table.finish(sums, counts, vectors)
    np.testing.assert_allclose(vectors, np.tanh([[3, -0.4], [0, 0]]), rtol=1e-6)


def threads(numbers: int) -> int:
    """As many as CUDA's Gather starts: it counts blocks of 256 in float32."""
    return int(np.ceil(np.float32(numbers) / np.float32(256))) * 256


@given(st.integers(1, 5_000), st.floats(0, 1))
def test_each_number_of_a_call_has_a_thread(dimension: int, share: float) -> None:
    rows = max(1, round(rows_a_call(dimension) * share))
    assert threads(rows * dimension) >= rows * dimension
    assert rows * dimension <= max(60_000_000, dimension)


def test_more_rows_than_a_call_may_have_would_lose_numbers() -> None:
    assert rows_a_call(300) == 200_000
    assert threads(223_715 * 300) == 223_715 * 300 - 4
    assert rows_a_call(301) == 2**24 // 301
    assert threads(2**24 + 1) == 2**24


# ---- The runtime ----


@pytest.mark.parametrize("d", [37, 38])
@pytest.mark.parametrize("precision", ["int8", "int4"])
@pytest.mark.parametrize(
    "changes", [{}, {"activation": "tanh"}, {"pooling": "mean"}, {"pooling": "mean", "bias": None}], ids=str
)
@pytest.mark.usefixtures("on_a_cpu")
def test_it_gives_runtime_natives_bytes(make: Make, changes: dict[str, Any], precision: str, d: int) -> None:
    bundle = make(d, precision, **changes)
    device, native = CudaRuntime(bundle), NativeRuntime(bundle)
    expected = native.embed(bundle.memoized, TEXTS)
    found = device.embed(bundle.memoized, TEXTS)
    assert found.vectors.tobytes() == expected.vectors.tobytes()
    assert np.array_equal(found.counts, expected.counts)
    for text, vector in zip(TEXTS, expected.vectors, strict=True):
        assert device.embed(bundle.memoized, [text]).vectors.tobytes() == vector.tobytes()
    assert device.embed(bundle.memoized, []).vectors.shape == (0, d)
    device.close()
    with pytest.raises(BackendError, match="closed"):
        device.embed(bundle.memoized, ["east"])


@pytest.mark.parametrize(("rows", "texts"), [(7, 4_096), (10_000, 3), (1, 1), (50, 2)])
@pytest.mark.usefixtures("on_a_cpu")
def test_calls_are_cut_by_rows_and_by_texts(make: Make, monkeypatch: pytest.MonkeyPatch, rows: int, texts: int) -> None:
    bundle = make()
    expected = NativeRuntime(bundle).embed(bundle.memoized, TEXTS).vectors
    monkeypatch.setattr(cuda, "MAX_TEXTS", texts)
    monkeypatch.setattr(cuda, "rows_a_call", lambda _: rows)
    calls: list[tuple[int, int]] = []
    run = cuda._Lane.run

    def watched(self: Any, session: Any, ids: Any, counts: Any) -> Any:
        calls.append((len(ids), len(counts)))
        return run(self, session, ids, counts)

    monkeypatch.setattr(cuda._Lane, "run", watched)
    assert CudaRuntime(bundle).embed(bundle.memoized, TEXTS).vectors.tobytes() == expected.tobytes()
    assert max(called for called, _ in calls) <= rows
    assert max(called for _, called in calls) <= texts
    assert sum(called for called, _ in calls) == bundle.memoized(TEXTS).counts.sum()


@pytest.mark.usefixtures("on_a_cpu")
def test_shipped_models_in_several_threads(real_texts: list[str]) -> None:
    bundle = open_bundle(MODELS / "charagram-phrase")
    device = CudaRuntime(bundle)
    expected = NativeRuntime(bundle).embed(bundle.memoized, real_texts).vectors

    def some(seed: int) -> bool:
        chosen = np.random.default_rng(seed).permutation(len(real_texts))[: 1 + seed % 30]
        found = device.embed(bundle.memoized, [real_texts[i] for i in chosen]).vectors
        return found.tobytes() == expected[chosen].tobytes()

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(some, range(40)))
    random = np.random.default_rng(1)
    batch = bundle.memoized(real_texts)
    shuffled = batch_of(*(random.permutation(batch.part(i, i + 1).ids) for i in range(len(batch))))
    assert device.run(shuffled).tobytes() == expected.tobytes()


@pytest.mark.parametrize("wrong", [-1, 4, 10_000_000])
@pytest.mark.usefixtures("on_a_cpu")
def test_a_row_that_does_not_exist_is_refused_before_the_call(make: Make, wrong: int) -> None:
    with refused(BackendError, f"row {wrong}", "4 rows"):
        CudaRuntime(make()).run(batch_of([0], [3, wrong]))


@pytest.mark.usefixtures("on_a_cpu")
def test_what_cannot_be_exact_is_refused(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    refused = r"small: has no int8 table of one step.*gramvec-train convert --precision int8"
    with pytest.raises(DeviceError, match=refused):
        CudaRuntime(make(precision="float32"))
    bundle = make()
    graph = bundle.manifest.graph.model_copy(update={"inputs": ["ids", "offsets"]})
    monkeypatch.setattr(bundle, "manifest", bundle.manifest.model_copy(update={"graph": graph}))
    with pytest.raises(DeviceError, match=refused):
        CudaRuntime(bundle)


@pytest.mark.usefixtures("on_a_cpu")
def test_a_device_that_fails_is_no_device(
    make: Make, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    bundle = make()
    monkeypatch.setattr("gramvec.runtime.select.why_no_cuda", lambda: None)
    assert (open_runtime(bundle).device, open_runtime(bundle, "cuda", "onnx").device) == ("cuda", "cuda")
    with monkeypatch.context() as patch:
        patch.setattr(cuda._Lane, "run", lambda *_: 1 / 0)
        with refused(DeviceError, "cuda", "division by zero"):
            open_runtime(bundle, "cuda")
        caplog.clear()
        assert open_runtime(bundle).device == "cpu"
        (record,) = caplog.records
        assert re.match("device auto: cpu, because .*division by zero", record.getMessage())
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "onnxruntime", None)
        caplog.clear()
        assert open_runtime(bundle).device == "cpu"
        (record,) = caplog.records
        assert "onnxruntime cannot be imported" in record.getMessage()
