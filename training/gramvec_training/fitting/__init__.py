"""A corpus and an objective -> weights: the loop, its optimisers and checkpoints, and SIF's closed form.

It imports configuration, encoders and objectives. A new optimiser goes into optimisers.py.
"""

from __future__ import annotations

from gramvec_training.fitting.checkpoint import load_checkpoint, save_checkpoint
from gramvec_training.fitting.device import choose_device, settle
from gramvec_training.fitting.loop import History, Interrupted, fit
from gramvec_training.fitting.optimisers import (
    LazyAdaGrad,
    LazyAdam,
    LazyOptimiser,
    LazySgd,
    optimiser_for,
    rate_at,
)
from gramvec_training.fitting.sif import common_components, idf_weights, remove_components, word_table, word_weights
from gramvec_training.fitting.signals import noted_signals
from gramvec_training.fitting.squared_norm import SquaredNorm, squared_norm, squared_norm_vectors
from gramvec_training.fitting.trainer import Trainer
from gramvec_training.fitting.watching import Log, Selection, is_due

__all__ = [
    "History",
    "Interrupted",
    "LazyAdaGrad",
    "LazyAdam",
    "LazyOptimiser",
    "LazySgd",
    "Log",
    "Selection",
    "SquaredNorm",
    "Trainer",
    "choose_device",
    "common_components",
    "fit",
    "idf_weights",
    "is_due",
    "load_checkpoint",
    "noted_signals",
    "optimiser_for",
    "rate_at",
    "remove_components",
    "save_checkpoint",
    "settle",
    "squared_norm",
    "squared_norm_vectors",
    "word_table",
    "word_weights",
]
