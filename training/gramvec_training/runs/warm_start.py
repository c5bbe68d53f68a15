"""Warm starts from a bundle: its weights in float32, and new rows for what the texts add; initial weights."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch

from gramvec.bundle.bundle import Bundle, open_bundle
from gramvec.bundle.manifest import StoredWeights
from gramvec.errors import InputError
from gramvec.features.spec import FeatureSpec
from gramvec.progress import NO_PROGRESS, Progress
from gramvec.text.vocabulary import Vocabulary
from gramvec_training.config import Config, Start
from gramvec_training.data.vocabulary import build_limited_vocabulary, extend_vocabulary
from gramvec_training.encoders.bag import Bag, make_bag
from gramvec_training.encoders.base import Encoder
from gramvec_training.encoders.build import build_encoder, make_encode
from gramvec_training.export.bundle import find_stored, read_weights
from gramvec_training.readers.vectors import find_vectors, read_vectors
from gramvec_training.runs.run_dir import make_spec
from gramvec_training.sections import BagSettings, EncoderPooling, ModelSettings
from gramvec_training.shared import Encode, Floats

_log = logging.getLogger(__name__)
# Entries of a record on how a distilled start was made.
_OF_A_TEACHER = ("teacher", "texts", "steps", "seconds")


@dataclass(frozen=True)
class StartTable:
    """Weights of a bundle: `table` float32[rows, d] and `bias` float32[d] or None."""

    bundle: Bundle
    table: Floats
    bias: Floats | None

    @property
    def settings(self) -> BagSettings:
        """Return the settings of the encoder."""
        graph = self.bundle.manifest.graph
        pooling: EncoderPooling = "mean" if graph.pooling == "mean" else "sum"
        return BagSettings(pooling=pooling, activation=graph.activation, bias=self.bias is not None)

    def encode(self) -> Encode:
        """Return a function from texts to vectors by the bundle's own features and weights."""
        return make_encode(self.bag(self.table), self.bundle.featurizer)

    def bag(self, table: Floats) -> Bag:
        """Return an encoder like the bundle's with another table."""
        own = self.settings
        return make_bag(table, self.bias, pooling=own.pooling, activation=own.activation)


def open_start(start: Start) -> tuple[Bundle, StoredWeights]:
    """Open the bundle; return it with the location of its weights.

    Raises:
        BundleError: It is missing, damaged or not a bag of rows.
        InputError: It is not the one with `start.digest`.
    """
    bundle = open_bundle(start.bundle)
    if start.digest is not None and bundle.digest != start.digest:
        raise InputError(
            f"{start.bundle}: the bundle has changed since the run began; put the old one back, or start the run again "
            "with --overwrite"
        )
    return bundle, find_stored(bundle)


def read_start(start: Start) -> StartTable:
    """Open the bundle and read its weights; a table of 300 MB takes a second."""
    bundle, _ = open_start(start)
    return StartTable(bundle, *read_weights(bundle))


def begin_from(config: Config) -> StartTable | None:
    """Return the bundle of the config's [start], checked against the config; None without a [start].

    Raises:
        BundleError: It is missing, damaged or not a bag of rows.
        InputError: It is not the one with `start.digest`, or the config asks for another model than the bundle's.
    """
    if config.start is None:
        return None
    started = read_start(config.start)
    _check_fits(started, config)
    return started


def continue_encoder(started: StartTable, seed: int, vocabulary: Vocabulary) -> Bag:
    """Return the encoder with the bundle's weights, and initial values by the seed for new rows."""
    return started.bag(extend_table(started, vocabulary, seed))


def make_origin_record(started: StartTable | None) -> dict[str, Any]:
    """Return the record of the bundle that a run started from."""
    if started is None:
        return {}
    manifest = started.bundle.manifest
    return {
        "start": {
            "name": manifest.name,
            "digest": started.bundle.digest,
            "license": manifest.provenance.get("license"),
            "rows": manifest.rows,
            **{key: manifest.provenance[key] for key in _OF_A_TEACHER if "teacher" in manifest.provenance},
        }
    }


def _check_fits(started: StartTable, config: Config) -> None:
    manifest, spec, settings = started.bundle.manifest, make_spec(config), config.composition
    if not isinstance(settings, BagSettings):
        raise InputError(f"[start] needs a bag of rows, and the config's encoder is {settings.kind}")
    own = started.settings
    wanted: dict[str, tuple[object, object]] = {
        "dimension": (config.model.dimension, manifest.dimension),
        **{name: (getattr(settings, name), getattr(own, name)) for name in ("pooling", "activation", "bias")},
        # Of another Unicode version only the characters differ that were assigned in between.
        "features": (spec, replace(started.bundle.spec, unicode=spec.unicode)),
    }
    for name, (asked, own_value) in wanted.items():
        if asked != own_value:
            raise InputError(f"{name}: not the value of the bundle {manifest.name}, which has {own_value}")


def extend_table(started: StartTable, vocabulary: Vocabulary, seed: int) -> Floats:
    """Return float32[rows, d]: the bundle's rows where `vocabulary` has them, initial values elsewhere.

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


UNKNOWN_WORD = "UUUNKKK"  # what the files of PARAGRAM vectors call the row of unknown words


def begin_vocabulary(
    config: Config,
    started: StartTable | None,
    texts: Sequence[str],
    spec: FeatureSpec,
    data: Path,
    progress: Progress = NO_PROGRESS,
) -> Vocabulary:
    """Return the vocabulary of the texts, or the bundle's vocabulary extended by them."""
    if config.start is None or started is None:
        return build_limited_vocabulary(config, texts, spec, data, progress=progress)
    renew = started.bundle.spec.unicode != spec.unicode
    return extend_vocabulary(config.start, started.bundle.vocabulary, texts, spec, renew=renew, progress=progress)


def begin_encoder(config: Config, started: StartTable | None, seed: int, vocabulary: Vocabulary, data: Path) -> Encoder:
    """Return the encoder with its initial values, or with those of the bundle of a warm start."""
    if started is not None:
        return continue_encoder(started, seed, vocabulary)
    generator = torch.Generator().manual_seed(seed)
    table = _make_first_table(config.model, vocabulary, data, generator)
    return build_encoder(config.composition, table, config.model.dimension, generator)


def _make_first_table(
    model: ModelSettings, vocabulary: Vocabulary, data: Path, generator: torch.Generator
) -> torch.Tensor:
    """Return float32[rows, d], uniform, with word vectors from a file where one is named."""
    rows, width = len(vocabulary), model.table_width
    half = _half_width(model.initial, rows, width)
    table = torch.empty(rows, width).uniform_(-half, half, generator=generator)
    if model.vectors is not None:
        path = find_vectors(model.vectors, data)
        words, vectors = read_vectors(path)
        if vectors.shape[1] != width:
            name = "model.width" if model.width else "model.dimension"
            raise InputError(f"{path}: {vectors.shape[1]} dimensions and {name} is {width}")
        rows_of_words = ((row, entry) for row, entry in enumerate(vocabulary.entries()) if entry.kind != "ngram")
        places = {entry.text or UNKNOWN_WORD: row for row, entry in rows_of_words}
        known = [index for index, word in enumerate(words) if word in places]
        table[[places[words[index]] for index in known]] = torch.from_numpy(vectors[known])
        _log.info("%s gives %d of %d words their first values", path.name, len(known), len(places))
    return table


def _half_width(initial: float | Literal["glorot", "rows"], rows: int, width: int) -> float:
    if initial == "glorot":
        return float((6 / (rows + width)) ** 0.5)
    return 0.5 / rows if initial == "rows" else initial
