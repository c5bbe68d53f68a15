"""What a trained model's lengths of word vectors are worth as weights (Wieting et al., 2016b, section 6)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from gramvec.errors import InputError
from gramvec_training.experiments.common import Finding, Inputs, Outcome, Row, Words, vectors_of
from gramvec_training.readers import read_frequencies
from gramvec_training.types import Floats

_PAPER = {"avg": 54.94, "x norm": 62.64, "1 / frequency": 45.52}  # over PARAGRAM-SL999, the mean of 22 sets
_SHOWN = 10


def norms_as_weights(inputs: Inputs) -> Outcome:
    """Averages of the given vectors, plain, times the L1 norm of each word's trained vector, and over its frequency.

    A word that the trained model or the frequencies lack weighs the least of the others, or 1.
    """
    if inputs.norms is None:
        raise InputError("This experiment weighs words by a trained model's vectors: give --norms-of.")
    words = Words(inputs.vectors, inputs.sets)
    norms = _norms(inputs.norms)
    frequencies = read_frequencies(inputs.frequencies[0])
    least = min(norms.values())
    scores = {
        "avg": words.score(),
        "x norm": words.score(np.array([norms.get(word, least) for word in words.words], np.float32)),
        "1 / frequency": words.score(reciprocals(words.words, frequencies)),
    }
    rows: list[Row] = [
        {"system": system, **{task: round(score, 2) for task, score in found.items()}, "paper, 22 sets": _PAPER[system]}
        for system, found in scores.items()
    ]
    mean = {system: float(np.mean(list(found.values()))) for system, found in scores.items()}
    known = sorted((word for word in words.words if word in norms), key=lambda word: (-norms[word], word))
    seen = ", ".join(f"{system} {value:.1f}" for system, value in mean.items())
    ends = f"longest {', '.join(known[:_SHOWN])}; shortest {', '.join(known[-_SHOWN:])}"
    tenth = max(1, len(known) // 10)
    common = set(sorted(frequencies, key=lambda one: -frequencies[one])[:tenth])
    short = sum(word in common for word in known[-tenth:])
    chance = tenth / 10
    return Outcome(
        tuple(rows),
        (
            Finding(
                "lengths of trained vectors as weights are above avg", mean["x norm"] > mean["avg"], seen, sure=True
            ),
            Finding("reciprocal frequencies are below avg", mean["1 / frequency"] < mean["avg"], seen),
            Finding(
                "common words have short vectors",
                short > 2 * chance,
                f"{short} of the tenth, by chance {chance:.0f}; {ends}",
            ),
        ),
    )


def reciprocals(words: Sequence[str], frequencies: Mapping[str, float]) -> Floats:
    """float32[n]: 1 / p(w) of each word, in units in which the rarest of the frequencies weighs 1, as do words without.

    p(w) is of all words; the authors' counts begin at 1, which the rarest word has here.
    """
    rarest = min(frequencies.values())
    return np.array([rarest / frequencies.get(word, rarest) for word in words], np.float32)


def _norms(place: Path) -> dict[str, float]:
    words, vectors = vectors_of(place)
    return dict(zip(words, np.abs(vectors).sum(axis=1).tolist(), strict=True))
