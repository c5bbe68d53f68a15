"""The systems of the papers: how each is configured, and the run of one with a seed, from the same pairs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from gramvec_training.experiments.common import Inputs, Settings, common_vectors, learned

# Pairs of phrases before sentences: the papers' are phrases of PPDB.
DATA = [
    {"path": "mined_phrases.pairs.tsv.gz", "max_groups": 80_000},
    {"path": "tatoeba_pivot.groups.tsv.gz", "max_groups": 25_000},
    {"path": "cf_ppdb_synonyms.pairs.tsv.gz", "max_groups": 16_000},
    {"path": "mqr.groups.tsv.gz", "max_groups": 16_000},
]
_TRAINING = {"batch": 100, "epochs": 3, "negatives": "mix", "rate": 2e-3, "l2": 1e-6, "l2_centre": "initial"}
_WORDS = {"orders": [], "words": True, "unknown_words": "row"}
_NGRAMS = {"orders": [2, 3, 4]}
_CHARACTERS = {"orders": [1]}
_WIDE = 100  # of character models
# The papers' rates are for 300,000 steps; these are for some thousands, and were chosen on Pavlick's pairs.
_AVERAGE = {"pooling": "mean", "activation": "linear", "bias": False}
OF_WORDS: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    "PP": ("paragram-phrase", {"kind": "bag", **_AVERAGE}, {"rate": 2e-2, "negatives": "max", "clip": 1.0}),
    "PP-proj": ("paragram-projection", {"kind": "projection"}, {"l2": 1e-8, "l2_composition": 1e-5}),
    "DAN": ("dan", {"kind": "dan"}, {"rate": 1e-3, "l2": 1e-5, "l2_composition": 1e-5}),
    "RNN": ("rnn", {"kind": "rnn"}, {"rate": 1e-3, "l2_composition": 1e-4}),
    "iRNN": (
        "irnn", {"kind": "irnn"},
        {"rate": 2e-2, "negatives": "max", "clip": 1.0, "l2_composition": 10.0, "l2_composition_centre": "initial"},
    ),
    "LSTM, no output gate": ("lstm", {"kind": "lstm", "output_gate": False}, {"l2_composition": 1e-3}),
    "LSTM": ("lstm", {"kind": "lstm"}, {"l2_composition": 1e-3}),
}  # fmt: skip
_ZERO = {"l2_centre": "zero"}
_OF_CHARACTERS: dict[str, tuple[str, dict[str, Any], dict[str, Any], dict[str, Any]]] = {
    "CHARAGRAM": ("charagram-phrase", _NGRAMS, {"kind": "bag"}, {**_ZERO, "l2": 0.0, "negatives": "max"}),
    "CHARAGRAM, 2 layers": (
        "charagram-2-layer", _NGRAMS, {"kind": "two-layer"}, {**_ZERO, "l2": 0.0, "rate": 1e-3},
    ),
    "charCNN": (
        "charcnn", _CHARACTERS, {"kind": "char-cnn", "filters": "b"}, {**_ZERO, "cosine_epsilon": 1e-4},
    ),
    "charLSTM": (
        "charlstm", _CHARACTERS, {"kind": "lstm", "output_gate": False}, {**_ZERO, "cosine_epsilon": 1e-6},
    ),
}  # fmt: skip
SYSTEMS = (*OF_WORDS, *_OF_CHARACTERS)


def settings_of(system: str, inputs: Inputs) -> Settings:
    """The config of a system, without seed and development sets."""
    if system in _OF_CHARACTERS:
        kind, features, encoder, changes = _OF_CHARACTERS[system]
        model: dict[str, Any] = {"kind": kind, "dimension": _WIDE}
        rest: dict[str, Any] = {"features": features}
    else:
        kind, encoder, changes = OF_WORDS[system]
        path, dimension = common_vectors(inputs)
        model = {"kind": kind, "dimension": dimension, "initial": 0.1, "vectors": str(path)}
        rest = {"features": _WORDS, "vocabulary": {"words_of_vectors": True}}
    return {"model": model, **rest, "encoder": encoder, "training": {**_TRAINING, **changes}, "data": DATA}


def learned_system(inputs: Inputs, system: str, seed: int) -> tuple[Path, dict[str, Any]]:
    """The run of a system with a seed, and its record."""
    name = system.lower().replace(",", "").replace(" ", "-")
    return learned(inputs, name, settings_of(system, inputs), seed)
