"""A bundle of ours as a teacher: so fast that its vectors need no cache."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

import gramvec
from gramvec_training.types import Halves

BLOCK_TEXTS = 16_384  # between two reports of progress


class BundleTeacher:
    """The vectors of a gramvec bundle, a name or a folder. Raises BundleError where there is none."""

    precision = "float32"

    def __init__(self, model: str | Path) -> None:
        self._embedder = gramvec.load(model, device="cpu")
        self.digest = self._embedder.digest

    def vectors(self, texts: Sequence[str], *, progress: Callable[[int], object] = lambda done: None) -> Halves:
        """float16[n, d], of length 1 or zero, in the order of the texts; `progress` is told how many are done."""
        vectors = np.empty((len(texts), self._embedder.dimension), np.float16)
        for start in range(0, len(texts), BLOCK_TEXTS):
            block = texts[start : start + BLOCK_TEXTS]
            vectors[start : start + len(block)] = self._embedder.embed(block, truncate=True)
            progress(len(block))
        return vectors
