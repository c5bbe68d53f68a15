"""The tables and figures of CHARAGRAM (Wieting et al., 2016a), a file each.

It imports systems and common. A new one is a file here, with a line in the catalogue.
"""

from __future__ import annotations

from gramvec_training.experiments.charagram.convergence import filters, word_curves, word_similarity
from gramvec_training.experiments.charagram.counts import numbers_of_parameters
from gramvec_training.experiments.charagram.lengths import pairs_by_length
from gramvec_training.experiments.charagram.neighbours import nearest_to_negations, nearest_to_ngrams, nearest_to_words
from gramvec_training.experiments.charagram.sizes import word_sizes
from gramvec_training.experiments.charagram.tagging import tagging_accuracies, tagging_curves
from gramvec_training.experiments.charagram.tagging_sizes import tagging_by_ngrams
from gramvec_training.experiments.charagram.unknown_shares import scores_by_unknown_words
from gramvec_training.experiments.charagram.unknown_words import pairs_by_unknown_words

__all__ = [
    "filters",
    "nearest_to_negations",
    "nearest_to_ngrams",
    "nearest_to_words",
    "numbers_of_parameters",
    "pairs_by_length",
    "pairs_by_unknown_words",
    "scores_by_unknown_words",
    "tagging_accuracies",
    "tagging_by_ngrams",
    "tagging_curves",
    "word_curves",
    "word_similarity",
    "word_sizes",
]
