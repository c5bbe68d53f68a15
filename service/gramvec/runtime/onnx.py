"""The runtime on ONNX Runtime: the device asked for, or a clear refusal."""

from __future__ import annotations

import contextlib
import ctypes
import io
import logging
import os
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gramvec.errors import BackendError, BundleError, DeviceError, quoted
from gramvec.features import FeatureBatch, Featuriser
from gramvec.runtime import Device, Sums, features_then_sums
from gramvec.runtime.arena import bound_memory

log = logging.getLogger("gramvec.runtime")

CPU, CUDA = "CPUExecutionProvider", "CUDAExecutionProvider"
CPU_BUILD = "this onnxruntime is the CPU build (install gramvec[gpu] for a GPU)"

# Every stock CPU operator writes the gathered rows out before it adds them; over about 2,500 rows that copy
# leaves the caches and the rate drops (docs/architecture.md). A GPU wants few, large calls.
ROWS_A_CALL = {"cpu": 2_500, "cuda": 500_000}
# model.cpu.onnx multiplies rows by a matrix of texts x rows: its cost grows with both, and so few texts go together.
INTEGER_ROWS, INTEGER_TEXTS = 1_000, 16
# As many rows fit the int32 in which it adds them.
MOST_INTEGER_ROWS = 2**16
# One long text cannot be cut; after a call of over 20,000 rows the memory goes back to the system.
ROWS_TO_SHRINK = 20_000


class OnnxRuntime:
    """A Runtime over a model.onnx (ids, offsets to vectors).

    cpu_graph: a graph of the same vectors that is taken on a CPU, for texts of up to 2^16 rows. module: onnxruntime,
    where it is imported already.
    Raises DeviceError if onnxruntime is missing or installed twice, or if "cuda" was asked for and cannot be
    had; BundleError if the graph cannot be loaded.
    """

    name = "onnx"

    def __init__(
        self,
        graph: Path,
        dimension: int,
        device: Device = "auto",
        *,
        cpu_graph: Path | None = None,
        module: ModuleType | None = None,
    ) -> None:
        onnxruntime = module or import_onnxruntime()
        self._dimension = dimension
        self._graph = graph
        self._session = _open_session(onnxruntime, graph, device, cpu_graph)
        self.provider: str = self._session.get_providers()[0]
        self.device = "cuda" if self.provider == CUDA else "cpu"
        self._integers = self.device == "cpu" and cpu_graph is not None
        self._for_long_texts: Any = None
        self._shrink = onnxruntime.RunOptions()
        self._shrink.add_run_config_entry("memory.enable_memory_arena_shrinkage", "cpu:0")

    def run(self, batch: FeatureBatch) -> NDArray[np.float32]:
        """See Runtime.run. Texts are cut into calls by rows; a long text has a call of its own."""
        vectors = np.empty((len(batch), self._dimension), np.float32)
        rows, texts = (INTEGER_ROWS, INTEGER_TEXTS) if self._integers else (ROWS_A_CALL[self.device], len(batch))
        start = 0
        while start < len(batch):
            limit = batch.offsets[start] + rows
            stop = max(start + 1, int(np.searchsorted(batch.offsets, limit, side="right")) - 1)
            stop = min(stop, start + texts)
            vectors[start:stop] = self._call(batch.part(start, stop))
            start = stop
        return vectors

    def embed(self, featuriser: Featuriser, texts: Sequence[str]) -> Sums:
        """See Runtime.embed."""
        return features_then_sums(self, featuriser, texts)

    def _call(self, part: FeatureBatch) -> NDArray[np.float32]:
        options = self._shrink if len(part.ids) > ROWS_TO_SHRINK and self.device == "cpu" else None
        session = self._session
        if session is None:
            raise BackendError("the model is closed; load it again")
        if self._integers and len(part.ids) > MOST_INTEGER_ROWS:
            session = self._for_long_texts = self._for_long_texts or _session(import_onnxruntime(), self._graph, [CPU])
        try:
            (vectors,) = session.run(None, {"ids": part.ids, "offsets": part.offsets}, options)
        except Exception as error:  # onnxruntime raises its own classes, RuntimeError and ValueError
            raise BackendError(f"onnxruntime failed on {self.device}: {quoted(error)}") from error
        return np.asarray(vectors, np.float32)

    def close(self) -> None:
        """Drop the session; later calls raise BackendError."""
        self._session = self._for_long_texts = None


def import_onnxruntime() -> ModuleType:
    """The module onnxruntime, with its telemetry off. Raises DeviceError if it is missing or installed twice."""
    installed = [name for name in ("onnxruntime", "onnxruntime-gpu") if is_installed(name)]
    if len(installed) == 2:
        raise DeviceError(
            "onnxruntime and onnxruntime-gpu are both installed and overwrite each other's files; run "
            "'pip uninstall -y onnxruntime onnxruntime-gpu' and install gramvec[cpu] or gramvec[gpu] again"
        )
    turn_telemetry_off()
    try:
        import onnxruntime
    except ImportError as error:
        why = f"onnxruntime cannot be imported ({error})" if installed else "onnxruntime is not installed"
        raise DeviceError(f"{why}; install gramvec[cpu] or, for an NVIDIA GPU, gramvec[gpu]") from error
    if not hasattr(onnxruntime, "InferenceSession"):
        raise DeviceError(
            "onnxruntime's files are incomplete, as after removing one of two onnxruntime wheels; run "
            "'pip install --force-reinstall' for the one that you want"
        )
    module: ModuleType = onnxruntime
    return module


def turn_telemetry_off() -> None:
    """From 1.29 on onnxruntime would send Microsoft what it runs, and keep an identifier in the home folder.

    Read once, at its import.
    """
    os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")


def is_installed(name: str) -> bool:
    """Whether pip, or another of its kind, has installed a distribution of this name."""
    from importlib.metadata import PackageNotFoundError, distribution

    try:
        distribution(name)
    except PackageNotFoundError:
        return False
    return True


def _open_session(onnxruntime: ModuleType, graph: Path, device: Device, cpu_graph: Path | None) -> Any:
    if device not in ("auto", "cpu", "cuda"):
        raise DeviceError(f"device must be auto, cpu or cuda, not {device!r}")
    why_not = None if device == "cpu" else _why_no_cuda(onnxruntime)
    if device == "cuda" and why_not:
        raise DeviceError(f"device cuda cannot be had: {why_not}; use device cpu or auto")
    if device == "cpu" or why_not:
        if why_not:
            log.info("device auto: cpu, because %s", why_not)
        return _session(onnxruntime, cpu_graph or graph, [CPU])
    with contextlib.redirect_stdout(io.StringIO()) as printed:  # preload_dlls prints its failures there
        onnxruntime.preload_dlls()
    session = _session(onnxruntime, graph, [CUDA, CPU])
    # onnxruntime falls back to the CPU without an exception, so only the session itself can tell.
    if session.get_providers()[0] != CUDA:
        cause = printed.getvalue().strip().splitlines()
        reason = cause[-1] if cause else "onnxruntime fell back to the CPU; its error line above says why"
        if device == "cuda":
            raise DeviceError(f"device cuda cannot be had: {reason}; use device cpu or auto")
        log.warning("device auto: cpu, because %s", reason)
        return _session(onnxruntime, cpu_graph or graph, [CPU])
    log.info("device %s: cuda", device)
    return session


def _why_no_cuda(onnxruntime: ModuleType) -> str | None:
    """A reason, or None if CUDA is worth a try. Providers that are listed were compiled in, not detected."""
    if CUDA not in onnxruntime.get_available_providers():
        return CPU_BUILD
    try:
        ctypes.CDLL("libcuda.so.1")
    except OSError:
        return "no NVIDIA driver was found (libcuda.so.1 does not load)"
    return None


def _session(onnxruntime: ModuleType, graph: Path, providers: list[str]) -> Any:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1  # small calls: a thread pool costs more than it gives
    options.inter_op_num_threads = 1
    options.enable_mem_pattern = False  # a plan for each shape of a batch would be kept for ever
    options.log_severity_level = 3
    bound_memory(onnxruntime, options)
    try:
        return onnxruntime.InferenceSession(str(graph), options, providers=providers)
    except Exception as error:
        why = quoted(error)
        raise BundleError(f"{graph}: onnxruntime cannot load it ({why}); export the model again") from error
