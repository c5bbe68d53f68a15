"""Pairs by their number of unknown words (CHARAGRAM, Table 6)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from gramvec_training.evaluation import ScoredModel
from gramvec_training.experiments.common import Finding, Inputs, Outcome
from gramvec_training.experiments.systems import COMPARED, binned

_UNKNOWN: tuple[tuple[str, int, int, float, float], ...] = (
    ("0", 0, 0, 71.4, 73.8),
    ("1", 1, 1, 68.8, 78.8),
    ("2", 2, 2, 66.4, 72.8),
    ("1 or more", 1, 10**6, 68.6, 77.9),
    ("all", 0, 10**6, 71.0, 74.0),
)


def pairs_by_unknown_words(inputs: Inputs) -> Outcome:
    """Table 6: bins of the words, of both texts together, for which PARAGRAM-PHRASE has no row of their own."""

    def number(left: Sequence[str], right: Sequence[str], words: ScoredModel) -> npt.NDArray[np.int64]:
        unknown = words.featurizer.vocabulary.unknown_row
        counts = np.zeros(len(left), np.int64)
        for side in (left, right):
            batch = words.featurizer(side)
            owners = np.repeat(np.arange(len(side)), batch.counts)
            counts += np.bincount(owners[batch.ids == unknown], minlength=len(side))
        return counts

    rows, scores = binned(inputs, "unknown words", _UNKNOWN, number)
    fallen = {
        system: found["0"] - found["1 or more"] for system, found in scores.items() if len(found) == len(_UNKNOWN)
    }
    seen = ", ".join(f"{system} loses {value:.1f}" for system, value in fallen.items())
    ahead = all(scores["CHARAGRAM"][name] > scores["PP"][name] for name in scores["PP"])
    return Outcome(
        rows,
        (
            Finding("unknown words cost PARAGRAM-PHRASE", fallen.get("PP", 0) > 0, seen or "too few unknown words"),
            Finding(
                "they cost CHARAGRAM less",
                len(fallen) == len(COMPARED) and fallen["CHARAGRAM"] < fallen["PP"],
                seen or "too few unknown words",
            ),
            Finding("CHARAGRAM is ahead in every bin", ahead, "see the table"),
        ),
    )
