"""What is learned: vectors of a batch -> a loss, and the batches in their order.

It imports configuration, data, encoders and teachers. A new objective is a file here, its settings in
configuration/methods.py, and a plan in runs that makes one.
"""

from __future__ import annotations

from gramvec_training.objectives.base import Examples, Objective, moved
from gramvec_training.objectives.distillation import TeacherObjective, distillation_loss
from gramvec_training.objectives.heads import (
    Head,
    HeadObjective,
    JoinedHead,
    PairHead,
    TextHead,
    new_head,
    score_targets,
)
from gramvec_training.objectives.margin import margin_loss
from gramvec_training.objectives.negatives import choose_negatives, mega_batch_negatives
from gramvec_training.objectives.ngram_weights import TextPairs, first_weights, learned_weights, pair_cosines
from gramvec_training.objectives.ngrams import NgramCounts
from gramvec_training.objectives.pairs import PairObjective
from gramvec_training.objectives.spelling import SpellingObjective, Words, spelling_loss
from gramvec_training.objectives.tagging import Sentences, TaggedExamples, Tagger, TaggingObjective

__all__ = [
    "Examples",
    "Head",
    "HeadObjective",
    "JoinedHead",
    "NgramCounts",
    "Objective",
    "PairHead",
    "PairObjective",
    "Sentences",
    "SpellingObjective",
    "TaggedExamples",
    "Tagger",
    "TaggingObjective",
    "TeacherObjective",
    "TextHead",
    "TextPairs",
    "Words",
    "choose_negatives",
    "distillation_loss",
    "first_weights",
    "learned_weights",
    "margin_loss",
    "mega_batch_negatives",
    "moved",
    "new_head",
    "pair_cosines",
    "score_targets",
    "spelling_loss",
]
