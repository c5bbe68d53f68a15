"""Of each set the scores of all systems, beside the paper's (CHARAGRAM, Table 1 of its supplement)."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from gramvec_training.evaluation import score_sets
from gramvec_training.experiments.common import Finding, Inputs, Outcome, Row, Words
from gramvec_training.experiments.systems.learned import SYSTEMS, learned_system
from gramvec_training.experiments.systems.systems import START
from gramvec_training.readers import read_frequencies

SIF = "SIF"
_FOUR = ("PP", "CHARAGRAM", "charCNN", "charLSTM")
_SHOWN = (START, SIF, *_FOUR)
_PAPER_TASK = "sts12"
# Of the paper's sets those that are here: the official median and 75 %, and its four systems.
_COLUMNS = ("official 50 %", "official 75 %", "charCNN, paper", "charLSTM, paper", "PP, paper", "CHARAGRAM, paper")
_PAPER = {
    "MSRpar": (51.5, 57.6, 50.6, 23.6, 42.9, 59.7),
    "MSRvid": (75.5, 80.3, 72.2, 47.2, 76.1, 79.6),
    "SMT-eur": (44.4, 48.1, 50.9, 38.5, 45.5, 57.2),
    "OnWN": (60.8, 65.9, 61.8, 53.0, 70.7, 68.7),
    "SMT-news": (40.1, 45.4, 46.8, 38.3, 57.2, 65.2),
}
_OF = 22

Scores = dict[str, float]


def set_by_set(inputs: Inputs) -> Outcome:
    """Of each set the Pearson of some systems, mean over seeds, which of all is best, and the paper's values."""
    found = scores_of_sets(inputs)
    rows: list[Row] = []
    for name in found[START]:
        task, _, own = name.partition("/")
        row: dict[str, str | float | None] = {"set": name} | {one: round(found[one][name], 1) for one in _SHOWN}
        paper = _PAPER.get(own) if task == _PAPER_TASK else None
        row["best of all"] = max(found, key=lambda one: found[one][name])
        rows.append(row | dict(zip(_COLUMNS, paper or [None] * len(_COLUMNS), strict=True)))
    official = [row for row in rows if row["official 75 %"] is not None]
    above = [row for row in official if float(row["CHARAGRAM"] or 0) >= float(row["official 75 %"] or 0)]
    best = [name for name in found[START] if max(_FOUR, key=lambda one: found[one][name]) == "CHARAGRAM"]
    return Outcome(
        tuple(rows),
        (
            Finding("CHARAGRAM is at or above the official 75 % on most sets of STS 2012",
                    2 * len(above) > len(official), f"{len(above)} of {len(official)}; the paper's on 4 of 5"),
            Finding("CHARAGRAM is the best of the paper's four systems on more than half of the sets",
                    2 * len(best) > len(rows), f"on {len(best)} of {len(rows)}; the paper's on 15 of {_OF}"),
        ),
    )  # fmt: skip


def official_75(task: str, name: str) -> float | None:
    """What a quarter of the official systems reached or passed on a set, where the paper has it."""
    return _PAPER[name][1] if task == _PAPER_TASK and name in _PAPER else None


def scores_of_sets(inputs: Inputs) -> dict[str, Scores]:
    """System -> task/set -> Pearson times 100, mean over seeds; NaN where it is undefined."""
    words = Words(inputs.vectors, inputs.sets)
    weights = words.sif(read_frequencies(inputs.frequencies[0]))
    found = {
        START: _flat(score_sets(words.sets, words.model().similarity)["tasks"]),
        SIF: _flat(score_sets(words.sets, words.model(weights, 1).similarity)["tasks"]),
    }
    names = list(found[START])
    for system in SYSTEMS:
        of_seeds = [_flat(learned_system(inputs, system, seed)[1]["scores"]["tasks"]) for seed in inputs.seeds]
        found[system] = {name: float(np.mean([one[name] for one in of_seeds])) for name in names}
    return found


def _flat(tasks: Mapping[str, Mapping[str, Mapping[str, Mapping[str, float | None]]]]) -> Scores:
    values = {f"{task}/{name}": one["pearson"] for task, found in tasks.items() for name, one in found["sets"].items()}
    return {name: float("nan") if value is None else value for name, value in values.items()}
