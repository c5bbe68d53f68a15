"""How often the label of a held-out text is found: by its nearest text, by the means of the labels, by a classifier."""

from __future__ import annotations

from gramvec_training.types import Ints

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from gramvec_training.data import LabelTexts
from gramvec_training.families.classification import logistic_regression
from gramvec_training.types import Encode, Floats


# What a classifier over 10,000 texts of 77 labels and 300 columns takes is a tenth of this: 3 s on one core.
MOST_LOGISTIC = 2_500_000_000  # texts x labels x columns
_CHUNK = 512  # asked texts at a time, each with its cosines to all that were trained on
_TIE = 0.01  # of the margin beside accuracies in per cent, of which one text of 2,000 is 0.05


def label_accuracies(train: LabelTexts, asked: LabelTexts, labels: int, unit: Encode) -> dict[str, float | None]:
    """Accuracies x 100 over `asked`; any label that the file gives a text is right, and without a known feature none.

    unit: n texts to float32[n, d], each of length 1 or zero. nearest: the labels of the nearest text of `train`;
    centroid: the nearest mean of a label's texts; logistic: multinomial logistic regression with C = 1, None where
    texts x labels x columns are more than MOST_LOGISTIC.
    """
    known, vectors = unit(train.texts), unit(asked.texts)
    rows, own = _memberships(train)
    logistic = None
    if len(rows) * labels * known.shape[1] <= MOST_LOGISTIC:
        weights, biases = logistic_regression(known[rows], own, labels)
        logistic = _share(asked, vectors, [(one,) for one in np.argmax(vectors @ weights + biases, axis=1).tolist()])
    by_mean = np.argmax(vectors @ _centroids(known, train, labels).T, axis=1).tolist()
    return {
        "nearest": _share(asked, vectors, _nearest(vectors, known, train)),
        "centroid": _share(asked, vectors, [(one,) for one in by_mean]),
        "logistic": logistic,
    }


def label_score(train: LabelTexts, asked: LabelTexts, labels: int, unit: Encode) -> float:
    """What a model is chosen by: the mean of `nearest` and `centroid`, and among equals the margin of the centroids."""
    known, vectors = unit(train.texts), unit(asked.texts)
    cosines = vectors @ _centroids(known, train, labels).T  # [n, labels]
    by_mean = np.argmax(cosines, axis=1).tolist()
    right = np.zeros(cosines.shape, bool)
    rows, own = _memberships(asked)
    right[rows, own] = True
    margins = np.where(right, cosines, -1).max(axis=1) - np.where(right, -1, cosines).max(axis=1)
    nearest = _share(asked, vectors, _nearest(vectors, known, train))
    centroid = _share(asked, vectors, [(one,) for one in by_mean])
    return (nearest + centroid) / 2 + _TIE * float(margins.mean())


def label_cosines(texts: LabelTexts, labels: int, unit: Encode) -> tuple[Floats, Floats]:
    """(within, without) float64[labels] each: the mean cosine of two texts of a label, and of one with texts of others.

    Texts without a known feature are left out. NaN where a label has fewer than two texts, or there are no others.
    """
    vectors = unit(texts.texts).astype(np.float64)
    known: npt.NDArray[np.bool_] = np.any(vectors != 0, axis=1)
    rows, own = _memberships(texts)
    rows, own = rows[known[rows]], own[known[rows]]
    counts = np.bincount(own, minlength=labels).astype(np.float64)
    sums = np.zeros((labels, vectors.shape[1]))
    np.add.at(sums, own, vectors[rows])
    squares = np.einsum("ij,ij->i", sums, sums)
    others = known.sum() - counts
    counts[counts < 2] = np.nan
    others[others < 1] = np.nan
    # The sum of all cosines within a label is the square of the sum of its vectors; a text with itself has 1.
    return (squares - counts) / (counts * (counts - 1)), (sums @ vectors.sum(axis=0) - squares) / (counts * others)


def label_report(result: dict[str, Any]) -> str:
    """A text table of a record's `labels`: how many texts were asked, and `label_accuracies` of `before` and `after`.

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


def _memberships(texts: LabelTexts) -> tuple[Ints, Ints]:
    """(places int64[m], labels int64[m]): a text with two labels is there twice."""
    rows = np.repeat(np.arange(len(texts)), [len(one) for one in texts.labels])
    return rows, np.array([number for one in texts.labels for number in one], np.int64)


def _centroids(vectors: Floats, texts: LabelTexts, labels: int) -> Floats:
    """float32[labels, d], each of length 1 or, where a label has no known text, zero."""
    rows, own = _memberships(texts)
    sums = np.zeros((labels, vectors.shape[1]), np.float32)
    np.add.at(sums, own, vectors[rows])
    means: Floats = sums / np.maximum(np.linalg.norm(sums, axis=1, keepdims=True), 1e-12)
    return means


def _nearest(vectors: Floats, known: Floats, train: LabelTexts) -> list[tuple[int, ...]]:
    chunks = (vectors[at : at + _CHUNK] for at in range(0, len(vectors), _CHUNK))
    return [train.labels[i] for chunk in chunks for i in np.argmax(chunk @ known.T, axis=1).tolist()]


def _share(asked: LabelTexts, vectors: Floats, said: Sequence[tuple[int, ...]]) -> float:
    """Percentage of the asked texts with a known feature that have one of the labels said, among all asked."""
    right = np.array([not {*own}.isdisjoint(one) for own, one in zip(asked.labels, said, strict=True)], bool)
    return float(100 * np.mean(right & vectors.any(axis=1)))
