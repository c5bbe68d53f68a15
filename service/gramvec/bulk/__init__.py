"""Files of any length into files of vectors, in bounded memory and on all cores; near-duplicates; Ray Data and Spark.

May import files, embedding and below. A new adapter is a file here. docs/bulk.md has examples.
"""

from __future__ import annotations

from gramvec.bulk.dedupe import (
    Pairs,
    cosines,
    groups,
    join,
    leading_axes,
    near_pairs,
    one_blas_thread,
    pairs_within,
    turned,
)
from gramvec.bulk.embedding import COLUMN, EMBEDDING, OUTPUT_FORMS, Done, Files, Interrupted, Watcher, cores, embed_file
from gramvec.bulk.lines import Ids, Texts, TooManyTexts, read_texts, spooled, units_of, write_kept
from gramvec.bulk.pipeline import OnError, Options

__all__ = [
    "COLUMN",
    "EMBEDDING",
    "OUTPUT_FORMS",
    "Done",
    "Files",
    "Ids",
    "Interrupted",
    "OnError",
    "Options",
    "Pairs",
    "Texts",
    "TooManyTexts",
    "Watcher",
    "cores",
    "cosines",
    "embed_file",
    "groups",
    "join",
    "leading_axes",
    "near_pairs",
    "one_blas_thread",
    "pairs_within",
    "read_texts",
    "spooled",
    "turned",
    "units_of",
    "write_kept",
]
