"""Learning from labeled pairs: a classifier and its threshold, by scikit-learn, scored on held-out labels."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gramvec.errors import InputError, import_extra
from gramvec.jobs.matching.features import LIKELY, PairFeatures, PairValues, TablePair
from gramvec.jobs.matching.match_tables import threshold_of
from gramvec.jobs.matching.matcher import (
    LabelReport,
    LearnedMatcher,
    LinearClassifier,
    PairClassifier,
    PairLabels,
)
from gramvec.jobs.matching.nearest import RowIds
from gramvec.jobs.pairs.trees import Trees, trees_of_scikit_learn
from gramvec.progress import NO_PROGRESS, Progress

FOLDS = 5
SEED = 0
# Pairs of either kind, and left rows that pairs of either kind must have.
FEWEST, FEWEST_ROWS = 5, FOLDS
# If one left row in this many has several labeled matches, all pairs above the threshold are matches.
SEVERAL = 20
# Chosen by cross-validation on train and valid of abt-buy, amazon-google and wdc-shoes.
TREES, LEAVES, RATE, LEAF_PAIRS, PENALTY = 200, 15, 0.05, 10, 1.0
# What draws the coefficients of a logistic regression to those of the plain pair model is as strong as serves
# cross-validation best. With the first one, nothing is learned.
PULLS = (math.inf, 320.0, 80.0, 20.0, 5.0)
MARGIN = 2.0
STEPS, TOLERANCE = 50, 1e-9
# With fewer labels no trees are learned.
TREE_LABELS = 200
# With fewer labels the threshold is that of the highest F1 that the probabilities promise for some of the candidates:
# labels that a person was asked for are not drawn evenly. With more it is midway between that and the best threshold
# of cross-validation.
THRESHOLD_LABELS, SOME_CANDIDATES = 100, 100_000
# Probabilities nearer to 0 and 1 count as these when losses are compared.
NEAREST_TO_SURE = 1e-3
Fit = Callable[[PairFeatures, NDArray[np.bool_]], PairClassifier]
# More than the rounding errors of these sums and scikit-learn's.
CLOSE = 1e-6


def fit_matcher(
    pair: TablePair, columns: Sequence[tuple[str, str]], labels: PairLabels, progress: Progress = NO_PROGRESS
) -> LearnedMatcher:
    """Learn a matcher from labeled pairs of two tables.

    Args:
        pair: the tables.
        columns: the names of their compared columns.
        labels: at least 5 pairs that match and 5 that do not.
        progress: as in `match_fields`.

    Raises:
        InputError: labels of missing rows, too few labels, or scikit-learn is not installed.
    """
    for table, rows, size in (("left", labels.left, pair.rows[0]), ("right", labels.right, pair.rows[1])):
        if len(rows) and int(rows.max()) >= size:
            raise InputError(
                f"a label is of row {int(rows.max())} of the {table} table, which has {size}", field="labels"
            )
    if pair.same:
        labels = labels.lower_left()
    check_enough(labels)
    scikit_learn("ensemble")  # a missing library is reported before the work
    left, right = pair.places(labels.left, labels.right)
    order = np.lexsort((right, left))
    features = pair.features(labels.left[order], labels.right[order], progress)
    # Which rows are held out does not depend on the order of rows either.
    labels = PairLabels(left[order], right[order], labels.match[order])
    classifier, threshold, report = learn(features, labels, _some_candidates(pair))
    top = None if pair.same else top_of(labels)
    return LearnedMatcher(tuple(columns), tuple(pair.weights), pair.ngrams, classifier, threshold, top, report)


def top_of(labels: PairLabels) -> int | None:
    """Return how many right rows a left row may match: 1, or None for all where labels say so.

    They do where more than one in 20 of the left rows with a labeled match has several.
    """
    _, matches = np.unique(labels.left[labels.match], return_counts=True)
    return None if np.count_nonzero(matches > 1) * SEVERAL > len(matches) else 1


def _some_candidates(pair: TablePair) -> PairFeatures:
    found = pair.candidates()
    every_nth = slice(None, None, max(1, -(-len(found.left) // SOME_CANDIDATES)))
    return pair.features(found.left[every_nth], found.right[every_nth])


def learn(
    features: PairFeatures, labels: PairLabels, candidates: PairFeatures
) -> tuple[PairClassifier, float, LabelReport]:
    """Return (classifier, threshold, report) for labeled pairs.

    Left rows are dealt to five parts, of which one is held out. The kind of classifier is chosen on the others, by the
    loss of cross-validated probabilities, and what they learn is scored on the held-out part. The returned classifier
    is fitted on all five; it is the plain pair model unless a learned model is better. The result is deterministic.

    Args:
        features: float32[p, f], of the labeled pairs.
        labels: which of them match.
        candidates: float32[n, f], the features of unlabeled pairs, by which the threshold is chosen.
    """
    part = _parts(labels)
    held = part == 0
    rest = np.flatnonzero(~held)
    match, fits = labels.match[rest], _fits(trees=len(labels.match) >= TREE_LABELS)
    scores = {name: _cross_validated(fit, features[rest], match, part[rest]) for name, fit in fits.items()}
    name = _best(scores, match)
    tried, fitted = (fits[name](features[rows], labels.match[rows]) for rows in (rest, slice(None)))
    held_threshold, threshold = (
        threshold_of(candidate.probabilities(candidates).astype(np.float32)) for candidate in (tried, fitted)
    )
    if len(labels.match) >= THRESHOLD_LABELS:
        best, _ = best_threshold(scores[name], match)
        held_threshold, threshold = (held_threshold + best) / 2, (threshold + best) / 2
    positive = tried.probabilities(features[held]) >= held_threshold
    counts = len(labels.match), int(labels.match.sum()), int(held.sum()), int(labels.match[held].sum())
    kind = "trees" if name == "trees" else "logistic"
    report = LabelReport(kind, *counts, *precision_recall_f1(positive, labels.match[held]))
    return fitted, threshold, report


def _best(scores: dict[str, PairValues], match: NDArray[np.bool_]) -> str:
    """Return the name of the scores whose loss, the negative log-likelihood of the labels, is least.

    The first is the plain pair model: a learned model has to be better by MARGIN standard errors of the difference.
    """
    losses = {
        name: -np.log(np.clip(np.where(match, probabilities, 1 - probabilities), NEAREST_TO_SURE, 1))
        for name, probabilities in scores.items()
    }
    first = next(iter(losses))

    def behind(name: str) -> float:
        difference = losses[name] - losses[first]
        return float(difference.mean() + MARGIN * difference.std() / math.sqrt(len(difference)))

    return min(losses, key=behind)


def check_enough(labels: PairLabels) -> None:
    """Raise InputError unless there are enough labels of both kinds to learn from and to evaluate on."""
    for match, verb in ((True, "match"), (False, "do not match")):
        chosen = labels.match == match
        number, rows = int(chosen.sum()), len(np.unique(labels.left[chosen]))
        if number < FEWEST:
            raise InputError(
                f"too few labeled pairs {verb} ({number}); label at least {FEWEST} that match and {FEWEST} that do not",
                field="labels",
            )
        if rows < FEWEST_ROWS:
            raise InputError(
                f"the labeled pairs that {verb} are of {rows} rows of the left table; label pairs of at least "
                f"{FEWEST_ROWS}",
                field="labels",
            )


def scikit_learn(module: str) -> Any:
    """Import a module of scikit-learn. Raises InputError, with what to install, if it is not installed."""
    return import_extra(f"sklearn.{module}", "labels", "learning from labels")


def best_threshold(scores: PairValues, match: NDArray[np.bool_]) -> tuple[float, float]:
    """Return (threshold, F1): the threshold of the highest F1, midway between two scores.

    Args:
        scores: float64[n], 0 to 1.
        match: bool[n], at least one of them true.
    """
    order = np.argsort(-scores, kind="stable")
    ranked, true = scores[order], np.cumsum(match[order])
    f1 = 2 * true / (np.arange(1, len(ranked) + 1) + int(match.sum()))
    f1[np.append(ranked[1:] == ranked[:-1], False)] = -1  # no threshold lies between equal scores
    best = int(np.argmax(f1))
    following = ranked[best + 1] if best + 1 < len(ranked) else 0.0
    middle = (ranked[best] + following) / 2
    return float(middle if middle > following else ranked[best]), float(f1[best])


def precision_recall_f1(positive: NDArray[np.bool_], match: NDArray[np.bool_]) -> tuple[float, float, float]:
    """Return (precision, recall, F1), each 0 to 1, and 0 where nothing is found."""
    true = int(np.count_nonzero(positive & match))
    if not true:
        return 0.0, 0.0, 0.0
    precision, recall = true / int(positive.sum()), true / int(match.sum())
    return precision, recall, 2 * precision * recall / (precision + recall)


def _parts(labels: PairLabels) -> RowIds:
    """Return the part of each pair, int64[p] below FOLDS, which is that of its left row.

    Rows are dealt in turn: those with labels of both kinds first, then those with matches only, then the others. So
    each part has matches, and no part has labels of one kind only.
    """
    rows, of_pair = np.unique(labels.left, return_inverse=True)
    matches = np.bincount(of_pair, labels.match, minlength=len(rows)) > 0
    others = np.bincount(of_pair, ~labels.match, minlength=len(rows)) > 0
    kind = np.where(matches & others, 0, np.where(matches, 1, 2))
    order = np.lexsort((np.random.default_rng(SEED).permutation(len(rows)), kind))
    part = np.empty(len(rows), np.int64)
    part[order] = np.arange(len(rows)) % FOLDS
    return np.asarray(part[of_pair], np.int64)


def _cross_validated(fit: Fit, features: PairFeatures, match: NDArray[np.bool_], part: RowIds) -> PairValues:
    """Return the score of each pair, float64[p], by a classifier that is fitted on the other parts."""
    scores = np.empty(len(match))
    for number in np.unique(part):
        others = part != number
        scores[~others] = fit(features[others], match[others]).probabilities(features[~others])
    return scores


def _fit_logistic(features: PairFeatures, match: NDArray[np.bool_], *, pull: float) -> LinearClassifier:
    """Fit a logistic regression by Newton's method. Its coefficients are drawn to those of the plain pair model."""
    wide = features.astype(np.float64)
    means, scales = wide.mean(axis=0), wide.std(axis=0)
    scales[scales < 1e-9] = 1.0
    means[LIKELY], scales[LIKELY] = 0.0, 1.0
    columns = np.column_stack([(wide - means) / scales, np.ones(len(wide))])
    prior = np.zeros(columns.shape[1])
    prior[LIKELY] = 1.0
    pulls = np.append(np.full(wide.shape[1], pull), pull / 20)
    coefficients = prior.copy()
    for _ in range(STEPS if math.isfinite(pull) else 0):
        probabilities = 1 / (1 + np.exp(-np.clip(columns @ coefficients, -30, 30)))
        slope = columns.T @ (probabilities - match) + pulls * (coefficients - prior)
        curve = (columns.T * (probabilities * (1 - probabilities))) @ columns + np.diag(pulls)
        step = np.linalg.solve(curve, slope)
        coefficients -= step * min(1.0, 1 / max(float(np.abs(step).max()), 1e-300))
        if float(np.abs(step).max()) < TOLERANCE:
            break
    return LinearClassifier(means, scales, coefficients[:-1], float(coefficients[-1]))


def _fit_boosted(features: PairFeatures, match: NDArray[np.bool_]) -> Trees:
    fewest = max(1, min(LEAF_PAIRS, len(match) // 10))
    fitted = scikit_learn("ensemble").HistGradientBoostingClassifier(
        max_iter=TREES, learning_rate=RATE, max_leaf_nodes=LEAVES, min_samples_leaf=fewest,
        l2_regularization=PENALTY, early_stopping=False, random_state=SEED,
    )  # fmt: skip
    # Its threads (threadpoolctl comes with it) spin: on a busy machine two take many times as long as one.
    with import_module("threadpoolctl").threadpool_limits(1):
        fitted.fit(features, match)
        wanted = fitted.predict_proba(features)[:, 1]
    made = trees_of_scikit_learn(fitted)  # the probabilities are checked below
    if not np.allclose(made.probabilities(features), wanted, rtol=0, atol=CLOSE):
        raise InputError("this scikit-learn stores its trees in an unknown way; install an older one")
    return made


def _fits(*, trees: bool) -> dict[str, Fit]:
    """Return the ways to learn a classifier from features and labels, by name."""
    fits: dict[str, Fit] = {f"logistic {pull:g}": partial(_fit_logistic, pull=pull) for pull in PULLS}
    return fits | ({"trees": _fit_boosted} if trees else {})
