"""Features to vectors: one contract, behind which a device does the sums."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gramvec.features.featurizer import Featurizer
from gramvec.text.arrays import FeatureBatch

Device = Literal["auto", "cpu", "cuda"]


class Sums(NamedTuple):
    """Result for n texts: vectors float32[n, d], counts int64[n] of their rows, `unknown` as in FeatureBatch, and the
    seconds that featurizing took.
    """

    vectors: NDArray[np.float32]
    counts: NDArray[np.int64]
    unknown: int
    featurize_seconds: float


class Batching(NamedTuple):
    """Batching that suits a runtime.

    texts: the efficient number of texts for a call; more in one call only take longer, and more memory. waits: a call
    of any size waits for a device, so it must not run in an event loop. long_text_factor: the cost of a character in a
    text of thousands of characters, as a multiple of the usual cost.
    """

    texts: int = 512
    waits: bool = False
    long_text_factor: int = 1


class Runtime(ABC):
    """Sums of the rows of a table for each text of a batch.

    Attributes:
        name: "onnx" or "native".
        device: the one in use, "cpu" or "cuda", as read back from what was opened.
        provider: the device's name in the library that runs it.
        batching: the one that suits the runtime; any other gives the same bytes.
    """

    name: str
    device: str
    provider: str
    batching: Batching

    @abstractmethod
    def run(self, batch: FeatureBatch) -> NDArray[np.float32]:
        """Return a vector for each text, float32[n, d], with the same bytes in any batch.

        It may be called from several threads. Raises BackendError if the device fails.
        """

    def embed(self, featurizer: Featurizer, texts: Sequence[str]) -> Sums:
        """Featurize texts and return the same bits as `run` for their features.

        Raises InputError for a text that the featurizer refuses, BackendError if the device fails. May be called
        from several threads.
        """
        began = time.perf_counter()
        batch = featurizer(texts)
        seconds = time.perf_counter() - began
        return Sums(self.run(batch), batch.counts, batch.unknown, seconds)

    @abstractmethod
    def close(self) -> None:
        """Release the table and the device; later calls raise BackendError."""
