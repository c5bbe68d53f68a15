"""FeatureBatch to vectors: one contract, behind which a device does the sums."""

from __future__ import annotations

from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from gramvec.features import FeatureBatch

Device = Literal["auto", "cpu", "cuda"]


class Runtime(Protocol):
    """Sums the rows of a table for each text of a batch."""

    @property
    def name(self) -> str:
        """Which runtime it is: "onnx" or "native"."""
        ...

    @property
    def device(self) -> str:
        """The device in use, "cpu" or "cuda", as read back from what was opened."""
        ...

    @property
    def provider(self) -> str:
        """The device's name in the library that runs it."""
        ...

    def run(self, batch: FeatureBatch) -> NDArray[np.float32]:
        """float32[n, d]: a vector for each text, the same bytes whatever else is in the batch.

        Raises BackendError if the device fails. May be called from several threads.
        """
        ...

    def close(self) -> None:
        """Release the table and the device."""
        ...
