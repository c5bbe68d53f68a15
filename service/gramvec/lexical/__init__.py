"""Lexical features: the character n-grams and words of a text, hashed to columns and weighed by how rare they are.

A new weighting is a branch of `weigh_counts` in `sparse`; a new way to weigh n-grams is a constructor of NgramWeights.
"""

from __future__ import annotations

from gramvec.lexical.sparse import SparseEmbedder, fit, uniform
from gramvec.lexical.sparse_vectors import SparseVectors

__all__ = ["SparseEmbedder", "SparseVectors", "fit", "uniform"]
