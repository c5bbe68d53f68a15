"""Two tables are matched: for each row of one the nearest rows of the other, by cosines of sparse vectors, exactly.

May import sparse, embedding, files and below. A new way to rank is a file here; docs/matching.md has examples.
"""

from __future__ import annotations

from gramvec.matching.columns import THRESHOLD, Field, match, match_fields, vectors_of
from gramvec.matching.cosines import Matches
from gramvec.matching.explained import Parts, explained
from gramvec.matching.tables import Table, read_table

__all__ = [
    "THRESHOLD",
    "Field",
    "Matches",
    "Parts",
    "Table",
    "explained",
    "match",
    "match_fields",
    "read_table",
    "vectors_of",
]
