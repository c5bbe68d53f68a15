"""Why: the pairs of features that made a cosine, and the neighbours of a text or an n-gram.

May import embedding and below. A new question that rows can answer is a file here.
"""

from __future__ import annotations

from gramvec.explaining.contributions import (
    MAX_CHARACTERS,
    MOST_PAIRS,
    TOP_K,
    Contribution,
    Explanation,
    Feature,
    explain,
)
from gramvec.explaining.neighbours import (
    NEAREST,
    Neighbour,
    nearest_ngrams,
    nearest_words,
    nearest_words_of,
    vocabulary_words,
)
from gramvec.explaining.weights import weights_of
from gramvec.explaining.words import Word, WordPair

__all__ = [
    "MAX_CHARACTERS",
    "MOST_PAIRS",
    "NEAREST",
    "TOP_K",
    "Contribution",
    "Explanation",
    "Feature",
    "Neighbour",
    "Word",
    "WordPair",
    "explain",
    "nearest_ngrams",
    "nearest_words",
    "nearest_words_of",
    "vocabulary_words",
    "weights_of",
]
