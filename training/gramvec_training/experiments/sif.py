"""SIF (Arora et al., 2017) over given word vectors: the ablation, the parameter, the frequencies, the component."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from gramvec.errors import InputError
from gramvec_training.evaluation import find_sets
from gramvec_training.experiments.base import Finding, Inputs, Outcome, Row
from gramvec_training.experiments.raw import GIVEN, kinds_of_vectors
from gramvec_training.experiments.words import Words
from gramvec_training.fitting import common_components
from gramvec_training.readers import read_frequencies

# GloVe 840B, Tables 1 and 6 of the paper.
_PAPER = {
    "sts12": {"avg": 52.5, "tf-idf": 58.7, "W": 54.0, "R": 55.6, "WR": 56.2},
    "sick": {"avg": 65.9, "tf-idf": 69.4, "W": 70.5, "R": 70.6, "WR": 72.2},
}
_A = tuple(float(f"{m}e-{i}") for i in range(1, 6) for m in (3, 1))
_SMALL_RANGE = 1.0  # of Pearson x 100: what "almost the same" is
_NEAREST, _COMMONEST = 10, 10_000
_FUNCTION_WORDS = 500  # the most frequent of English, nearly all of them without a meaning of their own
_SAMPLING = 1e-5  # word2vec's threshold


def ablation(inputs: Inputs) -> Outcome:
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


def subsampling(inputs: Inputs) -> Outcome:
    """Figure 1: the share of a word that word2vec keeps, min(1, sqrt(1e-5 / p)), and a / (a + p) with a = 1e-4."""
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


def parameter(inputs: Inputs) -> Outcome:
    """Figure 2a: WR on the first task for a from 3e-1 to 1e-5, over each kind of vectors."""
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


def sources(inputs: Inputs) -> Outcome:
    """Figure 2b: WR on the first task with each file of frequencies."""
    words = Words(inputs.vectors, inputs.sets[:1])
    scores = {
        path.name.split(".")[0]: _mean(words.score(words.sif(read_frequencies(path)), 1)) for path in inputs.frequencies
    }
    apart = max(scores.values()) - min(scores.values())
    rows: tuple[Row, ...] = tuple({"frequencies": name, "pearson": round(score, 2)} for name, score in scores.items())
    seen = f"{apart:.2f} between the best and the worst of {len(scores)}"
    claim = f"the source of p(w) hardly matters (at most {_SMALL_RANGE:g} apart)"
    return Outcome(rows, (Finding(claim, len(scores) > 1 and apart <= _SMALL_RANGE, seen),))


def common_words(inputs: Inputs) -> Outcome:
    """Section 4.1: of each task's weighted sentences the first component, and the words nearest to it by |cosine|."""
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


_PAPER_WORDS = {"sick": "just, when, even, one, up, little, way, there, while, but"}


def _nearest(words: Words, component: np.ndarray, ranks: Mapping[str, int]) -> list[str]:
    lengths = np.maximum(np.linalg.norm(words.table, axis=1), 1e-12)
    cosines = np.abs(words.table @ component) / lengths
    common = [row for row, word in enumerate(words.words) if ranks.get(word, _COMMONEST) < _COMMONEST]
    order = sorted(common, key=lambda row: (-cosines[row], words.words[row]))
    return [words.words[row] for row in order[:_NEAREST]]


def _listed(mean: Mapping[str, float]) -> str:
    return ", ".join(f"{system} {value:.1f}" for system, value in mean.items())


def _mean(scores: Mapping[str, float]) -> float:
    return float(np.mean(list(scores.values())))
