"""Fitting a head over vectors and the TF-IDF of characters and of words, and what it is worth on texts held out.

Of up to 500 texts, all three are columns of one multinomial logistic regression. Those of n-grams are scaled, and texts
held out choose the scale: by cross-entropy, with a prior, because so few texts say little.

Of more, the parts are multinomial logistic regression over vectors, and linear support vector machines over the TF-IDF
of characters and of words. The head's logits are their weighted sum. The weights minimize the cross-entropy of texts
held out (stacking; Wolpert 1992), and a part that does not help is left out.

Texts are held out with their near copies. What is new in them is counted as if their part had never been seen, so that
their scores are those of new texts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gramvec.errors import InputError, import_extra
from gramvec.jobs.classify.copies import near_copies, parts_held_out
from gramvec.jobs.classify.head import MAX_LABELS, Head, HeadWeights, score_logits
from gramvec.jobs.classify.ngrams import BLOCK_CHARACTERS, BLOCK_TEXTS, WORDS, NgramColumns
from gramvec.jobs.classify.svm import learn_svm
from gramvec.jobs.classify.targets import Targets
from gramvec.jobs.classify.threshold import best_threshold, own_thresholds, threshold_that_keeps
from gramvec.lexical.hashing import COLUMN_BITS
from gramvec.progress import NO_PROGRESS, Progress
from gramvec.text.arrays import Bools, Doubles, Floats, Int64s
from gramvec.text.inputs import blocks

PURPOSE = "learning a head"
PARTS = ("meaning", "characters", "words")
# Held out: each text once in ten parts of few texts or in five; of many texts a fifth.
FEW_TEXTS, TEN_FOLDS, MANY_TEXTS, FOLDS = 500, 10, 3000, 5
MAX_LOGITS = 1 << 29  # texts times labels: 2 GB
MAX_OF_A_PART, MIN_OF_A_PART, MAX_WEIGHTS = 50_000, 2_000, 16_000_000
# Chosen on data/dev (benchmarks/classify.py): 3 to 30 and 0.3 to 3 differ by less than the seeds do.
STRENGTH, STRENGTH_OF_NGRAMS = 10.0, 1.0  # C
PRIOR = 0.2
# Scale of n-grams beside vectors, for few texts; its cost is PRIOR_OF_SCALE nats times log(scale / SCALE) squared.
SCALES, SCALE, PRIOR_OF_SCALE = (0.1, 0.2, 0.3, 0.5, 0.7, 1.0, 1.4, 2.0, 4.0), 0.5, 2.0
# The mean score of "none of them" on texts held out, which all have a label. Chosen on texts of labels left out (three
# rotations of HWU64 but the benchmark's, three of SNIPS; all texts and 20 of each label), with a calibration error of
# at most 5 %: mean AUROC 0.894 without, 0.904 so, 0.905 with twice the share.
NONE_SHARE, NOVELTY = 0.05, 4.0
_JITTER = 1e-4  # of a matrix of products, which equal texts make singular
MIN_WEIGHT = 0.01  # of a part, of the largest
_STEPS = 60
_TOLERANCE = 1e-2  # of the largest weight
_ABSENT = -10.0  # logit of a label without a text
_BINS = 10
_HALVINGS = 40


class HeldOutAnswers(NamedTuple):
    """Answers of a head for texts that were held out.

    Attributes:
        rows: int64[m], which texts they are.
        labels: the best label of each.
        scores: float32[m], its score, 0 to 1.
        right: bool[m], whether the text has that label.
    """

    rows: Int64s
    labels: list[str]
    scores: Floats
    right: Bools


@dataclass(frozen=True)
class Report:
    """Quality of a head on texts held out.

    Args:
        texts: how many were held out; those of a label whose texts are all near copies never are.
        groups: of near copies among these.
        labels: of the head.
        several: a text may have several labels.
        weights: of the parts of PARTS, 0 for one that was left out; of up to 500 texts their shares of the logits.
        accuracy: share whose best label is right.
        calibration: expected calibration error of its score over ten bins.
        unknown: share whose best score is below the threshold.
        lost: share of the right ones that are.
        accuracy_known: accuracy of those at or above it.
        f1: of pairs of a text and a label, where a text may have several.
        answers: for each text held out.
    """

    texts: int
    groups: int
    labels: int
    several: bool
    weights: tuple[float, float, float]
    accuracy: float
    calibration: float
    unknown: float
    lost: float
    accuracy_known: float
    f1: float
    answers: HeldOutAnswers = field(compare=False)


@dataclass(frozen=True)
class Linear:
    """Linear classifier: coefficients float32[d, labels], intercepts float32[labels]."""

    coefficients: Floats
    intercepts: Floats


class HeldOutTexts(NamedTuple):
    """Texts held out: their rows int64[m], logits float64[parts, m, labels], and how new they were, float64[m]."""

    rows: Int64s
    logits: Doubles
    news: Doubles


class StackedParts(NamedTuple):
    """Weights float64[parts] of parts, and the logit of no label."""

    weights: Doubles
    none: float


def fit_head(
    texts: Sequence[str],
    vectors: Floats,
    labels: Sequence[str] | Sequence[Sequence[str]],
    *,
    model: str,
    digest: str,
    threshold: float | None = None,
    thresholds: Mapping[str, float] | None = None,
    progress: Progress = NO_PROGRESS,
) -> tuple[Head, Report]:
    """Fit a head.

    Args:
        texts: n of them.
        vectors: float32[n, d], of length 1.
        labels: one of each text, or a sequence of several of each.
        model: the bundle's name.
        digest: the bundle's digest.
        threshold: score below which a label is unsure; by default one that loses at most 1 % of the right answers on
            texts held out, and at most 5 % of those of any label. Of several labels a text, the one with the best F1.
        thresholds: of labels that have another one.
        progress: shows the steps.

    Raises:
        InputError: fewer than two labels, more than 100,000, no label of two texts, too many texts for the labels, a
            threshold of no label, or scipy is not installed.
    """
    several = any(not isinstance(label, str) for label in labels)
    label_lists = [(label,) if isinstance(label, str) else tuple(label) for label in labels]
    names = sorted({name for row_labels in label_lists for name in row_labels})
    if len(names) < 2:
        raise InputError("every text has the same label; give texts of two labels or more")
    if len(names) > MAX_LABELS:
        raise InputError(f"a head has at most {MAX_LABELS:,} labels; these are {len(names):,}")
    if len(names) * len(texts) > MAX_LOGITS:
        raise InputError(
            f"{len(texts):,} texts with {len(names):,} labels take too much memory; "
            f"give at most {MAX_LOGITS // len(names):,} texts, or fewer labels"
        )
    for name in thresholds or {}:
        if name not in names:
            raise InputError(f"there is no label {name!r} to have a threshold; the first ones are {names[:5]}")
    targets = Targets.of(label_lists, names)
    library = import_extra("threadpoolctl", "classify", PURPOSE)  # a missing one is reported before the work
    groups = near_copies(texts, vectors, targets.rarest)
    folds = _folds(groups, targets)
    if not (folds >= 0).any():
        groups = near_copies(texts, vectors)
        folds = _folds(groups, targets)
    if not (folds >= 0).any():
        groups = np.arange(len(texts))
        folds = _folds(groups, targets)
    if not (folds >= 0).any():
        raise InputError("no label has two texts; give more texts of each")
    with library.threadpool_limits(1):
        fitting = _HeadFit(texts, vectors, targets, groups, folds, several, progress)
        return fitting.head(names, model, digest, threshold, dict(thresholds or {}))


def _folds(groups: Int64s, targets: Targets) -> Int64s:
    few = targets.texts <= FEW_TEXTS
    folds = parts_held_out(groups, targets.rarest, TEN_FOLDS if few else FOLDS)
    if targets.texts > MANY_TEXTS and (folds == 0).any():
        folds[folds > 0] = -1
    return folds


class _HeadFit:
    """Fitting of a head: what is seen of the texts, and the parts in which they are held out."""

    def __init__(
        self, texts: Sequence[str], vectors: Floats, targets: Targets, groups: Int64s, folds: Int64s, several: bool,
        progress: Progress,
    ) -> None:  # fmt: skip
        self.min_texts = 2 if len(texts) >= 2000 else 1
        max_columns = min(MAX_OF_A_PART, max(MIN_OF_A_PART, MAX_WEIGHTS // targets.labels))
        self.vocabulary = NgramColumns.of_texts(texts, min_texts=self.min_texts, max_columns=max_columns)
        self.is_word = self.vocabulary.keys >> COLUMN_BITS == WORDS
        sparse, self.known = _rows(self.vocabulary, texts)
        self.seen = [vectors, sparse[:, np.flatnonzero(~self.is_word)], sparse[:, np.flatnonzero(self.is_word)]]
        self.targets, self.groups, self.folds, self.several = targets, groups, folds, several
        self.few = len(texts) <= FEW_TEXTS
        # Few texts: a step for each scale. More: a step for each part of each fold, and for each part of all texts.
        steps = len(SCALES) + 1 if self.few else len(PARTS) * (1 + len(np.unique(folds[folds >= 0])))
        progress.start("learning", steps, "steps")
        self._step = partial(progress.advance, 1)

    def head(
        self, names: Sequence[str], model: str, digest: str, threshold: float | None, thresholds: dict[str, float]
    ) -> tuple[Head, Report]:
        shares, held = self._hold_out_jointly() if self.few else (np.ones(len(PARTS)), self._hold_out())
        true = self.targets.select(held.rows)
        copies = self.groups[held.rows]
        each = 1 / np.bincount(copies)[copies]  # so that near copies count as one text
        stacked = self._stack(held, true, each)
        scores = self._scores(stacked, held)
        right, best = _judge(scores, true)
        if threshold is None and self.several:
            threshold = best_threshold(scores, true)
        elif threshold is None:
            threshold = threshold_that_keeps(best[right], each[right])
            own = own_thresholds(threshold, best[right], scores.argmax(axis=1)[right])
            thresholds = {names[label]: bound for label, bound in own.items()} | thresholds
        fields = {"threshold": threshold, "thresholds": thresholds, "model": model, "digest": digest}
        reported, parts, weights = self._learn_parts(stacked.weights, shares)
        head = self._add_parts(parts, weights, tuple(names), stacked.none, fields)
        return head, self._report(head, held, true, scores, reported)

    def _report(self, head: Head, held: HeldOutTexts, true: Targets, scores: Floats, reported: Doubles) -> Report:
        """Return the report of the answers to texts held out."""
        right, best = _judge(scores, true)
        answers = head.answers(scores)
        known = np.array([answer.known for answer in answers])
        places = {name: place for place, name in enumerate(head.labels)}
        pairs = [(row, places[name]) for row, answer in enumerate(answers) if answer.known for name in answer.labels]
        text, label = np.array(pairs, np.int64).reshape(-1, 2).T
        both = int(true.hold(text, label).sum())
        return Report(
            texts=true.texts,
            groups=len(np.unique(self.groups[held.rows])),
            labels=true.labels,
            several=self.several,
            weights=(float(reported[0]), float(reported[1]), float(reported[2])),
            accuracy=float(right.mean()),
            calibration=_calibration_error(best, right),
            unknown=float(1 - known.mean()),
            lost=float((right & ~known).sum() / max(right.sum(), 1)),
            accuracy_known=float(right[known].mean()) if known.any() else 0.0,
            f1=2 * both / max(len(text) + len(true.text), 1),
            answers=HeldOutAnswers(held.rows, [head.labels[label] for label in scores.argmax(axis=1)], best, right),
        )

    def _hold_out(self) -> HeldOutTexts:
        rows, found = [], []
        for fold in np.unique(self.folds[self.folds >= 0]).tolist():
            held, rest = np.flatnonzero(self.folds == fold), np.flatnonzero(self.folds != fold)
            logits = np.empty((len(PARTS), len(held), self.targets.labels))
            for part, seen in enumerate(self.seen):
                linear = _learn_part(seen[rest], part, self.targets.select(rest))
                logits[part] = seen[held] @ linear.coefficients + linear.intercepts
                self._step()
            rows.append(held)
            found.append(logits)
        order = np.argsort(np.concatenate(rows), kind="stable")
        held = np.concatenate(rows)[order]
        return HeldOutTexts(held, np.concatenate(found, axis=1)[:, order], self._news()[held])

    def _hold_out_jointly(self) -> tuple[Doubles, HeldOutTexts]:
        """Return (the parts' shares of a product of two texts, by the best scale; what was held out with one part)."""
        products, held = _products(self.seen), np.flatnonzero(self.folds >= 0)
        true, news = self.targets.select(held), self._news()[held]
        found: list[tuple[float, Doubles, HeldOutTexts]] = []
        for scale in (*SCALES, None):
            # None leaves meaning out, and has the cost of the farthest scale.
            shares = np.array([0.0, 1.0, 1.0] if scale is None else [1.0, scale**2, scale**2])
            kernel = np.tensordot(shares, products, axes=1)
            logits = np.empty((1, self.targets.texts, self.targets.labels))
            for fold in np.unique(self.folds[held]).tolist():
                asked, rest = np.flatnonzero(self.folds == fold), np.flatnonzero(self.folds != fold)
                dual, intercepts = _dual(kernel[np.ix_(rest, rest)], self.targets.select(rest))
                logits[0, asked] = kernel[np.ix_(asked, rest)] @ dual + intercepts
            held_texts = HeldOutTexts(held, logits[:, held], news)
            scores = _shares(_mix(held_texts.logits, _weights(held_texts.logits, true)))[true.text, true.label]
            loss = -float((np.log(np.maximum(scores, 1e-12)) * true.shares).sum())
            cost = PRIOR_OF_SCALE * float(np.log((scale or SCALES[-1]) / SCALE)) ** 2
            found.append((loss + cost, shares, held_texts))
            self._step()
        _, shares, best = min(found, key=lambda choice: choice[0])
        return shares, best

    def _news(self) -> Doubles:
        """Return how new each text is, float64[n], to those of the other parts; see HeadWeights.logits."""
        news = np.zeros(self.targets.texts)
        for part, seen in enumerate(self.seen[1:]):
            if not seen.shape[1]:
                continue
            squares = seen.multiply(seen).tocsr()
            there = squares.copy()
            there.data[:] = 1
            everywhere = np.asarray(there.sum(axis=0)).ravel()
            for fold in np.unique(self.folds[self.folds >= 0]).tolist():
                rows = np.flatnonzero(self.folds == fold)
                elsewhere = everywhere - np.asarray(there[rows].sum(axis=0)).ravel()
                known = np.sqrt(squares[rows] @ (elsewhere >= self.min_texts).astype(np.float64))
                news[rows] += 1 - np.minimum(known, 1) * self.known[rows, part]
        return news

    def _stack(self, held: HeldOutTexts, true: Targets, each: Doubles) -> StackedParts:
        if self.several:
            return _weights_of_several(held, true)
        weights = _weights(held.logits, true)
        mixed = _mix(held.logits, weights).astype(np.float64)
        top = mixed.max(axis=1)
        sums = np.log(np.exp(mixed - top[:, None]).sum(axis=1)) + top
        return StackedParts(weights, _none_logit(sums - NOVELTY * held.news, each))

    def _scores(self, stacked: StackedParts, held: HeldOutTexts) -> Floats:
        none = (stacked.none + NOVELTY * held.news).astype(np.float32)
        return score_logits(_mix(held.logits, stacked.weights), none, several=self.several)

    def _learn_parts(self, weights: Doubles, shares: Doubles) -> tuple[Doubles, list[Linear | None], Doubles]:
        """Return the weights to report, the parts learned of all texts, and their weights."""
        if not self.few:
            parts = []
            for part, seen in enumerate(self.seen):
                parts.append(_learn_part(seen, part, self.targets) if weights[part] else None)
                self._step()
            return weights, parts, weights
        joint = _learn_jointly(self.seen, self.targets, shares)
        spreads = shares * [np.std(part @ linear.coefficients) for part, linear in zip(self.seen, joint, strict=True)]
        return weights * spreads / max(spreads.sum(), 1e-9), [*joint], weights * shares

    def _add_parts(
        self,
        parts: Sequence[Linear | None],
        weights: Doubles,
        names: tuple[str, ...],
        none: float,
        fields: dict[str, Any],
    ) -> Head:
        """Add the parts, times their weights, into one head."""
        labels = len(names)
        intercepts = np.zeros(labels, np.float32)
        coefficients = np.zeros((labels, self.seen[0].shape[1]), np.float32)
        of_ngrams = np.zeros((len(self.vocabulary.keys), labels), np.float32)
        parts_of = np.where(self.is_word, 2, 1)
        for part, (linear, weight) in enumerate(zip(parts, weights.tolist(), strict=True)):
            if linear is not None:
                intercepts += np.float32(weight) * linear.intercepts
                if part == 0:
                    coefficients = np.float32(weight) * linear.coefficients.T
                else:
                    of_ngrams[parts_of == part] = np.float32(weight) * linear.coefficients
        # Those of a part that is left out still tell what is new.
        ngrams = HeadWeights.of(self.vocabulary, of_ngrams) if len(parts_of) else None
        return Head.of(
            coefficients, intercepts, ngrams=ngrams, labels=names, none=none, novelty=NOVELTY, several=self.several,
            **fields,
        )  # fmt: skip


def _none_logit(logits: Doubles, weights: Doubles) -> float:
    """Return the logit whose mean share beside other logits, float64[m] with these weights, is NONE_SHARE."""
    low, high = float(logits.min()) - 10, float(logits.max()) + 10
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        shares = 1 / (1 + np.exp(np.clip(logits - middle, -60, 60)))
        low, high = (low, middle) if np.average(shares, weights=weights) > NONE_SHARE else (middle, high)
    return low


def _judge(scores: Floats, true: Targets) -> tuple[NDArray[np.bool_], Floats]:
    """Return of each text whether the best label is right, bool[n], and its score, float32[n]."""
    return true.hold(np.arange(true.texts), scores.argmax(axis=1)), scores.max(axis=1)


def _rows(vocabulary: NgramColumns, texts: Sequence[str]) -> tuple[Any, Doubles]:
    """Return a scipy.sparse.csr_matrix float32[n, k] with int32 indices, and the `known` of WeightedNgrams."""
    sparse = import_extra("scipy.sparse", "classify", PURPOSE)
    found, known = [], []
    for first, last in blocks(texts, BLOCK_TEXTS, BLOCK_CHARACTERS):
        weighed = vocabulary.weigh(texts[first:last])
        shape = (last - first, len(vocabulary.keys))
        rows, columns = weighed.text.astype(np.int32), weighed.place.astype(np.int32)
        found.append(sparse.csr_matrix((weighed.value.astype(np.float32), (rows, columns)), shape=shape))
        known.append(weighed.known)
    return sparse.vstack(found, format="csr"), np.concatenate(known)


def _learn_jointly(seen: Sequence[Any], targets: Targets, shares: Doubles) -> list[Linear]:
    """Fit one logistic regression over all parts: its logits are the parts' sum by their shares."""
    dual, intercepts = _dual(np.tensordot(shares, _products(seen), axes=1), targets)
    every = [Linear((part.T @ dual).astype(np.float32), np.zeros(targets.labels, np.float32)) for part in seen]
    return [Linear(every[0].coefficients, intercepts.astype(np.float32)), *every[1:]]


def _products(seen: Sequence[Any]) -> Doubles:
    """Return the products of all pairs of texts, float64[parts, n, n]."""
    vectors, *sparse = seen
    return np.stack([(vectors @ vectors.T).astype(np.float64), *((part @ part.T).toarray() for part in sparse)])


def _dual(kernel: Doubles, targets: Targets) -> tuple[Doubles, Doubles]:
    """Fit `logistic_regression` to texts by their products float64[n, n]; a label without a text never wins.

    Returns:
        (float64[n, labels], intercepts float64[labels]): the logits of a text are its products with the n texts times
        the first, plus the second.
    """
    there = np.flatnonzero(targets.counts)
    dual, intercepts = np.zeros((targets.texts, targets.labels)), np.full(targets.labels, _ABSENT)
    intercepts[there] = 0
    if len(there) > 1:
        # Rows with the same products: the root of the kernel.
        rows = np.linalg.cholesky(kernel + _JITTER * np.eye(targets.texts))
        weights = logistic_regression(rows.astype(np.float32), targets)[:, there]
        dual[:, there] = np.linalg.solve(rows.T, weights[:-1].astype(np.float64))
        intercepts[there] = weights[-1]
    return dual, intercepts


def _learn_part(seen: Any, part: int, targets: Targets) -> Linear:
    """Fit one part; a label without a text never wins."""
    there = np.flatnonzero(targets.counts)
    linear = Linear(
        np.zeros((seen.shape[1], targets.labels), np.float32), np.full(targets.labels, _ABSENT, np.float32)
    )  # fmt: skip
    linear.intercepts[there] = 0
    if len(there) < 2 or not seen.shape[1]:
        return linear
    weights = logistic_regression(seen, targets) if part == 0 else learn_svm(seen, targets, STRENGTH_OF_NGRAMS)
    linear.coefficients[:, there], linear.intercepts[there] = weights[:-1, there], weights[-1, there]
    return linear


def logistic_regression(vectors: Floats, targets: Targets) -> Floats:
    """Fit multinomial logistic regression with an L2 penalty, as scikit-learn's, in a tenth of its time. STRENGTH is C.

    The Hessian is bounded by that of all scores equal, X'X / 2 (Boehning 1992), which is inverted once; steps are
    accelerated (Nesterov 1983) and restarted where they turn back.

    Args:
        vectors: float32[n, d].
        targets: of the n rows; one of several labels is an equal share of a row. A label without a row has a
            probability of almost 0.

    Returns:
        float32[d + 1, labels]: coefficients, and in the last row the intercepts, which have no penalty.
    """
    x = np.hstack([vectors, np.ones((len(vectors), 1), np.float32)])
    penalty = np.full((x.shape[1], 1), 1 / STRENGTH, np.float32)
    penalty[-1] = 1e-6
    inverse = np.linalg.inv((x.T @ x).astype(np.float64) / 2 + np.diag(penalty[:, 0])).astype(np.float32)
    weights = ahead = np.zeros((x.shape[1], targets.labels), np.float32)
    weights[-1, targets.counts == 0] = _ABSENT
    momentum = 1.0
    for _ in range(_STEPS):
        shares = _shares(x @ ahead)
        shares[targets.text, targets.label] -= targets.shares
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


def _shares(logits: Floats) -> Floats:
    """Return float32[n, labels]: exp(logits), each row divided by its sum."""
    return score_logits(logits, np.full(len(logits), -np.inf, np.float32), several=False)


def _mix(logits: Doubles, weights: Doubles) -> Floats:
    return np.tensordot(weights, logits, axes=1).astype(np.float32)


def _prior(parts: int, n: int) -> Doubles:
    return np.array([0.0, PRIOR, PRIOR])[:parts] / n


def _weights(logits: Doubles, true: Targets) -> Doubles:
    """Return the weights float64[parts] that minimize the cross-entropy with the prior, 0 for a part that is useless.

    A share of 1 / (n + 2) of each text is spread over all labels, so that a few texts that are all right do not make
    scores of 1 (Platt 1999, section 2.2).
    """
    from scipy.optimize import minimize

    n = true.texts
    spread = 1 / (n + 2)
    prior = _prior(len(logits), n)
    targets = np.full(logits.shape[1:], spread / true.labels)
    targets[true.text, true.label] += (1 - spread) * true.shares

    def loss(weights: Doubles) -> tuple[float, Doubles]:
        mixed = np.tensordot(weights, logits, axes=1)
        mixed -= mixed.max(axis=1, keepdims=True)
        logs = mixed - np.log(np.exp(mixed).sum(axis=1, keepdims=True))
        slope = np.tensordot(logits, np.exp(logs) - targets, axes=2) / n + 2 * prior * weights
        return float(-(targets * logs).sum() / n + (prior * weights * weights).sum()), slope

    start = np.full(len(logits), 1 / len(logits))
    found = minimize(loss, start, jac=True, bounds=[(0, 100)] * len(logits), method="L-BFGS-B")
    return _drop_small_weights(logits, found.x)


def _weights_of_several(held: HeldOutTexts, true: Targets) -> StackedParts:
    """Return what minimizes the cross-entropy of every label of every text held out, each by itself."""
    from scipy.optimize import minimize

    n, parts = true.texts, len(held.logits)
    spread = 1 / (n + 2)
    prior = _prior(parts, n)
    targets = np.full(held.logits.shape[1:], spread / 2)
    targets[true.text, true.label] = 1 - spread / 2
    new = NOVELTY * held.news[:, None]

    def loss(values: Doubles) -> tuple[float, Doubles]:
        weights = values[:parts]
        mixed = np.tensordot(weights, held.logits, axes=1) - values[parts] - new
        losses = np.logaddexp(0, mixed) - targets * mixed
        steps = 1 / (1 + np.exp(-np.clip(mixed, -60, 60))) - targets
        slope = np.tensordot(held.logits, steps, axes=2) / n + 2 * prior * weights
        cost = float(losses.sum() / n + (prior * weights * weights).sum())
        return cost, np.append(slope, -steps.sum() / n)

    start = np.append(np.full(parts, 1 / parts), 0.0)
    bounds = [(0, 100)] * parts + [(-100, 100)]
    found = minimize(loss, start, jac=True, bounds=bounds, method="L-BFGS-B")
    return StackedParts(_drop_small_weights(held.logits, found.x[:parts]), float(found.x[parts]))


def _drop_small_weights(logits: Doubles, weights: Doubles) -> Doubles:
    """Return weights, 0 for a part that moves the logits by less than MIN_WEIGHT of what the largest does."""
    spreads = np.array([part.std() for part in logits]) * weights
    if not spreads.any():
        weights = spreads = np.eye(len(logits))[0]
    return np.where(spreads >= MIN_WEIGHT * spreads.max(), weights, 0.0)


def _calibration_error(best: Floats, right: NDArray[np.bool_]) -> float:
    bins = np.minimum((best * _BINS).astype(np.int64), _BINS - 1)
    gaps = np.bincount(bins, best - right, _BINS)
    return float(np.abs(gaps).sum() / len(best))
