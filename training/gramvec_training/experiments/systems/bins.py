"""The scores of systems on pairs in bins, such as those of so many words; the models are those of all systems."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from gramvec_training.evaluation import ScoredModel, correlations, find_sets
from gramvec_training.experiments.common import Inputs, Row
from gramvec_training.experiments.systems.learned import learned_system
from gramvec_training.readers import treebank_tokens
from gramvec_training.runs import load_run, run_model

COMPARED = ("PP", "CHARAGRAM")
_FEWEST = 30  # pairs of a bin: fewer say nothing
_NOT_STS = "sick"  # whose scores the papers leave out of these tables
LENGTHS: tuple[tuple[str, int, int, float, float], ...] = (
    ("4 or less", 0, 4, 67.9, 72.9),
    ("5", 5, 5, 71.1, 71.9),
    ("6", 6, 6, 67.0, 69.7),
    ("7", 7, 7, 71.5, 74.0),
    ("8", 8, 8, 74.2, 74.5),
    ("9", 9, 9, 71.7, 72.7),
    ("10", 10, 10, 70.7, 74.2),
    ("11 to 15", 11, 15, 71.8, 73.7),
    ("16 to 20", 16, 20, 73.0, 75.1),
    ("21 or more", 21, 10**6, 74.5, 75.4),
)
_Ints = npt.NDArray[np.int64]
_Numbered = Callable[[Sequence[str], Sequence[str], ScoredModel], _Ints]


def binned(
    inputs: Inputs,
    column: str,
    bins: Sequence[tuple[str, int, int, *tuple[float, ...]]],
    number: _Numbered,
    compared: Sequence[str] = COMPARED,
) -> tuple[tuple[Row, ...], Mapping[str, Mapping[str, float]]]:
    """Rows, and of each system the score, mean over seeds, of each bin with enough pairs."""
    sets = [one for one in find_sets(inputs.sets)[0] if one.task != _NOT_STS]
    left, right = ([text for one in sets for text in getattr(one, side)] for side in ("left", "right"))
    gold = np.concatenate([one.scores for one in sets])
    models = models_of(inputs, compared)
    numbers = number(left, right, models["PP"][0])
    predicted = {system: [model.similarity(left, right) for model in some] for system, some in models.items()}
    scores: dict[str, dict[str, float]] = {system: {} for system in compared}
    rows: list[Row] = []
    for name, least, most, *paper in bins:
        within = (numbers >= least) & (numbers <= most)
        row: dict[str, str | float | None] = {column: name, "pairs": int(within.sum())}
        enough = within.sum() >= _FEWEST
        for system in compared:
            if enough:
                found = [correlations(values[within], gold[within])[0] for values in predicted[system]]
                scores[system][name] = 100 * float(np.mean(found))
            row[system] = round(scores[system][name], 1) if enough else None
        row |= {f"{system}, paper": value for system, value in zip(compared, paper, strict=False)}
        rows.append(row)
    return tuple(rows), scores


def longest(left: Sequence[str], right: Sequence[str], words: ScoredModel) -> _Ints:
    """int64[n]: the words of the longer text of each pair."""
    del words
    return np.array([max(len(treebank_tokens(one).split()) for one in pair) for pair in zip(left, right, strict=True)])


def models_of(inputs: Inputs, systems: Sequence[str]) -> dict[str, list[ScoredModel]]:
    """Of each system the model of each seed."""
    return {
        system: [run_model(load_run(learned_system(inputs, system, seed)[0])) for seed in inputs.seeds]
        for system in systems
    }
