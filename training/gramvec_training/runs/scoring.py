"""A finished run as a model to be scored, without a bundle: what has no graph can be scored too."""

from __future__ import annotations

from gramvec.text.featurizer import Featurizer
from gramvec_training.encoders import cosines, encoder_function, known_vectors
from gramvec_training.evaluation import ScoredModel
from gramvec_training.fitting import choose_device
from gramvec_training.runs.folder import Run, spec_of


def run_model(run: Run, device: str = "cpu") -> ScoredModel:
    """The model of a run as its trainer computes it, with the table in float32."""
    featurizer = Featurizer(spec_of(run.config), run.vocabulary)
    encoder = run.encoder.to(choose_device(device))
    encode = encoder_function(encoder, featurizer)
    return ScoredModel(
        run.config.model.name,
        featurizer,
        known_vectors(encode, featurizer),
        cosines(encode, featurizer),
        {"device": str(encoder.table.device), "parameters": encoder.parameter_counts()},
    )
