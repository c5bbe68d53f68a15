"""The vocabulary and the first values of a run: its own, or those of the bundle that it goes on from."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import torch

from gramvec.errors import InputError
from gramvec.text.spec import FeatureSpec
from gramvec.text.vocabulary import Vocabulary
from gramvec_training.configuration import Config, Model
from gramvec_training.data import extended_vocabulary, vocabulary_for
from gramvec_training.encoders import Encoder, build_encoder
from gramvec_training.readers import read_vectors, vectors_at
from gramvec_training.runs.start import Started, continued_encoder

UNKNOWN_WORD = "UUUNKKK"  # what the files of PARAGRAM vectors call the row of unknown words

_log = logging.getLogger(__name__)


def begun_vocabulary(
    config: Config, started: Started | None, texts: Sequence[str], spec: FeatureSpec, data: Path
) -> Vocabulary:
    """The vocabulary of the texts, or that of the bundle which training goes on from with what the texts add."""
    if config.start is None or started is None:
        return vocabulary_for(config, texts, spec, data)
    renew = started.bundle.spec.unicode != spec.unicode
    return extended_vocabulary(config.start, started.bundle.vocabulary, texts, spec, renew=renew)


def begun_encoder(config: Config, started: Started | None, seed: int, vocabulary: Vocabulary, data: Path) -> Encoder:
    """The encoder with its first values, or with those of the bundle which training goes on from."""
    if started is not None:
        return continued_encoder(started, seed, vocabulary)
    generator = torch.Generator().manual_seed(seed)
    table = _first_table(config.model, vocabulary, data, generator)
    return build_encoder(config.composition, table, config.model.dimension, generator)


def _first_table(model: Model, vocabulary: Vocabulary, data: Path, generator: torch.Generator) -> torch.Tensor:
    """float32[rows, d], uniform, and word vectors from a file where one is named."""
    rows, width = len(vocabulary), model.table_width
    half = _half_width(model.initial, rows, width)
    table = torch.empty(rows, width).uniform_(-half, half, generator=generator)
    if model.vectors is not None:
        path = vectors_at(model.vectors, data)
        words, vectors = read_vectors(path)
        if vectors.shape[1] != width:
            name = "model.width" if model.width else "model.dimension"
            raise InputError(f"{path} has {vectors.shape[1]} dimensions and {name} is {width}.")
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
