"""word2vec's subsampling of words against SIF's weights (SIF, Figure 1)."""

from __future__ import annotations

import numpy as np

from gramvec_training.experiments.common import Finding, Inputs, Outcome

_SAMPLING = 1e-5  # word2vec's threshold


def subsampling_curves(inputs: Inputs) -> Outcome:
    """The share of a word that word2vec keeps, min(1, sqrt(1e-5 / p)), and a / (a + p) with a = 1e-4."""
    p = np.array([10.0**-i for i in range(7, 0, -1)])
    kept, weight = np.minimum(1, np.sqrt(_SAMPLING / p)), 1e-4 / (1e-4 + p)
    rows = tuple(
        {"p": float(one), "word2vec": round(float(q), 4), "SIF, a = 1e-4": round(float(w), 4)}
        for one, q, w in zip(p, kept, weight, strict=True)
    )
    apart = float(np.abs(kept - weight).max())
    falls = bool(np.all(np.diff(kept) <= 0) and np.all(np.diff(weight) < 0))
    seen = f"both fall from {kept[0]:.2f} and {weight[0]:.2f}; at most {apart:.2f} apart"
    return Outcome(
        rows, (Finding("the curves are alike: both near 1 for rare words, and falling", falls, seen, sure=True),)
    )
