"""model.cpu.onnx and model.cuda.onnx of encoders that are more than a bag: graphs that are called with arrays."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gramvec.bundle.bundle import Bundle
from gramvec.errors import BackendError, BundleError, DeviceError
from gramvec.runtime.ort import cause_of, cpu_session, cuda_session, import_onnxruntime
from gramvec.text.batch import FeatureBatch


class Part:
    """The graph of a part of an encoder in a session on "cpu" or "cuda".

    inputs: what it must take. graph: another file than the device's own, for tests.
    Raises DeviceError if the bundle has no such graph or the device cannot be had, BundleError for another graph.
    """

    def __init__(self, bundle: Bundle, device: str, inputs: set[str], *, graph: Path | None = None) -> None:
        path = graph or (bundle.cpu_graph_path if device == "cpu" else bundle.cuda_graph_path)
        if path is None:
            raise DeviceError(
                f"{bundle.manifest.name} {bundle.manifest.graph.beyond_rows}, and was exported without a graph of them "
                f"for {device}; export it again"
            )
        onnxruntime = import_onnxruntime()
        self.session: Any = (cpu_session if device == "cpu" else cuda_session)(onnxruntime, path)
        self.device = device
        self.provider: str = self.session.get_providers()[0]
        self.inputs = {one.name for one in self.session.get_inputs()}
        self.outputs = [one.name for one in self.session.get_outputs()]
        if not inputs <= self.inputs:
            raise BundleError(f"{path}: takes no {', '.join(sorted(inputs - self.inputs))}; export the model again")

    def run(self, feed: Mapping[str, NDArray[Any]]) -> list[NDArray[np.float32]]:
        """All outputs. Raises BackendError if the device fails."""
        session = self.opened()
        try:
            found: list[NDArray[np.float32]] = session.run(None, feed)
        except Exception as error:  # onnxruntime raises its own classes, RuntimeError and ValueError
            raise self.failed(error) from error
        return found

    def vectors(self, feed: Mapping[str, NDArray[Any]]) -> NDArray[np.float32]:
        """The first output, float32[n, d]."""
        return self.run(feed)[0]

    def opened(self) -> Any:
        """The session. Raises BackendError after `close`."""
        if self.session is None:
            raise BackendError("the model is closed; load it again")
        return self.session

    def failed(self, error: Exception) -> BackendError:
        """What onnxruntime raised, in a sentence."""
        return BackendError(f"onnxruntime failed on {self.device}: {cause_of(error)}")

    def close(self) -> None:
        """Drop the session; later calls raise BackendError."""
        self.session = None


def check_rows(batch: FeatureBatch, rows: int) -> None:
    """Raises BackendError for an id that is no row: CUDA gives zeros for it, and says nothing."""
    ids = batch.ids
    if len(ids) and not (0 <= (low := int(ids.min())) <= (high := int(ids.max())) < rows):
        raise BackendError(f"row {low if low < 0 else high} is not in the table of {rows} rows; load the model again")


def without_nonfinite(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """The vectors, in which those that overflowed are zeros: such a text has no vector, and harms no other."""
    if not np.isfinite(vectors).all():
        vectors[~np.isfinite(vectors).all(axis=1)] = 0
    return vectors
