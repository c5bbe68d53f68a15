"""A file of texts into one file that answers searches: vectors, ids and records, mapped, checked, without code in it.

May import bulk, embedding and below. A new way to find candidates belongs in `scan`, a part of the file in `layout`.
"""

from __future__ import annotations

from gramvec.search.building import add_to_index, build_index, remove_from_index
from gramvec.search.duplicates import Recall, near_rows
from gramvec.search.filters import Narrowing, Scalar, Where, text_of
from gramvec.search.hybrid import CANDIDATES, MOST_CHARACTERS, Hit, weights_for
from gramvec.search.index import MOST_HITS, Index, View, check_k
from gramvec.search.layout import IndexHeader, Layout
from gramvec.search.scan import TILE_QUERIES, kernels, nearest
from gramvec.search.weighing import WEIGHTS, Weights, weighed_by

__all__ = [
    "CANDIDATES",
    "MOST_CHARACTERS",
    "MOST_HITS",
    "TILE_QUERIES",
    "WEIGHTS",
    "Hit",
    "Index",
    "IndexHeader",
    "Layout",
    "Narrowing",
    "Recall",
    "Scalar",
    "View",
    "Weights",
    "Where",
    "add_to_index",
    "build_index",
    "check_k",
    "kernels",
    "near_rows",
    "nearest",
    "remove_from_index",
    "text_of",
    "weighed_by",
    "weights_for",
]
