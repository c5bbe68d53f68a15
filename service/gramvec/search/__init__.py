"""Search by letters and meaning: indexes of tantivy with a flat file of vectors, built, opened and checked."""

from __future__ import annotations

from gramvec.search.index import Index
from gramvec.search.snapshot import Hit

__all__ = ["Hit", "Index"]
