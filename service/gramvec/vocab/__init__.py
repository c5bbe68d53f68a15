"""Which n-gram, word and chunk of text owns which row: arrays that are used as they lie in their files.

May import errors and native. A new array is checked in `checks` before anything reads it.
"""

from __future__ import annotations

from gramvec.vocab import hashing
from gramvec.vocab.arrays import bytes_of, read_arrays, write_arrays
from gramvec.vocab.characters import (
    CLASS_SHIFT,
    CODE_POINTS,
    ID_MASK,
    MAX_ALPHABET,
    PAGE,
    PAGE_SHIFT,
    SPACE,
    WORD,
    CharacterTable,
    class_ranges,
    lower,
    lower_case_pairs,
)
from gramvec.vocab.memo import Memo, edges_of, longest_reach, ngrams_across, ngrams_by_end
from gramvec.vocab.suffixes import suffix_rows, summed
from gramvec.vocab.vocabulary import Entry, EntryKind, Vocabulary

__all__ = [
    "CLASS_SHIFT",
    "CODE_POINTS",
    "ID_MASK",
    "MAX_ALPHABET",
    "PAGE",
    "PAGE_SHIFT",
    "SPACE",
    "WORD",
    "CharacterTable",
    "Entry",
    "EntryKind",
    "Memo",
    "Vocabulary",
    "bytes_of",
    "class_ranges",
    "edges_of",
    "hashing",
    "longest_reach",
    "lower",
    "lower_case_pairs",
    "ngrams_across",
    "ngrams_by_end",
    "read_arrays",
    "suffix_rows",
    "summed",
    "write_arrays",
]
