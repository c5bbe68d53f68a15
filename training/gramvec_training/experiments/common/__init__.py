"""What every experiment takes and gives, and what several need: runs that are learned once, averages of word vectors.

It imports the rooms below experiments. What a new experiment shares with others of another paper is a file here.
"""

from __future__ import annotations

from gramvec_training.experiments.common.base import Drawing, Experiment, Finding, Inputs, Outcome, Row
from gramvec_training.experiments.common.learning import Settings, common_vectors, learned, means, spread, tasks_of
from gramvec_training.experiments.common.raw import GIVEN, PHRASE, SN, kinds_of_vectors, raw_texts
from gramvec_training.experiments.common.words import Words, vectors_of

__all__ = [
    "GIVEN",
    "PHRASE",
    "SN",
    "Drawing",
    "Experiment",
    "Finding",
    "Inputs",
    "Outcome",
    "Row",
    "Settings",
    "Words",
    "common_vectors",
    "kinds_of_vectors",
    "learned",
    "means",
    "raw_texts",
    "spread",
    "tasks_of",
    "vectors_of",
]
