"""Records of two tables that are the same thing: F1 on labelled pairs, and how near the match is in a whole table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from gramvec.errors import InputError
from gramvec_training.families.comparison import Comparison, Doubles, Model
from gramvec_training.families.matching_sets import Bools, MatchingSet, Pairs

RECALLS = (1, 10)


@dataclass(frozen=True)
class MatchingScores:
    """F1, precision and recall (0 to 1) on the test pairs at `threshold`, which was best on train and valid together.

    `fitted_f1` is the F1 there. `recalls`: k -> of the left rows with a match among the labelled pairs of all splits,
    the mean share of their matches that are among the k most alike rows of the whole right table. A right row of the
    very same text that nobody labelled does not compete: it is a match that the labels do not know.
    """

    f1: float
    precision: float
    recall: float
    threshold: float
    fitted_f1: float
    recalls: Mapping[int, float]


def score_matching(
    one: MatchingSet, model: Model, *, left: Sequence[str] | None = None, recalls: Sequence[int] = RECALLS
) -> MatchingScores:
    """The scores of a model, made for the two tables' texts. left: the left table's as they are typed, if otherwise."""
    typed = one.left if left is None else left
    comparison = model([*typed, *one.right])

    def alike(pairs: Pairs) -> Doubles:
        return comparison.pairs([typed[i] for i in pairs.left.tolist()], [one.right[i] for i in pairs.right.tolist()])

    fitted = one.train + one.valid
    threshold, fitted_f1 = best_threshold(alike(fitted), fitted.match)
    f1, precision, recall = f1_at(threshold, alike(one.test), one.test.match)
    return MatchingScores(f1, precision, recall, threshold, fitted_f1, _recalls(one, typed, comparison, recalls))


def best_threshold(scores: Doubles, match: Bools) -> tuple[float, float]:
    """(threshold, F1): where `score >= threshold` as the answer "match" has the highest F1, the highest such threshold.

    It lies in the middle between two scores. scores: float64[n]; match: bool[n], at least one of them true.
    Raises InputError where nothing matches or a score is not a number.
    """
    if not match.any() or not np.isfinite(scores).all():
        raise InputError("A threshold needs at least one pair that matches, and scores that are numbers.")
    order = np.argsort(-scores, kind="stable")
    ranked, true = scores[order], np.cumsum(match[order])
    f1 = 2 * true / (np.arange(1, len(ranked) + 1) + int(match.sum()))
    f1[np.append(ranked[1:] == ranked[:-1], False)] = -1  # no threshold lies between equal scores
    best = int(np.argmax(f1))
    return _between(ranked, best), float(f1[best])


def f1_at(threshold: float, scores: Doubles, match: Bools) -> tuple[float, float, float]:
    """(F1, precision, recall) of the answer `score >= threshold`; 0 where nothing is found."""
    said = scores >= threshold
    true = int(np.count_nonzero(said & match))
    if not true:
        return 0.0, 0.0, 0.0
    precision, recall = true / int(said.sum()), true / int(match.sum())
    return 2 * precision * recall / (precision + recall), precision, recall


def _between(ranked: Doubles, last: int) -> float:
    """A threshold with ranked[last] above it or at it, and the next lower score below it."""
    if last + 1 == len(ranked):
        return float(ranked[last])
    middle = (ranked[last] + ranked[last + 1]) / 2
    return float(middle if middle > ranked[last + 1] else ranked[last])  # neighbouring floats have no middle


def _recalls(one: MatchingSet, typed: Sequence[str], comparison: Comparison, depths: Sequence[int]) -> dict[int, float]:
    labelled = one.train + one.valid + one.test
    matches: dict[int, set[int]] = {}
    for left, right in zip(labelled.left[labelled.match], labelled.right[labelled.match], strict=True):
        matches.setdefault(int(left), set()).add(int(right))
    same = max(Counter(one.right).values())  # so many may have to be passed over
    places = comparison.nearest([typed[i] for i in matches], one.right, max(depths, default=0) + same).tolist()
    found = [
        [i for i in row if i in true or one.right[i] != one.left[left]]
        for (left, true), row in zip(matches.items(), places, strict=True)
    ]

    def share(true: set[int], ranked: Sequence[int]) -> float:
        return len(true.intersection(ranked)) / len(true)

    return {
        k: float(np.mean([share(true, row[:k]) for true, row in zip(matches.values(), found, strict=True)]))
        for k in depths
    }
