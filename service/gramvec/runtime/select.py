"""Which runtime serves a bundle: the one asked for, or the fastest that gives the bundle's golden vectors here."""

from __future__ import annotations

import logging
from typing import Literal, get_args

from gramvec import native
from gramvec.bundle.bundle import Bundle
from gramvec.errors import BackendError, BundleError, DeviceError
from gramvec.runtime.base import Device, Runtime
from gramvec.runtime.cuda import CudaRuntime
from gramvec.runtime.golden import golden_difference, tolerance
from gramvec.runtime.layers import LayersRuntime
from gramvec.runtime.native import NativeRuntime
from gramvec.runtime.onnx import OnnxRuntime
from gramvec.runtime.ort import why_no_cuda
from gramvec.runtime.sequences import SequenceRuntime, WholeOnCuda
from gramvec.runtime.steps import StepRuntime

log = logging.getLogger("gramvec.runtime")

RuntimeName = Literal["auto", "onnx", "native"]


def open_runtime(bundle: Bundle, device: Device = "auto", name: RuntimeName = "auto") -> Runtime:
    """The runtime `name` on `device`, whose vectors of the golden texts are the bundle's.

    device "auto" is CUDA where that works, else the CPU; one line of the log says why. name "auto" is ONNX Runtime on
    CUDA; on a CPU the native loop, or ONNX Runtime where the native loop cannot be had or gives other vectors. For
    layers and sequences it is "onnx", which has their parts where these can be had, else the whole graph.

    Raises DeviceError if what was asked for cannot be had, BundleError if the bundle does not suit it.
    """
    if name not in get_args(RuntimeName):
        raise DeviceError(f"runtime must be auto, onnx or native, not {name!r}")
    if device not in get_args(Device):
        raise DeviceError(f"device must be auto, cpu or cuda, not {device!r}")
    if name == "native":
        if device == "cuda":
            raise DeviceError("runtime native is for a CPU; take device cpu or auto, or runtime onnx")
        return _checked(bundle, NativeRuntime(bundle))
    if device != "cpu" and (runtime := _on_cuda(bundle, required=device == "cuda")) is not None:
        return runtime
    # Layers and sequences have one way, so that a copy in another process has the same bytes.
    return _onnx(bundle) if name == "onnx" and bundle.manifest.graph.beyond_rows is None else _on_cpu(bundle)


def _on_cuda(bundle: Bundle, *, required: bool) -> Runtime | None:
    plain = why_no_cuda()
    try:
        if plain is not None:
            raise DeviceError(plain)
        runtime = _checked(bundle, _cuda(bundle))
    except (BackendError, DeviceError) as error:
        if required:
            raise DeviceError(f"device cuda cannot be had: {error}; use device cpu or auto") from error
        # Where there is a driver, somebody expects it to be used.
        log.log(logging.WARNING if plain is None else logging.INFO, "device auto: cpu, because %s", error)
        return None
    except BundleError as error:
        if required:
            raise
        log.warning("device auto: cpu, because %s", error)
        return None
    log.info("device %s: cuda", "cuda" if required else "auto")
    return runtime


def _cuda(bundle: Bundle) -> Runtime:
    graph = bundle.manifest.graph
    if graph.beyond_rows is None:
        return CudaRuntime(bundle)
    if graph.composition == "layers":
        return LayersRuntime(bundle, "cuda")
    return StepRuntime(bundle, "cuda") if graph.pooling == "last" else SequenceRuntime(WholeOnCuda(bundle))


def _on_cpu(bundle: Bundle) -> Runtime:
    graph = bundle.manifest.graph
    if graph.beyond_rows is not None and graph.cpu:
        try:
            return _checked(bundle, LayersRuntime(bundle) if graph.composition == "layers" else StepRuntime(bundle))
        except (BundleError, DeviceError) as error:
            log.log(logging.WARNING, "runtime auto: the whole graph, because %s", error)
            return _onnx(bundle)
    try:
        return _checked(bundle, NativeRuntime(bundle))
    except (BundleError, DeviceError) as error:
        unfit = error
    try:
        onnx = _onnx(bundle)
    except DeviceError:
        if native.loops is None:
            raise
        raise unfit from None
    # Without the loops everything is several times slower, and whoever installed them does not know: pip hides it.
    told = native.loops is None or (graph.stored is not None and graph.beyond_rows is None)
    log.log(logging.WARNING if told else logging.INFO, "runtime auto: onnx, because %s", unfit)
    return onnx


def _onnx(bundle: Bundle) -> Runtime:
    in_order = bundle.manifest.graph.composition == "sequence"
    runtime = OnnxRuntime.of(bundle)
    return _checked(bundle, SequenceRuntime(runtime) if in_order else runtime)


def _checked(bundle: Bundle, runtime: Runtime) -> Runtime:
    """The runtime, if the golden texts have their vectors on it.

    Raises BundleError if they do not, BackendError if another device than the CPU fails on them.
    """
    try:
        difference = golden_difference(bundle, runtime)
        if difference <= tolerance(bundle):
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
