"""Types of numpy arrays by what they hold, and the batch of features that a featurizer passes to a runtime."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Bools = NDArray[np.bool_]
Doubles = NDArray[np.float64]
Floats = NDArray[np.float32]
Int32s = NDArray[np.int32]
Int64s = NDArray[np.int64]
UInt8s = NDArray[np.uint8]
UInt64s = NDArray[np.uint64]


@dataclass(frozen=True, eq=False)
class FeatureBatch:
    """The features of n texts in compressed sparse row form.

    ids: int32[rows], rows of the model's table, in the order in which they are summed.
    offsets: int64[n + 1], ascending from 0; text i owns ids[offsets[i]:offsets[i + 1]].
    unknown: how many characters of all texts are not in the alphabet, and words, where words are features, not in the
    vocabulary (those inside of a memoized chunk are not looked up, and not counted). Equality is of ids and offsets.
    """

    ids: Int32s
    offsets: Int64s
    unknown: int = 0

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def counts(self) -> Int64s:
        """int64[n]: the number of features of each text; 0 for a text without a known feature."""
        return np.diff(self.offsets)

    def part(self, start: int, stop: int) -> FeatureBatch:
        """Return texts start to stop - 1 as a batch of their own. Its ids are a view; only offsets are copied."""
        offsets = self.offsets[start : stop + 1]
        first, last = int(offsets[0]), int(offsets[-1])
        return FeatureBatch(self.ids[first:last], offsets - first)

    def __eq__(self, other: Any) -> bool:
        if not isinstance(other, FeatureBatch):
            return NotImplemented
        return np.array_equal(self.ids, other.ids) and np.array_equal(self.offsets, other.offsets)

    __hash__ = None  # type: ignore[assignment]
