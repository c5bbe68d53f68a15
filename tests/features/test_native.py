"""The native runtime against ONNX Runtime and against the sum written out in numpy."""

from __future__ import annotations

import logging
import re
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from test_features import CORPUS

import gramvec
from conftest import MODELS
from gramvec.bundle.bundle import Bundle, open_bundle
from gramvec.errors import BackendError, BundleError, DeviceError, InputError
from gramvec.features.featurizer import Featurizer
from gramvec.features.spec import FeatureSpec
from gramvec.runtime.exact import ExactTable
from gramvec.runtime.native import NativeRuntime, weights_and_step
from gramvec.runtime.onnx_graph import quantize_table
from gramvec.runtime.ort import OnnxRuntime
from gramvec.runtime.select import open_runtime
from gramvec.text.arrays import FeatureBatch
from gramvec.text.memo import Memo
from gramvec_training.data.vocabulary import build_vocabulary
from gramvec_training.export.bundle import NO_MEMO, ChosenChunks, read_weights
from hostile.bundles.craft import manifest
from support.errors import refused
from support.training import export_table

SPEC = FeatureSpec(orders=(2, 3, 4), words=True)
TEXTS = ["", "the lazy dog", "The quick, quick fox!", "zzz \u4e00", *CORPUS, "the quick brown fox " * 200]
MEMO = ChosenChunks(["the", "quick", "brown", "fox,"], ["he qu", "he la"])
Make = Callable[..., Bundle]
of_every_precision = pytest.mark.parametrize("precision", ["float32", "float16", "int8", "int4"])
of_every_shape = pytest.mark.parametrize(
    ("pooling", "activation", "bias"), [("sum", "linear", False), ("sum", "tanh", True), ("mean", "linear", True)]
)


@pytest.fixture
def make(tmp_path: Path) -> Make:
    def _make(pooling: str = "sum", activation: str = "linear", bias: bool = False, precision: str = "float32",
              memo: bool = True) -> Bundle:  # fmt: skip
        rng = np.random.default_rng(5)
        vocabulary = build_vocabulary(CORPUS * 2, SPEC)
        table = rng.normal(0, 0.3, (len(vocabulary), 37)).astype(np.float32)  # 37: no multiple of a vector's width
        table[:, 3] += 2  # a column that outgrows the others in sums
        path = tmp_path / f"{pooling}-{activation}-{bias}-{precision}-{memo}"
        export_table(
            path, name="small", kind="test", spec=SPEC, vocabulary=vocabulary, table=table,
            bias=rng.normal(0, 0.1, 37).astype(np.float32) if bias else None, pooling=pooling, activation=activation,
            precision=precision, golden_texts=TEXTS[:3], parity_texts=TEXTS,
            memo=MEMO if memo and pooling == "sum" else NO_MEMO,
            provenance={}, card="",
        )  # fmt: skip
        return open_bundle(path)

    return _make


def spelt_out(bundle: Bundle) -> Featurizer:
    """What featurizes for the bundle's table without chunks and edges."""
    if bundle.memoized.memo is None:
        return bundle.featurizer
    return Featurizer(bundle.spec, bundle.vocabulary, memo=Memo.build([], bundle.vocabulary))


def written_out(bundle: Bundle, texts: list[str]) -> NDArray[np.float64]:
    graph = bundle.manifest.graph
    table, bias = read_weights(bundle)
    batch = bundle.featurizer(texts)
    vectors = np.zeros((len(texts), table.shape[1]))
    for index, (first, last) in enumerate(zip(batch.offsets[:-1], batch.offsets[1:], strict=True)):
        for row in batch.ids[first:last]:
            vectors[index] += table[row]
        if graph.pooling == "mean":
            vectors[index] /= max(last - first, 1)
    vectors += 0 if bias is None else bias
    return np.tanh(vectors) if graph.activation == "tanh" else vectors


@of_every_precision
@of_every_shape
def test_it_equals_onnx_runtime_and_the_sum_written_out(
    make: Make, pooling: str, activation: str, bias: bool, precision: str
) -> None:
    bundle = make(pooling, activation, bias, precision)
    assert bundle.manifest.memo == (6 if pooling == "sum" else 0)
    native = NativeRuntime(bundle)
    onnx = OnnxRuntime(bundle.graph_path, 37, cpu_graph=bundle.cpu_graph_path)
    for featurizer in (bundle.memoized, spelt_out(bundle)):
        batch = featurizer(TEXTS)
        found = native.run(batch)
        assert found.dtype == np.float32
        other = onnx.run(batch)  # which adds the 4,000 rows of the longest text in float32, native int8 in integers
        apart = np.linalg.norm(found - other, axis=1)
        assert np.all(apart <= 5e-5 * np.linalg.norm(other, axis=1) + 1e-9)
        # A stored row is off by 1/2048 (float16), 1/254 (int8) or about 1/10 (int4) of its largest value, and a memo
        # row apart from its parts; the last text, of 4,000 rows, adds that up.
        tolerance = {"float32": 1e-5, "float16": 3e-3, "int8": 6e-2, "int4": 0.4}[precision]
        expected = written_out(bundle, TEXTS[:-1])
        assert np.allclose(found[:-1], expected, rtol=tolerance, atol=tolerance * np.abs(expected).max())


@pytest.mark.parametrize("precision", ["int8", "int4"])
def test_integers_are_added_alike_to_the_bit(make: Make, precision: str) -> None:
    bundle = make(bias=True, precision=precision)
    assert bundle.cpu_graph_path is not None
    native, narrow, plain = (NativeRuntime(bundle, width=width) for width in (512, 256, 0))
    onnx = OnnxRuntime(bundle.graph_path, 37, cpu_graph=bundle.cpu_graph_path)
    portable = OnnxRuntime(bundle.graph_path, 37)
    batch = bundle.featurizer(
        [*TEXTS * 8, "the quick brown fox " * 10_000]
    )  # the last has more rows than an int32 holds
    assert batch.counts[-1] > 2**16
    found = native.run(batch)
    assert narrow.run(batch).tobytes() == plain.run(batch).tobytes() == found.tobytes()
    with_integers = onnx.run(batch)
    assert with_integers[:-1].tobytes() == found[:-1].tobytes()
    # The graph for any device adds the same whole numbers as floats, which are exact while there are few.
    exact = ExactTable.from_bundle(bundle)
    assert exact is not None
    few = batch.counts <= exact.max_rows
    assert 0.8 < few.mean() < 1
    assert few.sum() < len(batch) - 1 or precision == "int4"  # which has six times as many
    assert portable.run(batch)[few].tobytes() == found[few].tobytes()
    assert portable.run(batch)[-1].tobytes() != found[-1].tobytes()  # or the test compares a graph with itself
    assert np.linalg.norm(with_integers[-1] - found[-1]) < 5e-3 * np.linalg.norm(found[-1])  # 800,000 float32 sums
    onnx.close()
    with pytest.raises(BackendError, match="closed"):
        onnx.run(batch)


def test_only_sums_of_whole_numbers_have_a_graph_of_integers(make: Make) -> None:
    assert make(precision="float16").cpu_graph_path is None
    assert make("mean", precision="int4").cpu_graph_path is None
    assert make(precision="int4", memo=False).cpu_graph_path is not None
    assert make("mean", precision="int8").cpu_graph_path is None
    assert make(precision="int8", memo=False).cpu_graph_path is not None


def assert_alike(native: NativeRuntime, featurizer: Featurizer, texts: list[str]) -> None:
    """From texts, the runtime gives what it gives from their features."""
    batch = featurizer(texts)
    found = native.embed(featurizer, texts)
    assert found.vectors.tobytes() == native.run(batch).tobytes()
    assert np.array_equal(found.counts, batch.counts)
    assert found.unknown == batch.unknown
    assert found.featurize_seconds > 0 or not texts


@of_every_precision
@of_every_shape
def test_texts_give_what_their_features_give(
    make: Make, pooling: str, activation: str, bias: bool, precision: str
) -> None:
    bundle = make(pooling, activation, bias, precision)
    native = NativeRuntime(bundle)
    in_numpy = Featurizer(bundle.spec, bundle.vocabulary, compiled=False, memo=bundle.memoized.memo)
    for featurizer in (bundle.memoized, bundle.featurizer, in_numpy):
        for texts in (TEXTS, TEXTS[::-1], ["the lazy dog"], [""], []):
            assert_alike(native, featurizer, texts)


@given(st.lists(st.text() | st.text("the quickbrown fox,.\u4e00", max_size=300), max_size=40))
def test_any_texts_give_what_their_features_give(shipped: tuple[NativeRuntime, Featurizer], texts: list[str]) -> None:
    assert_alike(*shipped, texts)


@pytest.fixture(scope="module")
def shipped() -> tuple[NativeRuntime, Featurizer]:
    bundle = open_bundle(MODELS / "gramvec-en")
    return NativeRuntime(bundle), bundle.memoized


def test_texts_whose_rows_are_of_another_table(make: Make, shipped: tuple[NativeRuntime, Featurizer]) -> None:
    native = NativeRuntime(make())
    rows = shipped[1](["the quick brown fox"]).ids
    with refused(BackendError, f"row {rows[rows >= native._rows][0]}"):
        native.embed(shipped[1], ["the quick brown fox"])
    native.close()
    with pytest.raises(BackendError, match="closed"):
        native.embed(shipped[1], ["the quick brown fox"])


@pytest.mark.parametrize("wrong", [3, None, b"bytes", "a lone \ud800"])
def test_what_is_no_text_is_refused_by_its_index(shipped: tuple[NativeRuntime, Featurizer], wrong: object) -> None:
    native, featurizer = shipped
    with pytest.raises(InputError) as refused:
        native.embed(featurizer, ["a text", wrong])  # type: ignore[list-item]
    assert refused.value.index == 1


def test_a_memoized_text_has_fewer_rows_and_the_same_vector(make: Make) -> None:
    bundle = make()
    text = ["the quick brown fox, the"]
    spelt = spelt_out(bundle)(text)
    assert bundle.memoized(text).counts[0] < spelt.counts[0] < bundle.featurizer(text).counts[0]
    native = NativeRuntime(bundle)
    assert np.allclose(native.run(bundle.memoized(text)), native.run(spelt), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("row", [-1, 10_000_000])
def test_a_row_that_does_not_exist_is_a_backend_error(make: Make, row: int) -> None:
    native = NativeRuntime(make())
    with refused(BackendError, f"row {row}"):
        native.run(FeatureBatch(np.array([1, row], np.int32), np.array([0, 2])))
    native.close()
    with pytest.raises(BackendError, match="closed"):
        native.run(FeatureBatch(np.array([1], np.int32), np.array([0, 1])))


def test_no_texts_and_no_features(make: Make) -> None:
    native = NativeRuntime(make(bias=True))
    assert native.run(FeatureBatch(np.zeros(0, np.int32), np.zeros(1, np.int64))).shape == (0, 37)
    bias = read_weights(make(bias=True))[1]
    assert np.array_equal(native.run(FeatureBatch(np.zeros(0, np.int32), np.zeros(2, np.int64)))[0], bias)


def test_auto_takes_native_and_onnx_where_native_cannot_be_had(
    make: Make, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    bundle = make(precision="int8")
    assert open_runtime(bundle, "cpu").name == "native"
    assert open_runtime(bundle, "cpu", "onnx").name == "onnx"
    assert gramvec.load(bundle.path, runtime="onnx").runtime == "onnx"
    with refused(DeviceError, "native", "CPU"):
        open_runtime(bundle, "cuda", "native")
    with refused(DeviceError, "'fast'"):
        open_runtime(bundle, "cpu", "fast")  # type: ignore[arg-type]
    monkeypatch.setattr("gramvec.native.loops", None)
    with caplog.at_level(logging.INFO, "gramvec.runtime"):
        assert open_runtime(bundle, "cpu").name == "onnx"
    assert "compiled loops" in caplog.text
    with refused(DeviceError, "compiled loops"):
        open_runtime(bundle, "cpu", "native")


def test_a_shipped_model_with_a_memo_opens_where_the_loops_were_not_built(monkeypatch: pytest.MonkeyPatch) -> None:
    with_memo = gramvec.load("gramvec-en", device="cpu").embed(["the lazy dog"])
    monkeypatch.setattr("gramvec.native.loops", None)
    without = gramvec.load("gramvec-en", device="cpu")
    assert (without.runtime, without.bundle.memoized.compiled, without.manifest.memo > 0) == ("onnx", False, True)
    assert (without.embed(["the lazy dog"]) * with_memo).sum() > 0.999


def test_native_serves_where_onnxruntime_is_missing(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    bundle = make()
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    assert open_runtime(bundle, "cpu", "native").name == "native"
    with pytest.raises(DeviceError, match="onnxruntime"):
        open_runtime(bundle, "cpu", "onnx")


def changed(bundle: Bundle, **stored: object) -> Path:
    with manifest(bundle.path) as values:
        values["graph"]["stored"] = values["graph"]["stored"] | stored if stored else None
    return bundle.path


def test_native_that_gives_other_golden_vectors_does_not_serve(make: Make, caplog: pytest.LogCaptureFixture) -> None:
    bundle = make()
    path = changed(bundle, columns=[2.0] * 37)
    with refused(BundleError, "golden texts", "native on cpu"):
        gramvec.load(path, runtime="native")
    with caplog.at_level(logging.WARNING, "gramvec.runtime"):
        assert gramvec.load(path, device="cpu").runtime == "onnx"
    (record,) = caplog.records
    assert re.match("runtime auto: onnx, because .*golden texts have other vectors", record.getMessage())
    # Without ONNX Runtime it is the first cause that is told.
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "onnxruntime", None)
        with refused(BundleError, "golden texts"):
            gramvec.load(path, device="cpu")


def test_a_bundle_without_a_place_of_its_table_or_a_false_one(make: Make) -> None:
    with refused(BundleError, "model.onnx.data", "mapped"):
        gramvec.load(changed(make(), table=10**9), runtime="native")
    path = changed(make(memo=False))
    with refused(BundleError, "export"):
        gramvec.load(path, runtime="native")
    assert gramvec.load(path, device="cpu").runtime == "onnx"


def test_threads_do_not_change_a_byte(make: Make) -> None:
    path = make(precision="int8").path
    texts = [f"{text} {i}" for i in range(120) for text in TEXTS[:10]]
    one, three = gramvec.load(path, threads=1), gramvec.load(path, threads=3)
    assert one.embed(texts).tobytes() == three.embed(texts).tobytes()
    assert one.raw(texts).feature_counts.tobytes() == three.raw(texts).feature_counts.tobytes()
    assert np.array_equal(
        three.embed(texts, dimensions=5), np.concatenate([one.embed([t], dimensions=5) for t in texts])
    )
    with pytest.raises(InputError, match="dimensions"):
        three.embed(texts, dimensions=99)
    three.close()
    with pytest.raises(BackendError, match="closed"):
        three.embed(texts)
    with refused(InputError, "threads", "1"):
        gramvec.load(path, threads=0)


@given(st.integers(0, 2**32 - 1), st.floats(0, 12), st.integers(1, 30))
def test_int8_rows_have_scales_of_one_step_and_are_off_by_half_of_theirs(seed: int, spread: float, rows: int) -> None:
    random = np.random.default_rng(seed)
    table = (random.normal(0, 1, (rows, 9)) * np.exp(random.uniform(-spread, 0, (rows, 1)))).astype(np.float32)
    table[0] = 0
    stored, scales = quantize_table(table)
    weights, step = weights_and_step(scales)
    if rows == 1:
        assert (weights, step, stored.any()) == (None, 1.0, False)  # nothing but zeros
        return
    assert weights is not None
    assert (weights.min() >= 1, weights.max(), np.float32(step)) == (True, 128, scales.max() / np.float32(128))
    restored = stored.astype(np.float64) * weights * step
    assert np.all(np.abs(restored - table) <= weights * step * 0.50001)  # float32 rounds the quotient
    # A row uses its bits, unless it is smaller than the step itself.
    assert np.all((np.abs(stored).max(axis=1) >= 63) | (weights[:, 0] == 1))


def test_scales_without_a_step_are_summed_as_floats() -> None:
    for scales in ([], [0.0, 0.0], [1.0, 0.3], [1.0, 1.0 / 256], [1.0, 0.0]):
        assert weights_and_step(np.array(scales, np.float32)) == (None, 1.0)
