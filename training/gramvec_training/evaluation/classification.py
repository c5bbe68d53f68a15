"""Classification: nearest example, centroids and logistic regression, on sets and on a run's held-out labels.

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
from gramvec_training.data.sampling import LabelTexts
from gramvec_training.evaluation.backend import ModelForTexts, UnitRows, normalize_rows
from gramvec_training.readers.lines import read_rows
from gramvec_training.shared import Encode, Floats, Ints

EXAMPLES = 5  # of each class that a centroid is made of
DRAWS = 10  # of such examples, whose scores are averaged
SCORED = 5  # of a single file, one text in this many of each class


@dataclass(frozen=True)
class ClassifiedTexts:
    """Texts and the class number of each, int64[n]."""

    texts: list[str]
    labels: Ints

    def __len__(self) -> int:
        return len(self.texts)


@dataclass(frozen=True)
class ClassificationSet:
    """Training and test texts, and label names by number; each class has a training text."""

    name: str
    classes: tuple[str, ...]
    train: ClassifiedTexts
    test: ClassifiedTexts


@dataclass(frozen=True)
class ClassificationScores:
    """Accuracies, 0 to 1: nearest example, nearest mean of five examples, logistic regression.

    The last two are None for a comparison without vectors.
    """

    nearest: float
    centroid: float | None
    logistic: float | None


def read_classification_set(path: Path, *, seed: int = 1) -> ClassificationSet:
    """Read the set of a file or a folder; `seed` draws the test part of a single file.

    Raises:
        InputError: At file and line: a line without a tab, a label of the test file that the training file has
            not, and a set that has fewer than two classes or nothing to score.
    """
    if not path.is_dir():
        labels, texts = _read_labeled(path)
        classes = _number_classes(path, labels)
        numbers = np.array([classes[label] for label in labels], np.int64)
        scored = _draw(numbers, seed)
        if not scored.any():
            raise InputError(f"{path}: no class of {SCORED} texts or more, so there is nothing to score")
        name = path.name.removesuffix(".gz").removesuffix(".tsv")
        return ClassificationSet(
            name, tuple(classes), _choose_texts(texts, numbers, ~scored), _choose_texts(texts, numbers, scored)
        )
    labels, texts = _read_labeled(_find_only_file(path, "train.tsv"))
    classes = _number_classes(path, labels)
    learned = ClassifiedTexts(texts, np.array([classes[label] for label in labels], np.int64))
    labels, texts = _read_labeled(_find_only_file(path, "test.tsv"), classes)
    if not texts:
        raise InputError(f"{_find_only_file(path, 'test.tsv')}: empty; a line is a label, a tab and a text")
    asked = ClassifiedTexts(texts, np.array([classes[label] for label in labels], np.int64))
    return ClassificationSet(path.resolve().name, tuple(classes), learned, asked)


def learn_classes(
    classification_set: ClassificationSet, model: ModelForTexts, *, seed: int = 1
) -> Callable[[Sequence[str]], ClassificationScores]:
    """Learn from `train`; return a function that scores the texts of `test`, clean or misspelled.

    seed: of the examples that centroids are made of.
    """
    comparison, labels, true = (
        model(classification_set.train.texts),
        classification_set.train.labels,
        classification_set.test.labels,
    )

    def nearest(texts: Sequence[str]) -> float:
        return _accuracy(labels[comparison.nearest(texts, classification_set.train.texts, 1)[:, 0]], true)

    encode = comparison.encode
    if encode is None:
        return lambda texts: ClassificationScores(nearest(texts), None, None)
    vectors = encode(classification_set.train.texts)
    weights, biases = fit_logistic_regression(vectors, labels, len(classification_set.classes))
    centroids = _draw_centroids(vectors, labels, len(classification_set.classes), seed)

    def score(texts: Sequence[str]) -> ClassificationScores:
        asked = encode(texts)
        of_draws = [_accuracy(np.argmax(np.asarray(asked @ means.T), axis=1), true) for means in centroids]
        predicted = np.argmax(np.asarray(asked @ weights) + biases, axis=1)
        return ClassificationScores(nearest(texts), float(np.mean(of_draws)), _accuracy(predicted, true))

    return score


def fit_logistic_regression(
    vectors: UnitRows, labels: Ints, classes: int
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Return weights float64[d, classes] and biases float64[classes] of multinomial logistic regression, by L-BFGS.

    It minimizes the sum of the cross-entropies plus ||weights||^2 / 2, as scikit-learn's does with C = 1.
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
    solution = optimize.minimize(loss, start, jac=True, method="L-BFGS-B", options={"maxiter": 500}).x
    return solution[:-classes].reshape(width, classes), solution[-classes:]


def _accuracy(predicted: npt.NDArray[np.integer[Any]], true: Ints) -> float:
    return float(np.mean(predicted == true))


def _draw_centroids(vectors: UnitRows, labels: Ints, classes: int, seed: int) -> list[UnitRows]:
    """Yield float64[classes, d] for each draw: unit means of five examples of each class."""
    rng = np.random.default_rng(seed)
    members = [np.flatnonzero(labels == number) for number in range(classes)]
    return [
        normalize_rows(np.stack([_mean(vectors, rng.permutation(rows)[:EXAMPLES]) for rows in members]))
        for _ in range(DRAWS)
    ]


def _mean(vectors: UnitRows, rows: npt.NDArray[np.intp]) -> npt.NDArray[np.float64]:
    return np.asarray(vectors[rows].mean(axis=0), np.float64).ravel()


def _read_labeled(path: Path, known: Mapping[str, int] | None = None) -> tuple[list[str], list[str]]:
    labels, texts = [], []
    for line, (label, text, *_) in read_rows(path, columns=2):
        if known is not None and label not in known:
            raise InputError(f"{path} line {line}: the training file has no label {label!r}")
        labels.append(label)
        texts.append(text)
    return labels, texts


def _number_classes(path: Path, labels: Sequence[str]) -> dict[str, int]:
    classes = {label: number for number, label in enumerate(sorted(set(labels)))}
    if len(classes) < 2:
        raise InputError(f"{path}: fewer than two classes; a line is a label, a tab and a text")
    return classes


def _draw(labels: Ints, seed: int) -> npt.NDArray[np.bool_]:
    rng = np.random.default_rng(seed)
    scored = np.zeros(len(labels), np.bool_)
    for number in range(int(labels.max()) + 1):
        rows = rng.permutation(np.flatnonzero(labels == number))
        scored[rows[: len(rows) // SCORED]] = True
    return scored


def _choose_texts(texts: Sequence[str], labels: Ints, chosen: npt.NDArray[np.bool_]) -> ClassifiedTexts:
    return ClassifiedTexts([texts[i] for i in np.flatnonzero(chosen).tolist()], labels[chosen])


def _find_only_file(folder: Path, ending: str) -> Path:
    files = sorted([*folder.glob(f"*{ending}"), *folder.glob(f"*{ending}.gz")])
    if len(files) != 1:
        raise InputError(
            f"{folder}: {len(files) or 'no'} file{'s' * (len(files) != 1)} whose name ends in {ending}; a set is a "
            "folder with one of train.tsv and one of test.tsv, or a file"
        )
    return files[0]


# What a classifier over 10,000 texts of 77 labels and 300 columns takes is a tenth of this: 3 s on one core.
MAX_LOGISTIC = 2_500_000_000  # texts x labels x columns
_CHUNK = 512  # asked texts at a time, each with its cosines to all that were trained on
_TIE = 0.01  # of the margin beside accuracies in per cent, of which one text of 2,000 is 0.05


def measure_label_accuracies(
    train: LabelTexts, asked: LabelTexts, labels: int, unit: Encode
) -> dict[str, float | None]:
    """Return accuracies x 100 over `asked`; any label of a text counts as right, none without a known feature.

    unit: n texts to float32[n, d], each of length 1 or zero. nearest: the labels of the nearest text of `train`;
    centroid: the nearest mean of a label's texts; logistic: multinomial logistic regression with C = 1, None where
    texts x labels x columns are more than MAX_LOGISTIC.
    """
    known, vectors = unit(train.texts), unit(asked.texts)
    rows, own = _list_memberships(train)
    logistic = None
    if len(rows) * labels * known.shape[1] <= MAX_LOGISTIC:
        weights, biases = fit_logistic_regression(known[rows], own, labels)
        logistic = _measure_hits(
            asked, vectors, [(label,) for label in np.argmax(vectors @ weights + biases, axis=1).tolist()]
        )
    by_mean = np.argmax(vectors @ _find_centroids(known, train, labels).T, axis=1).tolist()
    return {
        "nearest": _measure_hits(asked, vectors, _find_nearest_labels(vectors, known, train)),
        "centroid": _measure_hits(asked, vectors, [(label,) for label in by_mean]),
        "logistic": logistic,
    }


def measure_label_hits(train: LabelTexts, asked: LabelTexts, labels: int, unit: Encode) -> npt.NDArray[np.float64]:
    """Return float64[n]: of each asked text the mean of 0 or 1 for `nearest` and for `centroid`."""
    known, vectors = unit(train.texts), unit(asked.texts)
    by_mean = np.argmax(vectors @ _find_centroids(known, train, labels).T, axis=1).tolist()
    ways = _find_nearest_labels(vectors, known, train), [(label,) for label in by_mean]
    rights: npt.NDArray[np.float64] = np.mean(
        [_find_hits(asked, vectors, predicted) for predicted in ways], axis=0, dtype=np.float64
    )
    return rights


def score_labels(train: LabelTexts, asked: LabelTexts, labels: int, unit: Encode) -> float:
    """Return the selection score: the mean of `nearest` and `centroid`, ties broken by the margin of the centroids."""
    known, vectors = unit(train.texts), unit(asked.texts)
    cosines = vectors @ _find_centroids(known, train, labels).T  # [n, labels]
    by_mean = np.argmax(cosines, axis=1).tolist()
    right = np.zeros(cosines.shape, bool)
    rows, own = _list_memberships(asked)
    right[rows, own] = True
    margins = np.where(right, cosines, -1).max(axis=1) - np.where(right, -1, cosines).max(axis=1)
    nearest = _measure_hits(asked, vectors, _find_nearest_labels(vectors, known, train))
    centroid = _measure_hits(asked, vectors, [(label,) for label in by_mean])
    return (nearest + centroid) / 2 + _TIE * float(margins.mean())


def measure_label_cosines(texts: LabelTexts, labels: int, unit: Encode) -> tuple[Floats, Floats]:
    """Return (within, without) float64[labels]: mean cosine of two texts of a label, and with texts of others.

    Texts without a known feature are left out. NaN where a label has fewer than two texts, or there are no others.
    """
    vectors = unit(texts.texts).astype(np.float64)
    known: npt.NDArray[np.bool_] = np.any(vectors != 0, axis=1)
    rows, own = _list_memberships(texts)
    rows, own = rows[known[rows]], own[known[rows]]
    counts = np.bincount(own, minlength=labels).astype(np.float64)
    sums = np.zeros((labels, vectors.shape[1]))
    np.add.at(sums, own, vectors[rows])
    squares = np.einsum("ij,ij->i", sums, sums)
    other_counts = known.sum() - counts
    counts[counts < 2] = np.nan
    other_counts[other_counts < 1] = np.nan
    # The sum of all cosines within a label is the square of the sum of its vectors; a text with itself has 1.
    return (squares - counts) / (counts * (counts - 1)), (sums @ vectors.sum(axis=0) - squares) / (
        counts * other_counts
    )


def show_label_report(result: dict[str, Any]) -> str:
    """Return a text table of a record's `labels`: the number of texts, and accuracies `before` and `after`.

    `before` is None where training did not go on from a model.
    """
    columns = {name: result[name] for name in ("before", "after") if result[name] is not None}
    rows = [
        ("label of the nearest text, %", "nearest"),
        ("nearest mean of a label, %", "centroid"),
        ("logistic regression, %", "logistic"),
    ]
    lines = [f"{result['texts']:,} held-out texts".ljust(30) + "".join(f"{name:>9}" for name in columns)]
    lines += [
        label.ljust(30) + "".join(f"{values[key]:9.1f}" for values in columns.values())
        for label, key in rows
        if None not in [values[key] for values in columns.values()]
    ]
    return "\n".join(lines)


def _list_memberships(texts: LabelTexts) -> tuple[Ints, Ints]:
    """Return places int64[m] and labels int64[m]; a text with two labels occurs twice."""
    rows = np.repeat(np.arange(len(texts)), [len(labels) for labels in texts.labels])
    return rows, np.array([number for labels in texts.labels for number in labels], np.int64)


def _find_centroids(vectors: Floats, texts: LabelTexts, labels: int) -> Floats:
    """Return float32[labels, d]: unit centroids, zero for a label without a known text."""
    rows, own = _list_memberships(texts)
    sums = np.zeros((labels, vectors.shape[1]), np.float32)
    np.add.at(sums, own, vectors[rows])
    means: Floats = sums / np.maximum(np.linalg.norm(sums, axis=1, keepdims=True), 1e-12)
    return means


def _find_nearest_labels(vectors: Floats, known: Floats, train: LabelTexts) -> list[tuple[int, ...]]:
    chunks = (vectors[at : at + _CHUNK] for at in range(0, len(vectors), _CHUNK))
    return [train.labels[i] for chunk in chunks for i in np.argmax(chunk @ known.T, axis=1).tolist()]


def _measure_hits(asked: LabelTexts, vectors: Floats, predicted: Sequence[tuple[int, ...]]) -> float:
    """Return the percentage of all asked texts that have a known feature and one of the predicted labels."""
    return float(100 * np.mean(_find_hits(asked, vectors, predicted)))


def _find_hits(asked: LabelTexts, vectors: Floats, predicted: Sequence[tuple[int, ...]]) -> npt.NDArray[np.bool_]:
    right = np.array([not {*own}.isdisjoint(guess) for own, guess in zip(asked.labels, predicted, strict=True)], bool)
    return right & vectors.any(axis=1)
