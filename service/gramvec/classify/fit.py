"""Fitting a head over vectors and the TF-IDF of characters and of words, and what it is worth on texts held out.

Of up to 500 texts, all three are columns of one multinomial logistic regression. Those of n-grams are scaled, and texts
held out choose the scale: by cross-entropy, with a prior, because so few texts say little.

Of more, the parts are multinomial logistic regression over vectors, and linear support vector machines over the TF-IDF
of characters and of words. The head's logits are their weighted sum. The weights minimize the cross-entropy of texts
held out (stacking; Wolpert 1992), and a part that does not help is left out.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gramvec.classify.head import MOST_LABELS, Head, HeadWeights, softmax
from gramvec.classify.ngrams import BLOCK_CHARACTERS, BLOCK_TEXTS, WORDS, NgramColumns
from gramvec.errors import InputError, import_extra
from gramvec.lexical.hashing import COLUMN_BITS
from gramvec.text.arrays import Doubles, Floats, Int64s
from gramvec.text.inputs import blocks

PURPOSE = "learning a head"
PARTS = ("meaning", "characters", "words")
KEPT = 0.95  # of the right answers, those that the default threshold accepts
# Held out: each text once in ten parts of few texts or in five; of many texts a fifth.
FEW_TEXTS, TEN_FOLDS, MANY_TEXTS, FOLDS, SEED = 500, 10, 3000, 5, 1
MOST_LOGITS = 1 << 29  # texts times labels: 2 GB
MOST_OF_A_PART, LEAST_OF_A_PART, MOST_WEIGHTS = 50_000, 2_000, 16_000_000
# Chosen on data/dev (benchmarks/classify.py): 3 to 30 and 0.3 to 3 differ by less than the seeds do.
STRENGTH, STRENGTH_OF_NGRAMS = 10.0, 1.0  # C
PRIOR = 0.2
# Of n-grams beside vectors, for few texts; PRIOR_OF_SCALE nats times the square of log(scale / SCALE) are its cost.
SCALES, SCALE, PRIOR_OF_SCALE = (0.1, 0.2, 0.3, 0.5, 0.7, 1.0, 1.4, 2.0, 4.0), 0.5, 2.0
_JITTER = 1e-4  # of a matrix of products, which equal texts make singular
LEAST_WEIGHT = 0.01  # of a part, of the largest
_STEPS = 60
_TOLERANCE = 1e-2  # of the largest weight
_ABSENT = -10.0  # logit of a label without a text
_BINS = 10


@dataclass(frozen=True)
class Report:
    """Quality of a head on texts held out.

    Args:
        texts: how many were held out; the only text of a label never is.
        labels: of the head.
        weights: of the parts of PARTS, 0 for one that was left out; of up to 500 texts their shares of the logits.
        accuracy: share with the right label.
        calibration: expected calibration error over ten bins of scores.
        unknown: share below the threshold.
        accuracy_known: accuracy of the others.
    """

    texts: int
    labels: int
    weights: tuple[float, float, float]
    accuracy: float
    calibration: float
    unknown: float
    accuracy_known: float


@dataclass(frozen=True)
class Linear:
    """Linear classifier: coefficients float32[d, labels], intercepts float32[labels]."""

    coefficients: Floats
    intercepts: Floats


def fit_head(
    texts: Sequence[str],
    vectors: Floats,
    labels: Sequence[str],
    *,
    model: str,
    digest: str,
    threshold: float | None = None,
) -> tuple[Head, Report]:
    """Fit a head.

    Args:
        texts: n of them.
        vectors: float32[n, d], of length 1.
        labels: of each text.
        model: the bundle's name.
        digest: the bundle's digest.
        threshold: score below which a text has no label; by default what 95 % of the right answers on texts held out
            reach.

    Raises:
        InputError: fewer than two labels, more than 100,000, none of two texts, too many texts for so many labels, or
            scikit-learn is not installed.
    """
    names = sorted(set(labels))
    if len(names) < 2:
        raise InputError("every text has the same label; give texts of two labels or more")
    if len(names) > MOST_LABELS:
        raise InputError(f"a head has at most {MOST_LABELS:,} labels; these are {len(names):,}")
    if len(names) * len(texts) > MOST_LOGITS:
        raise InputError(
            f"{len(texts):,} texts with {len(names):,} labels take too much memory; "
            f"give at most {MOST_LOGITS // len(names):,} texts, or fewer labels"
        )
    places = {name: place for place, name in enumerate(names)}
    own = np.array([places[label] for label in labels], np.int64)
    folds = _folds(vectors, own)
    if not (folds >= 0).any():
        raise InputError("no label has two texts; give more texts of each")
    with import_extra("threadpoolctl", "classify", PURPOSE).threadpool_limits(1):
        return _fitted(texts, vectors, own, folds, tuple(names), model, digest, threshold)


def _fitted(
    texts: Sequence[str],
    vectors: Floats,
    own: Int64s,
    folds: Int64s,
    names: tuple[str, ...],
    model: str,
    digest: str,
    threshold: float | None,
) -> tuple[Head, Report]:
    vocabulary = NgramColumns.of_texts(
        texts,
        least=2 if len(texts) >= 2000 else 1,
        most=min(MOST_OF_A_PART, max(LEAST_OF_A_PART, MOST_WEIGHTS // len(names))),
    )
    is_word = vocabulary.keys >> COLUMN_BITS == WORDS
    sparse = _rows(vocabulary, texts)
    seen = [vectors, sparse[:, np.flatnonzero(~is_word)], sparse[:, np.flatnonzero(is_word)]]
    few = len(texts) <= FEW_TEXTS
    shares, logits, held = (_held_out_jointly if few else _held_out)(seen, own, folds, len(names))
    true = own[held]
    weights = _weights(logits, true)
    scores = _cross_scored(logits, true)
    right, best = scores.argmax(axis=1) == true, scores.max(axis=1)
    if threshold is None:
        # By the head's own weights, by which texts are scored later.
        final = softmax(_mixed(logits, weights), 1.0)
        accepted = final.max(axis=1)[final.argmax(axis=1) == true]
        threshold = float(np.quantile(accepted, 1 - KEPT)) if len(accepted) else 0.0
    known = best >= threshold
    parts: list[Linear | None] = [
        _learned(seen, part, own, len(names)) if weights[part] else None for part in range(0 if few else len(PARTS))
    ]
    said = weights
    if few:
        joint = _jointly_learned(seen, own, len(names), shares)
        spreads = shares * [np.std(one @ linear.coefficients) for one, linear in zip(seen, joint, strict=True)]
        said, weights, parts = weights * spreads / max(spreads.sum(), 1e-9), weights * shares, [*joint]
    report = Report(
        texts=len(true),
        labels=len(names),
        weights=(float(said[0]), float(said[1]), float(said[2])),
        accuracy=float(right.mean()),
        calibration=_calibration_error(best, right),
        unknown=float(1 - known.mean()),
        accuracy_known=float(right[known].mean()) if known.any() else 0.0,
    )
    head = _head(
        parts, weights, vocabulary, is_word, vectors.shape[1],
        labels=names, temperature=1.0, threshold=threshold, model=model, digest=digest,
    )  # fmt: skip
    return head, report


def _rows(vocabulary: NgramColumns, texts: Sequence[str]) -> Any:
    """Return scipy.sparse.csr_matrix float32[n, k] with int32 indices, which scikit-learn asks for."""
    sparse = import_extra("scipy.sparse", "classify", PURPOSE)
    found = []
    for first, last in blocks(texts, BLOCK_TEXTS, BLOCK_CHARACTERS):
        weighed = vocabulary.weighed(texts[first:last])
        shape = (last - first, len(vocabulary.keys))
        rows, columns = weighed.text.astype(np.int32), weighed.place.astype(np.int32)
        found.append(sparse.csr_matrix((weighed.value.astype(np.float32), (rows, columns)), shape=shape))
    return sparse.vstack(found, format="csr")


def _folds(vectors: Floats, own: Int64s) -> Int64s:
    """Return int64[n]: the part in which a text is held out, as many of a label in each; -1 for never.

    Texts with the same vector are in one part, so that no text is asked of which a copy was learned.
    """
    parts = TEN_FOLDS if len(own) <= FEW_TEXTS else FOLDS
    places: dict[bytes, int] = {}
    first = np.array([places.setdefault(one.tobytes(), row) for row, one in enumerate(vectors)], np.int64)
    distinct = np.unique(first)
    labels = own[distinct]
    order = np.lexsort([np.random.default_rng(SEED).random(len(labels)), labels])
    folds = np.full(len(own), -1, np.int64)
    # One label after the other goes round, so that labels of a few texts do not all fill the first parts.
    folds[distinct[order]] = np.arange(len(labels)) % parts
    folds[distinct[np.bincount(labels)[labels] < 2]] = -1
    folds = folds[first]
    if len(own) > MANY_TEXTS and (folds == 0).any():
        folds[folds > 0] = -1
    return folds


def _held_out(seen: Sequence[Any], own: Int64s, folds: Int64s, labels: int) -> tuple[Doubles, Doubles, Int64s]:
    """Return (ones, logits float64[parts, m, labels] of the texts held out, their rows int64[m])."""
    rows, found = [], []
    for fold in np.unique(folds[folds >= 0]).tolist():
        held, rest = np.flatnonzero(folds == fold), np.flatnonzero(folds != fold)
        logits = np.empty((len(PARTS), len(held), labels))
        for part in range(len(PARTS)):
            linear = _learned([one[rest] for one in seen], part, own[rest], labels)
            logits[part] = seen[part][held] @ linear.coefficients + linear.intercepts
        rows.append(held)
        found.append(logits)
    order = np.argsort(np.concatenate(rows), kind="stable")
    return np.ones(len(PARTS)), np.concatenate(found, axis=1)[:, order], np.concatenate(rows)[order]


def _held_out_jointly(seen: Sequence[Any], own: Int64s, folds: Int64s, labels: int) -> tuple[Doubles, Doubles, Int64s]:
    """Return (the parts' shares of a product of two texts, by the best scale; logits float64[1, m, labels]; rows)."""
    products, held = _products(seen), np.flatnonzero(folds >= 0)
    found: list[tuple[float, Doubles, Doubles]] = []
    for scale in SCALES:
        shares = np.array([1.0, scale**2, scale**2])
        kernel = np.tensordot(shares, products, axes=1)
        logits = np.empty((1, len(own), labels))
        for fold in np.unique(folds[held]).tolist():
            asked, rest = np.flatnonzero(folds == fold), np.flatnonzero(folds != fold)
            dual, intercepts = _dual(kernel[np.ix_(rest, rest)], own[rest], labels)
            logits[0, asked] = kernel[np.ix_(asked, rest)] @ dual + intercepts
        logits, true = logits[:, held], own[held]
        scores = softmax(_mixed(logits, _weights(logits, true)), 1.0)[np.arange(len(true)), true]
        loss = float(-np.log(np.maximum(scores, 1e-12)).sum()) + PRIOR_OF_SCALE * float(np.log(scale / SCALE)) ** 2
        found.append((loss, shares, logits))
    _, shares, logits = min(found, key=lambda one: one[0])
    return shares, logits, held


def _jointly_learned(seen: Sequence[Any], own: Int64s, labels: int, shares: Doubles) -> list[Linear]:
    """Fit one logistic regression over all parts: its logits are the parts' sum by their shares."""
    dual, intercepts = _dual(np.tensordot(shares, _products(seen), axes=1), own, labels)
    every = [Linear((one.T @ dual).astype(np.float32), np.zeros(labels, np.float32)) for one in seen]
    return [Linear(every[0].coefficients, intercepts.astype(np.float32)), *every[1:]]


def _products(seen: Sequence[Any]) -> Doubles:
    """Return the products of all pairs of texts, float64[parts, n, n]."""
    vectors, *sparse = seen
    return np.stack([(vectors @ vectors.T).astype(np.float64), *((one @ one.T).toarray() for one in sparse)])


def _dual(kernel: Doubles, own: Int64s, labels: int) -> tuple[Doubles, Doubles]:
    """Fit `logistic_regression` to texts by their products float64[n, n]; a label without a text never wins.

    Returns:
        (float64[n, labels], intercepts float64[labels]): the logits of a text are its products with the n texts times
        the first, plus the second.
    """
    there = np.unique(own)
    dual, intercepts = np.zeros((len(own), labels)), np.full(labels, _ABSENT)
    intercepts[there] = 0
    if len(there) > 1:
        # Rows with the same products: the root of the kernel.
        rows = np.linalg.cholesky(kernel + _JITTER * np.eye(len(own)))
        weights = logistic_regression(rows.astype(np.float32), np.searchsorted(there, own), len(there))
        dual[:, there] = np.linalg.solve(rows.T, weights[:-1].astype(np.float64))
        intercepts[there] = weights[-1]
    return dual, intercepts


def _learned(seen: Sequence[Any], part: int, own: Int64s, labels: int) -> Linear:
    """Fit one part; a label without a text never wins."""
    there = np.unique(own)
    linear = Linear(
        np.zeros((seen[part].shape[1], labels), np.float32), np.full(labels, _ABSENT, np.float32)
    )  # fmt: skip
    linear.intercepts[there] = 0
    if len(there) < 2 or not seen[part].shape[1]:
        return linear
    if part == 0:
        weights = logistic_regression(seen[part], np.searchsorted(there, own), len(there))
        linear.coefficients[:, there], linear.intercepts[there] = weights[:-1], weights[-1]
        return linear
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.svm import LinearSVC

    learner = LinearSVC(C=STRENGTH_OF_NGRAMS, tol=1e-2, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # near enough; the report says how near
        learner.fit(seen[part], own)
    if len(there) == 2:  # scikit-learn has one row, the second label's
        linear.coefficients[:, there] = np.stack([-learner.coef_[0], learner.coef_[0]], axis=1)
        linear.intercepts[there] = -learner.intercept_[0], learner.intercept_[0]
    else:
        linear.coefficients[:, there], linear.intercepts[there] = learner.coef_.T, learner.intercept_
    return linear


def logistic_regression(vectors: Floats, own: Int64s, labels: int) -> Floats:
    """Fit multinomial logistic regression with an L2 penalty, as scikit-learn's, in a tenth of its time. STRENGTH is C.

    The Hessian is bounded by that of all scores equal, X'X / 2 (Boehning 1992), which is inverted once; steps are
    accelerated (Nesterov 1983) and restarted where they turn back.

    Args:
        vectors: float32[n, d].
        own: int64[n], the label of each row, from 0.
        labels: how many there are.

    Returns:
        float32[d + 1, labels]: coefficients, and in the last row the intercepts, which have no penalty.
    """
    x = np.hstack([vectors, np.ones((len(vectors), 1), np.float32)])
    penalty = np.full((x.shape[1], 1), 1 / STRENGTH, np.float32)
    penalty[-1] = 1e-6
    inverse = np.linalg.inv((x.T @ x).astype(np.float64) / 2 + np.diag(penalty[:, 0])).astype(np.float32)
    weights = ahead = np.zeros((x.shape[1], labels), np.float32)
    momentum = 1.0
    for _ in range(_STEPS):
        shares = softmax(x @ ahead, 1.0)
        shares[np.arange(len(own)), own] -= 1
        step = inverse @ (x.T @ shares + penalty * ahead)
        after = ahead - step
        moved = after - weights
        if float((step * moved).sum()) > 0:
            momentum, ahead = 1.0, after
        else:
            faster = (1 + (1 + 4 * momentum * momentum) ** 0.5) / 2
            momentum, ahead = faster, after + np.float32((momentum - 1) / faster) * moved
        weights = after
        if float(np.abs(moved).max()) < _TOLERANCE * float(np.abs(after).max()):
            break
    return weights


def _mixed(logits: Doubles, weights: Doubles) -> Floats:
    return np.tensordot(weights, logits, axes=1).astype(np.float32)


def _weights(logits: Doubles, true: Int64s) -> Doubles:
    """Return the weights float64[parts] that minimize the cross-entropy with the prior, 0 for a part that is useless.

    A share of 1 / (n + 2) of each text is spread over all labels, so that a few texts that are all right do not make
    scores of 1 (Platt 1999, section 2.2).
    """
    from scipy.optimize import minimize

    n = len(true)
    spread = 1 / (n + 2)
    prior = np.array([0.0, PRIOR, PRIOR])[: len(logits)] / n
    targets = np.full(logits.shape[1:], spread / logits.shape[2])
    targets[np.arange(n), true] += 1 - spread

    def loss(weights: Doubles) -> tuple[float, Doubles]:
        mixed = np.tensordot(weights, logits, axes=1)
        mixed -= mixed.max(axis=1, keepdims=True)
        logs = mixed - np.log(np.exp(mixed).sum(axis=1, keepdims=True))
        slope = np.tensordot(logits, np.exp(logs) - targets, axes=2) / n + 2 * prior * weights
        return float(-(targets * logs).sum() / n + (prior * weights * weights).sum()), slope

    start = np.full(len(logits), 1 / len(logits))
    found = minimize(loss, start, jac=True, bounds=[(0, 100)] * len(logits), method="L-BFGS-B")
    weights: Doubles = found.x
    spreads = np.array([one.std() for one in logits]) * weights
    if not spreads.any():
        weights = spreads = np.eye(len(logits))[0]
    return np.where(spreads >= LEAST_WEIGHT * spreads.max(), weights, 0.0)


def _cross_scored(logits: Doubles, true: Int64s) -> Floats:
    """Return scores float32[m, labels] of each fifth by the weights that the others choose."""
    scores = np.empty(logits.shape[1:], np.float32)
    parts = np.arange(len(true)) % FOLDS
    for part in range(FOLDS):
        held = parts == part
        if held.any():
            rest = ~held if (~held).any() else held
            weights = _weights(logits[:, rest], true[rest])
            scores[held] = softmax(_mixed(logits[:, held], weights), 1.0)
    return scores


def _head(
    parts: Sequence[Linear | None],
    weights: Doubles,
    vocabulary: NgramColumns,
    is_word: NDArray[np.bool_],
    dimensions: int,
    labels: tuple[str, ...],
    **fields: Any,
) -> Head:
    """Add the parts, times their weights, into one head."""
    intercepts = np.zeros(len(labels), np.float32)
    coefficients = np.zeros((len(labels), dimensions), np.float32)
    of_ngrams = np.zeros((len(vocabulary.keys), len(labels)), np.float32)
    parts_of = np.where(is_word, 2, 1)
    for part, (linear, weight) in enumerate(zip(parts, weights.tolist(), strict=True)):
        if linear is not None:
            intercepts += np.float32(weight) * linear.intercepts
            if part == 0:
                coefficients = np.float32(weight) * linear.coefficients.T
            else:
                of_ngrams[parts_of == part] = np.float32(weight) * linear.coefficients
    kept = np.flatnonzero(weights[parts_of])
    ngrams = HeadWeights.of(vocabulary.only(kept), of_ngrams[kept]) if len(kept) else None
    return Head.of(coefficients, intercepts, ngrams=ngrams, labels=labels, **fields)


def _calibration_error(best: Floats, right: NDArray[np.bool_]) -> float:
    bins = np.minimum((best * _BINS).astype(np.int64), _BINS - 1)
    gaps = np.bincount(bins, best - right, _BINS)
    return float(np.abs(gaps).sum() / len(best))
