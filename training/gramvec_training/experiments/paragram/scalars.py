"""A number for each word, learned over fixed vectors: what weights alone do (Wieting et al., 2016b, footnote 19)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gramvec_training.experiments.common import Finding, Inputs, Outcome, Row, Settings, Words, learned, means, tasks_of
from gramvec_training.experiments.paragram.norms import reciprocals
from gramvec_training.experiments.systems import learned_system, settings_of
from gramvec_training.readers import read_frequencies
from gramvec_training.runs import load_run

AVERAGE, RECIPROCAL, LEARNED, PHRASE = "avg", "1 / frequency", "a learned number a word", "PP"
_PAPER = {AVERAGE: 54.94, RECIPROCAL: 45.52, LEARNED: 62.06, PHRASE: 66.83}  # the mean of 22 sets
_COMMON = 500  # words, the most frequent of the training pairs


def learned_scalars(inputs: Inputs) -> Outcome:
    """Each system's Pearson on each task: averages of the same vectors, with weights that are given or learned."""
    words = Words(inputs.vectors, inputs.sets)
    given = {
        AVERAGE: words.score(),
        RECIPROCAL: words.score(reciprocals(words.words, read_frequencies(inputs.frequencies[0]))),
    }
    tasks = list(given[AVERAGE])
    folders, records = zip(
        *(learned(inputs, "scalar-weights", scalar_settings(inputs), seed) for seed in inputs.seeds), strict=True
    )
    phrases = [tasks_of(learned_system(inputs, PHRASE, seed)[1]) for seed in inputs.seeds]
    scores = given | {LEARNED: means([tasks_of(one) for one in records]), PHRASE: means(phrases)}
    rows: list[Row] = [
        {"system": system, **{task: round(found[task], 1) for task in tasks}, "paper, 22 sets": _PAPER[system]}
        for system, found in scores.items()
    ]
    mean = {system: float(np.mean([found[task] for task in tasks])) for system, found in scores.items()}
    seen = ", ".join(f"{system} {value:.1f}" for system, value in mean.items())
    run = load_run(folders[0])
    numbers = run.encoder.arrays()["table"][:, -1].tolist()
    # The most frequent are first; a word that does not stand in the pairs keeps the number 1.
    moved = [number for one, number in zip(run.vocabulary.entries(), numbers, strict=True) if one.count]
    return Outcome(
        tuple(rows),
        (
            Finding("learned numbers are above avg", mean[LEARNED] > mean[AVERAGE], f"{seen}; {_medians(moved)}",
                    sure=True),
            Finding("they are above reciprocal frequencies", mean[LEARNED] > mean[RECIPROCAL], seen),
            Finding("they are below PARAGRAM-PHRASE", mean[LEARNED] < mean[PHRASE], seen),
        ),
    )  # fmt: skip


def scalar_settings(inputs: Inputs) -> Settings:
    """Those of PARAGRAM-PHRASE, but for what is learned and how fast."""
    phrase = settings_of(PHRASE, inputs)
    return {
        **phrase,
        "features": {**phrase["features"], "unknown_words": "skip"},
        "encoder": {"kind": "weighted"},
        "training": {**phrase["training"], "rate": 2e-2},
    }


def _medians(weights: Sequence[float]) -> str:
    sizes = np.abs(weights)
    common, others = (float(np.median(part)) if len(part) else 0.0 for part in (sizes[:_COMMON], sizes[_COMMON:]))
    return f"the {_COMMON} commonest words of the pairs weigh {common:.2f}, other words {others:.2f}: medians"
