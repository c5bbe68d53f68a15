"""The tables and figures of PARAGRAM-PHRASE (Wieting et al., 2016b), a file each.

It imports supervised, systems and common. A new one is a file here, with a line in the catalogue.
"""

from __future__ import annotations

from gramvec_training.experiments.paragram.amount import scores_by_amount
from gramvec_training.experiments.paragram.lengths import lengths_of_compositions
from gramvec_training.experiments.paragram.norms import norms_as_weights
from gramvec_training.experiments.paragram.regimes import supervised_regimes
from gramvec_training.experiments.paragram.scalars import learned_scalars
from gramvec_training.experiments.paragram.separation import separation_of_pairs
from gramvec_training.experiments.paragram.undertrained import scores_by_undertrained_words

__all__ = [
    "learned_scalars",
    "lengths_of_compositions",
    "norms_as_weights",
    "scores_by_amount",
    "scores_by_undertrained_words",
    "separation_of_pairs",
    "supervised_regimes",
]
