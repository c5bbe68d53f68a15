"""Word vectors that are learned here from raw text, beside those that are given and those of a trained model."""

from __future__ import annotations

import hashlib
from dataclasses import asdict
from pathlib import Path

import orjson

from gramvec_training.experiments.common.base import Inputs
from gramvec_training.files import digest
from gramvec_training.fitting import SquaredNorm
from gramvec_training.runs import Counting, learn_word_vectors

GIVEN, SN, PHRASE = "given vectors", "SN", "PARAGRAM-PHRASE"
_FOLDER, _NAMES = "raw", "more_wikipedia_c.txt.gz"  # below the folder of training files
_COUNTING = Counting(max_words=8_000)
_DIMENSION, _EPOCHS = 50, 20


def raw_texts(inputs: Inputs) -> list[Path]:
    """The files of raw text below the folder of training files; none where there is no such folder."""
    return [] if inputs.data is None else sorted((inputs.data / _FOLDER).glob(_NAMES))


def kinds_of_vectors(inputs: Inputs) -> dict[str, Path]:
    """Kind -> where its vectors are: the given ones, those learned from raw text, and a trained model's.

    Those for which there is nothing here are left out.
    """
    kinds = {GIVEN: inputs.vectors}
    if raw_texts(inputs):
        kinds[SN] = _learned(inputs)
    if inputs.norms is not None:
        kinds[PHRASE] = inputs.norms
    return kinds


def _learned(inputs: Inputs) -> Path:
    """The file of vectors in the folder `work`, learned with the first seed if it is not there."""
    paths = raw_texts(inputs)
    settings = SquaredNorm(dimension=_DIMENSION, epochs=_EPOCHS, seed=inputs.seeds[0])
    values = [*(digest(path.resolve()) for path in paths), asdict(_COUNTING), asdict(settings)]
    path = (inputs.work / f"sn-{hashlib.sha256(orjson.dumps(values)).hexdigest()[:8]}.npy").resolve()
    if not path.is_file():
        path.parent.mkdir(parents=True, exist_ok=True)
        learn_word_vectors(paths, _COUNTING, settings).save(path)
    return path
