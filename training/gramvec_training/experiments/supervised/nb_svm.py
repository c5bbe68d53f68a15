"""NB-SVM (Wang and Manning, 2012): words and pairs of words in two classes, the rival of SIF's paper on reviews."""

from __future__ import annotations

from gramvec_training.types import Doubles

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import optimize, sparse

from gramvec_training.readers import treebank_tokens

_ALPHA, _BETA, _C = 1.0, 0.25, 1.0  # smoothing, the share of the SVM's own weights, and its cost: the paper's



def nb_svm(texts: Sequence[str], truth: npt.NDArray[np.bool_], asked: Sequence[str]) -> npt.NDArray[np.bool_]:
    """What a classifier that learned `texts` says of the texts asked for; both classes occur in `truth`, bool[n].

    f are the binary indicators of a text's unigrams and bigrams, r = log(p / ||p||_1) - log(q / ||q||_1) with p = 1 +
    the sum of f over the texts of the class, q over the others. A linear SVM learns f * r; its weights w become
    beta w + (1 - beta) mean|w|.
    """
    columns: dict[str, int] = {}
    known = _indicators(texts, columns, grow=True)
    p, q = (_ALPHA + np.asarray(known[rows].sum(axis=0)).ravel() for rows in (truth, ~truth))
    ratio = np.log(p / p.sum()) - np.log(q / q.sum())
    weights, bias = linear_svm(known @ sparse.diags_array(ratio), truth)
    weights = _BETA * weights + (1 - _BETA) * np.abs(weights).mean()
    said: Doubles = _indicators(asked, columns, grow=False) @ (ratio * weights) + bias
    return said > 0


def linear_svm(features: Any, truth: npt.NDArray[np.bool_]) -> tuple[Doubles, float]:
    """Weights float64[d] and bias that minimise (||w||^2 + bias^2) / 2 + C * sum of max(0, 1 - y (x w + bias))^2.

    features: sparse float64[n, d]. It is LIBLINEAR's L2-regularised L2-loss SVM, which the paper has.
    """
    signs = np.where(truth, 1.0, -1.0)

    def loss(both: Doubles) -> tuple[float, Doubles]:
        short = np.maximum(0, 1 - signs * (features @ both[:-1] + both[-1]))
        slope = -2 * _C * signs * short
        gradient = both + np.append(features.T @ slope, slope.sum())
        return float(both @ both / 2 + _C * (short**2).sum()), gradient

    options = {"maxiter": 1_000}
    found = optimize.minimize(loss, np.zeros(features.shape[1] + 1), jac=True, method="L-BFGS-B", options=options).x
    return found[:-1], float(found[-1])


def _indicators(texts: Sequence[str], columns: dict[str, int], *, grow: bool) -> Any:
    rows: list[int] = []
    places: list[int] = []
    for row, text in enumerate(texts):
        words = treebank_tokens(text).lower().split()
        for gram in dict.fromkeys([*words, *(f"{one} {other}" for one, other in pairwise(words))]):
            if grow:
                columns.setdefault(gram, len(columns))
            if gram in columns:
                rows.append(row)
                places.append(columns[gram])
    return sparse.csr_array((np.ones(len(rows)), (rows, places)), shape=(len(texts), len(columns)))
