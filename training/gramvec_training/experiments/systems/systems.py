"""All systems on the same pairs: word compositions from the same vectors, and character models from nothing.

SIF's Tables 1 and 5, PARAGRAM-PHRASE's Tables 2 and 3, CHARAGRAM's Table 3 and Table 1 of its supplement.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np

from gramvec_training.experiments.common import Finding, Inputs, Outcome, Row, Words, means, spread, tasks_of
from gramvec_training.experiments.systems.learned import OF_WORDS, SYSTEMS, learned_system

# STS 2012 and SICK's test part: SIF's Table 1; of the character models the means of the supplement's Table 1.
START = "average of the start"
_PAPER: dict[str, tuple[float, float]] = {
    START: (52.8, 66.4),
    "PP": (58.7, 71.6),
    "PP-proj": (60.0, 71.6),
    "DAN": (56.0, 70.7),
    "RNN": (48.1, 61.2),
    "iRNN": (58.4, 71.2),
    "LSTM, no output gate": (51.0, 63.9),
    "LSTM": (46.4, 59.0),
    "CHARAGRAM": (66.1, 70.0),
    "charCNN": (56.5, 62.9),
    "charLSTM": (40.1, 50.3),
}
_AVERAGES, _LSTMS = ("PP", "PP-proj", "DAN", "iRNN"), ("LSTM, no output gate", "LSTM")
_AHEAD, _TOGETHER = 2.0, 3.0


def all_systems(inputs: Inputs) -> Outcome:
    """Each system's Pearson, mean over seeds, on each task, and on pairs like those of training."""
    start = Words(inputs.vectors, inputs.sets).score()
    found: dict[str, list[dict[str, float]]] = {START: [start]}
    for system in SYSTEMS:
        found[system] = [tasks_of(learned_system(inputs, system, seed)[1]) for seed in inputs.seeds]
    mean = {system: means(scores) for system, scores in found.items()}
    tasks = list(start)
    inside = [task for task in mean["PP"] if task not in start]
    rows: list[Row] = []
    for system, scores in mean.items():
        paper = _PAPER.get(system, (None, None))
        row: dict[str, str | float | None] = {"system": system}
        row |= {task: _rounded(scores.get(task)) for task in (*tasks, *inside)}
        row["between seeds"] = _rounded(spread(found[system], (*tasks, *inside))) if system != START else None
        rows.append({**row, "paper, STS 2012": paper[0], "paper, SICK test": paper[1]})
    return Outcome(tuple(rows), _findings(mean, tasks, inside))


def _findings(
    mean: Mapping[str, Mapping[str, float]], tasks: Sequence[str], inside: Sequence[str]
) -> tuple[Finding, ...]:
    def over(system: str, which: Sequence[str] = tasks) -> float:
        return float(np.mean([mean[system][task] for task in which]))

    def listed(systems: Sequence[str], which: Sequence[str] = tasks) -> str:
        return ", ".join(f"{system} {over(system, which):.1f}" for system in systems)

    def gap(task: str) -> float:
        return max(mean[one][task] for one in _AVERAGES) - max(mean[one][task] for one in _LSTMS)

    ladder = ("CHARAGRAM", "PP", "charCNN", "charLSTM")
    gaps = {task: gap(task) for task in tasks}
    findings = [
        Finding(
            f"PARAGRAM-PHRASE is at least {_TOGETHER:g} points above the average that it starts from",
            over("PP") >= over(START) + _TOGETHER,
            listed(("PP", START)),
            sure=True,
        ),
        Finding(
            f"the best of PP, PP-proj, DAN and iRNN is at least {_AHEAD:g} points above the better LSTM on every task",
            min(gaps.values()) >= _AHEAD,
            ", ".join(f"{task} {value:+.1f}" for task, value in gaps.items()),
        ),
        Finding("plain PP is above both LSTMs", over("PP") > max(map(over, _LSTMS)), listed(("PP", *_LSTMS))),
        Finding("RNN is the worst of the models of words", min(OF_WORDS, key=over) == "RNN", listed(tuple(OF_WORDS))),
        Finding(
            "the LSTM without output gate is above the one with",
            over(_LSTMS[0]) > over(_LSTMS[1]),
            listed(_LSTMS),
        ),
        Finding(
            "CHARAGRAM > PP > charCNN > charLSTM",
            all(over(one) > over(other) for one, other in pairwise(ladder)),
            listed(ladder),
        ),
        Finding(
            "CHARAGRAM is the best of all", max(SYSTEMS, key=over) == "CHARAGRAM", listed(("CHARAGRAM", "PP-proj"))
        ),
        Finding(
            "a second layer makes CHARAGRAM worse",
            over("CHARAGRAM, 2 layers") < over("CHARAGRAM"),
            listed(("CHARAGRAM", "CHARAGRAM, 2 layers")),
        ),
    ]
    if inside:
        same = ("PP", "PP-proj", "DAN", *_LSTMS)
        scores = [over(system, inside) for system in same]
        apart = f"{max(scores) - min(scores):.1f} apart: {listed(same, inside)}"
        claim = f"on pairs like those of training averages and LSTMs are within {_TOGETHER:g} points"
        findings.append(Finding(claim, max(scores) - min(scores) <= _TOGETHER, apart))
    return tuple(findings)


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 1)
