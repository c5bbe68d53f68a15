"""Classes of texts from a few or from many examples: nearest neighbour, centroid of five, logistic regression.

A set is a file of `label<TAB>text` lines, of which a fifth of each class is scored and the rest learned from; or a
folder of two such files, one whose name ends in `train.tsv` and one in `test.tsv` (either may be .gz).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from gramvec.errors import InputError
from gramvec_training.families.comparison import Ints, Model, Vectors, unit
from gramvec_training.readers import read_rows

EXAMPLES = 5  # of each class that a centroid is made of
DRAWS = 10  # of such examples, whose scores are averaged
SCORED = 5  # of a file alone, one text in so many of each class


@dataclass(frozen=True)
class LabelledTexts:
    """Texts and the number of the class of each, int64[n]."""

    texts: list[str]
    labels: Ints

    def __len__(self) -> int:
        return len(self.texts)


@dataclass(frozen=True)
class ClassificationSet:
    """What is learned from and what is scored; the classes' labels by number. Each class has a text in `train`."""

    name: str
    classes: tuple[str, ...]
    train: LabelledTexts
    test: LabelledTexts


@dataclass(frozen=True)
class ClassificationScores:
    """Accuracies, 0 to 1: the label of the nearest example, the nearest mean of five examples, logistic regression.

    The last two are None for a comparison without vectors.
    """

    nearest: float
    centroid: float | None
    logistic: float | None


def read_classification_set(path: Path, *, seed: int = 1) -> ClassificationSet:
    """The set of a file or a folder; `seed` draws what is scored of a file alone.

    Raises InputError, naming file and line, for a line without a tab, a label of the test file that the training file
    has not, and a set that has fewer than two classes or nothing to score.
    """
    if not path.is_dir():
        labels, texts = _labelled(path)
        classes = _classes(path, labels)
        numbers = np.array([classes[label] for label in labels], np.int64)
        scored = _drawn(numbers, seed)
        if not scored.any():
            raise InputError(f"{path} has no class of {SCORED} texts or more, so there is nothing to score.")
        name = path.name.removesuffix(".gz").removesuffix(".tsv")
        return ClassificationSet(name, tuple(classes), _those(texts, numbers, ~scored), _those(texts, numbers, scored))
    labels, texts = _labelled(_only(path, "train.tsv"))
    classes = _classes(path, labels)
    learned = LabelledTexts(texts, np.array([classes[label] for label in labels], np.int64))
    labels, texts = _labelled(_only(path, "test.tsv"), classes)
    if not texts:
        raise InputError(f"{_only(path, 'test.tsv')} is empty; a line is a label, a tab and a text.")
    asked = LabelledTexts(texts, np.array([classes[label] for label in labels], np.int64))
    return ClassificationSet(path.resolve().name, tuple(classes), learned, asked)


def learn_classes(
    one: ClassificationSet, model: Model, *, seed: int = 1
) -> Callable[[Sequence[str]], ClassificationScores]:
    """Learns from `train`, for which the model is made; what it gives back scores the texts of `test`, as they are or
    misspelt.

    seed: of the examples that centroids are made of.
    """
    comparison, labels, true = model(one.train.texts), one.train.labels, one.test.labels

    def nearest(texts: Sequence[str]) -> float:
        return _accuracy(labels[comparison.nearest(texts, one.train.texts, 1)[:, 0]], true)

    encode = comparison.encode
    if encode is None:
        return lambda texts: ClassificationScores(nearest(texts), None, None)
    vectors = encode(one.train.texts)
    weights, biases = logistic_regression(vectors, labels, len(one.classes))
    centroids = _centroids(vectors, labels, len(one.classes), seed)

    def score(texts: Sequence[str]) -> ClassificationScores:
        asked = encode(texts)
        of_draws = [_accuracy(np.argmax(np.asarray(asked @ means.T), axis=1), true) for means in centroids]
        said = np.argmax(np.asarray(asked @ weights) + biases, axis=1)
        return ClassificationScores(nearest(texts), float(np.mean(of_draws)), _accuracy(said, true))

    return score


def logistic_regression(
    vectors: Vectors, labels: Ints, classes: int
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """(weights float64[d, classes], biases float64[classes]) of a multinomial logistic regression, by L-BFGS.

    It minimises the sum of the cross-entropies plus ||weights||^2 / 2, as scikit-learn's does with C = 1.
    """
    from scipy import optimize, special  # half a second, which training on pairs need not wait

    width, count = vectors.shape[1], len(labels)
    wanted = np.eye(classes)[labels]  # [n, classes]

    def loss(flat: npt.NDArray[np.float64]) -> tuple[float, npt.NDArray[np.float64]]:
        weights, biases = flat[:-classes].reshape(width, classes), flat[-classes:]
        logits = np.asarray(vectors @ weights) + biases  # [n, classes]
        entropy = -(special.log_softmax(logits, axis=1) * wanted).sum() / count
        errors = (special.softmax(logits, axis=1) - wanted) / count
        slope: Any = np.asarray(vectors.T @ errors) + weights / count
        return float(entropy + (weights**2).sum() / (2 * count)), np.concatenate([slope.ravel(), errors.sum(axis=0)])

    start = np.zeros((width + 1) * classes)
    found = optimize.minimize(loss, start, jac=True, method="L-BFGS-B", options={"maxiter": 500}).x
    return found[:-classes].reshape(width, classes), found[-classes:]


def _accuracy(said: npt.NDArray[np.integer[Any]], true: Ints) -> float:
    return float(np.mean(said == true))


def _centroids(vectors: Vectors, labels: Ints, classes: int, seed: int) -> list[Vectors]:
    """float64[classes, d] for each draw: the mean of five examples of each class, of length 1."""
    rng = np.random.default_rng(seed)
    members = [np.flatnonzero(labels == number) for number in range(classes)]
    return [
        unit(np.stack([_mean(vectors, rng.permutation(rows)[:EXAMPLES]) for rows in members])) for _ in range(DRAWS)
    ]


def _mean(vectors: Vectors, rows: npt.NDArray[np.intp]) -> npt.NDArray[np.float64]:
    return np.asarray(vectors[rows].mean(axis=0), np.float64).ravel()


def _labelled(path: Path, known: Mapping[str, int] | None = None) -> tuple[list[str], list[str]]:
    labels, texts = [], []
    for line, (label, text, *_) in read_rows(path, columns=2):
        if known is not None and label not in known:
            raise InputError(f"{path} line {line}: the training file has no label {label!r}.")
        labels.append(label)
        texts.append(text)
    return labels, texts


def _classes(path: Path, labels: Sequence[str]) -> dict[str, int]:
    classes = {label: number for number, label in enumerate(sorted(set(labels)))}
    if len(classes) < 2:
        raise InputError(f"{path} has fewer than two classes; a line is a label, a tab and a text.")
    return classes


def _drawn(labels: Ints, seed: int) -> npt.NDArray[np.bool_]:
    rng = np.random.default_rng(seed)
    scored = np.zeros(len(labels), np.bool_)
    for number in range(int(labels.max()) + 1):
        rows = rng.permutation(np.flatnonzero(labels == number))
        scored[rows[: len(rows) // SCORED]] = True
    return scored


def _those(texts: Sequence[str], labels: Ints, chosen: npt.NDArray[np.bool_]) -> LabelledTexts:
    return LabelledTexts([texts[i] for i in np.flatnonzero(chosen).tolist()], labels[chosen])


def _only(folder: Path, ending: str) -> Path:
    found = sorted([*folder.glob(f"*{ending}"), *folder.glob(f"*{ending}.gz")])
    if len(found) != 1:
        raise InputError(
            f"{folder} has {len(found) or 'no'} file{'s' * (len(found) != 1)} whose name ends in {ending}; a set is a "
            "folder with one of train.tsv and one of test.tsv, or a file."
        )
    return found[0]
