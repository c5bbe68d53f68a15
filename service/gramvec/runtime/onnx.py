"""The runtime on ONNX Runtime, on a CPU."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gramvec.bundle.bundle import Bundle
from gramvec.errors import BackendError, BundleError, quoted
from gramvec.runtime.base import Batching, Sums, features_then_sums
from gramvec.runtime.ort import cpu_session, import_onnxruntime
from gramvec.runtime.parts import without_nonfinite
from gramvec.text.batch import FeatureBatch
from gramvec.text.featurizer import Featurizer

# Every stock operator writes the gathered rows out before it adds them; over about 2,500 rows that copy leaves the
# caches and the rate drops.
ROWS_A_CALL = 2_500
# model.cpu.onnx multiplies rows by a matrix of texts x rows: its cost grows with both, and so few texts go together.
INTEGER_ROWS, INTEGER_TEXTS = 1_000, 16
# As many rows fit the int32 in which it adds them.
MOST_INTEGER_ROWS = 2**16
# One long text cannot be cut; after a call of over 20,000 rows the memory goes back to the system.
ROWS_TO_SHRINK = 20_000
# For the first reason each character of a text of over 4,000 costs six.
LONG_TEXT_FACTOR = 6

# What a graph may ask for, by the names of its inputs.
INPUTS: dict[str, Callable[[FeatureBatch], NDArray[Any]]] = {
    "ids": lambda batch: batch.ids,
    "offsets": lambda batch: batch.offsets,
    "segments": lambda batch: np.repeat(np.arange(len(batch)), batch.counts),
    "counts": lambda batch: batch.counts,
}


class OnnxRuntime:
    """A Runtime (see gramvec.runtime) over a model.onnx.

    cpu_graph: a graph of the same vectors that is taken for texts of up to 2^16 rows.
    Raises DeviceError if onnxruntime is missing or installed twice, BundleError if the graph cannot be loaded.
    """

    name = "onnx"
    device = "cpu"
    batching = Batching(long_text_factor=LONG_TEXT_FACTOR)

    def __init__(self, graph: Path, dimension: int, *, cpu_graph: Path | None = None) -> None:
        onnxruntime = import_onnxruntime()
        self._dimension = dimension
        self._graph = graph
        self._session: Any = _checked(cpu_session(onnxruntime, cpu_graph or graph), cpu_graph or graph)
        self.provider: str = self._session.get_providers()[0]
        self._integers = cpu_graph is not None
        self._for_long_texts: Any = None
        self._shrink = onnxruntime.RunOptions()
        self._shrink.add_run_config_entry("memory.enable_memory_arena_shrinkage", "cpu:0")

    @classmethod
    def of(cls, bundle: Bundle) -> OnnxRuntime:
        """Over the whole graph of a bundle; of a bag over model.cpu.onnx where that is there."""
        cpu_graph = bundle.cpu_graph_path if bundle.manifest.graph.beyond_rows is None else None
        return cls(bundle.graph_path, bundle.manifest.dimension, cpu_graph=cpu_graph)

    def run(self, batch: FeatureBatch) -> NDArray[np.float32]:
        """See Runtime.run. Texts are cut into calls by rows; a long text has a call of its own."""
        vectors = np.empty((len(batch), self._dimension), np.float32)
        rows, texts = (INTEGER_ROWS, INTEGER_TEXTS) if self._integers else (ROWS_A_CALL, len(batch))
        start = 0
        while start < len(batch):
            limit = batch.offsets[start] + rows
            stop = max(start + 1, int(np.searchsorted(batch.offsets, limit, side="right")) - 1)
            stop = min(stop, start + texts)
            vectors[start:stop] = self._call(batch.part(start, stop))
            start = stop
        return vectors

    def embed(self, featurizer: Featurizer, texts: Sequence[str]) -> Sums:
        """See Runtime.embed."""
        return features_then_sums(self, featurizer, texts)

    def _call(self, part: FeatureBatch) -> NDArray[np.float32]:
        options = self._shrink if len(part.ids) > ROWS_TO_SHRINK else None
        session = self._session
        if session is None:
            raise BackendError("the model is closed; load it again")
        if self._integers and len(part.ids) > MOST_INTEGER_ROWS:
            session = self._for_long_texts = self._for_long_texts or _checked(
                cpu_session(import_onnxruntime(), self._graph), self._graph
            )
        feed = {one.name: INPUTS[one.name](part) for one in session.get_inputs()}
        try:
            (vectors,) = session.run(["vectors"], feed, options)
        except Exception as error:  # onnxruntime raises its own classes, RuntimeError and ValueError
            raise BackendError(f"onnxruntime failed on cpu: {quoted(error)}") from error
        # A state that grows with each word can overflow in a long text.
        return without_nonfinite(np.asarray(vectors, np.float32))

    def close(self) -> None:
        """Drop the session; later calls raise BackendError."""
        self._session = self._for_long_texts = None


def _checked(session: Any, graph: Path) -> Any:
    outputs = {one.name for one in session.get_outputs()}
    if "vectors" not in outputs or not {one.name for one in session.get_inputs()} <= set(INPUTS):
        raise BundleError(f"{graph}: not a graph from {', '.join(INPUTS)} to vectors; export the model again")
    return session
