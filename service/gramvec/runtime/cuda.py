"""The runtime on ONNX Runtime's CUDA provider: whole sums on the device, what becomes of them on the host.

The graph's output `sums` holds whole numbers, which come out alike in whatever order the device adds them. Steps,
means, columns, bias and tanh follow here, as in runtime native: so the same text has the same bytes on both, a tanh
does not round as this or that device does, and the parts of a text too long for one exact sum can be added.
"""

from __future__ import annotations

import ctypes
import math
import os
import weakref
from queue import LifoQueue
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gramvec.bundle.bundle import Bundle
from gramvec.errors import BackendError, DeviceError
from gramvec.runtime.base import Batching, Runtime
from gramvec.runtime.exact import ExactTable, add_pieces, cut_pieces
from gramvec.runtime.ort import (
    CALLS,
    CUDA,
    calls_by_rows,
    check_process,
    check_rows,
    cuda_session,
    find_cause,
    import_onnxruntime,
)
from gramvec.text.arrays import FeatureBatch, Floats, Int64s

# Rows a call, at 300 columns: the most whose copies, of 9 bytes a number, fit half a gigabyte on the device.
MAX_NUMBERS = 200_000 * 300
# Texts, or pieces of long ones; a text has some 60 rows, so both limits are reached together. Fewer where their sums
# would take more than 64 MB of the host.
MAX_TEXTS = 4_096
MAX_SUMS = 2**24
# Calls on the device at a time: one computes while another is copied. Each has its own memory on both sides.
AT_A_TIME = 2


class CudaRuntime(Runtime):
    """Runtime over a bundle's model.onnx, for tables whose sums are exact.

    Raises DeviceError, with the cause, if CUDA is unavailable or the model's sums would depend on the order of their
    additions; BundleError if the table cannot be read.
    """

    name = "onnx"
    device = "cuda"
    provider = CUDA
    batching = Batching(texts=MAX_TEXTS, waits=True)

    def __init__(self, bundle: Bundle) -> None:
        exact = ExactTable.from_bundle(bundle)
        if exact is None or "segments" not in bundle.manifest.graph.inputs:
            raise DeviceError(
                f"{bundle.manifest.name}: has no int8 table of one step, and a GPU's sums of other tables depend on "
                "the order of its additions; write the model again with gramvec-train convert --precision int8"
            )
        self._exact = exact
        self._process = os.getpid()
        self._rows = rows_a_call(exact.dimension)
        self._texts = min(MAX_TEXTS, max(1, MAX_SUMS // exact.dimension))
        onnxruntime = import_onnxruntime()
        self._session: Any = cuda_session(onnxruntime, bundle.graph_path)
        cudart = _cudart(onnxruntime)
        self._lanes: LifoQueue[_Lane] = LifoQueue()
        for _ in range(AT_A_TIME):
            self._lanes.put(_Lane(cudart, self._rows, self._texts, exact.dimension))

    def run(self, batch: FeatureBatch) -> Floats:
        """Sum rows on the device in exact pieces."""
        ids, exact = batch.ids, self._exact
        check_process(self.device, self._process)
        check_rows(batch, exact.rows)
        vectors = np.empty((len(batch), exact.dimension), np.float32)
        counts = batch.counts
        bounds, firsts = cut_pieces(batch.offsets, min(exact.max_rows, self._rows))
        if firsts is None:
            for calls in calls_by_rows(bounds, self._rows, self._texts):
                self._sums(ids, bounds[calls.start : calls.stop + 1], counts[calls], vectors[calls])
            return vectors
        pieces = np.empty((len(bounds) - 1, exact.dimension), np.float32)
        for calls in calls_by_rows(bounds, self._rows, self._texts):
            self._sums(ids, bounds[calls.start : calls.stop + 1], None, pieces[calls])
        exact.finish(add_pieces(pieces, firsts), counts, vectors)
        return vectors

    def close(self) -> None:
        """Drop the session."""
        self._session = None

    def _sums(self, ids: NDArray[np.int32], bounds: Int64s, counts: Int64s | None, out: Floats) -> None:
        """Write the sums between the bounds, float32[n, d]; with counts, the vectors that become of them."""
        session = self._session
        if session is None:
            raise BackendError("the model is closed; load it again")
        lane = self._lanes.get()
        try:
            with CALLS:
                sums = lane.run(session, ids[bounds[0] : bounds[-1]], np.diff(bounds))
            if counts is None:
                out[...] = sums
            else:
                self._exact.finish(sums, counts, out)
        except Exception as error:  # onnxruntime raises its own classes, RuntimeError and ValueError
            raise BackendError(f"onnxruntime failed on cuda: {find_cause(error)}") from error
        finally:
            self._lanes.put(lane)


class _Lane:
    """Memory of the host for one call at a time, which the device reads and writes itself."""

    def __init__(self, cudart: Any, rows: int, texts: int, dimension: int) -> None:
        self._arrays = {
            "ids": _pin_array(cudart, (rows,), np.int32),
            "segments": _pin_array(cudart, (rows,), np.int64),
            "counts": _pin_array(cudart, (texts,), np.int64),
        }
        self._sums = _pin_array(cudart, (texts, dimension), np.float32)

    def run(self, session: Any, ids: NDArray[np.int32], counts: Int64s) -> Floats:
        """Return whole sums of `rows` rows each, float32[n, d], which are valid until the next call."""
        sums = self._sums[: len(counts)]
        if not len(ids):  # a grid of no blocks is an error
            sums[...] = 0
            return sums
        binding = session.io_binding()
        segments = np.repeat(np.arange(len(counts)), counts)
        for name, values in (("ids", ids), ("segments", segments), ("counts", counts)):
            place = self._arrays[name][: len(values)]
            place[...] = values
            binding.bind_input(name, "cpu", 0, place.dtype.type, place.shape, place.ctypes.data)
        binding.bind_output("sums", "cpu", 0, np.float32, sums.shape, sums.ctypes.data)
        binding.synchronize_inputs()  # their copies go in another stream than the call
        session.run_with_iobinding(binding)
        binding.synchronize_outputs()
        return sums


def rows_a_call(dimension: int) -> int:
    """Return the most rows of a call.

    CUDA's Gather counts its threads in float32. It leaves out the last numbers if rows x dimension, of which the
    largest power of two in `dimension` is a factor, is not a float32.
    """
    return max(1, min(MAX_NUMBERS, 2**24 * (dimension & -dimension)) // dimension)


def _cudart(onnxruntime: ModuleType) -> Any:
    """Return the CUDA runtime that onnxruntime has loaded, or None if it has another name."""
    try:
        return ctypes.CDLL(f"libcudart.so.{onnxruntime.cuda_version.split('.')[0]}")
    except (AttributeError, OSError):
        return None


def _pin_array(cudart: Any, shape: tuple[int, ...], dtype: type) -> NDArray[Any]:
    """Return an array that a device copies without a stop in between, or an ordinary one if there is no such memory."""
    size = math.prod(shape) * np.dtype(dtype).itemsize
    place = ctypes.c_void_p()
    if cudart is None:
        return np.empty(shape, dtype)
    if cudart.cudaHostAlloc(ctypes.byref(place), ctypes.c_size_t(size), ctypes.c_uint(0)):
        cudart.cudaGetLastError()  # or onnxruntime's next call finds it
        return np.empty(shape, dtype)
    memory = (ctypes.c_char * size).from_address(place.value or 0)
    weakref.finalize(memory, cudart.cudaFreeHost, place).atexit = False
    pinned: NDArray[Any] = np.frombuffer(memory, dtype).reshape(shape)  # type: ignore[call-overload]
    return pinned
