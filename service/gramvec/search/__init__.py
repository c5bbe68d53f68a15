"""Search: a file of vectors, ids and records that answers queries, memory-mapped and checked.

A new way to find candidates belongs in `scan`, a part of the file in `layout`.
"""

from __future__ import annotations

from gramvec.search.index import Index

__all__ = ["Index"]
