"""Two tables are matched: for each row of one the nearest rows of the other, by n-grams or labels.

May import sparse, embedding, files and below. A new way to rank is a file here, a new feature of a pair is added in
`features`; docs/matching.md has examples.
"""

from __future__ import annotations

from gramvec.matching.columns import THRESHOLD, Blocks, Field, match_fields, vectors_of
from gramvec.matching.cosines import Matches
from gramvec.matching.explained import Parts, explained
from gramvec.matching.features import Compared
from gramvec.matching.frames import Matcher, match
from gramvec.matching.labels import read_labels
from gramvec.matching.learned import Learned, candidates, chosen, learned, uncertain
from gramvec.matching.learning import Labels, Report
from gramvec.matching.stored import load_matcher, save_matcher
from gramvec.matching.tables import Table, read_table

__all__ = [
    "THRESHOLD",
    "Blocks",
    "Compared",
    "Field",
    "Labels",
    "Learned",
    "Matcher",
    "Matches",
    "Parts",
    "Report",
    "Table",
    "candidates",
    "chosen",
    "explained",
    "learned",
    "load_matcher",
    "match",
    "match_fields",
    "read_labels",
    "read_table",
    "save_matcher",
    "uncertain",
    "vectors_of",
]
