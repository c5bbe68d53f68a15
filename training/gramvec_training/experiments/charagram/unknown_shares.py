"""Each set's share of unknown words against its scores (CHARAGRAM, section 5.1)."""

from __future__ import annotations

import numpy as np

from gramvec_training.evaluation import correlations, find_sets
from gramvec_training.experiments.common import Finding, Inputs, Outcome, Row
from gramvec_training.experiments.systems import COMPARED, models_of

_FALLS = -0.3  # of a correlation over sets: -0.45 in the paper


def scores_by_unknown_words(inputs: Inputs) -> Outcome:
    """Each set's share of words without a row, and its scores."""
    models = models_of(inputs, COMPARED)
    words = models["PP"][0].featurizer
    rows: list[Row] = []
    for one in find_sets(inputs.sets)[0]:
        batch = words([*one.left, *one.right])
        share = float(np.mean(batch.ids == words.vocabulary.unknown_row))
        row: dict[str, str | float | None] = {"set": f"{one.task}/{one.name}", "unknown, %": round(100 * share, 2)}
        for system, some in models.items():
            found = [correlations(model.similarity(one.left, one.right), one.scores)[0] for model in some]
            row[system] = round(100 * float(np.mean(found)), 1)
        rows.append(row)
    unknown, *scores = (np.array([row[column] or 0 for row in rows], float) for column in ("unknown, %", *COMPARED))
    together = [correlations(unknown, score)[0] for score in scores]
    seen = ", ".join(f"{system} {value:+.2f}" for system, value in zip(COMPARED, together, strict=True))
    claims = (
        (
            f"the more unknown words a set has, the lower PARAGRAM-PHRASE's score: below {_FALLS:g}",
            together[0] < _FALLS,
        ),
        ("of CHARAGRAM's it is not so", together[1] >= _FALLS),
    )
    return Outcome(tuple(rows), tuple(Finding(claim, bool(holds), seen) for claim, holds in claims))
