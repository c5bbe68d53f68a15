"""Similarity sets: Pearson and Spearman of predicted against human scores.

A set is a file of `score<TAB>text<TAB>text` rows, a task a folder of sets.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from gramvec.errors import InputError
from gramvec_training.readers import numbered_lines
from gramvec_training.types import Similarity

_LAYOUT = "each line is a score, a tab, a text, a tab and a text"


@dataclass(frozen=True)
class SimilaritySet:
    """Human scores of pairs of texts; `task` is the folder's name and `name` the file's."""

    task: str
    name: str
    scores: npt.NDArray[np.float64]
    left: list[str]
    right: list[str]


def find_sets(folders: Sequence[Path]) -> tuple[list[SimilaritySet], list[str]]:
    """The sets below each folder (task folders, or one task folder itself) or file, by name, and notes.

    Files that were found by walking and whose first line is not of the layout are left out, with a note for each
    folder of them. Raises InputError where a path is missing, a later line is bad, or no set is found.
    """
    sets: list[SimilaritySet] = []
    notes: list[str] = []
    for folder in folders:
        if not folder.exists():
            raise InputError(f"There is no folder {folder}; name a folder of score<TAB>text<TAB>text files.")
        if folder.is_file():
            sets.append(read_set(folder))
            continue
        left_out: dict[Path, list[str]] = {}
        for path in sorted({*folder.glob("*.tsv"), *folder.glob("*/*.tsv")}):
            if _has_layout(path):
                sets.append(read_set(path))
            else:
                left_out.setdefault(path.parent, []).append(path.name)
        notes += [_note(parent, names) for parent, names in left_out.items()]
    if not sets:
        names = " or ".join(str(folder) for folder in folders)
        raise InputError(f"No similarity set is in {names}; {_LAYOUT}, in files that end in .tsv.")
    return sets, notes


def read_set(path: Path) -> SimilaritySet:
    """One set. Raises InputError naming the first line that is not `score<TAB>text<TAB>text`."""
    scores: list[float] = []
    left: list[str] = []
    right: list[str] = []
    for number, raw in numbered_lines(path):
        row = _row(raw)
        if row is None:
            raise InputError(f"{path} line {number} is not readable: {_LAYOUT}.")
        scores.append(row[0])
        left.append(row[1])
        right.append(row[2])
    if len(set(scores)) < 2:
        raise InputError(f"{path} has fewer than two different scores, so nothing can correlate with it.")
    return SimilaritySet(path.parent.resolve().name, path.stem, np.array(scores), left, right)


def correlations(predicted: npt.NDArray[np.floating[Any]], scores: npt.NDArray[np.float64]) -> tuple[float, float]:
    """Pearson's r and Spearman's rho, in [-1, 1]; NaN for both where all of `predicted` are equal or one is NaN."""
    values = np.asarray(predicted, dtype=np.float64)
    if not np.isfinite(values).all() or np.ptp(values) == 0:
        return math.nan, math.nan
    from scipy import stats  # half a second, of which a run without similarity sets has no use

    return float(stats.pearsonr(values, scores).statistic), float(stats.spearmanr(values, scores).statistic)


def score_sets(sets: Sequence[SimilaritySet], similarity: Similarity) -> dict[str, Any]:
    """Scores of one model, Pearson and Spearman times 100, as nested values for JSON.

    `tasks`: task -> `sets` (set -> pairs, pearson, spearman), `mean` over the sets (the papers' way; an undefined
    correlation counts as 0) and `pooled` over all pairs of the task (MTEB's way). `notes`: sentences on what is
    undefined, whose value is None.
    """
    tasks: dict[str, Any] = {}
    notes: list[str] = []
    for task in dict.fromkeys(one.task for one in sets):
        members = [one for one in sets if one.task == task]
        predicted = [similarity(one.left, one.right) for one in members]
        results: dict[str, Any] = {}
        for one, values in zip(members, predicted, strict=True):
            result = _result(values, one.scores)
            results[one.name] = result
            if result["pearson"] is None:
                notes.append(
                    f"{task}/{one.name}: all predicted similarities are equal or one is not a number, so its "
                    "correlation is undefined and counts as 0 in the mean."
                )
        tasks[task] = {
            "sets": results,
            "mean": {
                measure: float(np.mean([result[measure] or 0.0 for result in results.values()]))
                for measure in ("pearson", "spearman")
            },
            "pooled": _result(np.concatenate(predicted), np.concatenate([one.scores for one in members])),
        }
    return {"tasks": tasks, "notes": notes}


def logged(scores: dict[str, Any]) -> dict[str, Any]:
    """Of what `score_sets` gave, what a log keeps: task -> `mean` and `sets`, Pearson and Spearman to three digits."""

    def rounded(result: dict[str, Any]) -> dict[str, float | None]:
        return {
            measure: None if result[measure] is None else round(result[measure], 3)
            for measure in ("pearson", "spearman")
        }

    return {
        task: {"mean": rounded(one["mean"]), "sets": {name: rounded(result) for name, result in one["sets"].items()}}
        for task, one in scores["tasks"].items()
    }


def _note(folder: Path, names: Sequence[str]) -> str:
    shown = f"{folder / names[0]} is" if len(names) == 1 else f"{folder}: {len(names)} files are"
    return f"{shown} left out: not rows of score<TAB>text<TAB>text."


def _result(predicted: npt.NDArray[np.floating[Any]], scores: npt.NDArray[np.float64]) -> dict[str, Any]:
    pearson, spearman = correlations(predicted, scores)
    return {
        "pairs": len(scores),
        "pearson": None if math.isnan(pearson) else 100 * pearson,
        "spearman": None if math.isnan(spearman) else 100 * spearman,
    }


def _row(raw: bytes) -> tuple[float, str, str] | None:
    try:
        score, left, right = raw.decode("utf-8").split("\t")
        value = float(score)
    except ValueError:
        return None
    return (value, left, right) if math.isfinite(value) else None


def _has_layout(path: Path) -> bool:
    first = next(numbered_lines(path), None)
    return first is not None and _row(first[1]) is not None
