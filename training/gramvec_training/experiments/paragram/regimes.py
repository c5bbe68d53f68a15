"""Supervised similarity in three regimes (PARAGRAM-PHRASE, Table 4)."""

from __future__ import annotations

from gramvec_training.experiments.common import Finding, Inputs, Outcome, Row
from gramvec_training.experiments.supervised import LSTM, OPEN_LSTM, Regime, listed, mean_score, similarity

_REGIMES: tuple[Regime, ...] = ("trained", "universal", "features")
_COMPOSITIONS = ("PP", "PP-proj", OPEN_LSTM, LSTM)
# SIF's Table 2 has them; PP-proj from universal parameters is PARAGRAM-PHRASE's.
_PAPER = {"PP": 84.9, OPEN_LSTM: 85.45, LSTM: 83.41}
_AHEAD = 1.0


def supervised_regimes(inputs: Inputs) -> Outcome:
    """Pearson's r of a similarity head over an encoder that learns with it, from anew or from what it is, or is fixed.

    trained: begun at the word vectors; universal: begun at the finished model, to which all is drawn; features: fixed.
    """
    task = similarity(inputs)
    found = {
        system: {regime: mean_score(inputs, task, system, regime) for regime in _REGIMES} for system in _COMPOSITIONS
    }
    rows: list[Row] = [
        {"system": system, **{name: round(score, 1) for name, score in scores.items()},
         "trained, paper": _PAPER.get(system), "universal, paper": 86.68 if system == "PP-proj" else None}
        for system, scores in found.items()
    ]  # fmt: skip
    above = {system: scores["universal"] - scores["trained"] for system, scores in found.items()}
    below = {system: scores["trained"] - scores["features"] for system, scores in found.items()}
    best = max(found, key=lambda system: found[system]["universal"])
    return Outcome(
        tuple(rows),
        (
            Finding(f"universal parameters are at least {_AHEAD:g} point above training from word vectors, for all",
                    min(above.values()) >= _AHEAD, listed(above, signed=True)),
            Finding(f"fixed features are at least {_AHEAD:g} point below training, for all",
                    min(below.values()) >= _AHEAD, listed(below, signed=True)),
            Finding("from universal parameters PP-proj is the best", best == "PP-proj",
                    listed({system: scores["universal"] for system, scores in found.items()})),
        ),
    )  # fmt: skip
