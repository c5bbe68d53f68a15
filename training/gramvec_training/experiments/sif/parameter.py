"""WR over the parameter a, with three kinds of vectors (SIF, Figure 2a)."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from gramvec_training.experiments.common import Finding, Inputs, Outcome, Row, Words, kinds_of_vectors
from gramvec_training.readers import read_frequencies

_A = tuple(float(f"{m}e-{i}") for i in range(1, 6) for m in (3, 1))


def parameter_curves(inputs: Inputs) -> Outcome:
    """WR on the first task for a from 3e-1 to 1e-5, over each kind of vectors."""
    frequencies = read_frequencies(inputs.frequencies[0])
    plain: dict[str, float] = {}
    scores: dict[str, dict[float, float]] = {}
    for kind, place in kinds_of_vectors(inputs).items():
        words = Words(place, inputs.sets[:1])
        plain[kind] = _mean(words.score())
        scores[kind] = {a: _mean(words.score(words.sif(frequencies, a), 1)) for a in _A}
    rows: list[Row] = [{"a": a} | {kind: round(found[a], 2) for kind, found in scores.items()} for a in _A]
    rows.append({"a": "none (avg)"} | {kind: round(score, 2) for kind, score in plain.items()})
    findings = [one for kind, found in scores.items() for one in _curve_findings(kind, found, plain[kind])]
    return Outcome(tuple(rows), tuple(findings))


def _curve_findings(kind: str, scores: Mapping[float, float], plain: float) -> tuple[Finding, ...]:
    best, top = max(scores.items(), key=lambda pair: pair[1])
    within = [score for a, score in scores.items() if 1e-4 <= a <= 1e-2]
    first, last = scores[_A[0]], scores[_A[-1]]
    return (
        Finding(f"{kind}: the best a is between 1e-4 and 1e-2", 1e-4 <= best <= 1e-2, f"best {best:g}: {top:.1f}"),
        Finding(
            f"{kind}: WR is above avg for a from 1e-4 to 1e-2",
            min(within) > plain,
            f"least {min(within):.1f}, avg {plain:.1f}",
        ),
        Finding(
            f"{kind}: both ends are worse",
            max(first, last) < top,
            f"{first:.1f} at {_A[0]:g}, {last:.1f} at {_A[-1]:g}",
        ),
    )


def _mean(scores: Mapping[str, float]) -> float:
    return float(np.mean(list(scores.values())))
