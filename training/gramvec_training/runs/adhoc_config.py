"""Configs made from command line options, for users with a file and no config."""

from __future__ import annotations

import shlex
from pathlib import Path

from gramvec.errors import InputError
from gramvec_training.config import Config, Start, parse_config
from gramvec_training.options import LabelOptions, PairOptions, SifOptions, TextOptions
from gramvec_training.readers.vectors import find_vectors
from gramvec_training.runs.warm_start import open_start

_SOURCE = "the options"
_HELD_OUT = 0.1
_HELD_OUT_LABELED = 0.2  # a tenth to choose the model by, a tenth for the report
_EPOCHS = 10  # the papers' number
_EPOCHS_FROM = 5  # ten find no more on 4,000 pairs of tweets
_RATE = 1e-3  # the papers' too
_RATE_FROM = 5e-4  # to stay near a model that is good already
_L2_FROM = 1e-6  # the weight of PARAGRAM-PHRASE, which continues from word vectors
# Of labels, on 77 made intents: centroids 74.4 -> 93.0 %, SICK 79.0 -> 78.2, and without the L2 93.7 and 77.8.
_EPOCHS_LABELED, _RATE_LABELED, _L2_LABELED = 8, 1e-3, 1e-3


def make_file_config(file: Path, options: PairOptions | LabelOptions, *, name_from: Path) -> Config:
    """Return a config for one file of paraphrases or labeled texts, named after `name_from`.

    charagram-phrase with the paper's settings, or, with options.start, the bundle of that name or folder trained
    further, its table drawn back to where it was.

    Raises:
        BundleError: There is no such bundle.
    """
    labeled, start, held_out = options.has_labels, options.start, options.held_out
    share = held_out if held_out is not None else _HELD_OUT_LABELED if labeled else _HELD_OUT
    data = [
        {
            "path": file.resolve(),
            "layout": options.layout if isinstance(options, PairOptions) else None,
            "format": options.table_format,
            "labeled": labeled,
            "bad_rows": options.bad_rows,
            "held_out": share,
        }
    ]
    usual = (_EPOCHS, _RATE)
    if start is not None:
        usual = (_EPOCHS_LABELED, _RATE_LABELED) if labeled else (_EPOCHS_FROM, _RATE_FROM)
    training = {"epochs": options.epochs or usual[0], "rate": options.rate or usual[1]}
    name = make_model_name(name_from)
    if start is None:
        values = {"model": {"name": name, "kind": "charagram-phrase"}, "training": training, "data": data}
        return parse_config(values, source=_SOURCE)

    bundle, stored = open_start(Start(bundle=Path(start)))
    manifest = bundle.manifest
    return parse_config(
        {
            "model": {
                "name": name,
                "kind": manifest.kind,
                "dimension": manifest.dimension,
                "pooling": manifest.graph.pooling,
                "activation": manifest.graph.activation,
                "bias": stored.bias is not None,
            },
            "features": {
                "orders": bundle.spec.orders,
                "words": bundle.spec.words,
                "unknown_words": bundle.spec.unknown_words,
                "lowercase": bundle.spec.lowercase,
                "normalization": bundle.spec.normalization,
                "word_rule": bundle.spec.word_rule,
            },
            "training": {**training, "l2": _L2_LABELED if labeled else _L2_FROM, "l2_center": "initial"},
            "start": {"bundle": bundle.path.resolve(), "digest": bundle.digest},
            "data": data,
            "export": {"precision": manifest.graph.precision},
        },
        source=_SOURCE,
    )


def make_sif_config(options: SifOptions, *, name: str) -> Config:
    """Return a config of SIF over a run's words or a file of vectors."""
    return parse_config(
        {
            "model": {"name": name, "kind": "sif", "pooling": "mean", "activation": "linear", "bias": False},
            "features": {
                "orders": [],
                "words": True,
                "unknown_words": options.unknown_words,
                "word_rule": options.word_rule,
            },
            "sif": {
                "vectors": find_vectors(options.vectors).resolve(),
                "frequencies": options.freq.resolve(),
                "a": options.a,
                "weights": options.weights,
                "documents": [{"path": path.resolve(), "layout": _find_layout(path)} for path in options.documents],
                "components": options.components,
                "sample": options.sample,
                "max_words": options.max_words,
            },
            "texts": [{"path": path.resolve()} for path in options.texts],
        },
        source=_SOURCE,
    )


def _find_layout(path: Path) -> str:
    return "similarity" if path.is_dir() or path.suffix == ".tsv" else "lines"


def make_texts_config(options: TextOptions) -> Config:
    """Return a config of a student of n-grams and words on files of texts, named after the first file."""
    return parse_config(
        {
            "model": {
                "name": make_model_name(options.texts[0]),
                "kind": "gramvec",
                "dimension": options.dimension,
                "activation": "linear",
                "bias": False,
            },
            "features": {"words": True},
            "vocabulary": {"min_count": 2},
            "distillation": {"teacher": options.teacher, "epochs": options.epochs},
            "texts": [{"path": path.resolve()} for path in options.texts],
        },
        source=_SOURCE,
    )


def replace_teacher(config: Config, teacher: str) -> Config:
    """Return the config with another teacher.

    Raises:
        InputError: The config is not one of distillation.
    """
    if config.distillation is None:
        raise InputError("the config has no [distillation]; train it with gramvec-train fit")
    return config.model_copy(update={"distillation": config.distillation.model_copy(update={"teacher": teacher})})


def make_model_name(path: Path) -> str:
    """Return a model name made of a file's or folder's letters and digits up to the first dot."""
    stem = path.name.split(".", 1)[0].lower()
    return (
        "".join(character if character.isascii() and character.isalnum() else "-" for character in stem).strip("-")
        or "mine"
    )


def format_command(*words: str) -> str:
    """Return a gramvec-train command that can be pasted."""
    return shlex.join(["gramvec-train", *words])


def show_path(path: Path) -> str:
    """Return a path as a published record shows it, without private folders."""
    return path.name if path.is_absolute() else path.as_posix()
