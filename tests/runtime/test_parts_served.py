"""The parts of encoders that are more than a bag: one step, and what is above a sum; and CUDA's, on a CPU."""

from __future__ import annotations

import logging
import pickle
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto
from test_sequences_served import MODELS, changed, resealed, set_constant, set_operator, texts_of, written

import gramvec
from gramvec.bundle.bundle import Bundle, open_bundle
from gramvec.errors import BackendError, BundleError, DeviceError
from gramvec.runtime import steps
from gramvec.runtime.base import Runtime
from gramvec.runtime.golden import golden_difference
from gramvec.runtime.layers import TEXTS as TEXTS_OF_LAYERS
from gramvec.runtime.layers import LayersRuntime
from gramvec.runtime.onnx import OnnxRuntime
from gramvec.runtime.parts import Part
from gramvec.runtime.sequences import SequenceRuntime, WholeOnCuda
from gramvec.runtime.steps import StepRuntime
from gramvec.text.batch import FeatureBatch
from gramvec_training.encoders.base import LONGEST
from gramvec_training.export.onnx_graph import Writer
from gramvec_training.export.sequence_graph import STEPS, STEPS_OF_COLUMN, write_product

RECURRENT = ["rnn", "rnn-relu", "irnn", "lstm", "lstm-no-gate", "charlstm"]


@pytest.fixture(scope="module")
def bundles(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("bundles")
    for name in MODELS:
        written(folder / name, name)
    return folder


def as_on_cuda(bundle: Bundle) -> Runtime:
    """The runtime that CUDA has, with the same graph and the same calls, on this CPU."""
    part = Part(bundle, "cpu", set(), graph=bundle.cuda_graph_path)
    if bundle.manifest.graph.composition == "layers":
        return LayersRuntime(bundle, part=part)
    if bundle.manifest.graph.pooling == "last":
        return StepRuntime(bundle, "cuda", part=part)
    return SequenceRuntime(WholeOnCuda(bundle, part=part))


@pytest.mark.parametrize("name", MODELS)
def test_cudas_graphs_give_the_same_vectors_and_bytes_that_do_not_depend_on_the_batch(bundles: Path, name: str) -> None:
    bundle = open_bundle(bundles / name)
    runtime = as_on_cuda(bundle)
    assert golden_difference(bundle, runtime) < 2e-6
    texts = [*texts_of(60, 2), "", "zzz", "red " * 300, "red", "green river " * 200]
    found = runtime.embed(bundle.memoised, texts).vectors
    embedder = gramvec.load(bundles / name, device="cpu")
    expected = embedder.embed(texts, normalize=False)
    scale = np.abs(expected).max()
    np.testing.assert_allclose(found, expected, atol=3e-6 * max(scale, 1))
    for text, vector in zip(texts, found, strict=True):
        assert runtime.embed(bundle.memoised, [text]).vectors.tobytes() == vector.tobytes()
    order = np.random.default_rng(1).permutation(len(texts))
    shuffled = runtime.embed(bundle.memoised, [texts[at] for at in order]).vectors
    assert shuffled.tobytes() == found[order].tobytes()
    assert runtime.embed(bundle.memoised, []).vectors.shape == (0, bundle.manifest.dimension)
    runtime.close()
    with pytest.raises(BackendError, match="the model is closed"):
        runtime.embed(bundle.memoised, ["red"])
    embedder.close()


@pytest.mark.parametrize("precision", ["float16", "int8"])
@pytest.mark.parametrize("name", ["two-layer", "dan", "rnn", "lstm"])
def test_cudas_graphs_of_tables_in_fewer_bits(tmp_path: Path, name: str, precision: Any) -> None:
    written(tmp_path / "b", name, precision=precision)
    bundle = open_bundle(tmp_path / "b")
    assert golden_difference(bundle, as_on_cuda(bundle)) < 2e-6


@pytest.mark.parametrize("bound", [1.0, None])
@pytest.mark.parametrize("k", [3, 300, 1_024])
def test_an_exact_product_has_the_same_bytes_in_every_order(tmp_path: Path, k: int, bound: float | None) -> None:
    """The terms are added in as many orders as there are permutations of k; a plain product shows which it was."""
    random = np.random.default_rng(k)
    x = random.uniform(-1, 1, (5, k)).astype(np.float32)
    x[1] = np.sign(x[1])  # the largest that there can be
    x[2] *= 1e-3
    x[3] = 0
    matrix = random.normal(0, 0.3, (k, 7)).astype(np.float32)
    matrix[:, 3] = np.abs(matrix[:, 3]) * np.sign(x[1])  # a column whose terms are all of one sign
    matrix[:, 4] *= 1e-2
    right = x.astype(np.float64) @ matrix.astype(np.float64)

    def product(order: np.ndarray[Any, Any], *, exact: bool) -> np.ndarray[Any, Any]:
        w = Writer()
        w.constant("matrix", matrix[order], np.float32)
        write_product(w, "x", "matrix", "y", matrix_of=matrix[order], bound=bound, exact=exact)
        w.save(tmp_path / "g.onnx", {"x": (TensorProto.FLOAT, ["n", k])}, {"y": 7})
        session = onnxruntime.InferenceSession(str(tmp_path / "g.onnx"), providers=["CPUExecutionProvider"])
        (found,) = session.run(None, {"x": np.ascontiguousarray(x[:, order])})
        return np.asarray(found)

    orders = [random.permutation(k) for _ in range(8)]
    found = [product(order, exact=True) for order in orders]
    assert {one.tobytes() for one in found} == {found[0].tobytes()}
    assert k < 300 or len({product(order, exact=False).tobytes() for order in orders}) > 1
    sums = np.abs(matrix).sum(axis=0).max()
    np.testing.assert_allclose(found[0], right, atol=sums * k**0.5 / min(STEPS, STEPS_OF_COLUMN / k), rtol=1e-6)
    assert not found[0][3].any()


@pytest.mark.parametrize("name", RECURRENT)
def test_steps_are_the_whole_graph(bundles: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    bundle = open_bundle(bundles / name)
    random = np.random.default_rng(1)
    counts = np.append(random.integers(0, 40, 90), [0, 1, LONGEST + 40, 1])
    # An iRNN's state may be of any size after thousands of steps, whose rounding then shows.
    counts = np.minimum(counts, 60 if name == "irnn" else counts.max())
    offsets = np.cumsum(np.append(0, counts)).astype(np.int64)
    batch = FeatureBatch(random.integers(0, bundle.manifest.rows, offsets[-1]).astype(np.int32), offsets)
    whole = SequenceRuntime(OnnxRuntime.of(bundle))
    expected, found = whole.run(batch), StepRuntime(bundle).run(batch)
    np.testing.assert_allclose(found, expected, atol=1e-5 * max(1, np.abs(expected).max()))
    monkeypatch.setattr(steps, "TEXTS_ON_CPU", 7)
    assert StepRuntime(bundle).run(batch).tobytes() == found.tobytes()
    assert steps.LONGEST == LONGEST


def test_a_long_text_does_not_make_a_device_walk_on_with_all_others(
    bundles: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bundle = open_bundle(bundles / "lstm")
    batch = bundle.memoised([*texts_of(40, 4), "red " * 500])
    found = as_on_cuda(bundle).run(batch)
    monkeypatch.setattr(steps, "PLACES_ON_DEVICE", 64)
    runtime: Any = as_on_cuda(bundle)
    walk = runtime._walk
    calls: list[tuple[int, int]] = []

    def noted(ids: Any, starts: Any, counts: Any) -> Any:
        calls.append((len(counts), int(counts.max())))
        return walk(ids, starts, counts)

    runtime._walk = noted
    assert runtime.run(batch).tobytes() == found.tobytes()
    assert calls[0] == (1, 500)
    assert max(texts * longest for texts, longest in calls[1:]) <= 64


@pytest.mark.parametrize("name", ["dan", "two-layer"])
@pytest.mark.parametrize("texts", [1, 2, TEXTS_OF_LAYERS, TEXTS_OF_LAYERS + 1, 2 * TEXTS_OF_LAYERS + 1])
def test_layers_are_the_whole_graph_however_many_texts_there_are(bundles: Path, name: str, texts: int) -> None:
    bundle = open_bundle(bundles / name)
    runtime = LayersRuntime(bundle)
    batch = bundle.memoised(texts_of(texts, 9))
    found = runtime.run(batch)
    np.testing.assert_allclose(found, OnnxRuntime.of(bundle).run(batch), atol=1e-6)
    last = runtime.run(batch.part(texts - 1, texts))
    assert last.tobytes() == found[-1:].tobytes()


@pytest.mark.parametrize("name", ["dan", "lstm"])
def test_a_copy_in_another_process_has_the_same_bytes(bundles: Path, name: str) -> None:
    embedder = gramvec.load(bundles / name, device="cpu")
    copy = pickle.loads(pickle.dumps(embedder))
    named = gramvec.load(bundles / name, device="cpu", runtime="onnx")
    for one in (copy, named):
        assert one.embed(texts_of(20)).tobytes() == embedder.embed(texts_of(20)).tobytes()


@pytest.mark.parametrize("name", ["dan", "lstm", "charcnn-b"])
def test_a_bundle_from_before_is_served_by_its_whole_graph_and_not_on_cuda(
    bundles: Path, tmp_path: Path, name: str
) -> None:
    shutil.copytree(bundles / name, tmp_path / "b")
    changed(tmp_path / "b", cpu=False, cuda=False, stored=None)
    before, now = gramvec.load(tmp_path / "b", device="cpu"), gramvec.load(bundles / name, device="cpu")
    texts = texts_of(20, 3)
    np.testing.assert_allclose(before.embed(texts), now.embed(texts), atol=1e-6)
    bundle = open_bundle(tmp_path / "b")
    with pytest.raises(
        DeviceError, match=r"(does not say where its rows lie|without a graph of them for cuda); export"
    ):
        if name == "dan":
            LayersRuntime(bundle, "cuda")
        else:
            StepRuntime(bundle, "cuda")
    for one in (before, now):
        one.close()


@pytest.mark.parametrize(
    ("name", "file", "change", "sentence"),
    [
        ("lstm", "model.cpu.onnx", set_operator("Sigmoid", "LSTM"), "operator LSTM is none that bundles may use"),
        ("lstm", "model.cuda.onnx", set_operator("Round", "Loop"), "operator Loop is none that bundles may use"),
        ("dan", "model.cuda.onnx", set_operator("Round", "Floor"), "operator Floor is none that bundles may use"),
        ("dan", "model.cpu.onnx", lambda model: setattr(model.graph.input[0], "name", "texts"), "inputs of ids"),
    ],
)
def test_parts_of_a_stranger_end_in_a_sentence(
    bundles: Path, tmp_path: Path, name: str, file: str, change: Callable[[onnx.ModelProto], object], sentence: str
) -> None:
    shutil.copytree(bundles / name, tmp_path / "b")
    resealed(tmp_path / "b", change, file)
    with pytest.raises(BundleError, match=sentence):
        gramvec.load(tmp_path / "b", device="cpu")


def test_a_part_with_other_vectors_is_left_for_the_whole_graph(
    bundles: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for name, change in (("rnn", set_operator("Tanh", "Relu")), ("irnn", set_constant("one", [1_000]))):
        shutil.copytree(bundles / name, tmp_path / name)
        resealed(tmp_path / name, change, "model.cpu.onnx")
        caplog.clear()
        caplog.set_level(logging.INFO, "gramvec.runtime")
        found = gramvec.load(tmp_path / name, device="cpu").embed(texts_of(9))
        (line,) = [one.message for one in caplog.records]
        assert line.startswith("runtime auto: the whole graph, because")
        assert "golden texts have other vectors" in line
        np.testing.assert_allclose(found, gramvec.load(bundles / name, device="cpu").embed(texts_of(9)), atol=1e-6)


@pytest.mark.parametrize("name", ["lstm", "dan", "charcnn-b"])
def test_a_row_that_does_not_exist_is_an_error(bundles: Path, name: str) -> None:
    runtime = as_on_cuda(open_bundle(bundles / name))
    with pytest.raises(BackendError, match="not in the table"):
        runtime.run(FeatureBatch(np.array([1, 999], np.int32), np.array([0, 2], np.int64)))
