"""What the supervised tables share: scores over seeds, the simplest rival, and lists of them."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from gramvec_training.experiments.common import Inputs
from gramvec_training.experiments.supervised.heads import SIF, Regime, scored_head
from gramvec_training.experiments.supervised.labelled import Task
from gramvec_training.experiments.supervised.nb_svm import nb_svm

LSTM, OPEN_LSTM = "LSTM", "LSTM, no output gate"
PHRASES = 10_000  # of the sentiment treebank


def regime_of(system: str) -> Regime:
    """How a system is learned with its head where a table has one way: SIF's vectors are fixed."""
    return "features" if system == SIF else "trained"


def mean_score(inputs: Inputs, task: Task, system: str, regime: Regime, *, joined: bool = False) -> float:
    """The mean over seeds of `scored_head`."""
    return float(np.mean([scored_head(inputs, task, system, regime, seed, joined=joined) for seed in inputs.seeds]))


def nb_svm_accuracy(task: Task) -> float:
    """Of NB-SVM, times 100, on a task of two classes."""
    learned, scored = ([text for (text,) in part.texts] for part in (task.learned, task.scored))
    return 100 * float(np.mean(nb_svm(learned, task.learned.truth > 0, scored) == (task.scored.truth > 0)))


def listed(values: Mapping[str, float], *, signed: bool = False) -> str:
    """Names and values to one decimal."""
    return ", ".join(f"{name} {value:{'+' if signed else ''}.1f}" for name, value in values.items())
