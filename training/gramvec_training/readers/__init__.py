"""Files -> records: paraphrases, texts, labelled, scored and tagged ones, word vectors, frequencies, misspellings.

Every file may be plain or gzip; lines are split on newline alone. A new format is a file here.
"""

from __future__ import annotations

from gramvec_training.readers.columns import is_number
from gramvec_training.readers.frequencies import read_frequencies
from gramvec_training.readers.labelled import Labelled, read_label_texts, read_labelled, same_text
from gramvec_training.readers.labelled_pairs import LabelledPairs, holds_labels, read_labelled_pairs
from gramvec_training.readers.misspellings import read_misspellings
from gramvec_training.readers.pairs import Group, read_groups, read_pairs, read_paraphrases, read_ppdb
from gramvec_training.readers.piped import is_piped, spool
from gramvec_training.readers.rows import BadRows, near, numbered_lines, open_binary, read_rows, read_texts
from gramvec_training.readers.scored import Scored, read_scored
from gramvec_training.readers.tagged import TagColumn, TaggedSentence, read_tagged
from gramvec_training.readers.treebank import treebank_tokens
from gramvec_training.readers.vectors import read_vectors, vectors_at

__all__ = [
    "BadRows",
    "Group",
    "Labelled",
    "LabelledPairs",
    "Scored",
    "TagColumn",
    "TaggedSentence",
    "holds_labels",
    "is_number",
    "is_piped",
    "near",
    "numbered_lines",
    "open_binary",
    "read_frequencies",
    "read_groups",
    "read_label_texts",
    "read_labelled",
    "read_labelled_pairs",
    "read_misspellings",
    "read_pairs",
    "read_paraphrases",
    "read_ppdb",
    "read_rows",
    "read_scored",
    "read_tagged",
    "read_texts",
    "read_vectors",
    "same_text",
    "spool",
    "treebank_tokens",
    "vectors_at",
]
