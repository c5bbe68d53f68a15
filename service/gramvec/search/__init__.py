"""Search by letters and meaning: indexes of tantivy with a flat file of vectors, built, opened and checked."""

from __future__ import annotations

from gramvec.search.index import Hit, Index

__all__ = ["Hit", "Index"]
