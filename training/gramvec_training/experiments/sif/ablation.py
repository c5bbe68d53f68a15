"""Averages, tf-idf, weights, removal and both, over given vectors and learned ones (SIF, Tables 1 and 6)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from gramvec.errors import InputError
from gramvec_training.experiments.common import GIVEN, Finding, Inputs, Outcome, Words, kinds_of_vectors
from gramvec_training.readers import read_frequencies

# GloVe 840B, Tables 1 and 6 of the paper.
_PAPER = {
    "sts12": {"avg": 52.5, "tf-idf": 58.7, "W": 54.0, "R": 55.6, "WR": 56.2},
    "sick": {"avg": 65.9, "tf-idf": 69.4, "W": 70.5, "R": 70.6, "WR": 72.2},
}


def ablation_of_given(inputs: Inputs) -> Outcome:
    """Tables 1 and 6: each task's mean with and without weights and removal."""
    scores = _ablated(inputs, inputs.vectors)
    rows = tuple(
        {"task": task, "system": system, "pearson": round(found[task], 2), "paper": _PAPER.get(task, {}).get(system)}
        for task in scores["avg"]
        for system, found in scores.items()
    )
    mean = {system: _mean(found) for system, found in scores.items()}
    seen = _listed(mean)
    return Outcome(
        rows,
        (
            *_orders(mean),
            Finding("R gains more than W over GloVe", mean["R"] > mean["W"], seen),
            Finding("tf-idf is between avg and WR", mean["avg"] < mean["tf-idf"] < mean["WR"], seen),
        ),
    )


def ablation_of_learned(inputs: Inputs) -> Outcome:
    """Table 6 over vectors that are learned here from raw text, and over a trained model's."""
    kinds = {kind: place for kind, place in kinds_of_vectors(inputs).items() if kind != GIVEN}
    if not kinds:
        raise InputError("This experiment learns vectors: give --data, whose folder raw has texts of Wikipedia.")
    scores = {kind: _ablated(inputs, place) for kind, place in kinds.items()}
    rows = tuple(
        {"task": task, "system": system} | {kind: round(scores[kind][system][task], 2) for kind in scores}
        for task in next(iter(scores.values()))["avg"]
        for system in next(iter(scores.values()))
    )
    mean = {kind: {system: _mean(found) for system, found in some.items()} for kind, some in scores.items()}
    return Outcome(rows, tuple(one for kind, some in mean.items() for one in _orders(some, f"over {kind} ")))


def _ablated(inputs: Inputs, vectors: Path) -> dict[str, dict[str, float]]:
    """System -> task -> score."""
    words = Words(vectors, inputs.sets)
    weights = words.sif(read_frequencies(inputs.frequencies[0]))
    return {
        "avg": words.score(),
        "tf-idf": words.score(words.idf()),
        "W": words.score(weights),
        "R": words.score(components=1),
        "WR": words.score(weights, 1),
    }


def _orders(mean: Mapping[str, float], over: str = "") -> tuple[Finding, Finding]:
    seen, given = _listed(mean), not over
    return (
        Finding(f"{over}avg < W < WR on the mean of the tasks", mean["avg"] < mean["W"] < mean["WR"], seen),
        Finding(f"{over}avg < R < WR on the mean of the tasks", mean["avg"] < mean["R"] < mean["WR"], seen, sure=given),
    )


def _listed(mean: Mapping[str, float]) -> str:
    return ", ".join(f"{system} {value:.1f}" for system, value in mean.items())


def _mean(scores: Mapping[str, float]) -> float:
    return float(np.mean(list(scores.values())))
