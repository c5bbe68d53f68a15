"""The score of two rows without labels: the cosine of their n-grams and words, and its lead over the next best row."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from gramvec.lexical.sparse import SparseEmbedder, held_by
from gramvec.lexical.sparse_vectors import SparseVectors
from gramvec.matching.nearest import Matches

Floats = NDArray[np.float32]
Sides = tuple[list[SparseVectors], list[SparseVectors]]

# Chosen on half of 25 joins of names: 73.6 F1 on all where scikit-learn's TF-IDF has 71.0, each at its best threshold.
ORDERS = (2, 3, 4)
NGRAM_POWER, WORD_POWER = 2.0, 1.0
NGRAM_SHARE, WORD_SHARE = 1.0, 0.5
# Logistic regression of whether a right row's nearest is its match: intercept, cosine, lead. Fitted on all 25 joins, so
# figures on them with these values are optimistic; the cross-fitted F1 is 72.53.
INTERCEPT, OF_COSINE, OF_LEAD = -2.86, 3.86, 6.67
# The threshold of tables without any candidate.
NO_CANDIDATE = 0.5

_WORD = re.compile(r"\w+")


def column_scores(
    left: Sequence[str], right: Sequence[str], watch: Callable[[int], None] | None = None
) -> tuple[Sides, list[float]]:
    """Return the vectors of a column's n-grams and of its words, for both tables, and their shares of the score.

    A feature that a text has c times counts (1 + ln c) idf^p, with idf = ln((1 + n) / (1 + df)) + 1 over both tables.

    Args:
        left: texts of the column in the left table.
        right: texts of the column in the right table.
        watch: called with the number of texts read since the last call, four times a text in total.

    Raises:
        InputError: a text is not valid; its `index` counts the left texts, then the right ones.
    """
    sides: Sides = ([], [])
    words = [" ".join(_WORD.findall(text)) if isinstance(text, str) else text for text in (*left, *right)]
    for texts, orders, power in (([*left, *right], ORDERS, NGRAM_POWER), (words, (), WORD_POWER)):
        held, number = held_by(texts, orders, words=not orders, watch=watch)
        # Only numbers that occur are put to the power: the table has 2^24 columns.
        counts = np.arange(int(held.max(initial=0)) + 1)
        weights = ((np.log((1 + number) / (1 + counts)) + 1) ** power).astype(np.float32)[held]
        embedder = SparseEmbedder(weights, orders, words=not orders)
        for side, part in zip(sides, (texts[: len(left)], texts[len(left) :]), strict=True):
            side.append(_sublinear(embedder.embed(part, normalize=False, watch=watch), weights))
    return sides, [NGRAM_SHARE, WORD_SHARE]


def with_lead(nearest: Matches) -> Matches:
    """Return matches with probabilities in the place of cosines.

    The lead of a left row's best right row is its cosine less that of the second; another's is its own less the best
    one's, so it is 0 or below.

    Args:
        nearest: for each left row at least its two best right rows, in descending order of their cosines.
    """
    scores = nearest.scores.astype(np.float64)
    first = np.searchsorted(nearest.left, nearest.left)
    best = first == np.arange(len(first))
    following = np.append(scores[1:], 0.0)[: len(scores)]
    alone = np.append(nearest.left[1:], -1)[: len(scores)] != nearest.left
    lead = np.where(best, scores - np.where(alone, 0.0, following), scores - scores[first])
    found = 1 / (1 + np.exp(-(INTERCEPT + OF_COSINE * scores + OF_LEAD * lead)))
    return nearest._replace(scores=found.astype(np.float32))


def threshold_of(scored: Matches) -> float:
    """Return the threshold of the highest F1 that is expected of each left row's best match, by its probability."""
    best = scored.scores[np.flatnonzero(np.diff(scored.left, prepend=-1))].astype(np.float64)
    if not len(best):
        return NO_CANDIDATE
    ranked = -np.sort(-best)
    f1 = 2 * np.cumsum(ranked) / (np.arange(1, len(ranked) + 1) + ranked.sum())
    return float(ranked[int(np.argmax(f1))])


def _sublinear(counted: SparseVectors, weights: Floats) -> SparseVectors:
    """Return rows of length 1 from rows of counts times weights."""
    of_feature = weights[counted.indices].astype(np.float64)
    values = (1 + np.log(np.rint(counted.values / of_feature))) * of_feature
    row = np.repeat(np.arange(len(counted)), np.diff(counted.indptr))
    values /= np.sqrt(np.bincount(row, values**2, minlength=len(counted)))[row]
    return SparseVectors(counted.indptr, counted.indices, values.astype(np.float32), counted.columns)
