"""Labelled texts, a system and a regime -> the score of a head, for the supervised tables of two papers.

It imports systems and common. A new labelled task is a function of labelled.py.
"""

from __future__ import annotations

from gramvec_training.experiments.supervised.heads import SIF, Regime, averages, scored_head
from gramvec_training.experiments.supervised.labelled import (
    Part,
    Task,
    entailment,
    inference,
    reviews,
    sentiment,
    similarity,
)
from gramvec_training.experiments.supervised.nb_svm import linear_svm, nb_svm
from gramvec_training.experiments.supervised.scores import (
    LSTM,
    OPEN_LSTM,
    PHRASES,
    listed,
    mean_score,
    nb_svm_accuracy,
    regime_of,
)

__all__ = [
    "LSTM",
    "OPEN_LSTM",
    "PHRASES",
    "SIF",
    "Part",
    "Regime",
    "Task",
    "averages",
    "entailment",
    "inference",
    "linear_svm",
    "listed",
    "mean_score",
    "nb_svm",
    "nb_svm_accuracy",
    "regime_of",
    "reviews",
    "scored_head",
    "sentiment",
    "similarity",
]
