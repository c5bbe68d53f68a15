"""On how many sets each system is above each other one (CHARAGRAM, supplement; SIF, Table 5)."""

from __future__ import annotations

from collections.abc import Mapping

from gramvec_training.experiments.common import Finding, Inputs, Outcome, Row
from gramvec_training.experiments.systems.sets import Scores, scores_of_sets
from gramvec_training.experiments.systems.systems import START

# Who is above whom, and on how many of 22 sets: CHARAGRAM's supplement, and SIF's Table 5.
_CLAIMED = (
    ("CHARAGRAM", "PP", 15),
    ("CHARAGRAM", "charCNN", 22),
    ("CHARAGRAM", "charLSTM", 22),
    ("PP", "charCNN", 18),
    ("charCNN", "charLSTM", 22),
    ("LSTM, no output gate", "LSTM", 18),
)
_OF = 22


def set_wins(inputs: Inputs) -> Outcome:
    """Of each system on how many sets its Pearson, mean over seeds, is above each other one's; and a task's wins."""
    found = scores_of_sets(inputs)
    tasks = list(dict.fromkeys(name.partition("/")[0] for name in found[START]))
    rows: list[Row] = []
    for system, own in found.items():
        row: dict[str, str | float | None] = {"system": system}
        row |= {other: None if other == system else len(wins(own, scores)) for other, scores in found.items()}
        for task in tasks:
            sets = [name for name in own if name.startswith(f"{task}/")]
            most = len(sets) * (len(found) - 1)
            row[f"{task}, of {most}"] = sum(len(wins(own, scores, sets)) for scores in found.values())
        rows.append(row)
    return Outcome(tuple(rows), tuple(_finding(found, tasks, *one) for one in _CLAIMED))


def wins(mine: Mapping[str, float], other: Mapping[str, float], sets: list[str] | None = None) -> list[str]:
    """The sets on which a score is above the other's; equal ones, or undefined, are nobody's."""
    return [name for name in (mine if sets is None else sets) if mine[name] > other[name]]


def _finding(found: Mapping[str, Scores], tasks: list[str], one: str, other: str, paper: int) -> Finding:
    won, sets = wins(found[one], found[other]), len(found[one])
    share = ", ".join(f"{task} {sum(name.startswith(f'{task}/') for name in won)}" for task in tasks)
    seen = f"on {len(won)} of {sets}: {share}; the paper's on {paper} of {_OF}"
    return Finding(f"{one} is above {other} on more than half of the sets", 2 * len(won) > sets, seen)
