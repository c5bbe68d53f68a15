"""ONNX Runtime: its sessions on a CPU and on CUDA, the bound on their memory, and the runtime over a bundle's graph.

onnxruntime is imported when the first session is opened. What a graph asks for is known only when it runs, so sessions
of this process share one arena of bounded size: a graph that asks for more fails with a sentence.
"""

from __future__ import annotations

import ctypes
import io
import logging
import os
import re
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gramvec.bundle.bundle import Bundle
from gramvec.errors import BackendError, BundleError, DeviceError, quote
from gramvec.runtime.base import Batching, Runtime
from gramvec.runtime.native import vector_of_no_rows
from gramvec.text.arrays import FeatureBatch, Floats, Int64s
from gramvec.threads import LibraryCalls, ProcessLock

log = logging.getLogger("gramvec.runtime")


CPU, CUDA = "CPUExecutionProvider", "CUDAExecutionProvider"
CPU_BUILD = "this onnxruntime is the CPU build (install gramvec[gpu] for a GPU)"
NO_DRIVER = "no NVIDIA driver was found (libcuda.so.1 does not load)"

# Otherwise a table of 87 MB takes 128 MB on the device, and its scales as much again.
# TF32 would round the products of encoders that read in order to 10 bits.
CUDA_OPTIONS = {"arena_extend_strategy": "kSameAsRequested", "use_tf32": "0"}
# Libraries that the CUDA provider is linked with; gramvec's graphs use no other of those that onnxruntime looks for.
LINKED = ("libcublasLt", "libcublas.", "libcudart", "libcurand")
LONGEST_CAUSE = 200
# Levels of onnxruntime's log on stderr. Errors on CUDA are exceptions too, and are reported once.
ERRORS, SILENT = 3, 4
# Share of the machine's memory that sessions may take. A text of 65,536 characters takes 2 GB at 300 columns.
MEMORY_SHARE = 0.5

# Every stock operator writes the gathered rows out before it adds them; over about 2,500 rows that copy leaves the
# caches and the rate drops.
ROWS_A_CALL = 2_500
# model.cpu.onnx multiplies rows by a matrix of texts x rows: its cost grows with both, so a call has few texts.
INTEGER_ROWS, INTEGER_TEXTS = 1_000, 16
# Rows whose sum fits the int32 in which model.cpu.onnx adds them.
MAX_INTEGER_ROWS = 2**16
# One long text cannot be cut; after a call of over 20,000 rows the memory goes back to the system.
ROWS_TO_SHRINK = 20_000
# A character of a text of over 4,000 costs six times as much, because its rows leave the caches.
LONG_TEXT_FACTOR = 6
# Padded places a call of an encoder that reads in order: fewer cost calls; with more the states leave the caches.
PLACES = 2_000

_CAUSE = re.compile(
    r"\b(?:CUDA|CUBLAS|CUDNN|CURAND) failure [^;]*"
    r"|Available memory of \d+ is smaller than requested bytes of \d+"
    r"|Failed to allocate memory[^;]*"
)
TAKEN = (
    "this process was forked while onnxruntime computed, and its locks are taken for ever; start processes with "
    "'spawn', or take runtime native"
)
_lock, _registered = ProcessLock(), False
# Into onnxruntime, whose sessions share one arena, and its lock.
CALLS = LibraryCalls()

# Inputs that a graph may have, by name.
INPUTS: dict[str, Callable[[FeatureBatch], NDArray[Any]]] = {
    "ids": lambda batch: batch.ids,
    "offsets": lambda batch: batch.offsets,
    "segments": lambda batch: np.repeat(np.arange(len(batch)), batch.counts),
    "counts": lambda batch: batch.counts,
}


class OnnxRuntime(Runtime):
    """Runtime over a model.onnx, on a CPU or on CUDA.

    The vectors of bags have the same bytes in any batch. Those of encoders that read rows in order have a cosine within
    1e-6 of each other in any batch: a matrix product rounds by its shape.

    Args:
        graph: the model.onnx.
        dimension: columns of its vectors.
        cpu_graph: graph of the same vectors in integers, for texts of up to 2^16 rows.
        in_order: whether the graph reads a text's rows in order, and so pads a call to its longest text.
        device: "cpu" or "cuda".
        rows: of the table, for a check of ids that CUDA does not make; None to leave it out.
        of_no_rows: the vector float32[dimension] of a text without rows; None to ask the graph for it.

    Raises:
        DeviceError: onnxruntime is missing or installed twice, or CUDA is unavailable.
        BundleError: the graph cannot be loaded.
    """

    name = "onnx"

    def __init__(
        self,
        graph: Path,
        dimension: int,
        *,
        cpu_graph: Path | None = None,
        in_order: bool = False,
        device: str = "cpu",
        rows: int | None = None,
        of_no_rows: Floats | None = None,
    ) -> None:
        onnxruntime = import_onnxruntime()
        self.device = device
        self.batching = Batching(long_text_factor=LONG_TEXT_FACTOR) if device == "cpu" else Batching(waits=True)
        self._dimension = dimension
        self._graph = graph
        self._in_order = in_order
        self._rows = rows
        self._of_no_rows = of_no_rows
        self._process = os.getpid()
        open_session = cpu_session if device == "cpu" else cuda_session
        self._session: Any = _check_graph(open_session(onnxruntime, cpu_graph or graph), cpu_graph or graph)
        self.provider = self._session.get_providers()[0]
        self._integers = cpu_graph is not None
        self._for_long_texts: Any = None
        self._shrink = onnxruntime.RunOptions()
        self._shrink.add_run_config_entry("memory.enable_memory_arena_shrinkage", "cpu:0")

    @classmethod
    def from_bundle(cls, bundle: Bundle, device: str = "cpu") -> OnnxRuntime:
        """Open a bundle's graph on a device; on a CPU that in integers, where the bundle has it."""
        manifest = bundle.manifest
        return cls(
            bundle.graph_path,
            manifest.dimension,
            cpu_graph=bundle.cpu_graph_path if device == "cpu" else None,
            in_order=manifest.graph.composition == "sequence",
            device=device,
            rows=None if device == "cpu" else manifest.table_rows,
            of_no_rows=vector_of_no_rows(bundle),
        )

    def run(self, batch: FeatureBatch) -> Floats:
        """Return the vectors of a batch."""
        if self._session is None:
            raise BackendError("the model is closed; load it again")
        check_process(self.device, self._process)
        if self._rows is not None:
            check_rows(batch, self._rows)
        known = batch.counts > 0
        if known.all():
            return self._run_rows(batch)
        # Without rows some operators leave their output as the memory was, which holds what other texts left there.
        vectors = np.empty((len(batch), self._dimension), np.float32)
        vectors[~known] = self._vector_of_no_rows()
        vectors[known] = self._run_rows(FeatureBatch(batch.ids, np.append(0, batch.offsets[1:][known])))
        return vectors

    def _vector_of_no_rows(self) -> Floats:
        """Return the vector of a text without rows: beside a text of one row, where the graph computes it."""
        if self._of_no_rows is None:
            beside = FeatureBatch(np.zeros(1, np.int32), np.array([0, 0, 1], np.int64))
            self._of_no_rows = self._call(beside)[0]
        return self._of_no_rows

    def _run_rows(self, batch: FeatureBatch) -> Floats:
        """Return the vectors of a batch whose texts have rows."""
        vectors = np.empty((len(batch), self._dimension), np.float32)
        if self._in_order and len(batch) > 1:
            order = np.argsort(batch.counts, kind="stable")
            ordered = take_texts(batch, order)
            for start, stop in _calls_by_places(ordered.counts):
                vectors[order[start:stop]] = self._call(ordered.part(start, stop))
            return vectors
        rows, texts = (INTEGER_ROWS, INTEGER_TEXTS) if self._integers else (ROWS_A_CALL, len(batch))
        for calls in calls_by_rows(batch.offsets, rows, texts):
            vectors[calls] = self._call(batch.part(calls.start, calls.stop))
        return vectors

    def _call(self, part: FeatureBatch) -> Floats:
        options = self._shrink if len(part.ids) > ROWS_TO_SHRINK and self.device == "cpu" else None
        session = self._session
        if session is None:
            raise BackendError("the model is closed; load it again")
        if self._integers and len(part.ids) > MAX_INTEGER_ROWS:
            session = self._for_long_texts = self._for_long_texts or _check_graph(
                cpu_session(import_onnxruntime(), self._graph), self._graph
            )
        feed = {node.name: INPUTS[node.name](part) for node in session.get_inputs()}
        try:
            with CALLS:
                (output,) = session.run(["vectors"], feed, options)
        except Exception as error:  # onnxruntime raises its own classes, RuntimeError and ValueError
            raise BackendError(f"onnxruntime failed on {self.device}: {find_cause(error)}") from error
        vectors = np.asarray(output, np.float32)
        if vectors.shape != (len(part), self._dimension):
            raise BackendError(
                f"the graph has vectors of shape {list(vectors.shape)} for {len(part)} texts and {self._dimension} "
                "columns; export the model again"
            )
        if not np.isfinite(vectors).all():  # a state that grows with each word can overflow in a long text
            vectors = np.where(np.isfinite(vectors).all(axis=1, keepdims=True), vectors, np.float32(0))
        return vectors

    def close(self) -> None:
        """Release the session."""
        self._session = self._for_long_texts = None


def import_onnxruntime() -> ModuleType:
    """Import onnxruntime with its telemetry off. Raises DeviceError if it is missing or installed twice."""
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
    """Return True if pip or another installer has installed a distribution of this name."""
    from importlib.metadata import PackageNotFoundError, distribution

    try:
        distribution(name)
    except PackageNotFoundError:
        return False
    return True


def why_no_cuda() -> str | None:
    """Return the reason why CUDA is unavailable, or None if it may work.

    The check does not import onnxruntime, which takes 0.1 s and 25 MB.
    """
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
    """Open a session of a graph on the CPU. Raises BundleError if onnxruntime refuses the graph, DeviceError if
    it cannot be used in this process.
    """
    if not CALLS.usable:
        raise DeviceError(TAKEN)
    options = _options(onnxruntime)
    bound_arena(onnxruntime, options)
    try:
        with CALLS:
            return onnxruntime.InferenceSession(str(graph), options, providers=[CPU])
    except Exception as error:
        why = quote(error)
        raise BundleError(f"{graph}: onnxruntime cannot load it ({why}); export the model again") from error


def cuda_session(onnxruntime: ModuleType, graph: Path) -> Any:
    """Open a session of a graph on CUDA. Raises DeviceError with the first cause; nothing is written to stdout."""
    if CUDA not in onnxruntime.get_available_providers():
        raise DeviceError(CPU_BUILD)
    with redirect_stdout(io.StringIO()) as printed:  # its failures are printed there
        onnxruntime.preload_dlls()
    for library, why in re.findall(r"^Failed to load (\S+): (.*)$", printed.getvalue(), re.MULTILINE):
        if Path(library).name.startswith(LINKED):
            raise DeviceError(why)
    try:
        # Otherwise it prints what went wrong, on stdout, and tries again without CUDA.
        with CALLS:
            session = onnxruntime.InferenceSession(
                str(graph), _options(onnxruntime, SILENT), providers=[(CUDA, CUDA_OPTIONS), CPU], enable_fallback=0
            )
    except Exception as error:
        raise DeviceError(find_cause(error)) from error
    # A provider that does not load is left out without an exception, so only the session itself can tell.
    if session.get_providers()[0] != CUDA:
        raise DeviceError("onnxruntime fell back to the CPU; its error line above gives the reason")
    return session


def find_cause(error: Exception) -> str:
    """Return one line of onnxruntime's long message: the CUDA error or the lack of memory, if the message names one."""
    message = " ".join(str(error).split())
    named = _CAUSE.search(message)
    return (named[0].strip() if named else message.rpartition("Status Message: ")[2])[:LONGEST_CAUSE] or repr(error)


def _options(onnxruntime: ModuleType, severity: int = ERRORS) -> Any:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1  # small calls: a thread pool costs more than it gives
    options.inter_op_num_threads = 1
    options.enable_mem_pattern = False  # a plan for each shape of a batch would be kept forever
    options.log_severity_level = severity
    return options


def bound_arena(onnxruntime: ModuleType, options: Any) -> None:
    """Let the sessions made with these options take their memory from one arena of this process, which is bounded."""
    global _registered
    with _lock:
        if not _registered:
            kind = onnxruntime.OrtAllocatorType.ORT_ARENA_ALLOCATOR
            place = onnxruntime.OrtMemoryInfo("Cpu", kind, 0, onnxruntime.OrtMemType.DEFAULT)
            settings = onnxruntime.OrtArenaCfg({"max_mem": int(MEMORY_SHARE * _memory())})
            try:
                onnxruntime.create_and_register_allocator(place, settings)
            except Exception as error:  # the program around us has one of its own
                log.debug("onnxruntime keeps its arena: %s", error)
            _registered = True
    options.add_session_config_entry("session.use_env_allocators", "1")


def _memory() -> int:
    """Bytes that this machine has, or the container that this process is in."""
    memory_bytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    try:
        return min(memory_bytes, int(Path("/sys/fs/cgroup/memory.max").read_text()))
    except (OSError, ValueError):  # no such bound, or the word "max"
        return memory_bytes


def check_process(device: str, opened_in: int) -> None:
    """Raise BackendError in a child of a fork that cannot use what its parent opened on this device."""
    if device != "cpu" and os.getpid() != opened_in:
        raise BackendError(
            "a model on a GPU cannot be used in a child of a fork; load it in the child, or start processes with "
            "'spawn'"
        )
    if not CALLS.usable:
        raise BackendError(TAKEN)


def check_rows(batch: FeatureBatch, rows: int) -> None:
    """Raise BackendError for an id beyond the table: CUDA returns zeros for it without an error."""
    ids = batch.ids
    if len(ids) and not (0 <= (low := int(ids.min())) <= (high := int(ids.max())) < rows):
        raise BackendError(f"row {low if low < 0 else high} is not in the table of {rows} rows; load the model again")


def calls_by_rows(offsets: Int64s, rows: int, texts: int) -> Iterator[slice]:
    """Yield a slice of the texts of each call: as many as have `rows` rows, at most `texts`, or one long text."""
    start = 0
    while start < len(offsets) - 1:
        stop = int(np.searchsorted(offsets, offsets[start] + rows, side="right")) - 1
        stop = min(max(stop, start + 1), start + texts)
        yield slice(start, stop)
        start = stop


def take_texts(batch: FeatureBatch, texts: Int64s) -> FeatureBatch:
    """Return the features of these texts of a batch, in this order."""
    counts = batch.counts[texts]
    offsets = np.zeros(len(texts) + 1, np.int64)
    np.cumsum(counts, out=offsets[1:])
    places = np.arange(offsets[-1]) + np.repeat(batch.offsets[:-1][texts] - offsets[:-1], counts)
    return FeatureBatch(batch.ids[places], offsets)


def _calls_by_places(counts: Int64s) -> Iterator[tuple[int, int]]:
    """Yield the first text and the end of each call, of at most PLACES padded places or one text; counts ascend."""
    start = 0
    while start < len(counts):
        places = counts[start:] * np.arange(1, len(counts) - start + 1)
        stop = start + max(1, int(np.searchsorted(places, PLACES, side="right")))
        yield start, stop
        start = stop


def _check_graph(session: Any, graph: Path) -> Any:
    outputs = {output.name for output in session.get_outputs()}
    if "vectors" not in outputs or not {node.name for node in session.get_inputs()} <= set(INPUTS):
        raise BundleError(f"{graph}: not a graph from {', '.join(INPUTS)} to vectors; export the model again")
    return session
