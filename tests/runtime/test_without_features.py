"""Texts without features: the bytes of the native loops in every runtime, batch and order, and no call with no ids.

onnxruntime's MatMulInteger leaves its output as the memory was where it adds up no rows, and the memory holds what
other texts left there.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gramvec
from conftest import MODELS, ROOT
from gramvec.bundle.bundle import Bundle, open_bundle
from gramvec.errors import BackendError, BundleError
from gramvec.features.spec import FeatureSpec
from gramvec.runtime import cuda
from gramvec.runtime.base import Runtime
from gramvec.runtime.cuda import CudaRuntime
from gramvec.runtime.exact import ExactTable
from gramvec.runtime.native import NativeRuntime, vector_of_no_rows
from gramvec.runtime.ort import OnnxRuntime, cpu_session
from gramvec.text.vocabulary import Entry, Vocabulary
from support.errors import refused
from support.training import export_table

# With model.cpu.onnx and without, linear and with a bias and a tanh, of a sum and of a mean.
NAMES = (
    "gramvec-en",
    "charagram-phrase",
    "paragram-phrase",
    "small-bias-mean",
    "small-tanh-float32",
    "small-tanh-int4",
)
ODD = ["", " ", "\t\n", "\u200b", "\U0001f600", "\U0001f600 \U0001f680", "\U00012000\U00012001", "\ue000", "x", "."]
KNOWN = ["vehicles", "a man is playing the guitar", "east north", "east " * 1_200]
RUNTIMES: dict[str, Callable[[Bundle], Runtime]] = {
    "native": NativeRuntime,
    "onnx": OnnxRuntime.from_bundle,
    "onnx, the whole graph": lambda bundle: OnnxRuntime(
        bundle.graph_path, bundle.manifest.dimension, of_no_rows=vector_of_no_rows(bundle)
    ),
    "cuda": CudaRuntime,
}
Opened = dict[str, tuple[Bundle, dict[str, Runtime]]]


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Opened]:
    """Each model in each runtime that takes it; CUDA's graph in a session on the CPU."""
    folder, found = tmp_path_factory.mktemp("bundles"), {}
    random = np.random.default_rng(0)
    arguments: dict[str, Any] = {
        "name": "small", "kind": "test", "spec": FeatureSpec(orders=(), words=True),
        "vocabulary": Vocabulary.build([Entry("word", word, 1) for word in ("east", "north", "south", "west")]),
        "table": random.normal(size=(4, 37)).astype(np.float32),
        "bias": random.normal(size=37).astype(np.float32), "golden_texts": ["east"], "provenance": {}, "card": "",
    }  # fmt: skip
    export_table(folder / NAMES[3], pooling="mean", activation="linear", precision="int8", **arguments)
    export_table(folder / NAMES[4], pooling="sum", activation="tanh", precision="float32", **arguments)
    export_table(folder / NAMES[5], pooling="sum", activation="tanh", precision="int4", **arguments)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cuda, "cuda_session", cpu_session)
        patch.setattr(cuda, "_cudart", lambda _: None)
        for name in NAMES:
            bundle = open_bundle(folder / name if name.startswith("small") else MODELS / name)
            takes = {key: of for key, of in RUNTIMES.items() if key != "cuda" or ExactTable.from_bundle(bundle)}
            found[name] = bundle, {key: of(bundle) for key, of in takes.items()}
    yield found
    for _, runtimes in found.values():
        for runtime in runtimes.values():
            runtime.close()


@pytest.mark.parametrize("name", NAMES)
@given(texts=st.lists(st.sampled_from(ODD + KNOWN), min_size=1, max_size=40), data=st.data())
def test_they_have_the_bytes_of_the_native_loops(
    opened: Opened, name: str, texts: list[str], data: st.DataObject
) -> None:
    bundle, runtimes = opened[name]
    native = runtimes["native"]
    alone = [native.embed(bundle.memoized, [text]) for text in texts]
    nothing = vector_of_no_rows(bundle)
    assert nothing is not None
    order = data.draw(st.permutations(range(len(texts))))
    for key, runtime in runtimes.items():
        runtime.embed(bundle.memoized, KNOWN)  # what another client's texts leave in memory
        found = runtime.embed(bundle.memoized, [texts[i] for i in order])
        for place, i in enumerate(order):
            expected, own = alone[i].vectors[0], found.vectors[place]
            if found.counts[place] == 0:
                assert own.tobytes() == expected.tobytes() == nothing.tobytes(), (key, texts[i])
            np.testing.assert_allclose(own, expected, rtol=1e-5, atol=1e-5)
        one = runtime.embed(bundle.memoized, [texts[0]]).vectors
        assert one.tobytes() == found.vectors[order.index(0)].tobytes(), key


@pytest.mark.parametrize("name", NAMES)
def test_zeros_or_the_activated_bias_by_hand(opened: Opened, name: str) -> None:
    bundle, runtimes = opened[name]
    weights, d = bundle.weights, bundle.manifest.dimension
    assert weights is not None
    expected = np.zeros(d, np.float32) if weights.bias is None else weights.bias
    expected = np.tanh(expected) if bundle.manifest.graph.activation == "tanh" else expected
    for runtime in runtimes.values():
        assert runtime.embed(bundle.memoized, ["", ""]).vectors.tobytes() == np.tile(expected, (2, 1)).tobytes()


@pytest.mark.parametrize("key", ["onnx", "onnx, the whole graph"])
def test_no_call_has_no_ids(opened: Opened, key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    bundle, runtimes = opened["gramvec-en"]
    runtime, calls = runtimes[key], []
    call = runtime._call  # type: ignore[attr-defined]
    monkeypatch.setattr(runtime, "_call", lambda part: (calls.append(part.counts.tolist()), call(part))[1])
    for texts in ([""], ["", ""], [""] * 40 + ["vehicles"] + [""] * 40, ["vehicles", ""], []):
        assert len(runtime.embed(bundle.memoized, texts).vectors) == len(texts)
    assert len(calls) == 2
    assert all(min(one) > 0 for one in calls)
    monkeypatch.setattr(runtime, "_of_no_rows", None)  # as of models that are more than a sum: the graph is asked
    assert not runtime.embed(bundle.memoized, [""]).vectors.any()
    assert calls[2:] == [[0, 1]]
    assert not runtime.embed(bundle.memoized, [""]).vectors.any()
    assert len(calls) == 3


def test_a_closed_runtime_has_no_vector_of_nothing_either() -> None:
    bundle = open_bundle(MODELS / "paragram-phrase")
    runtime = OnnxRuntime.from_bundle(bundle)
    runtime.close()
    with pytest.raises(BackendError, match="closed"):
        runtime.embed(bundle.memoized, [""])


def test_a_runtime_that_answers_what_was_in_memory_is_not_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(OnnxRuntime, "run", OnnxRuntime._run_rows)  # without a look at which texts have rows
    with refused(BundleError, "golden texts"):
        gramvec.load("gramvec-en", device="cpu", runtime="onnx")
    monkeypatch.undo()
    # A bias that one batch has and another lacks.
    run = NativeRuntime.embed

    def other(self: Any, featurizer: Any, texts: Any) -> Any:
        found = run(self, featurizer, texts)
        if len(texts) == 1:
            found.vectors[found.counts == 0] = 1e-3
        return found

    monkeypatch.setattr(NativeRuntime, "embed", other)
    with refused(BundleError, "golden texts"):
        gramvec.load("gramvec-en", device="cpu", runtime="native")


def test_vectors_of_another_shape_are_an_error(opened: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    bundle, runtimes = opened["gramvec-en"]
    runtime: Any = runtimes["onnx"]
    session = runtime._session

    class Shorter:
        get_inputs = staticmethod(session.get_inputs)

        def run(self, *arguments: Any) -> Any:
            return [session.run(*arguments)[0][:1]]

    monkeypatch.setattr(runtime, "_session", Shorter())
    with refused(BackendError, "[1, 300]", "2 texts"):
        runtime.embed(bundle.memoized, ["vehicles", "x"])


def test_operators_that_leave_their_output_unwritten_are_those_that_are_guarded() -> None:
    """In a process of its own, whose memory for sessions is filled with one byte and another before each call."""
    probe = [sys.executable, str(ROOT / "tests/runtime/empty_inputs.py")]
    done = subprocess.run(probe, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2_000:]
    assert done.stdout == "unwritten: LSTM's cells, MatMulInteger\n"
