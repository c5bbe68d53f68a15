"""A model -> figures: similarity sets clean and misspelt, coverage, neighbours, held-out pairs.

It imports data, readers, encoders and fitting, and the serving side. A new family of tests is a file here.
"""

from __future__ import annotations

from gramvec_training.evaluation.coverage import coverage
from gramvec_training.evaluation.held_out import report, retrieval
from gramvec_training.evaluation.models import (
    ScoredModel,
    Sides,
    Typos,
    evaluate_models,
    served_model,
    without_components_of_sets,
)
from gramvec_training.evaluation.neighbours import PHRASES, WORDS, candidate_words, listed_words
from gramvec_training.evaluation.robustness import misspelt, misspelt_sets, of_sentences
from gramvec_training.evaluation.sets import SimilaritySet, correlations, find_sets, logged, read_set, score_sets

__all__ = [
    "PHRASES",
    "WORDS",
    "ScoredModel",
    "Sides",
    "SimilaritySet",
    "Typos",
    "candidate_words",
    "correlations",
    "coverage",
    "evaluate_models",
    "find_sets",
    "listed_words",
    "logged",
    "misspelt",
    "misspelt_sets",
    "of_sentences",
    "read_set",
    "report",
    "retrieval",
    "score_sets",
    "served_model",
    "without_components_of_sets",
]
