"""Labelled pairs into a classifier and its threshold, with scikit-learn, scored on labels that it never saw."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gramvec.errors import InputError
from gramvec.matching.classifiers import Classifier, Linear, Trees
from gramvec.matching.nearest import Ids

Bools = NDArray[np.bool_]
Floats64 = NDArray[np.float64]
Pairs = NDArray[np.float32]

FOLDS = 5
SEED = 0
# The least pairs of either kind, and the least left rows that those of either kind are of.
FEWEST, FEWEST_ROWS = 10, FOLDS
# Chosen on train and valid of the matching sets; of abt-buy, amazon-google and wdc-shoes.
TREES, LEAVES, RATE, LEAF_PAIRS, PENALTY = 200, 15, 0.05, 10, 1.0
STRENGTH = 0.3
# More than our sums and scikit-learn's differ by.
CLOSE = 1e-6


class Labels(NamedTuple):
    """left, right int64[p]: rows of the two tables; match bool[p]: whether they are the same thing. Each pair once."""

    left: Ids
    right: Ids
    match: Bools


class Report(NamedTuple):
    """What came of a fit. kind: of classifier, "logistic" or "trees". pairs, matches: that were labelled.

    held_pairs, held_matches: of those held out, a fifth, by left rows; precision, recall and f1 (0 to 1): there, at the
    threshold.
    """

    kind: str
    pairs: int
    matches: int
    held_pairs: int
    held_matches: int
    precision: float
    recall: float
    f1: float


def learn(features: Pairs, labels: Labels) -> tuple[Classifier, float, Report]:
    """(classifier, threshold, report) of the features of the labelled pairs, float32[p, f].

    Left rows are dealt to five parts. One is held out; on the others the kind of classifier and the threshold are
    chosen, by F1 of cross-validated scores, and what they learn is scored on the one. The classifier that is returned
    has learned from all five. Deterministic.
    Raises InputError for too few labels of a kind or of too few rows, and without scikit-learn.
    """
    check_enough(labels)
    part = _parts(labels)
    held = part == 0
    rest = np.flatnonzero(~held)
    scores = {kind: _cross_validated(kind, features[rest], labels.match[rest], part[rest]) for kind in _FITS}
    thresholds = {kind: best_threshold(score, labels.match[rest]) for kind, score in scores.items()}
    kind = max(thresholds, key=lambda one: thresholds[one][1])
    threshold = thresholds[kind][0]
    tried = _FITS[kind](features[rest], labels.match[rest])
    said = tried.probabilities(features[held]) >= threshold
    counts = len(labels.match), int(labels.match.sum()), int(held.sum()), int(labels.match[held].sum())
    report = Report(kind, *counts, *precision_recall_f1(said, labels.match[held]))
    return _FITS[kind](features, labels.match), threshold, report


def check_enough(labels: Labels) -> None:
    """Raise InputError unless there are labels of both kinds to learn from and to judge by."""
    for match, said in ((True, "match"), (False, "do not match")):
        chosen = labels.match == match
        number, rows = int(chosen.sum()), len(np.unique(labels.left[chosen]))
        if number < FEWEST:
            raise InputError(
                f"only {number} labelled pairs {said}; label at least {FEWEST} that match and {FEWEST} that do not",
                field="labels",
            )
        if rows < FEWEST_ROWS:
            raise InputError(
                f"the labelled pairs that {said} are of {rows} rows of the left table; label pairs of at least "
                f"{FEWEST_ROWS}",
                field="labels",
            )


def scikit_learn(module: str) -> Any:
    """A module of scikit-learn. Raises InputError, with what to install, where it is missing."""
    try:
        return import_module(f"sklearn.{module}")
    except ImportError as error:
        raise InputError(
            "learning from labels needs scikit-learn, which is not installed: pip install 'gramvec[labels]'"
        ) from error


def best_threshold(scores: Floats64, match: Bools) -> tuple[float, float]:
    """(threshold, F1): where `score >= threshold` as the answer "match" has the highest F1, midway between scores.

    scores: float64[n], from 0 to 1. match: bool[n], at least one of them true.
    """
    order = np.argsort(-scores, kind="stable")
    ranked, true = scores[order], np.cumsum(match[order])
    f1 = 2 * true / (np.arange(1, len(ranked) + 1) + int(match.sum()))
    f1[np.append(ranked[1:] == ranked[:-1], False)] = -1  # no threshold lies between equal scores
    best = int(np.argmax(f1))
    following = ranked[best + 1] if best + 1 < len(ranked) else 0.0
    middle = (ranked[best] + following) / 2
    return float(middle if middle > following else ranked[best]), float(f1[best])


def precision_recall_f1(said: Bools, match: Bools) -> tuple[float, float, float]:
    """Each from 0 to 1; 0 where nothing is found."""
    true = int(np.count_nonzero(said & match))
    if not true:
        return 0.0, 0.0, 0.0
    precision, recall = true / int(said.sum()), true / int(match.sum())
    return precision, recall, 2 * precision * recall / (precision + recall)


def _parts(labels: Labels) -> Ids:
    """int64[p] below FOLDS: the part of each pair, that of its left row. Rows are dealt in turn, those with labels of
    both kinds first, then those of matches alone, then the others: each part has matches, and no part all of a kind.
    """
    rows, of_pair = np.unique(labels.left, return_inverse=True)
    matches = np.bincount(of_pair, labels.match, minlength=len(rows)) > 0
    others = np.bincount(of_pair, ~labels.match, minlength=len(rows)) > 0
    kind = np.where(matches & others, 0, np.where(matches, 1, 2))
    order = np.lexsort((np.random.default_rng(SEED).permutation(len(rows)), kind))
    part = np.empty(len(rows), np.int64)
    part[order] = np.arange(len(rows)) % FOLDS
    return np.asarray(part[of_pair], np.int64)


def _cross_validated(kind: str, features: Pairs, match: Bools, part: Ids) -> Floats64:
    """float64[p]: the score of each pair by what the other parts teach."""
    scores = np.empty(len(match))
    for one in np.unique(part):
        others = part != one
        scores[~others] = _FITS[kind](features[others], match[others]).probabilities(features[~others])
    return scores


def _logistic(features: Pairs, match: Bools) -> Linear:
    wide = features.astype(np.float64)
    scales = wide.std(axis=0)
    scales[scales < 1e-9] = 1.0
    means = wide.mean(axis=0)
    fitted = scikit_learn("linear_model").LogisticRegression(C=STRENGTH, max_iter=1000)
    fitted.fit((wide - means) / scales, match)
    return Linear(means, scales, fitted.coef_[0].astype(np.float64), float(fitted.intercept_[0]))


def _boosted(features: Pairs, match: Bools) -> Trees:
    fewest = max(1, min(LEAF_PAIRS, len(match) // 10))
    fitted = scikit_learn("ensemble").HistGradientBoostingClassifier(
        max_iter=TREES, learning_rate=RATE, max_leaf_nodes=LEAVES, min_samples_leaf=fewest,
        l2_regularization=PENALTY, early_stopping=False, random_state=SEED,
    )  # fmt: skip
    # Its threads (threadpoolctl comes with it) wait actively: on a busy machine two take many times as long as one.
    with import_module("threadpoolctl").threadpool_limits(1):
        fitted.fit(features, match)
        wanted = fitted.predict_proba(features)[:, 1]
    # scikit-learn has no public way to a boosted tree's nodes; whether these are them is checked below.
    nodes = [trees[0].nodes for trees in fitted._predictors]
    sizes = [len(one) for one in nodes]
    starts = np.append(0, np.cumsum(sizes)).astype(np.int32)
    joined, first = np.concatenate(nodes), np.repeat(starts[:-1], sizes)
    leaf = joined["is_leaf"].astype(bool)
    made = Trees(
        float(np.ravel(fitted._baseline_prediction)[0]),
        starts,
        np.where(leaf, -1, joined["feature_idx"]).astype(np.int32),
        np.where(leaf, 0.0, joined["num_threshold"]),
        np.where(leaf, 0, joined["left"] + first).astype(np.int32),
        np.where(leaf, 0, joined["right"] + first).astype(np.int32),
        np.where(leaf, joined["value"], 0.0),
    )
    if not np.allclose(made.probabilities(features), wanted, rtol=0, atol=CLOSE):
        raise InputError("this scikit-learn keeps its trees in another way than is known; install an older one")
    return made


_FITS: dict[str, Callable[[Pairs, Bools], Classifier]] = {"logistic": _logistic, "trees": _boosted}
