from __future__ import annotations

import importlib.metadata
import subprocess
import sys
import types
from pathlib import Path

import numpy as np
import onnxruntime
import pytest

import gramvec
from conftest import MODELS
from gramvec.errors import BackendError, BundleError, DeviceError
from gramvec.features import FeatureBatch
from gramvec.runtime import onnx as runtime_module
from gramvec.runtime.onnx import OnnxRuntime

GRAPH = MODELS / "charagram-phrase" / "model.onnx"


@pytest.fixture
def runtime() -> OnnxRuntime:
    return OnnxRuntime(GRAPH, 300, "cpu")


def batch_of(*texts: list[int]) -> FeatureBatch:
    offsets = np.cumsum([0, *map(len, texts)]).astype(np.int64)
    return FeatureBatch(np.array([one for text in texts for one in text], np.int32), offsets)


def test_a_vector_is_the_same_to_the_bit_in_any_batch(runtime: OnnxRuntime) -> None:
    random = np.random.default_rng(0)
    rows = [random.integers(0, 5000, size=int(n)).tolist() for n in random.integers(0, 900, size=60)]
    alone = np.concatenate([runtime.run(batch_of(row)) for row in rows])
    for order in (np.arange(60), random.permutation(60)):
        together = runtime.run(batch_of(*(rows[i] for i in order)))
        assert np.array_equal(together.view(np.int32), alone[order].view(np.int32))
    assert np.abs(alone).max() > 0


def test_a_text_longer_than_a_call_and_an_empty_batch(runtime: OnnxRuntime) -> None:
    long = runtime.run(batch_of([], [7] * 40_000, [7]))
    assert np.isfinite(long).all()
    assert runtime.run(batch_of()).shape == (0, 300)


def test_the_device_is_read_back_from_the_session(runtime: OnnxRuntime) -> None:
    assert (runtime.device, runtime.provider) == ("cpu", "CPUExecutionProvider")
    runtime.close()
    with pytest.raises(BackendError, match="closed"):
        runtime.run(batch_of([1]))


def test_a_row_that_does_not_exist_is_a_backend_error(runtime: OnnxRuntime) -> None:
    with pytest.raises(BackendError, match="onnxruntime failed on cpu"):
        runtime.run(batch_of([10_000_000]))


def test_a_graph_that_cannot_be_loaded_is_named(tmp_path: Path) -> None:
    (tmp_path / "model.onnx").write_bytes(b"no graph")
    with pytest.raises(BundleError, match=r"model\.onnx: onnxruntime cannot load it"):
        OnnxRuntime(tmp_path / "model.onnx", 300, "cpu")


needs_no_gpu = pytest.mark.skipif(
    runtime_module._why_no_cuda(onnxruntime) is None, reason="this machine has CUDA, which is what is asked for"
)


@needs_no_gpu
def test_cuda_that_cannot_be_had_is_an_error_that_says_why() -> None:
    with pytest.raises(DeviceError, match=r"cuda cannot be had: .*(CPU build|NVIDIA driver)"):
        gramvec.load("charagram-phrase", device="cuda")
    with pytest.raises(DeviceError, match="auto, cpu or cuda"):
        OnnxRuntime(GRAPH, 300, "tpu")  # type: ignore[arg-type]


@needs_no_gpu
def test_auto_says_what_it_chose_and_why(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "gramvec.runtime")
    assert OnnxRuntime(GRAPH, 300, "auto").device == "cpu"
    (record,) = caplog.records
    assert record.getMessage().startswith("device auto: cpu, because ")


@needs_no_gpu
def test_a_session_that_fell_back_silently_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """As onnxruntime-gpu does where its CUDA libraries do not load: no exception, and a CPU session."""
    monkeypatch.setattr(runtime_module, "_why_no_cuda", lambda _: None)
    opened = runtime_module._session
    monkeypatch.setattr(runtime_module, "_session", lambda ort, graph, _: opened(ort, graph, [runtime_module.CPU]))
    with pytest.raises(DeviceError, match="cuda cannot be had: onnxruntime fell back"):
        OnnxRuntime(GRAPH, 300, "cuda")
    assert OnnxRuntime(GRAPH, 300, "auto").device == "cpu"


def installed(monkeypatch: pytest.MonkeyPatch, *names: str) -> None:
    def distribution(name: str) -> object:
        if name not in names:
            raise importlib.metadata.PackageNotFoundError(name)
        return object()

    monkeypatch.setattr(importlib.metadata, "distribution", distribution)


def test_both_onnxruntimes_at_once_are_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    installed(monkeypatch, "onnxruntime", "onnxruntime-gpu")
    with pytest.raises(DeviceError, match="both installed.*pip uninstall"):
        OnnxRuntime(GRAPH, 300, "cpu")


def test_no_onnxruntime_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    installed(monkeypatch)
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(DeviceError, match=r"not installed; install gramvec\[cpu\] or.*gramvec\[gpu\]"):
        OnnxRuntime(GRAPH, 300, "cpu")


def test_remains_of_an_onnxruntime_are_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    installed(monkeypatch, "onnxruntime")
    monkeypatch.setitem(sys.modules, "onnxruntime", types.ModuleType("onnxruntime"))
    with pytest.raises(DeviceError, match="incomplete"):
        OnnxRuntime(GRAPH, 300, "cpu")


def test_serving_imports_no_torch_and_no_training() -> None:
    code = (
        "import pkgutil, importlib, sys, gramvec\n"
        "names = [m.name for m in pkgutil.walk_packages(gramvec.__path__, 'gramvec.')]\n"
        "[importlib.import_module(name) for name in names]\n"
        "assert len(names) > 20, names\n"
        "bad = {'torch', 'onnx', 'gramvec_training'} & set(sys.modules)\n"
        "sys.exit(f'imported {bad}' if bad else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
