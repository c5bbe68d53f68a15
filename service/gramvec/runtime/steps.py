"""Recurrent encoders step by step: one graph is called with the first rows of all texts, then with the second ones.

On a CPU the longer texts come first, and a step is of those that have one: nothing is padded. Each different row of a
step is multiplied once; ONNX Runtime's operators RNN and LSTM multiply at every place, and give half to nine tenths of
the texts a second. On CUDA states stay on the device; a text that has ended is left as it is by a place of -1.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gramvec.bundle.bundle import Bundle
from gramvec.runtime.base import Batching, Sums, features_then_sums
from gramvec.runtime.parts import Part, check_rows, without_nonfinite
from gramvec.text.batch import FeatureBatch
from gramvec.text.featurizer import Featurizer

Floats = NDArray[np.float32]
Int64s = NDArray[np.int64]

LONGEST = 4_096  # rows of a text that are read, as in the whole graph
TEXTS_ON_CPU = 512
# A step on a device is some 70 kernels, whatever its size, so that many texts go together.
TEXTS_ON_DEVICE = 4_096
PLACES_ON_DEVICE = 2**17  # texts times steps of a call: those that have ended are computed, too


class StepRuntime:
    """A Runtime (see gramvec.runtime) for graph.pooling "last".

    Raises DeviceError if `device` cannot be had or the bundle has no graph for it, BundleError for another graph.
    """

    name = "onnx"

    def __init__(self, bundle: Bundle, device: str = "cpu", *, part: Part | None = None) -> None:
        self._part = part or Part(bundle, device, {"ids", "places", "state"})
        self._dimension = bundle.manifest.dimension
        self._rows = bundle.manifest.rows
        self._carried = {"state": "states" if "states" in self._part.outputs else "vectors"}
        if "cell" in self._part.inputs:
            self._carried["cell"] = "cells"
        self.device, self.provider = self._part.device, self._part.provider
        self._on_cpu = device == "cpu"
        self.batching = Batching(TEXTS_ON_CPU) if self._on_cpu else Batching(TEXTS_ON_DEVICE, waits=True)
        self._walk = self._walk_on_cpu if self._on_cpu else self._walk_on_device

    def run(self, batch: FeatureBatch) -> Floats:
        """See Runtime.run."""
        self._part.opened()
        check_rows(batch, self._rows)
        counts = np.minimum(batch.counts, LONGEST)
        order = np.argsort(-counts, kind="stable")
        vectors = np.zeros((len(batch), self._dimension), np.float32)
        known = order[: int(np.count_nonzero(counts))]  # a text of no rows has the first state, of zeros
        begin = 0
        while begin < len(known):
            most = self.batching.texts
            if not self._on_cpu:
                most = min(most, max(1, PLACES_ON_DEVICE // int(counts[known[begin]])))
            texts = known[begin : begin + most]
            begin += len(texts)
            vectors[texts] = self._walk(batch.ids, batch.offsets[:-1][texts], counts[texts])
        return without_nonfinite(vectors)

    def embed(self, featurizer: Featurizer, texts: Sequence[str]) -> Sums:
        """See Runtime.embed."""
        return features_then_sums(self, featurizer, texts)

    def close(self) -> None:
        """See Runtime.close."""
        self._part.close()

    def _walk_on_cpu(self, ids: NDArray[np.int32], starts: Int64s, counts: Int64s) -> Floats:
        """float32[n, d] of texts by descending length, none empty."""
        part, n = self._part, len(counts)
        # Two at least: the product of a vector is added in another order than that of a matrix.
        starts, lengths = (np.append(one, one[0]) if n == 1 else one for one in (starts, counts))
        carried = {name: np.zeros((len(starts), self._dimension), np.float32) for name in self._carried}
        vectors = np.empty((len(starts), self._dimension), np.float32)
        last = np.zeros_like(vectors)
        for step, longer in _steps(counts):
            size = max(longer, 2)
            vectors[size : len(last)] = last[size:]
            rows, places = _different(ids[starts[:size] + np.minimum(step, lengths[:size] - 1)])
            feed: dict[str, NDArray[Any]] = {"ids": rows, "places": places}
            feed |= {name: state[:size] for name, state in carried.items()}
            if "counts" in part.inputs:
                feed["counts"] = lengths[:size]
            before, found = last, dict(zip(part.outputs, part.run(feed), strict=True))
            if longer < size:  # the second goes along, and has ended
                found["vectors"][longer:] = before[longer:size]
            last = found["vectors"]
            carried = {name: found[output] for name, output in self._carried.items()}
        vectors[: len(last)] = last
        return vectors[:n]

    def _walk_on_device(self, ids: NDArray[np.int32], starts: Int64s, counts: Int64s) -> Floats:
        """The same, with states that stay on the device from step to step."""
        part = self._part
        session = part.opened()
        zeros = np.zeros((len(counts), self._dimension), np.float32)
        carried: dict[str, Any] = dict.fromkeys(self._carried, zeros)
        found: dict[str, Any] = {}
        try:
            for step, longer in _steps(counts):
                rows, some = _different(ids[starts[:longer] + step])
                places = np.full(len(counts), -1)
                places[:longer] = some
                binding = session.io_binding()
                feed: dict[str, Any] = {"ids": rows, "places": places, **carried}
                if "counts" in part.inputs:
                    feed["counts"] = counts
                for name, value in feed.items():
                    bind = binding.bind_cpu_input if isinstance(value, np.ndarray) else binding.bind_ortvalue_input
                    bind(name, value)
                for name in part.outputs:
                    binding.bind_output(name, part.device)
                binding.synchronize_inputs()  # their copies go in another stream than the call
                session.run_with_iobinding(binding)
                binding.synchronize_outputs()
                found = dict(zip(part.outputs, binding.get_outputs(), strict=True))
                carried = {name: found[output] for name, output in self._carried.items()}
            vectors: Floats = found["vectors"].numpy()
        except Exception as error:  # onnxruntime raises its own classes, RuntimeError and ValueError
            raise part.failed(error) from error
        return vectors


def _steps(counts: Int64s) -> Iterator[tuple[int, int]]:
    """Each step, and how many texts have one; counts descend."""
    for step in range(int(counts[0])):
        yield step, int(np.searchsorted(-counts, -step, side="left"))


def _different(ids: NDArray[np.int32]) -> tuple[NDArray[np.int32], Int64s]:
    """The rows that differ, at least two, and which of them each text has."""
    rows, places = np.unique(ids, return_inverse=True)
    return (np.repeat(rows, 2) if len(rows) == 1 else rows), places.astype(np.int64)
