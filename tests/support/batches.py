"""Batches of features by their rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from gramvec.text.arrays import FeatureBatch


def batch_of(*texts: Any) -> FeatureBatch:
    """The batch of texts whose rows are given."""
    offsets = np.cumsum([0, *map(len, texts)]).astype(np.int64)
    return FeatureBatch(np.concatenate([np.zeros(0, np.int32), *map(np.asarray, texts)]).astype(np.int32), offsets)
