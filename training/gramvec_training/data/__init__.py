"""Files -> a corpus: which texts and pairs a run learns from, drawn by a seed, and the vocabulary of their features.

It imports configuration and readers, and the serving side's features. A new way of drawing is a file here.
"""

from __future__ import annotations

from gramvec_training.data.cooccurrence import MOST_WORDS, Cooccurrences, count_cooccurrences
from gramvec_training.data.corpus import Batch, Bools, Corpus, Features, Featurize, Ids, Ints
from gramvec_training.data.counting import count_documents, count_words
from gramvec_training.data.held_out import HeldOut, read_held_out, read_kept
from gramvec_training.data.labels import LabelSplit, LabelTexts, split_labels
from gramvec_training.data.misspelling import misspelt
from gramvec_training.data.mixture import LabelGroups, Mixture, SourceGroups
from gramvec_training.data.repeated import Repeated, count_repeated
from gramvec_training.data.spelling import copies_of, spelt_alike
from gramvec_training.data.texts import collect_texts, source_texts
from gramvec_training.data.vocabulary import build_vocabulary, extended_vocabulary, vocabulary_for

__all__ = [
    "MOST_WORDS",
    "Batch",
    "Bools",
    "Cooccurrences",
    "Corpus",
    "Features",
    "Featurize",
    "HeldOut",
    "Ids",
    "Ints",
    "LabelGroups",
    "LabelSplit",
    "LabelTexts",
    "Mixture",
    "Repeated",
    "SourceGroups",
    "build_vocabulary",
    "collect_texts",
    "copies_of",
    "count_cooccurrences",
    "count_documents",
    "count_repeated",
    "count_words",
    "extended_vocabulary",
    "misspelt",
    "read_held_out",
    "read_kept",
    "source_texts",
    "spelt_alike",
    "split_labels",
    "vocabulary_for",
]
