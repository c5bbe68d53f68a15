from __future__ import annotations

import ctypes
import importlib.metadata
import subprocess
import sys
import types
from pathlib import Path

import numpy as np
import pytest

import gramvec
from conftest import MODELS, ROOT
from gramvec import native
from gramvec.errors import BackendError, BundleError, DeviceError
from gramvec.runtime.ort import CPU, CPU_BUILD, CUDA, OnnxRuntime, cuda_session, find_cause, why_no_cuda
from gramvec.runtime.select import RuntimeName
from support.batches import batch_of
from support.errors import refused

GRAPH = MODELS / "charagram-phrase" / "model.onnx"


@pytest.fixture
def runtime() -> OnnxRuntime:
    return OnnxRuntime(GRAPH, 300)


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
    with refused(BackendError, "cpu"):
        runtime.run(batch_of([10_000_000]))


def test_a_graph_that_cannot_be_loaded_is_named(tmp_path: Path) -> None:
    (tmp_path / "model.onnx").write_bytes(b"no graph")
    with refused(BundleError, "model.onnx"):
        OnnxRuntime(tmp_path / "model.onnx", 300)


needs_no_gpu = pytest.mark.skipif(why_no_cuda() is None, reason="this machine has CUDA, which is what is asked for")


@needs_no_gpu
def test_cuda_that_cannot_be_had_is_an_error_that_says_why() -> None:
    with pytest.raises(DeviceError, match="cuda .*(CPU build|NVIDIA driver)"):
        gramvec.load("charagram-phrase", device="cuda")
    with refused(DeviceError, "auto, cpu or cuda"):
        gramvec.load("charagram-phrase", device="tpu")  # type: ignore[arg-type]


@needs_no_gpu
@pytest.mark.parametrize("runtime", ["auto", "onnx"])
def test_auto_says_what_it_chose_and_why(runtime: RuntimeName, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "gramvec.runtime")
    assert gramvec.load("charagram-phrase", runtime=runtime).device == "cpu"
    (record,) = caplog.records
    assert record.getMessage().startswith("device auto: cpu, because ")


def test_what_speaks_against_cuda_is_found_without_onnxruntime(tmp_path: Path) -> None:
    code = (
        "import sys, gramvec\n"
        "embedder = gramvec.load('charagram-phrase')\n"
        "embedder.embed(['a fast car'])\n"
        "print(embedder.runtime, embedder.device, 'onnxruntime' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    if native.loops is not None and why_no_cuda() is not None:
        assert done.stdout == "native cpu False\n"


def test_causes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    assert why_no_cuda() == "onnxruntime is not installed (install gramvec[gpu])"
    monkeypatch.delitem(sys.modules, "onnxruntime")
    package = tmp_path / "onnxruntime"
    (package / "capi").mkdir(parents=True)
    (package / "__init__.py").write_text("raise AssertionError('imported')")
    monkeypatch.syspath_prepend(tmp_path)
    assert why_no_cuda() == CPU_BUILD
    # As one that somebody has built with CUDA, whatever the name of its wheel.
    (package / "capi" / "libonnxruntime_providers_cuda.so").touch()
    monkeypatch.setattr(ctypes, "CDLL", lambda name: name)
    assert why_no_cuda() is None
    monkeypatch.undo()


@pytest.mark.parametrize(
    ("said", "cause"),
    [
        ("a.cc:1 void CudaCall(int)\n CUDA failure 100: no device ; GPU=0 ; line=3", "CUDA failure 100: no device"),
        ("Non-zero status code. Status Message: a.cc:2 Available memory of 7 is smaller than requested bytes of 9",
         "Available memory of 7 is smaller than requested bytes of 9"),
        ("Non-zero status code while running Cast. Status Message: it is gone", "it is gone"),
        ("something else", "something else"),
        ("", "RuntimeError('')"),
    ],
)  # fmt: skip
def test_a_cause_is_one_line(said: str, cause: str) -> None:
    assert find_cause(RuntimeError(said)) == cause
    assert len(find_cause(RuntimeError("x" * 1_000))) == 200


class FellBack:
    """onnxruntime-gpu where its CUDA libraries do not load: no exception, and a session on the CPU."""

    def __init__(self, printed: str = "") -> None:
        self._printed = printed
        self.opened = 0

    SessionOptions = types.SimpleNamespace

    def get_available_providers(self) -> list[str]:
        return [CUDA, CPU]

    def preload_dlls(self) -> None:
        sys.stdout.write(self._printed)

    def InferenceSession(self, *_: object, **__: object) -> object:  # noqa: N802 - onnxruntime's name
        self.opened += 1
        return types.SimpleNamespace(get_providers=lambda: [CPU])


def test_a_session_that_fell_back_silently_is_found_out(capsys: pytest.CaptureFixture[str]) -> None:
    with refused(DeviceError, "fell back"):
        cuda_session(FellBack(), GRAPH)  # type: ignore[arg-type]
    # Those that nothing needs are no reason not to try.
    fell_back = FellBack("Failed to load libcufft.so.12: no such file\nFailed to load libcudnn.so.9: nor this")
    with refused(DeviceError, "fell back"):
        cuda_session(fell_back, GRAPH)  # type: ignore[arg-type]
    assert fell_back.opened == 1
    fell_back = FellBack("Failed to load /x/libcublasLt.so.13: libcublasLt.so.13: no such file\nFailed to load b: c")
    with refused(DeviceError, "libcublasLt.so.13"):
        cuda_session(fell_back, GRAPH)  # type: ignore[arg-type]
    assert fell_back.opened == 0
    assert capsys.readouterr().out == ""


def installed(monkeypatch: pytest.MonkeyPatch, *names: str) -> None:
    def distribution(name: str) -> object:
        if name not in names:
            raise importlib.metadata.PackageNotFoundError(name)
        return object()

    monkeypatch.setattr(importlib.metadata, "distribution", distribution)


def test_both_onnxruntimes_at_once_are_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    installed(monkeypatch, "onnxruntime", "onnxruntime-gpu")
    with pytest.raises(DeviceError, match="both .*pip uninstall"):
        OnnxRuntime(GRAPH, 300)


def test_no_onnxruntime_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    installed(monkeypatch)
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with refused(DeviceError, "gramvec[cpu]", "gramvec[gpu]"):
        OnnxRuntime(GRAPH, 300)


def test_remains_of_an_onnxruntime_are_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    installed(monkeypatch, "onnxruntime")
    monkeypatch.setitem(sys.modules, "onnxruntime", types.ModuleType("onnxruntime"))
    with pytest.raises(DeviceError, match="incomplete"):
        OnnxRuntime(GRAPH, 300)


def test_serving_imports_no_torch_and_no_training() -> None:
    code = (
        "import pkgutil, importlib, sys, gramvec\n"
        "names = [m.name for m in pkgutil.walk_packages(gramvec.__path__, 'gramvec.')]\n"
        # Each of the integrations imports another library; onnx is of the extra `static`.
        "left_out = ('gramvec.integrations.', 'gramvec.runtime.onnx_graph',"
        " 'gramvec.hub.static_models', 'gramvec.cli.models')\n"
        "[importlib.import_module(name) for name in names if not name.startswith(left_out)]\n"
        "assert len(names) > 20, names\n"
        "bad = {'torch', 'onnx', 'gramvec_training'} & set(sys.modules)\n"
        "sys.exit(f'imported {bad}' if bad else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
