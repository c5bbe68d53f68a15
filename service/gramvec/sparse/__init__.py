"""Texts into sparse vectors: every n-gram and word hashed to a column, weighed by how rare it is among texts at hand.

May import features, vocab and below. A new weighting is a branch of `weights_of` in `embedder`, a new kind of feature a
function in `hashed`.
"""

from __future__ import annotations

from gramvec.sparse.embedder import ORDERS, SIF_A, WEIGHTINGS, SparseEmbedder, Weighting, fit, held_by, uniform
from gramvec.sparse.hashed import COLUMN_BITS, COLUMNS, Hashed, columns_of, hashed_features, lower_table
from gramvec.sparse.vectors import SparseVectors

__all__ = [
    "COLUMNS",
    "COLUMN_BITS",
    "ORDERS",
    "SIF_A",
    "WEIGHTINGS",
    "Hashed",
    "SparseEmbedder",
    "SparseVectors",
    "Weighting",
    "columns_of",
    "fit",
    "hashed_features",
    "held_by",
    "lower_table",
    "uniform",
]
