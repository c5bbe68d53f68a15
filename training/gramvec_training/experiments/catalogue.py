"""All experiments by name, in the order of the papers."""

from __future__ import annotations

from gramvec.errors import InputError
from gramvec_training.experiments import norms, sif
from gramvec_training.experiments.base import Experiment

_VECTORS = "GloVe 6B of 50 dimensions for GloVe 840B of 300; sts12, sts16 and SICK's trial part for STS 2012 to 2015"

EXPERIMENTS: tuple[Experiment, ...] = (
    Experiment(
        "sif-table-6", "SIF, Tables 1 and 6", "Averages, tf-idf, weights (W), removal (R) and both (WR)",
        _VECTORS, sif.ablation,
    ),
    Experiment(
        "sif-figure-1", "SIF, Figure 1", "word2vec's subsampling of words against SIF's weights", "the paper's own",
        sif.subsampling,
    ),
    Experiment("sif-figure-2a", "SIF, Figure 2a", "WR over the parameter a", _VECTORS, sif.parameter),
    Experiment("sif-figure-2b", "SIF, Figure 2b", "WR over sources of word frequencies", _VECTORS, sif.sources),
    Experiment(
        "paragram-norms", "PARAGRAM-PHRASE, section 6", "Lengths of trained word vectors as weights",
        "GloVe 6B of 50 dimensions for PARAGRAM-SL999; a model given as --norms-of for the paper's", norms.weights,
    ),
    Experiment(
        "sif-common-words", "SIF, section 4.1", "Words nearest to the common component of each task", _VECTORS,
        sif.common_words,
    ),
)  # fmt: skip


def experiment_named(name: str) -> Experiment:
    """Raises InputError, with the names that there are, for another."""
    for one in EXPERIMENTS:
        if one.name == name:
            return one
    raise InputError(f"There is no experiment {name}; there are {', '.join(one.name for one in EXPERIMENTS)}.")
