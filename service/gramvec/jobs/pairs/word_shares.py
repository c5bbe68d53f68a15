"""Shares of texts that hold common words, for tables that are too small to say it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

import numpy as np
import orjson

from gramvec.text.arrays import Doubles

# Common words count as if this many more texts were in the tables.
BACKGROUND_TEXTS = 30
# The same where no table shows how rare a word is.
ONLY_BACKGROUND_TEXTS = 1000
FILE = Path(__file__).parent / "word_shares.json"


def shares_of(words: Sequence[str]) -> Doubles:
    """Return the share of short texts that hold each word, float64[n]; 0 where it is unknown."""
    known = _shares()
    return np.array([known.get(word, 0.0) for word in words], np.float64)


@lru_cache(maxsize=1)
def _shares() -> dict[str, float]:
    return {str(word): float(share) for word, share in orjson.loads(FILE.read_bytes()).items()}
