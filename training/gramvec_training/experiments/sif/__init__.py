"""The tables and figures of SIF (Arora et al., 2017), a file each.

It imports supervised and common. A new one is a file here, with a line in the catalogue.
"""

from __future__ import annotations

from gramvec_training.experiments.sif.ablation import ablation_of_given, ablation_of_learned
from gramvec_training.experiments.sif.common_words import component_words
from gramvec_training.experiments.sif.few_labels import scores_by_labels
from gramvec_training.experiments.sif.inference import inferences, layered_inferences
from gramvec_training.experiments.sif.parameter import parameter_curves
from gramvec_training.experiments.sif.shuffled import shuffled_table
from gramvec_training.experiments.sif.sources import frequency_sources
from gramvec_training.experiments.sif.subsampling import subsampling_curves
from gramvec_training.experiments.sif.supervised import supervised_table

__all__ = [
    "ablation_of_given",
    "ablation_of_learned",
    "component_words",
    "frequency_sources",
    "inferences",
    "layered_inferences",
    "parameter_curves",
    "scores_by_labels",
    "shuffled_table",
    "subsampling_curves",
    "supervised_table",
]
