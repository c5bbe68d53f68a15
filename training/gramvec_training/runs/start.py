"""Training that goes on from a bundle: its weights in float32 again, and rows for what the new texts add."""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gramvec.bundle.bundle import Bundle, Stored, open_bundle
from gramvec.errors import InputError
from gramvec.text.vocabulary import Vocabulary
from gramvec_training.configuration import BagSettings, Config, Pooling, Start
from gramvec_training.encoders import Bag, bag_of, encoder_function
from gramvec_training.export import read_weights, stored_of
from gramvec_training.runs.folder import spec_of
from gramvec_training.types import Encode, Floats

_log = logging.getLogger(__name__)
# What a record says of how a distilled start was made.
_OF_A_TEACHER = ("teacher", "texts", "steps", "seconds")


@dataclass(frozen=True)
class Started:
    """What a bundle holds: `table` float32[rows, d] and `bias` float32[d] or None, as the graph has them."""

    bundle: Bundle
    table: Floats
    bias: Floats | None

    @property
    def settings(self) -> BagSettings:
        """The encoder's."""
        graph = self.bundle.manifest.graph
        pooling: Pooling = "mean" if graph.pooling == "mean" else "sum"
        return BagSettings(pooling=pooling, activation=graph.activation, bias=self.bias is not None)

    def encode(self) -> Encode:
        """Texts to vectors by the bundle's own features and weights."""
        return encoder_function(self.bag(self.table), self.bundle.featurizer)

    def bag(self, table: Floats) -> Bag:
        """An encoder like the bundle's with another table."""
        own = self.settings
        return bag_of(table, self.bias, pooling=own.pooling, activation=own.activation)


def open_start(start: Start) -> tuple[Bundle, Stored]:
    """The bundle, and what it says of its weights.

    Raises BundleError where it is missing, damaged or no bag of rows, and InputError where it is not the one with
    `start.digest`.
    """
    bundle = open_bundle(start.bundle)
    if start.digest is not None and bundle.digest != start.digest:
        raise InputError(
            f"The bundle {start.bundle} has changed since the run began; put the old one back, or start the run anew "
            "with --overwrite."
        )
    return bundle, stored_of(bundle)


def read_start(start: Start) -> Started:
    """Open the bundle and read its weights, in a second for a table of 300 MB. Raises what `open_start` does."""
    bundle, _ = open_start(start)
    return Started(bundle, *read_weights(bundle))


def begin_from(config: Config) -> Started | None:
    """The bundle of the config's [start], read and found to fit the config; None without one.

    Raises BundleError where it is missing, damaged or no bag of rows, and InputError where it is not the one with
    `start.digest`, or the config asks for another model than the bundle's.
    """
    if config.start is None:
        return None
    started = read_start(config.start)
    _check_fits(started, config)
    return started


def continued_encoder(started: Started, seed: int, vocabulary: Vocabulary) -> Bag:
    """The encoder with the weights of the bundle, and first values, by the seed, for the rows that it lacks."""
    return started.bag(started_table(started, vocabulary, seed))


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


def _check_fits(started: Started, config: Config) -> None:
    manifest, spec, settings = started.bundle.manifest, spec_of(config), config.composition
    if not isinstance(settings, BagSettings):
        raise InputError(f"[start] goes on from a bag of rows, and the config's encoder is {settings.kind}.")
    own = started.settings
    wanted: dict[str, tuple[object, object]] = {
        "dimension": (config.model.dimension, manifest.dimension),
        **{name: (getattr(settings, name), getattr(own, name)) for name in ("pooling", "activation", "bias")},
        # Of another Unicode version only the characters differ that were assigned in between.
        "features": (spec, replace(started.bundle.spec, unicode=spec.unicode)),
    }
    for name, (asked, given) in wanted.items():
        if asked != given:
            raise InputError(f"The config's {name} is not that of the bundle {manifest.name}, which has {given}.")


def started_table(started: Started, vocabulary: Vocabulary, seed: int) -> Floats:
    """The bundle's rows where `vocabulary` has them, float32[rows, d].

    A new word begins as the unknown word's row where the bundle has one, so that texts keep their vectors; any other
    new row is uniform within sqrt(6 / (rows + d)), drawn by the seed.
    """
    known = started.bundle.vocabulary
    if vocabulary is known:
        _log.info("%s gives all %d rows", started.bundle.manifest.name, len(known))
        return started.table.copy()
    places = {(entry.kind, entry.text): row for row, entry in enumerate(known.entries())}
    old_rows = np.array([places.get((entry.kind, entry.text), -1) for entry in vocabulary.entries()])
    is_new = old_rows < 0
    if known.unknown_row >= 0:
        old_rows[[new and entry.kind == "word" for new, entry in zip(is_new, vocabulary.entries(), strict=True)]] = (
            known.unknown_row
        )
    rows, dimension = len(vocabulary), started.table.shape[1]
    half = (6 / (rows + dimension)) ** 0.5
    table = np.random.default_rng(seed).uniform(-half, half, (rows, dimension)).astype(np.float32)
    table[old_rows >= 0] = started.table[old_rows[old_rows >= 0]]
    _log.info("%s gives %d rows; %d are new", started.bundle.manifest.name, rows - is_new.sum(), is_new.sum())
    return table
