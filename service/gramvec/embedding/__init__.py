"""Texts into vectors: the library, from a name or folder to a finished matrix.

May import runtime, bundles and below. A new way to finish vectors is a function in `postprocess` or `precision`.
"""

from __future__ import annotations

from gramvec.embedding.embedder import MAX_CHARACTERS, Embedder
from gramvec.embedding.encode import Encodes
from gramvec.embedding.loading import load
from gramvec.embedding.postprocess import (
    RawEmbeddings,
    Vectors,
    check_dimensions,
    cosine_matrix,
    cosine_pairs,
    finish,
    unit,
)
from gramvec.embedding.precision import Precision, check_precision, quantize
from gramvec.embedding.spaces import SPACES, Space
from gramvec.embedding.texts import TruncationDirection, in_batches, prepared
from gramvec.embedding.verifying import compare, sample_texts
from gramvec.features import iterated, listed

__all__ = [
    "MAX_CHARACTERS",
    "SPACES",
    "Embedder",
    "Encodes",
    "Precision",
    "RawEmbeddings",
    "Space",
    "TruncationDirection",
    "Vectors",
    "check_dimensions",
    "check_precision",
    "compare",
    "cosine_matrix",
    "cosine_pairs",
    "finish",
    "in_batches",
    "iterated",
    "listed",
    "load",
    "prepared",
    "quantize",
    "sample_texts",
    "unit",
]
