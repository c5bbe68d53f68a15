"""Layers and sequences on CUDA: on a GPU, or over a stand-in, which shows where nodes run and what is copied.

The stand-in computes none of these kernels, so vectors are compared only on a GPU;
tests/runtime/test_parts_served.py has the same graphs and calls on a CPU. Run by `make test-cuda`.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gramvec
from gramvec.bundle.bundle import Bundle, open_bundle
from gramvec.errors import DeviceError
from gramvec.runtime.golden import golden_difference
from gramvec.runtime.layers import LayersRuntime
from gramvec.runtime.ort import CPU, CUDA, import_onnxruntime, why_no_cuda
from gramvec.runtime.sequences import SequenceRuntime, WholeOnCuda
from gramvec.runtime.steps import TEXTS_ON_DEVICE, StepRuntime

pytestmark = [pytest.mark.cuda, pytest.mark.timeout(300)]

if (reason := why_no_cuda()) is not None:
    pytest.skip(f"{reason}: make test-cuda", allow_module_level=True)

from test_cuda import BUNDLES, TRACE, of_the_stand_in, traced  # noqa: E402

of_a_gpu = pytest.mark.skipif(TRACE.is_file(), reason="the stand-in does not compute these kernels")
LAYERS = ("two-layer", "two-layer-relu", "projection", "dan", "dan-4")
STEPS = ("rnn", "rnn-relu", "irnn", "lstm", "lstm-no-gate", "charlstm")
CNNS = ("charcnn-a", "charcnn-b", "charcnn-b-no-layer")
TEXTS = ["red car", "small old house river", "", "tree", "zzz", "red " * 30, "green river large car " * 6]


def on_cuda(bundle: Bundle) -> Any:
    """The runtime that `open_runtime` tries, without the golden texts."""
    if bundle.manifest.graph.composition == "layers":
        return LayersRuntime(bundle, "cuda")
    return (
        StepRuntime(bundle, "cuda") if bundle.manifest.graph.pooling == "last" else SequenceRuntime(WholeOnCuda(bundle))
    )


@pytest.mark.parametrize("name", [*LAYERS, *STEPS])
def test_every_node_runs_on_the_device(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bundle, onnxruntime = open_bundle(BUNDLES / name), import_onnxruntime()
    monkeypatch.chdir(tmp_path)
    options = onnxruntime.SessionOptions()
    options.enable_profiling = True
    session = onnxruntime.InferenceSession(str(bundle.cuda_graph_path), options, providers=[CUDA, CPU])
    state = np.zeros((3, bundle.manifest.dimension), np.float32)
    feed = {"ids": np.array([1, 2], np.int32), "places": np.array([0, 1, -1]), "counts": np.array([2, 2, 1])}
    session.run(None, {one.name: feed.get(one.name, state) for one in session.get_inputs()})
    events = json.loads(Path(session.end_profiling()).read_text())
    ran = {
        event["name"].removesuffix("_kernel_time"): event["args"]["provider"]
        for event in events
        if event["name"].endswith("_kernel_time")
    }
    assert set(ran.values()) == {CUDA}
    assert not [node for node in ran if "Memcpy" in node]
    assert [node for node in ran if node.startswith("sums_product")]  # of float64
    assert not [node for node in ran if node.startswith("whole_")]  # computed once, when the graph was opened


@of_the_stand_in
@pytest.mark.parametrize("name", STEPS)
def test_states_stay_on_the_device_from_step_to_step(name: str) -> None:
    bundle = open_bundle(BUNDLES / name)
    runtime = StepRuntime(bundle, "cuda")
    batch = bundle.memoised(TEXTS)
    runtime.run(batch)
    with traced() as lines:
        runtime.run(batch)
    known = int(np.count_nonzero(batch.counts))
    copies = [line.split() for line in lines if line.startswith("MEMCPY") and "device->device" not in line]
    back = [int(one[4]) for one in copies if one[1].startswith("device->")]
    assert back == [4 * known * bundle.manifest.dimension]
    steps = int(batch.counts.max())
    products = [line for line in lines if "cublasDgemm" in line]
    gates = {"lstm": 4, "charlstm": 4, "lstm-no-gate": 3}.get(name, 1)
    assert len(products) == 2 * gates * steps  # of the rows and of the states
    assert not [line for line in lines if "cublasSgemm" in line or "GemmEx" in line]
    assert not [line for line in lines if line.startswith("!!")]
    assert runtime.batching == gramvec.runtime.base.Batching(TEXTS_ON_DEVICE, waits=True)


@of_the_stand_in
@pytest.mark.parametrize("name", ["dan", "lstm", "charcnn-b"])
def test_auto_goes_on_with_the_cpu_and_says_why(name: str, caplog: pytest.LogCaptureFixture) -> None:
    """Over the stand-in the golden texts have other vectors, or cuDNN is missing: as on a broken GPU."""
    caplog.set_level("INFO", "gramvec.runtime")
    embedder = gramvec.load(BUNDLES / name)
    assert embedder.device == "cpu"
    line = caplog.records[0].getMessage()
    assert line.startswith("device auto: cpu, because ")
    assert ("cuDNN is unavailable" if name in CNNS else "golden texts have other vectors") in line
    assert len(line) < 500
    assert embedder.embed(TEXTS).tobytes() == gramvec.load(BUNDLES / name, device="cpu").embed(TEXTS).tobytes()
    with pytest.raises((DeviceError, gramvec.errors.BundleError)):
        gramvec.load(BUNDLES / name, device="cuda")


@of_a_gpu
@pytest.mark.parametrize("name", [*LAYERS, *STEPS, *CNNS])
def test_vectors_are_the_cpus_and_their_bytes_do_not_depend_on_the_batch(name: str) -> None:
    bundle = open_bundle(BUNDLES / name)
    runtime = on_cuda(bundle)
    assert golden_difference(bundle, runtime) < 1e-5
    found = runtime.embed(bundle.memoised, TEXTS * 50).vectors
    assert found.tobytes() == np.tile(found[: len(TEXTS)], (50, 1)).tobytes()
    for text, vector in zip(TEXTS, found, strict=False):
        assert runtime.embed(bundle.memoised, [text]).vectors.tobytes() == vector.tobytes()
    order = np.random.default_rng(1).permutation(len(TEXTS))
    shuffled = runtime.embed(bundle.memoised, [TEXTS[at] for at in order]).vectors
    assert shuffled.tobytes() == found[order].tobytes()
    embedder = gramvec.load(BUNDLES / name, device="cuda")
    assert (embedder.device, embedder.runtime) == ("cuda", "onnx")
    np.testing.assert_allclose(
        embedder.embed(TEXTS), gramvec.load(BUNDLES / name, device="cpu").embed(TEXTS), atol=1e-5
    )
