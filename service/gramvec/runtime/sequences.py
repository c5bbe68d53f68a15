"""Texts whose rows are read in their order: those of about one length go to the device together.

Such a graph pads the texts of a call to the longest of them. Without this a call of 512 sentences of 5 to 40 words
takes 1.6 times as long; the vectors are the same to the bit.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from gramvec.bundle.bundle import Bundle
from gramvec.runtime.base import Batching, Runtime, Sums, features_then_sums
from gramvec.runtime.onnx import INPUTS
from gramvec.runtime.parts import Part, check_rows, without_nonfinite
from gramvec.text.batch import FeatureBatch
from gramvec.text.featurizer import Featurizer

# Padded places of a call: fewer cost calls, and with more the states of a step leave the caches.
PLACES = 2_000


class SequenceRuntime:
    """A Runtime (see gramvec.runtime) over one whose graph reads rows in their order."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime

    @property
    def name(self) -> str:
        """See Runtime."""
        return self._runtime.name

    @property
    def device(self) -> str:
        """See Runtime."""
        return self._runtime.device

    @property
    def provider(self) -> str:
        """See Runtime."""
        return self._runtime.provider

    @property
    def batching(self) -> Batching:
        """See Runtime."""
        return self._runtime.batching

    def run(self, batch: FeatureBatch) -> NDArray[np.float32]:
        """See Runtime.run."""
        counts = batch.counts
        order = np.argsort(counts, kind="stable")
        ordered = taken(batch, order)
        parts = [self._runtime.run(ordered.part(start, stop)) for start, stop in _calls(counts[order])]
        if not parts:
            return self._runtime.run(batch)
        found = np.concatenate(parts)
        vectors = np.empty_like(found)
        vectors[order] = found
        return vectors

    def embed(self, featurizer: Featurizer, texts: Sequence[str]) -> Sums:
        """See Runtime.embed."""
        return features_then_sums(self, featurizer, texts)

    def close(self) -> None:
        """See Runtime.close."""
        self._runtime.close()


class WholeOnCuda:
    """A Runtime (see gramvec.runtime) over a model.cuda.onnx that is whole: ids and offsets in, vectors out.

    Raises DeviceError if CUDA cannot be had or the bundle has no such graph, BundleError for another graph.
    """

    name, batching = "onnx", Batching(waits=True)

    def __init__(self, bundle: Bundle, device: str = "cuda", *, part: Part | None = None) -> None:
        self._part = part or Part(bundle, device, {"ids", "offsets"})
        self._rows = bundle.manifest.rows
        self.device, self.provider = self._part.device, self._part.provider

    def run(self, batch: FeatureBatch) -> NDArray[np.float32]:
        """See Runtime.run."""
        check_rows(batch, self._rows)
        return without_nonfinite(self._part.vectors({name: INPUTS[name](batch) for name in self._part.inputs}))

    def embed(self, featurizer: Featurizer, texts: Sequence[str]) -> Sums:
        """See Runtime.embed."""
        return features_then_sums(self, featurizer, texts)

    def close(self) -> None:
        """See Runtime.close."""
        self._part.close()


def taken(batch: FeatureBatch, texts: NDArray[np.int64]) -> FeatureBatch:
    """The features of these texts of a batch, in this order."""
    counts = batch.counts[texts]
    offsets = np.zeros(len(texts) + 1, np.int64)
    np.cumsum(counts, out=offsets[1:])
    places = np.arange(offsets[-1]) + np.repeat(batch.offsets[:-1][texts] - offsets[:-1], counts)
    return FeatureBatch(batch.ids[places], offsets)


def _calls(counts: NDArray[np.int64]) -> Iterator[tuple[int, int]]:
    """Where calls start and stop; counts: of the rows of each text, ascending."""
    start = 0
    while start < len(counts):
        places = counts[start:] * np.arange(1, len(counts) - start + 1)
        stop = start + max(1, int(np.searchsorted(places, PLACES, side="right")))
        yield start, stop
        start = stop
