"""Choice of the runtime that serves a bundle: the one asked for, or the fastest that gives the golden vectors here."""

from __future__ import annotations

import logging
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from gramvec import native
from gramvec.bundle.bundle import Bundle
from gramvec.errors import BackendError, BundleError, DeviceError
from gramvec.runtime.base import Device, Runtime
from gramvec.runtime.cuda import CudaRuntime
from gramvec.runtime.native import NativeRuntime, vector_of_no_rows
from gramvec.runtime.ort import OnnxRuntime, why_no_cuda
from gramvec.text.arrays import Floats

log = logging.getLogger("gramvec.runtime")

RuntimeName = Literal["auto", "onnx", "native"]

# Largest difference of a vector from its golden one, relative to the latter's length. Sums are made in the same order,
# or are exact; tanh may round otherwise.
AGREEMENT = 1e-5
# Texts that have no features in many models, embedded one by one and together whenever a runtime is opened.
WITHOUT_FEATURES = ("", "\N{GRINNING FACE}")
# Without the loops in C a bundle's memo is not used, and its int8 rows were rounded apart from those that are.
AGREEMENT_WITHOUT_MEMO = 5e-2


def open_runtime(bundle: Bundle, device: Device = "auto", name: RuntimeName = "auto") -> Runtime:
    """Open a runtime that gives the bundle's golden vectors.

    Args:
        bundle: the model.
        device: "auto" takes CUDA where that works, else the CPU; one line of the log gives the reason.
        name: "auto" takes ONNX Runtime on CUDA. On a CPU it takes the native loops, or ONNX Runtime for encoders with
            layers or order, and where the loops are unavailable or give other vectors.

    Raises:
        DeviceError: the device or runtime is unavailable.
        BundleError: the bundle does not suit it.
    """
    if name not in get_args(RuntimeName):
        raise DeviceError(f"runtime: must be auto, onnx or native, got {name!r}")
    if device not in get_args(Device):
        raise DeviceError(f"device: must be auto, cpu or cuda, got {device!r}")
    if name == "native":
        if device == "cuda":
            raise DeviceError("runtime native is for a CPU; take device cpu or auto, or runtime onnx")
        return _check_golden(bundle, NativeRuntime(bundle))
    if device != "cpu" and (runtime := _open_on_cuda(bundle, required=device == "cuda")) is not None:
        return runtime
    return _check_golden(bundle, OnnxRuntime.from_bundle(bundle)) if name == "onnx" else _open_on_cpu(bundle)


def _open_on_cuda(bundle: Bundle, *, required: bool) -> Runtime | None:
    plain = why_no_cuda()
    try:
        if plain is not None:
            raise DeviceError(plain)
        is_bag = bundle.manifest.graph.beyond_rows is None
        runtime = _check_golden(bundle, CudaRuntime(bundle) if is_bag else OnnxRuntime.from_bundle(bundle, "cuda"))
    except (BackendError, DeviceError) as error:
        if required:
            raise DeviceError(f"device cuda is unavailable: {error}; use device cpu or auto") from error
        # Where there is a driver, its user expects it to be used.
        log.log(logging.WARNING if plain is None else logging.INFO, "device auto: cpu, because %s", error)
        return None
    except BundleError as error:
        if required:
            raise
        log.warning("device auto: cpu, because %s", error)
        return None
    log.info("device %s: cuda", "cuda" if required else "auto")
    return runtime


def _open_on_cpu(bundle: Bundle) -> Runtime:
    graph = bundle.manifest.graph
    try:
        return _check_golden(bundle, NativeRuntime(bundle))
    except (BundleError, DeviceError) as error:
        unfit = error
    try:
        onnx = _check_golden(bundle, OnnxRuntime.from_bundle(bundle))
    except DeviceError:
        if native.loops is None:
            raise
        raise unfit from None
    # Without the loops everything is several times slower, and pip does not show that they were not built.
    warn = native.loops is None or (graph.stored is not None and graph.beyond_rows is None)
    log.log(logging.WARNING if warn else logging.INFO, "runtime auto: onnx, because %s", unfit)
    return onnx


def _check_golden(bundle: Bundle, runtime: Runtime) -> Runtime:
    """Return the runtime if the golden texts have their vectors on it.

    Raises:
        BundleError: they do not.
        BackendError: another device than the CPU fails on them.
    """
    try:
        difference = golden_difference(bundle, runtime)
        without_memo = bundle.manifest.memo and not bundle.memoized.compiled
        if difference <= (AGREEMENT_WITHOUT_MEMO if without_memo else AGREEMENT):
            return runtime
        why = f"have other vectors than when the bundle was made, by {difference:.1e}"
    except BackendError as error:
        if runtime.device != "cpu":
            runtime.close()
            raise
        why = f"fail ({error})"
    runtime.close()
    raise BundleError(
        f"{bundle.graph_path}: golden texts {why} (runtime {runtime.name} on {runtime.device}); copy or export the "
        "model again, or take another runtime or device"
    )


def golden_difference(bundle: Bundle, runtime: Runtime) -> float:
    """Return the largest difference of a golden vector from what the runtime makes of its text, see `differences`.

    Of texts without features, too, one by one and in a batch: no bundle has their vectors, which are the bias.
    Raises BackendError if the runtime fails.
    """
    golden = bundle.manifest.golden
    expected = np.array([text.vector for text in golden], np.float32).reshape(len(golden), bundle.manifest.dimension)
    vectors = runtime.embed(bundle.memoized, [text.text for text in golden]).vectors
    longest = golden[int(np.linalg.norm(expected, axis=1).argmax())].text if golden else "x"
    without = _difference_without_features(bundle, runtime, longest)
    return max(float(differences(vectors, expected).max(initial=0.0)), without)


def _difference_without_features(bundle: Bundle, runtime: Runtime, before: str) -> float:
    """Return the difference of texts without features one by one, each after the text `before`, and of them in a batch.

    A runtime that writes nothing answers what that text left in memory.
    """
    single = []
    for text in WITHOUT_FEATURES:
        runtime.embed(bundle.memoized, [before])
        single.append(runtime.embed(bundle.memoized, [text]).vectors)
    together = runtime.embed(bundle.memoized, WITHOUT_FEATURES)
    expected, of_no_rows = together.vectors.copy(), vector_of_no_rows(bundle)
    if of_no_rows is not None:
        expected[together.counts == 0] = of_no_rows
    vectors = np.concatenate([*single, together.vectors])
    return float(differences(vectors, np.tile(expected, (2, 1))).max())


def differences(vectors: Floats, expected: Floats) -> NDArray[np.float64]:
    """Return vectors - expected in each row, relative to the length of expected, float64[n]; inf for a NaN.

    If a row of `expected` is zeros, that of `vectors` must be, or the difference is inf.
    """
    wide = expected.astype(np.float64)
    lengths = np.linalg.norm(wide, axis=1)
    apart = np.linalg.norm(vectors - wide, axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        relative = np.where(apart == 0, 0.0, apart / lengths)
    return np.where(np.isnan(relative), np.inf, relative)
