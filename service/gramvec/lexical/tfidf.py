"""TF-IDF of sparse rows: a feature that a text has c times counts (1 + ln c) idf^p."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gramvec.text.arrays import Doubles


def inverse_frequency(texts: int, held: NDArray[Any]) -> Doubles:
    """Return ln((1 + n) / (1 + df)) + 1, float64, of features that `held` of n texts have."""
    weights: Doubles = np.log((1 + texts) / (1 + held)) + 1
    return weights


def damp_counts(counts: NDArray[Any]) -> Doubles:
    """Return 1 + ln c, float64, of how often each feature is in a text, from 1."""
    damped: Doubles = 1 + np.log(counts.astype(np.float64))
    return damped
