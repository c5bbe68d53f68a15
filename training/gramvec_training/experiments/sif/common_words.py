"""Words nearest to the common component of each task (SIF, section 4.1)."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from gramvec_training.evaluation import find_sets
from gramvec_training.experiments.common import Finding, Inputs, Outcome, Row, Words
from gramvec_training.fitting import common_components
from gramvec_training.readers import read_frequencies

_NEAREST, _COMMONEST = 10, 10_000
_FUNCTION_WORDS = 500  # the most frequent of English, nearly all of them without a meaning of their own
_PAPER_WORDS = {"sick": "just, when, even, one, up, little, way, there, while, but"}


def component_words(inputs: Inputs) -> Outcome:
    """Of each task's weighted sentences the first component, and the words nearest to it by |cosine|."""
    frequencies = read_frequencies(inputs.frequencies[0])
    ranks = {word: rank for rank, word in enumerate(sorted(frequencies, key=lambda one: -frequencies[one]))}
    rows: list[Row] = []
    found = {}
    for folder in inputs.sets:
        words = Words(inputs.vectors, [folder])
        model = words.model(words.sif(frequencies))
        vectors = model.encode(words.texts)
        (component,) = common_components(vectors, 1)
        task = find_sets([folder])[0][0].task
        nearest = _nearest(words, component, ranks)
        found[task] = sum(ranks[word] < _FUNCTION_WORDS for word in nearest)
        rows.append({"task": task, "words": ", ".join(nearest), "paper": _PAPER_WORDS.get(task, "")})
    claim = f"most of the {_NEAREST} nearest are among the {_FUNCTION_WORDS} commonest words"
    seen = ", ".join(f"{task} {number}" for task, number in found.items())
    return Outcome(tuple(rows), (Finding(claim, min(found.values()) > _NEAREST // 2, seen),))


def _nearest(words: Words, component: np.ndarray, ranks: Mapping[str, int]) -> list[str]:
    lengths = np.maximum(np.linalg.norm(words.table, axis=1), 1e-12)
    cosines = np.abs(words.table @ component) / lengths
    common = [row for row, word in enumerate(words.words) if ranks.get(word, _COMMONEST) < _COMMONEST]
    order = sorted(common, key=lambda row: (-cosines[row], words.words[row]))
    return [words.words[row] for row in order[:_NEAREST]]
