"""The papers' tables and figures -> ours beside them, and whether what the paper found holds here.

It imports all rooms but papers and the command line. A new experiment is a file in its paper's room, with a
line in the catalogue and its name in papers/outline.py.
"""

from __future__ import annotations

from gramvec_training.experiments.catalogue import EXPERIMENTS, experiment_named
from gramvec_training.experiments.common import Drawing, Experiment, Finding, Inputs, Outcome, raw_texts

__all__ = ["EXPERIMENTS", "Drawing", "Experiment", "Finding", "Inputs", "Outcome", "experiment_named", "raw_texts"]
