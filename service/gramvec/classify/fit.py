"""Vectors with labels into a head: logistic regression of scikit-learn, and what it is worth on texts held out."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gramvec.classify.head import MOST_LABELS, Floats, Head, softmax
from gramvec.errors import InputError

Ints = NDArray[np.int64]

FOLDS = 5
STRENGTH = 10.0  # C of scikit-learn
KEPT = 0.95  # of the right answers, those that the default threshold lets pass
_BINS = 10
_NEVER = -1e4  # an intercept beside which every other one wins
_TEMPERATURES = np.geomspace(0.05, 20, 121)


@dataclass(frozen=True)
class Report:
    """What a head is worth on texts that it was not learned from: each is in one of five parts, held out in turn.

    accuracy: share with the right label. calibration: mean difference of score and share of right answers, over ten
    bins of scores (expected calibration error). before: the same without the temperature. unknown: share below the
    threshold; accuracy_known: among the rest. texts: how many were asked; labels of one text are never.
    """

    texts: int
    labels: int
    accuracy: float
    calibration: float
    before: float
    unknown: float
    accuracy_known: float


def fit_head(
    vectors: Floats,
    labels: Sequence[str],
    *,
    model: str,
    digest: str,
    threshold: float | None = None,
    seed: int = 1,
) -> tuple[Head, Report]:
    """A head of vectors float32[n, d] of length 1 and the label of each, and what it is worth.

    threshold: below which a text has no label; by default what 95 % of the right answers on held-out texts reach.
    Raises InputError for fewer than two labels, more than 100,000, or none that has two texts, and where scikit-learn
    is not installed.
    """
    names = sorted(set(labels))
    if len(names) < 2:
        raise InputError("every text has the same label; give texts of two labels or more")
    if len(names) > MOST_LABELS:
        raise InputError(f"a head has at most {MOST_LABELS:,} labels; these are {len(names):,}")
    places = {name: place for place, name in enumerate(names)}
    own = np.array([places[label] for label in labels], np.int64)
    folds = _folds(vectors, own, seed)
    asked = folds >= 0
    if not asked.any():
        raise InputError("no label has two texts; give more texts of each")
    logits = np.zeros((len(own), len(names)), np.float32)
    for fold in range(FOLDS):
        held = folds == fold
        if held.any():
            coefficients, intercepts = _learned(vectors[~held], own[~held], len(names))
            logits[held] = vectors[held] @ coefficients.T + intercepts
    logits, true = logits[asked], own[asked]
    temperature = _temperature(logits, true)
    scores = _cross_scored(logits, true, folds[asked])
    right, best = scores.argmax(axis=1) == true, scores.max(axis=1)
    if threshold is None:
        # Of scores by the head's own temperature, of which the scores that are served are.
        final = softmax(logits, temperature).max(axis=1)[right]
        threshold = float(np.quantile(final, 1 - KEPT)) if len(final) else 0.0
    known = best >= threshold
    report = Report(
        texts=len(true),
        labels=len(names),
        accuracy=float(right.mean()),
        calibration=_error(best, right),
        before=_error(softmax(logits, 1.0).max(axis=1), right),
        unknown=float(1 - known.mean()),
        accuracy_known=float(right[known].mean()) if known.any() else 0.0,
    )
    coefficients, intercepts = _learned(vectors, own, len(names))
    return Head(coefficients, intercepts, tuple(names), temperature, threshold, model, digest), report


def _folds(vectors: Floats, own: Ints, seed: int) -> Ints:
    """int64[n]: the part of each text, as many of a label in each; -1 for the only text of a label, never held out.

    Texts with one vector are in one part, so that none is asked of which a copy was learned.
    """
    places: dict[bytes, int] = {}
    first = np.array([places.setdefault(one.tobytes(), row) for row, one in enumerate(vectors)], np.int64)
    distinct = np.unique(first)
    labels = own[distinct]
    order = np.lexsort([np.random.default_rng(seed).random(len(labels)), labels])
    folds = np.full(len(own), -1, np.int64)
    # One label after the other goes round, so that labels of a few texts do not all fill the first parts.
    folds[distinct[order]] = np.arange(len(labels)) % FOLDS
    folds[distinct[np.bincount(labels)[labels] < 2]] = -1
    return folds[first]


def _learned(vectors: Floats, own: Ints, labels: int) -> tuple[Floats, Floats]:
    """coefficients float32[labels, d], intercepts float32[labels]; a label that is not there never wins."""
    try:
        from sklearn.exceptions import ConvergenceWarning
        from sklearn.linear_model import LogisticRegression
    except ModuleNotFoundError as error:
        raise InputError("scikit-learn learns the head: pip install 'gramvec[classify]'") from error
    coefficients = np.zeros((labels, vectors.shape[1]), np.float32)
    intercepts = np.full(labels, _NEVER, np.float32)
    there = np.unique(own)
    if len(there) < 2:
        intercepts[there] = 0
        return coefficients, intercepts
    learner = LogisticRegression(C=STRENGTH, max_iter=300)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # 300 steps are near enough; the report says how near
        learner.fit(vectors, own)
    intercepts[there] = 0
    # Of two classes scikit-learn gives one row, the second's.
    coefficients[there[-len(learner.coef_) :]] = learner.coef_
    intercepts[there[-len(learner.coef_) :]] = learner.intercept_
    return coefficients, intercepts


def _temperature(logits: Floats, true: Ints) -> float:
    """Of 121 temperatures from 0.05 to 20 the one with the least cross-entropy.

    A share of 1 / (n + 2) is spread over all labels, so that a few texts that are all right make no score of 1 (Platt,
    1999, section 2.2).
    """
    spread = 1 / (len(true) + 2)

    def entropy(temperature: float) -> float:
        logs = np.log(np.maximum(softmax(logits, temperature), 1e-30))
        return float(-((1 - spread) * logs[np.arange(len(true)), true] + spread * logs.mean(axis=1)).mean())

    return float(min(_TEMPERATURES.tolist(), key=entropy))


def _cross_scored(logits: Floats, true: Ints, folds: Ints) -> Floats:
    """Scores of each part by the temperature of the others."""
    scores = np.empty_like(logits)
    for fold in range(FOLDS):
        held = folds == fold
        if held.any():
            scores[held] = softmax(logits[held], _temperature(logits[~held], true[~held]) if (~held).any() else 1.0)
    return scores


def _error(best: Floats, right: NDArray[np.bool_]) -> float:
    bins = np.minimum((best * _BINS).astype(np.int64), _BINS - 1)
    gaps = np.bincount(bins, best - right, _BINS)
    return float(np.abs(gaps).sum() / len(best))
