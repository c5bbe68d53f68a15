"""Configs made of command line options, for people who have a file and no config."""

from __future__ import annotations

import shlex
from pathlib import Path

from gramvec.errors import InputError
from gramvec_training.config import Config, parse_config

_SOURCE = "the options"
_EPOCHS = 10  # the papers' number


def pairs_config(pairs: Path, *, layout: str | None, bad_rows: str, epochs: int | None) -> Config:
    """charagram-phrase, with the paper's settings, on one file of paraphrases; named after the file."""
    return parse_config(
        {
            "model": {"name": _name_of(pairs), "kind": "charagram-phrase"},
            "training": {"epochs": epochs or _EPOCHS},
            "data": [{"path": pairs.resolve(), "layout": layout, "bad_rows": bad_rows}],
        },
        source=_SOURCE,
    )


def sif_config(
    vectors: Path,
    frequencies: Path,
    texts: tuple[Path, ...],
    *,
    name: str,
    a: float,
    components: int,
    weighted: bool,
    sample: int,
    max_words: int | None,
) -> Config:
    """SIF over a run's words or a file of vectors; unknown words are skipped."""
    return parse_config(
        {
            "model": {"name": name, "kind": "sif", "pooling": "mean", "activation": "linear", "bias": False},
            "features": {"orders": [], "words": True},
            "sif": {
                "vectors": vectors.resolve(),
                "frequencies": frequencies.resolve(),
                "a": a,
                "weighted": weighted,
                "components": components,
                "sample": sample,
                "max_words": max_words,
            },
            "texts": [{"path": path.resolve()} for path in texts],
        },
        source=_SOURCE,
    )


def texts_config(texts: tuple[Path, ...], teacher: str, *, dimension: int, epochs: int) -> Config:
    """A student of n-grams and words, on files of texts; named after the first file."""
    return parse_config(
        {
            "model": {
                "name": _name_of(texts[0]),
                "kind": "gramvec",
                "dimension": dimension,
                "activation": "linear",
                "bias": False,
            },
            "features": {"words": True},
            "vocabulary": {"min_count": 2},
            "distillation": {"teacher": teacher, "epochs": epochs},
            "texts": [{"path": path.resolve()} for path in texts],
        },
        source=_SOURCE,
    )


def with_teacher(config: Config, teacher: str) -> Config:
    """The config with another teacher. Raises InputError where it is not one of distillation."""
    if config.distillation is None:
        raise InputError("The config has no [distillation]; train it with gramvec-train fit.")
    return config.model_copy(update={"distillation": config.distillation.model_copy(update={"teacher": teacher})})


def _name_of(path: Path) -> str:
    stem = path.name.split(".", 1)[0].lower()
    return "".join(one if one.isascii() and one.isalnum() else "-" for one in stem).strip("-") or "mine"


def command_line(*words: str) -> str:
    """A gramvec-train command as it may be pasted."""
    return shlex.join(["gramvec-train", *words])


def shown(path: Path) -> str:
    """A path as a record may show it: where a file lies on this machine is nobody's business."""
    return path.name if path.is_absolute() else path.as_posix()
