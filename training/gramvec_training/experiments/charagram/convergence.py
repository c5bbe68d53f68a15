"""Character models on words: where they end, and how soon (CHARAGRAM, Table 1 and Figure 1)."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from types import MappingProxyType
from typing import Any

import numpy as np

from gramvec.errors import InputError
from gramvec_training.experiments.common import Finding, Inputs, Outcome, Row, learned, tasks_of
from gramvec_training.reporting import scores_over_steps

_BATCH = 50
_TRAINING = {"batch": _BATCH, "epochs": 4, "decay": "none"}
_SYSTEMS: dict[str, tuple[str, dict[str, Any], dict[str, Any], dict[str, Any]]] = {
    "CHARAGRAM": (
        "charagram-phrase", {"orders": [2, 3, 4]}, {"kind": "bag", "activation": "linear"}, {"negatives": "max"},
    ),
    "charCNN": (
        "charcnn", {"orders": [1]},
        {"kind": "char-cnn", "filters": "a", "filter_activation": "linear", "activation": "linear"},
        {"negatives": "mix", "cosine_epsilon": 1e-4, "l2": 1e-6, "l2_composition": 1e-6},
    ),
    "charLSTM": (
        "charlstm", {"orders": [1]}, {"kind": "lstm"},
        {"negatives": "mix", "cosine_epsilon": 1e-6, "l2": 1e-6, "l2_composition": 1e-6},
    ),
}  # fmt: skip
_WIDE = 100
_SCALES, _FILTERS = (0.25, 0.5, 1.0), 525  # of filter set A
WORDS = [{"path": "ppdb_xl_lexical.pairs.tsv.gz", "max_groups": 60_000}]
# Table 1, SL999 and WS353, each tuned on the same.
_PAPER = {"CHARAGRAM": (63.33, 58.35), "charCNN": (30.64, 33.19), "charLSTM": (54.54, 51.43)}
_EARLY, _LATE = 1, 3  # the quarters of an epoch that are compared: half an epoch, and a whole


def word_curves(inputs: Inputs) -> Outcome:
    """Figure 1: Spearman, mean over the sets of words and over seeds, each quarter of an epoch."""
    found = {name: np.mean([_curve(inputs, name, seed) for seed in inputs.seeds], axis=0) for name in _SYSTEMS}
    steps = _curve(inputs, "CHARAGRAM", inputs.seeds[0])
    rows: list[Row] = [
        {"pairs": int(found["CHARAGRAM"][index][0]) * _BATCH}
        | {name: round(float(points[index][1]), 1) for name, points in found.items()}
        for index in range(len(steps))
    ]
    others = {name: float(found[name][_LATE][1]) for name in ("charCNN", "charLSTM")}
    first = float(found["CHARAGRAM"][_EARLY][1])
    seen = f"CHARAGRAM {first:.1f}; " + ", ".join(f"{name} {score:.1f}" for name, score in others.items())
    claim = "CHARAGRAM after half an epoch is above the others after one"
    return Outcome(tuple(rows), (Finding(claim, first > max(others.values()), seen),))


def word_similarity(inputs: Inputs) -> Outcome:
    """Table 1: Spearman on each set of words after the last epoch, mean over seeds."""
    rows: list[Row] = []
    mean: dict[str, float] = {}
    for name in _SYSTEMS:
        records = [_learned(inputs, name, seed) for seed in inputs.seeds]
        row: dict[str, str | float | None] = {"system": name}
        sets = [one["scores"]["tasks"] for one in records]
        for task, scores in sets[0].items():
            for which in scores["sets"]:
                row[which] = round(float(np.mean([one[task]["sets"][which]["spearman"] or 0 for one in sets])), 1)
        mean[name] = float(np.mean([list(tasks_of(one, "spearman").values()) for one in records]))
        rows.append({**row, "SL999, paper": _PAPER[name][0], "WS353, paper": _PAPER[name][1]})
    seen = ", ".join(f"{name} {score:.1f}" for name, score in mean.items())
    return Outcome(
        tuple(rows),
        (
            Finding(
                "CHARAGRAM is above charLSTM and charCNN", max(mean, key=lambda one: mean[one]) == "CHARAGRAM", seen
            ),
            Finding("charLSTM is above charCNN", mean["charLSTM"] > mean["charCNN"], seen),
        ),
    )


def filters(inputs: Inputs) -> Outcome:
    """Section 4.1: charCNN with so many times the filters, Spearman over the sets of words, mean over seeds."""
    found = {}
    for scale in _SCALES:
        records = [_learned(inputs, "charCNN", seed, {} if scale == 1 else {"scale": scale}) for seed in inputs.seeds]
        found[scale] = float(np.mean([list(tasks_of(one, "spearman").values()) for one in records]))
    rows: tuple[Row, ...] = tuple(
        {"filters": round(_FILTERS * scale), "spearman": round(score, 1)} for scale, score in found.items()
    )
    rising = all(one < other for one, other in pairwise(found.values()))
    seen = ", ".join(f"{score:.1f}" for score in found.values())
    return Outcome(rows, (Finding("more filters are better", rising, seen),))


def _learned(
    inputs: Inputs, name: str, seed: int, changes_of_encoder: Mapping[str, float] = MappingProxyType({})
) -> dict[str, Any]:
    if not inputs.word_sets:
        raise InputError("This experiment scores single words: give --word-sets, a folder or file of such pairs.")
    kind, features, encoder, changes = _SYSTEMS[name]
    initial = "glorot" if kind == "charagram-phrase" else "rows"
    settings = {
        "model": {"kind": kind, "dimension": _WIDE, "initial": initial},
        "features": features,
        "encoder": {**encoder, **changes_of_encoder},
        "training": {**_TRAINING, **changes},
        "data": WORDS,
        "dev": {"sets": [str(path.resolve()) for path in inputs.word_sets], "every": "quarter"},
    }
    return learned(inputs, f"words-{name.lower()}", settings, seed)[1]


def _curve(inputs: Inputs, name: str, seed: int) -> list[tuple[int, float]]:
    """(step, mean over tasks) each quarter."""
    logged = scores_over_steps(_learned(inputs, name, seed), "spearman")
    whole = [curve for task, curve in logged.items() if "/" not in task]
    return [(points[0][0], float(np.mean([score for _, score in points]))) for points in zip(*whole, strict=True)]
