"""onnxruntime, imported once it is wanted, and its sessions on a CPU and on CUDA: what cannot be had is said why."""

from __future__ import annotations

import ctypes
import io
import os
import re
from contextlib import redirect_stdout
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

from gramvec.errors import BundleError, DeviceError, quoted
from gramvec.runtime.memory_limit import bound_memory

CPU, CUDA = "CPUExecutionProvider", "CUDAExecutionProvider"
CPU_BUILD = "this onnxruntime is the CPU build (install gramvec[gpu] for a GPU)"
NO_DRIVER = "no NVIDIA driver was found (libcuda.so.1 does not load)"

# A table of 87 MB would otherwise take 128 on the device, and its scales as much again.
CUDA_OPTIONS = {"arena_extend_strategy": "kSameAsRequested"}
# What the CUDA provider is linked with; the other libraries that onnxruntime looks for are used by no graph of ours.
LINKED = ("libcublasLt", "libcublas.", "libcudart", "libcurand")
LONGEST_CAUSE = 200
# What onnxruntime writes to stderr. Errors on CUDA are exceptions too, and told once.
ERRORS, SILENT = 3, 4
_CAUSE = re.compile(
    r"\b(?:CUDA|CUBLAS|CUDNN|CURAND) failure [^;]*"
    r"|Available memory of \d+ is smaller than requested bytes of \d+"
    r"|Failed to allocate memory[^;]*"
)


def import_onnxruntime() -> ModuleType:
    """The module onnxruntime, with its telemetry off. Raises DeviceError if it is missing or installed twice."""
    installed = [name for name in ("onnxruntime", "onnxruntime-gpu") if is_installed(name)]
    if len(installed) == 2:
        raise DeviceError(
            "onnxruntime and onnxruntime-gpu are both installed and overwrite each other's files; run "
            "'pip uninstall -y onnxruntime onnxruntime-gpu' and install gramvec[cpu] or gramvec[gpu] again"
        )
    # From 1.29 on it would send Microsoft what it runs, and keep an identifier in the home folder. Read at its import.
    os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
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


def is_installed(name: str) -> bool:
    """Whether pip, or another of its kind, has installed a distribution of this name."""
    from importlib.metadata import PackageNotFoundError, distribution

    try:
        distribution(name)
    except PackageNotFoundError:
        return False
    return True


def why_no_cuda() -> str | None:
    """What can be said against CUDA without importing onnxruntime, which takes 0.1 s and 25 MB; None if it may work."""
    try:
        spec = find_spec("onnxruntime")
    except (ImportError, ValueError):
        spec = None
    folders = (spec.submodule_search_locations if spec else None) or []
    if not folders:
        return "onnxruntime is not installed (install gramvec[gpu])"
    if not any(Path(folder, "capi", "libonnxruntime_providers_cuda.so").is_file() for folder in folders):
        return CPU_BUILD
    try:
        ctypes.CDLL("libcuda.so.1")
    except OSError:
        return NO_DRIVER
    return None


def cpu_session(onnxruntime: ModuleType, graph: Path) -> Any:
    """A session of a graph on the CPU. Raises BundleError if onnxruntime refuses the graph."""
    options = _options(onnxruntime)
    bound_memory(onnxruntime, options)
    try:
        return onnxruntime.InferenceSession(str(graph), options, providers=[CPU])
    except Exception as error:
        why = quoted(error)
        raise BundleError(f"{graph}: onnxruntime cannot load it ({why}); export the model again") from error


def cuda_session(onnxruntime: ModuleType, graph: Path) -> Any:
    """A session of a graph on CUDA. Raises DeviceError with the first cause; nothing is written to stdout."""
    if CUDA not in onnxruntime.get_available_providers():
        raise DeviceError(CPU_BUILD)
    with redirect_stdout(io.StringIO()) as printed:  # its failures are printed there
        onnxruntime.preload_dlls()
    for library, why in re.findall(r"^Failed to load (\S+): (.*)$", printed.getvalue(), re.MULTILINE):
        if Path(library).name.startswith(LINKED):
            raise DeviceError(why)
    try:
        # Otherwise it prints what went wrong, on stdout, and tries again without CUDA.
        session = onnxruntime.InferenceSession(
            str(graph), _options(onnxruntime, SILENT), providers=[(CUDA, CUDA_OPTIONS), CPU], enable_fallback=0
        )
    except Exception as error:
        raise DeviceError(cause_of(error)) from error
    # A provider that does not load is left out without an exception, so only the session itself can tell.
    if session.get_providers()[0] != CUDA:
        raise DeviceError("onnxruntime fell back to the CPU; its error line above says why")
    return session


def cause_of(error: Exception) -> str:
    """One line of what onnxruntime says at length: the CUDA error, or the lack of memory, where it names one."""
    said = " ".join(str(error).split())
    named = _CAUSE.search(said)
    return (named[0].strip() if named else said.rpartition("Status Message: ")[2])[:LONGEST_CAUSE] or repr(error)


def _options(onnxruntime: ModuleType, severity: int = ERRORS) -> Any:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1  # small calls: a thread pool costs more than it gives
    options.inter_op_num_threads = 1
    options.enable_mem_pattern = False  # a plan for each shape of a batch would be kept for ever
    options.log_severity_level = severity
    return options
