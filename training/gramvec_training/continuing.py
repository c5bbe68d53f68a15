"""What a run on somebody's own pairs has besides: the bundle it goes on from, and held-out pairs before and after."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from gramvec.features import Featuriser
from gramvec.vocab import Vocabulary
from gramvec_training.config import Config, Training
from gramvec_training.encode import Encode, reference, unit_vectors
from gramvec_training.encoders import ENCODERS, Bag
from gramvec_training.held_out import read_held_out, retrieval
from gramvec_training.runs import Weights, spec_of
from gramvec_training.start import Started, check_fits, read_start, started_table

# What a record says of how a distilled start was made.
_OF_A_TEACHER = ("teacher", "texts", "steps", "seconds")


def begin_from(config: Config) -> Started | None:
    """The bundle of the config's [start], read and found to fit the config; None without one.

    Raises BundleError and InputError as gramvec_training.start does.
    """
    if config.start is None:
        return None
    started = read_start(config.start)
    model = config.model
    check_fits(
        started,
        spec_of(config),
        dimension=model.dimension,
        pooling=model.pooling,
        activation=model.activation,
        bias=model.bias,
    )
    return started


def continued_encoder(started: Started, seed: int, vocabulary: Vocabulary) -> Bag:
    """The encoder with the weights of the bundle, and first values, by the seed, for the rows that it lacks."""
    graph = started.bundle.manifest.graph
    table = torch.from_numpy(started_table(started, vocabulary, seed))
    encoder = ENCODERS["bag"](table, pooling=graph.pooling, activation=graph.activation, bias=started.bias is not None)
    if encoder.bias is not None:
        encoder.bias.data.copy_(torch.tensor(started.bias))
    return encoder


def origin_record(started: Started | None) -> dict[str, Any]:
    """What a run's record says of the bundle that it went on from."""
    if started is None:
        return {}
    manifest = started.bundle.manifest
    return {
        "start": {
            "name": manifest.name,
            "digest": started.bundle.digest,
            "licence": manifest.provenance.get("licence"),
            "rows": manifest.rows,
            **{key: manifest.provenance[key] for key in _OF_A_TEACHER if "teacher" in manifest.provenance},
        }
    }


def held_out_record(
    config: Config, training: Training, data: Path, started: Started | None, after: Encode, featuriser: Featuriser
) -> dict[str, Any]:
    """What a run's record says of the held-out pairs; nothing where there are none.

    `before` is the retrieval of the bundle with its own features, None without one; `after` that of the encoder.
    """
    pairs = read_held_out(config.data, data, training.seed)
    if not len(pairs):
        return {}
    before = None
    if started is not None:
        model, own = config.model, started.bundle.featuriser
        weights = Weights(started.table, started.bias)
        encode = reference(weights, own, pooling=model.pooling, activation=model.activation)
        before = retrieval(pairs, unit_vectors(encode, own))
    found = retrieval(pairs, unit_vectors(after, featuriser))
    return {"held_out": {"pairs": len(pairs), "before": before, "after": found}}
