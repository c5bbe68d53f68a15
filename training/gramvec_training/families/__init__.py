"""A model or a rival -> figures of other families than similarity: matching, retrieval, classification, spelling.

It imports evaluation (for misspelling), teachers and readers, and the serving side. A new family is a file of its own
here: a reader, a frozen set, a function that scores a Model on it; and a few lines in scoring.py.
"""

from __future__ import annotations

from gramvec_training.families.classification import read_classification_set
from gramvec_training.families.comparison import Model
from gramvec_training.families.labelled_pairs import pair_report, pair_scores
from gramvec_training.families.labels import label_accuracies, label_cosines, label_report, label_score
from gramvec_training.families.matching_sets import find_matching_sets
from gramvec_training.families.peers import OF_A_FOLDER, PEERS, installed_peers, of_scored, open_peer
from gramvec_training.families.retrieval import find_retrieval_sets
from gramvec_training.families.scoring import Families, score_families, score_similarity
from gramvec_training.families.spelling import read_spelling_set, read_words

__all__ = [
    "OF_A_FOLDER",
    "PEERS",
    "Families",
    "Model",
    "find_matching_sets",
    "find_retrieval_sets",
    "installed_peers",
    "label_accuracies",
    "label_cosines",
    "label_report",
    "label_score",
    "of_scored",
    "open_peer",
    "pair_report",
    "pair_scores",
    "read_classification_set",
    "read_spelling_set",
    "read_words",
    "score_families",
    "score_similarity",
]
