"""Cosines of labelled pairs -> F1, precision and recall at a threshold, or, of scores, Pearson and Spearman."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from gramvec_training.evaluation import correlations
from gramvec_training.families.comparison import Doubles, Ints
from gramvec_training.families.matching import best_threshold, f1_at


def pair_scores(
    cosines: npt.NDArray[np.floating[Any]], labels: Doubles, parts: Ints, *, binary: bool
) -> dict[str, float]:
    """Of labels that are binary `f1`, `precision`, `recall` in percent and `threshold`; else `pearson`, `spearman`.

    cosines, labels: [n]. parts: int64[n]; the pairs of a part are judged at the threshold that is best for all others,
    so that none has a say in its own; `threshold` is the best one for all.
    """
    if not binary:
        pearson, spearman = (0.0 if np.isnan(one) else 100 * one for one in correlations(cosines, labels))
        return {"pearson": pearson, "spearman": spearman}
    match, scores = labels == 1, np.asarray(cosines, np.float64)
    least = np.full(len(match), np.inf)
    for part in np.unique(parts).tolist():
        others = parts != part
        if match[others].any():
            least[parts == part] = best_threshold(scores[others], match[others])[0]
    f1, precision, recall = f1_at(0.0, scores - least, match)
    threshold, _ = best_threshold(scores, match)
    return {"f1": 100 * f1, "precision": 100 * precision, "recall": 100 * recall, "threshold": threshold}


def pair_report(report: dict[str, Any]) -> str:
    """A text table of `pairs` and, for each model under `scores`, what `pair_scores` gave."""
    columns = ("f1", "precision", "recall", "threshold") if report["binary"] else ("pearson", "spearman")
    heads = {"f1": "F1", "pearson": "Pearson", "spearman": "Spearman"}
    lines = [f"{report['pairs']:,} labelled pairs".ljust(26) + "".join(f"{heads.get(one, one):>11}" for one in columns)]
    for name, found in report["scores"].items():
        cells = [f"{found[one]:11.3f}" if one == "threshold" else f"{found[one]:11.1f}" for one in columns]
        lines.append(name.ljust(26) + "".join(cells))
    return "\n".join(lines)
