"""Classes of texts from a few or from many examples: nearest neighbour, centroid of five, logistic regression.

A set is a file of `label<TAB>text` lines to learn from and another to score on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import optimize, special

from gramvec.errors import InputError
from gramvec_training.data import numbered_lines
from gramvec_training.evaluation.comparison import Encode, Ints, Vectors, nearest_rows, unit

EXAMPLES = 5  # of each class that a centroid is made of
DRAWS = 10  # of such examples, whose scores are averaged
L2 = 1e-3  # on the weights of the logistic regression, beside the mean loss of a text


@dataclass(frozen=True)
class LabelledTexts:
    """Texts and the number of the class of each, int64[n]; `classes` are the labels by number, in their order."""

    texts: list[str]
    labels: Ints
    classes: list[str]


@dataclass(frozen=True)
class ClassificationScores:
    """Accuracies, 0 to 1: the label of the nearest example, the nearest mean of five examples, logistic regression."""

    nearest: float
    centroid: float
    logistic: float


def read_labelled_texts(path: Path, classes: Sequence[str] | None = None) -> LabelledTexts:
    """The lines of a file. classes: the labels that may occur, as those of the file that a model learns from.

    Raises InputError, naming the line, for a line without a tab and for an unknown label; and for fewer than two
    classes.
    """
    texts, names = [], []
    for line, raw in numbered_lines(path):
        label, tab, text = raw.decode("utf-8", "replace").partition("\t")
        if not tab or (classes is not None and label not in classes):
            raise InputError(f"{path} line {line}: {label!r} is no known label; a line is a label, a tab and a text.")
        texts.append(text)
        names.append(label)
    known = sorted(set(names)) if classes is None else list(classes)
    if len(known) < 2 or not texts:
        raise InputError(f"{path} has fewer than two classes, so there is nothing to tell apart.")
    numbers = {label: number for number, label in enumerate(known)}
    return LabelledTexts(texts, np.array([numbers[name] for name in names], np.int64), known)


def score_classification(
    train: LabelledTexts, test: LabelledTexts, encode: Encode, *, seed: int = 1
) -> ClassificationScores:
    """The three accuracies on `test` of what was learned from `train`. seed: of the examples that centroids are of."""
    learned, asked = encode(train.texts), encode(test.texts)
    return ClassificationScores(
        nearest=_accuracy(train.labels[nearest_rows(asked, learned, 1)[:, 0]], test.labels),
        centroid=_centroids(learned, train.labels, asked, test.labels, seed),
        logistic=_logistic(learned, train.labels, asked, test.labels),
    )


def _accuracy(said: Ints, true: Ints) -> float:
    return float(np.mean(said == true))


def _centroids(learned: Vectors, labels: Ints, asked: Vectors, true: Ints, seed: int) -> float:
    rng = np.random.default_rng(seed)
    members = [np.flatnonzero(labels == number) for number in np.unique(labels)]
    scores = []
    for _ in range(DRAWS):
        means = unit(np.stack([_mean(learned, rng.permutation(rows)[:EXAMPLES]) for rows in members]))
        said = np.unique(labels)[np.argmax(np.asarray(asked @ means.T), axis=1)]
        scores.append(_accuracy(said, true))
    return float(np.mean(scores))


def _mean(vectors: Vectors, rows: npt.NDArray[np.intp]) -> npt.NDArray[np.float64]:
    return np.asarray(vectors[rows].mean(axis=0), np.float64).ravel()


def _logistic(learned: Vectors, labels: Ints, asked: Vectors, true: Ints) -> float:
    """Multinomial logistic regression by L-BFGS: mean cross-entropy + L2 / 2 * ||W||^2, with biases that cost nothing."""
    classes = int(labels.max()) + 1
    width = learned.shape[1]
    wanted = np.eye(classes)[labels]  # [n, classes]

    def loss(flat: npt.NDArray[np.float64]) -> tuple[float, npt.NDArray[np.float64]]:
        weights, biases = flat[:-classes].reshape(width, classes), flat[-classes:]
        logits = np.asarray(learned @ weights) + biases  # [n, classes]
        errors = (special.softmax(logits, axis=1) - wanted) / len(labels)
        value = -float(np.mean((special.log_softmax(logits, axis=1) * wanted).sum(axis=1))) + L2 / 2 * float(
            (weights**2).sum()
        )
        slope: Any = np.asarray(learned.T @ errors) + L2 * weights
        return value, np.concatenate([slope.ravel(), errors.sum(axis=0)])

    found = optimize.minimize(
        loss, np.zeros((width + 1) * classes), jac=True, method="L-BFGS-B", options={"maxiter": 300}
    )
    weights, biases = found.x[:-classes].reshape(width, classes), found.x[-classes:]
    return _accuracy(np.argmax(np.asarray(asked @ weights) + biases, axis=1).astype(np.int64), true)
