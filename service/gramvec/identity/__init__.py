"""Which n-grams stand in a text, as some columns beside what it means: codes, names, digits, words nobody knows.

May import sparse, features, vocab and below. A new way to weigh n-grams is a constructor of
NgramWeights.
"""

from __future__ import annotations

from gramvec.identity.overlap import overlap
from gramvec.identity.sketch import COLUMNS, LONGEST_ORDER, MOST_COLUMNS, ORDERS, Identity, Ngrams
from gramvec.identity.weights import WEIGHT_BITS, NgramWeights
from gramvec.sparse import SIF_A

__all__ = [
    "COLUMNS",
    "LONGEST_ORDER",
    "MOST_COLUMNS",
    "ORDERS",
    "SIF_A",
    "WEIGHT_BITS",
    "Identity",
    "NgramWeights",
    "Ngrams",
    "overlap",
]
