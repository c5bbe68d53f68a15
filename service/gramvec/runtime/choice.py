"""Which runtime serves a bundle: the one asked for, or the fastest that agrees with ONNX Runtime on this machine."""

from __future__ import annotations

import logging
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from gramvec import native
from gramvec.bundle import Bundle
from gramvec.errors import BackendError, BundleError, DeviceError
from gramvec.runtime import Device, Runtime
from gramvec.runtime.native import NativeRuntime
from gramvec.runtime.onnx import OnnxRuntime

log = logging.getLogger("gramvec.runtime")

RuntimeName = Literal["auto", "onnx", "native"]

# Largest difference of a vector from ONNX Runtime's, relative to its length. The sums are made in the same order; tanh
# may round otherwise.
AGREEMENT = 1e-5


def open_runtime(bundle: Bundle, device: Device = "auto", name: RuntimeName = "auto") -> Runtime:
    """The runtime `name` on `device`.

    "auto" is ONNX Runtime on CUDA where that works, else the native loop; where the native loop cannot be had, or its
    vectors of the golden texts are not ONNX Runtime's, ONNX Runtime on the CPU. "native" is checked in the same way if
    onnxruntime is installed.

    Raises DeviceError if what was asked for cannot be had, BundleError if the bundle does not suit it.
    """
    if name not in get_args(RuntimeName):
        raise DeviceError(f"runtime must be auto, onnx or native, not {name!r}")
    if name == "native":
        return _native(bundle, device)
    onnx = _onnx(bundle, device)
    if name == "onnx" or onnx.device == "cuda":
        return onnx
    try:
        sums = NativeRuntime(bundle)
    except (DeviceError, BundleError) as error:
        # Without the loops everything is several times slower, and whoever installed them does not know: pip hides it.
        log.log(logging.WARNING if native.loops is None else logging.INFO, "runtime auto: onnx, because %s", error)
        return onnx
    if (difference := _difference(bundle, sums, onnx)) <= AGREEMENT:
        onnx.close()
        return sums
    log.warning("runtime auto: onnx, because native differs from it by %.1e on this machine", difference)
    sums.close()
    return onnx


def _onnx(bundle: Bundle, device: Device) -> OnnxRuntime:
    return OnnxRuntime(bundle.graph_path, bundle.manifest.dimension, device, cpu_graph=bundle.cpu_graph_path)


def _native(bundle: Bundle, device: Device) -> Runtime:
    if device == "cuda":
        raise DeviceError("runtime native is for a CPU; take device cpu or auto, or runtime onnx")
    sums = NativeRuntime(bundle)
    try:
        onnx = _onnx(bundle, "cpu")
    except DeviceError as error:
        log.info("runtime native is not checked against ONNX Runtime: %s", error)
        return sums
    difference = _difference(bundle, sums, onnx)
    onnx.close()
    if not difference <= AGREEMENT:
        raise BundleError(
            f"{bundle.path}: runtime native differs from ONNX Runtime by {difference:.1e} on the golden texts; take "
            "runtime onnx, and please report it"
        )
    return sums


def _difference(bundle: Bundle, one: Runtime, other: Runtime) -> float:
    batch = bundle.memoised([golden.text for golden in bundle.manifest.golden])
    try:
        found = one.run(batch)
    except BackendError as error:
        log.warning("runtime %s: %s", one.name, error)
        return float("inf")
    expected = other.run(batch)
    lengths = np.linalg.norm(expected, axis=1)
    differences: NDArray[np.float32] = np.linalg.norm(found - expected, axis=1) / np.where(lengths > 0, lengths, 1)
    return float(differences.max(initial=0.0))
