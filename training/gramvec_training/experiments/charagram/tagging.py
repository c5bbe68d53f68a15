"""Part-of-speech tagging over four word encoders: where they end, and how soon (CHARAGRAM, Table 4 and Figure 1)."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from gramvec_training.experiments.charagram.taggers import (
    CHAR_CNN,
    CHAR_LSTM,
    CHARAGRAM,
    ENCODINGS,
    TWO_LAYERS,
    Accuracies,
    learned_tagger,
)
from gramvec_training.experiments.charagram.treebank import tagged
from gramvec_training.experiments.common import Finding, Inputs, Outcome, Row

_EPOCHS = 10
_SHOWN = 10  # epochs of the figure, as in the paper's
_PAPER = {CHAR_CNN: 97.02, CHAR_LSTM: 96.90, CHARAGRAM: 96.99, TWO_LAYERS: 97.10}
_WITHIN = 1.0  # points: of all encoders
_SOON = 2  # epochs after which CHARAGRAM is above what the others are after as many and one more


def tagging_accuracies(inputs: Inputs) -> Outcome:
    """Table 4: accuracy of the epoch that was best on the held-out part, mean over seeds."""
    trees = tagged(inputs)
    found = {name: _learned(inputs, name) for name in ENCODINGS}
    rows: list[Row] = []
    for name, some in found.items():
        others = [one.other for one in some if one.other is not None]
        scores = [one.scored for one in some]
        rows.append({
            "encoder": name, "parameters": some[0].parameters,
            "held out": round(_mean([max(one.curve) for one in some]), 2), "test": round(_mean(scores), 2),
            "between seeds": round(max(scores) - min(scores), 2) if len(scores) > 1 else None,
            "WSJ": round(_mean(others), 2) if others else None, "paper": _PAPER[name],
        })  # fmt: skip
    rows.append({
        "encoder": "a word's commonest tag", "parameters": None, "held out": round(trees.commonest(trees.held_out), 2),
        "test": round(trees.commonest(trees.scored), 2), "between seeds": None,
        "WSJ": round(trees.commonest(trees.other), 2) if trees.other else None, "paper": None,
    })  # fmt: skip
    mean = {name: _mean([one.scored for one in some]) for name, some in found.items()}
    apart = max(mean.values()) - min(mean.values())
    return Outcome(
        tuple(rows),
        (
            Finding(f"all encoders are within {_WITHIN:g} point", apart <= _WITHIN, f"{apart:.2f}: {_listed(mean)}"),
            Finding("a second layer makes CHARAGRAM better", mean[TWO_LAYERS] > mean[CHARAGRAM],
                    _listed({name: mean[name] for name in (TWO_LAYERS, CHARAGRAM)})),
            Finding("charCNN > CHARAGRAM > charLSTM", mean[CHAR_CNN] > mean[CHARAGRAM] > mean[CHAR_LSTM],
                    _listed(mean)),
            Finding("every encoder is above the commonest tag of each word",
                    min(mean.values()) > trees.commonest(trees.scored), f"{trees.commonest(trees.scored):.2f}"),
        ),
    )  # fmt: skip


def tagging_curves(inputs: Inputs) -> Outcome:
    """Figure 1, tagging: accuracy on the held-out part after each of the first epochs, mean over seeds."""
    found: dict[str, list[float]] = {
        name: np.mean([one.curve for one in _learned(inputs, name)], axis=0).tolist() for name in ENCODINGS
    }
    rows: tuple[Row, ...] = tuple(
        {"epoch": epoch + 1} | {name: round(curve[epoch], 2) for name, curve in found.items()}
        for epoch in range(min(_SHOWN, _EPOCHS))
    )
    first, others = found[CHARAGRAM][_SOON - 1], {name: found[name][_SOON] for name in (CHAR_CNN, CHAR_LSTM)}
    after = {name: curve[_SHOWN - 1] for name, curve in found.items()}
    gaps = {name: after[CHARAGRAM] - after[name] for name in others}
    early = {name: found[CHARAGRAM][0] - found[name][0] for name in others}
    return Outcome(
        rows,
        (
            Finding(f"CHARAGRAM after {_SOON} epochs is above charCNN and charLSTM after {_SOON + 1}",
                    first > max(others.values()), f"CHARAGRAM {first:.2f}; {_listed(others)}"),
            Finding(f"charCNN and charLSTM are nearer to it after {_SHOWN} epochs than after one",
                    all(abs(gaps[name]) < early[name] for name in gaps),
                    f"after one {_listed(early)}; after {_SHOWN} {_listed(gaps)}"),
        ),
    )  # fmt: skip


def _learned(inputs: Inputs, name: str) -> list[Accuracies]:
    return [learned_tagger(inputs, name, ENCODINGS[name], _EPOCHS, seed) for seed in inputs.seeds]


def _mean(values: list[float]) -> float:
    return float(np.mean(values))


def _listed(values: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {value:.2f}" for name, value in values.items())
