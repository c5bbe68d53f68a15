"""Search by letters and meaning: indexes of tantivy with a flat file of vectors, built, opened and checked."""

from __future__ import annotations

from gramvec.jobs.search.index import Index
from gramvec.jobs.search.snapshot import Hit

__all__ = ["Hit", "Index"]
