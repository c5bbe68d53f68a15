"""Words that training saw seldom, and scores, set by set (Wieting et al., 2016b, appendix A and its Table 6)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from gramvec_training.data import Featurize
from gramvec_training.evaluation import correlations, find_sets
from gramvec_training.experiments.common import Finding, Inputs, Outcome, Row
from gramvec_training.experiments.systems import learned_system, official_75
from gramvec_training.runs import load_run, run_model

_PAPER, _HERE = 100, 10  # occurrences in training, below which a word is undertrained: the pairs here are a thirtieth
_FALLS = -0.3  # of a correlation over sets


def scores_by_undertrained_words(inputs: Inputs) -> Outcome:
    """Of each set the share of its words that training saw seldom, and PARAGRAM-PHRASE's Pearson, mean over seeds."""
    runs = [load_run(learned_system(inputs, "PP", seed)[0]) for seed in inputs.seeds]
    models = [run_model(run) for run in runs]
    counts = np.array([entry.count for entry in runs[0].vocabulary.entries()])
    rows: list[Row] = []
    for one in find_sets(inputs.sets)[0]:
        found = [correlations(model.similarity(one.left, one.right), one.scores)[0] for model in models]
        score = 100 * float(np.mean(found))
        official = official_75(one.task, one.name)
        rows.append({
            "set": f"{one.task}/{one.name}",
            **{f"below {most}, %": round(100 * seldom([*one.left, *one.right], models[0].featurizer, counts, most), 2)
               for most in (_HERE, _PAPER)},
            "PP": round(score, 1), "less the official 75 %": None if official is None else round(score - official, 1),
        })  # fmt: skip
    return Outcome(tuple(rows), _findings(rows))


def seldom(texts: Sequence[str], featurize: Featurize, counts: npt.NDArray[np.int64], least: int) -> float:
    """The share of the texts' words that training saw fewer than so many times; counts: of each row."""
    return float(np.mean(counts[featurize(texts).ids] < least))


def _findings(rows: Sequence[Row]) -> tuple[Finding, ...]:
    columns = [f"below {most}, %" for most in (_HERE, _PAPER)]
    together = {name: _together(rows, name, "PP") for name in columns}
    seen = ", ".join(f"{name.removesuffix(', %')} {value:+.2f}" for name, value in together.items())
    official = [row for row in rows if row["less the official 75 %"] is not None]
    against = _together(official, columns[0], "less the official 75 %")
    ahead, behind = ([row for row in official if (float(row["less the official 75 %"] or 0) >= 0) == above]
                     for above in (True, False))  # fmt: skip
    ends = [[float(row[columns[0]] or 0) for row in part] for part in (ahead, behind)]
    return (
        Finding(f"the more undertrained words a set has, the lower the score: below {_FALLS:g}",
                together[columns[0]] < _FALLS, seen),
        Finding(f"the same of the score less the official 75 %, over the sets of STS 2012: below {_FALLS:g}",
                len(official) > 1 and against < _FALLS, f"{against:+.2f} over {len(official)} sets"),
        Finding("a share of undertrained words parts the sets above the official 75 % from those below",
                bool(ahead and behind) and max(ends[0]) < min(ends[1]),
                f"above at {_listed(ends[0])}; below at {_listed(ends[1])}"),
    )  # fmt: skip


def _together(rows: Sequence[Row], x: str, y: str) -> float:
    if len(rows) < 2:
        return 0.0
    first, second = (np.array([float(row[name] or 0) for row in rows]) for name in (x, y))
    return float(correlations(first, second)[0])


def _listed(values: Sequence[float]) -> str:
    return ", ".join(f"{value:g} %" for value in sorted(values)) or "none"
