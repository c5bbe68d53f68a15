"""Supervised tasks with the order of words shuffled (SIF, Table 3)."""

from __future__ import annotations

import numpy as np

from gramvec_training.experiments.common import Finding, Inputs, Outcome, Row
from gramvec_training.experiments.supervised import (
    LSTM,
    OPEN_LSTM,
    PHRASES,
    entailment,
    mean_score,
    scored_head,
    sentiment,
    similarity,
)

_RECURRENT = ("RNN", OPEN_LSTM, LSTM)
# Similarity, entailment and sentiment, usual and shuffled.
_PAPER = {"RNN": (73.13, 76.4, 86.5), OPEN_LSTM: (85.45, 83.2, 86.6), LSTM: (83.41, 82.0, 89.2)}
_PAPER_SHUFFLED = {"RNN": (54.50, 61.7, 84.2), OPEN_LSTM: (77.24, 78.2, 82.9), LSTM: (79.39, 81.0, 84.1)}
_AHEAD = 1.0


def shuffled_table(inputs: Inputs) -> Outcome:
    """Recurrent models that learn and are scored with the words of each text in another order."""
    tasks = (similarity(inputs), entailment(inputs), sentiment(inputs, PHRASES))
    rows: list[Row] = []
    falls: dict[str, list[float]] = {}
    for system in _RECURRENT:
        falls[system] = []
        for place, task in enumerate(tasks):
            usual = mean_score(inputs, task, system, "trained")
            other = float(
                np.mean([scored_head(inputs, task.shuffled(seed), system, "trained", seed) for seed in inputs.seeds])
            )
            falls[system].append(usual - other)
            rows.append({
                "system": system, "task": task.name, "usual": round(usual, 1), "shuffled": round(other, 1),
                "usual, paper": _PAPER[system][place], "shuffled, paper": _PAPER_SHUFFLED[system][place],
            })  # fmt: skip
    seen = "; ".join(f"{system} {', '.join(f'{-fall:+.1f}' for fall in some)}" for system, some in falls.items())
    least = min(min(some) for some in falls.values())
    first = {system: some[0] for system, some in falls.items()}
    return Outcome(
        tuple(rows),
        (
            Finding(f"every recurrent model falls by {_AHEAD:g} point on every task", least >= _AHEAD, seen),
            Finding("RNN falls most on similarity", max(first, key=lambda one: first[one]) == "RNN", seen),
        ),
    )
