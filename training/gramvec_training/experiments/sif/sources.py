"""WR over sources of word frequencies (SIF, Figure 2b)."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from gramvec_training.experiments.common import Finding, Inputs, Outcome, Row, Words
from gramvec_training.readers import read_frequencies

_SMALL_RANGE = 1.0  # of Pearson x 100: what "almost the same" is


def frequency_sources(inputs: Inputs) -> Outcome:
    """WR on the first task with each file of frequencies."""
    words = Words(inputs.vectors, inputs.sets[:1])
    scores = {
        path.name.split(".")[0]: _mean(words.score(words.sif(read_frequencies(path)), 1)) for path in inputs.frequencies
    }
    apart = max(scores.values()) - min(scores.values())
    rows: tuple[Row, ...] = tuple({"frequencies": name, "pearson": round(score, 2)} for name, score in scores.items())
    seen = f"{apart:.2f} between the best and the worst of {len(scores)}"
    claim = f"the source of p(w) hardly matters (at most {_SMALL_RANGE:g} apart)"
    return Outcome(rows, (Finding(claim, len(scores) > 1 and apart <= _SMALL_RANGE, seen),))


def _mean(scores: Mapping[str, float]) -> float:
    return float(np.mean(list(scores.values())))
