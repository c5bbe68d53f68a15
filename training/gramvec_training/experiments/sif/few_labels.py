"""Reviews with many and with few labels, SIF against NB-SVM (SIF, Table 8)."""

from __future__ import annotations

import numpy as np

from gramvec_training.experiments.common import Finding, Inputs, Outcome, Row
from gramvec_training.experiments.supervised import SIF, nb_svm_accuracy, reviews, scored_head

_PAPER = {1_000: (82.0, 84.0), 200: (77.0, 73.0)}
_AHEAD = 1.0
_DRAWS = 5  # of reviews


def scores_by_labels(inputs: Inputs) -> Outcome:
    """Reviews, from all, 1,000 and 200 labels; each the mean over five draws of them."""
    task = reviews(inputs)
    rows: list[Row] = []
    ahead: dict[int, float] = {}
    sizes = sorted({min(size, len(task.learned)) for size in (len(task.learned), *_PAPER)}, reverse=True)
    for size in sizes:
        drawn = [task.only(size, seed=draw) for draw in range(1, _DRAWS + 1)]
        ours = float(np.mean([scored_head(inputs, one, SIF, "features", draw) for draw, one in enumerate(drawn, 1)]))
        rival = float(np.mean([nb_svm_accuracy(one) for one in drawn]))
        ahead[size] = ours - rival
        paper = _PAPER.get(size, (None, None))
        rows.append({
            "labels": size, "SIF": round(ours, 1), "NB-SVM": round(rival, 1), "SIF, paper": paper[0],
            "NB-SVM, paper": paper[1],
        })  # fmt: skip
    seen = ", ".join(f"{size:,}: {value:+.1f}" for size, value in ahead.items())
    return Outcome(
        tuple(rows),
        (
            Finding(
                f"with most labels NB-SVM is at least {_AHEAD:g} point above SIF", ahead[sizes[0]] <= -_AHEAD, seen
            ),
            Finding(f"with fewest SIF is at least {_AHEAD:g} point above NB-SVM", ahead[sizes[-1]] >= _AHEAD, seen),
        ),
    )
