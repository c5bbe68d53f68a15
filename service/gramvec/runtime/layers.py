"""Layers above sums: runtime native adds the rows, and a small graph makes vectors of the sums, on a CPU or on CUDA.

The whole graph copies every row before it adds them, which is nine tenths of its time; a GPU would add them in another
order each time.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from gramvec.bundle.bundle import Bundle
from gramvec.errors import DeviceError
from gramvec.runtime.base import Batching, Sums
from gramvec.runtime.native import NativeRuntime
from gramvec.runtime.parts import Part, without_nonfinite
from gramvec.text.batch import FeatureBatch
from gramvec.text.featurizer import Featurizer

TEXTS = 512  # in a call of the graph, whose inner arrays stay in the caches


class LayersRuntime:
    """A Runtime (see gramvec.runtime) for graph.composition "layers".

    Raises DeviceError if the loops were not built or `device` cannot be had, BundleError if the graph cannot be loaded.
    """

    name = "onnx"

    def __init__(self, bundle: Bundle, device: str = "cpu", *, part: Part | None = None) -> None:
        if bundle.weights is None:
            raise DeviceError(f"{bundle.manifest.name} does not say where its rows lie; export it again")
        self._sums = NativeRuntime(bundle, below_layers=True)
        self._part = part or Part(bundle, device, {"pooled"})
        self.device, self.provider = self._part.device, self._part.provider
        self.batching = Batching(waits=device != "cpu")

    def run(self, batch: FeatureBatch) -> NDArray[np.float32]:
        """See Runtime.run."""
        return self._above(self._sums.run(batch))

    def embed(self, featurizer: Featurizer, texts: Sequence[str]) -> Sums:
        """See Runtime.embed."""
        sums = self._sums.embed(featurizer, texts)
        return sums._replace(vectors=self._above(sums.vectors))

    def close(self) -> None:
        """See Runtime.close."""
        self._sums.close()
        self._part.close()

    def _above(self, pooled: NDArray[np.float32]) -> NDArray[np.float32]:
        n = len(pooled)
        if not n:  # a grid of no blocks is an error
            return pooled
        if n == 1:  # the product of a vector is added in another order than that of a matrix
            pooled = np.concatenate([pooled, np.zeros_like(pooled)])
        calls = np.array_split(pooled, -(-n // TEXTS))  # none of one text
        found = np.concatenate([self._part.vectors({"pooled": one}) for one in calls])
        return without_nonfinite(found[:n])
