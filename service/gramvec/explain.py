"""Why two texts are alike: `gramvec.explain.explain`, and what it gives. It lives in `gramvec.explaining`."""

from __future__ import annotations

from gramvec.explaining import (
    MAX_CHARACTERS,
    MOST_PAIRS,
    TOP_K,
    Contribution,
    Explanation,
    Feature,
    Word,
    WordPair,
    explain,
)

__all__ = [
    "MAX_CHARACTERS",
    "MOST_PAIRS",
    "TOP_K",
    "Contribution",
    "Explanation",
    "Feature",
    "Word",
    "WordPair",
    "explain",
]
