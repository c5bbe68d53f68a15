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
from gramvec.runtime.apart import Apart
from gramvec.runtime.native import NativeRuntime
from gramvec.runtime.onnx import CPU_BUILD, OnnxRuntime

log = logging.getLogger("gramvec.runtime")

Floats = NDArray[np.float32]
RuntimeName = Literal["auto", "onnx", "native"]

# Largest difference of a vector from ONNX Runtime's, relative to its length. The sums are made in the same order; tanh
# may round otherwise.
AGREEMENT = 1e-5


def open_runtime(
    bundle: Bundle, device: Device = "auto", name: RuntimeName = "auto", other: Apart | None = None
) -> Runtime:
    """The runtime `name` on `device`.

    "auto" is ONNX Runtime on CUDA where that works, else the native loop; where the native loop cannot be had, or its
    vectors of the golden texts are not ONNX Runtime's, ONNX Runtime on the CPU. "native" is checked in the same way if
    onnxruntime is installed.

    other: a process in which ONNX Runtime may be asked (see apart). Where the native loop agrees with it, this process
    does without onnxruntime; all else is found out, and said, in this one.

    Raises DeviceError if what was asked for cannot be had, BundleError if the bundle does not suit it.
    """
    if name not in get_args(RuntimeName):
        raise DeviceError(f"runtime must be auto, onnx or native, not {name!r}")
    if other is not None and (agreed := _agreed(bundle, other)) is not None:
        if (device, name) == ("auto", "auto"):
            log.info("device auto: cpu, because %s", CPU_BUILD)
        return agreed
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


def _agreed(bundle: Bundle, other: Apart) -> Runtime | None:
    """The native loop, if it agrees with ONNX Runtime in another process."""
    texts = _golden(bundle)
    try:
        sums = NativeRuntime(bundle)
        found = sums.embed(bundle.memoised, texts).vectors
    except (BackendError, BundleError, DeviceError):
        return None
    expected = other.vectors(bundle, bundle.memoised(texts))
    return sums if expected is not None and _distance(found, expected) <= AGREEMENT else None


def _golden(bundle: Bundle) -> list[str]:
    return [golden.text for golden in bundle.manifest.golden]


def _difference(bundle: Bundle, one: Runtime, other: Runtime) -> float:
    texts = _golden(bundle)
    try:
        found = one.embed(bundle.memoised, texts).vectors
    except BackendError as error:
        log.warning("runtime %s: %s", one.name, error)
        return float("inf")
    return _distance(found, other.embed(bundle.memoised, texts).vectors)


def _distance(found: Floats, expected: Floats) -> float:
    lengths = np.linalg.norm(expected, axis=1)
    differences: Floats = np.linalg.norm(found - expected, axis=1) / np.where(lengths > 0, lengths, 1)
    return float(differences.max(initial=0.0))
