"""Readers of training data. Every file may be plain or gzip; lines are split on newline alone."""

from __future__ import annotations

from gramvec_training.data.frequencies import read_frequencies
from gramvec_training.data.pairs import Group, Layout, read_groups, read_pairs, read_paraphrases, read_ppdb
from gramvec_training.data.rows import BadRows, OnBad, numbered_lines, open_binary, read_texts
from gramvec_training.data.vectors import read_vectors

__all__ = [
    "BadRows",
    "Group",
    "Layout",
    "OnBad",
    "numbered_lines",
    "open_binary",
    "read_frequencies",
    "read_groups",
    "read_pairs",
    "read_paraphrases",
    "read_ppdb",
    "read_texts",
    "read_vectors",
]
