"""A matcher: what was learned from labelled pairs of two tables, and the matches of tables by it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gramvec.errors import InputError
from gramvec.matching.classifiers import Classifier
from gramvec.matching.features import Compared
from gramvec.matching.fields import Ngrams, Watch, paired, unwatched
from gramvec.matching.fit_matcher import Labels, Report, check_enough, learn, scikit_learn
from gramvec.matching.labels import check_labels
from gramvec.matching.nearest import Matches, taken


@dataclass(frozen=True)
class Learned:
    """A classifier of pairs and the threshold of its probabilities, with what they are of.

    columns: the names in the left and the right table. weights: theirs in the score that finds candidates.
    """

    columns: tuple[tuple[str, str], ...]
    weights: tuple[float, ...]
    ngrams: Ngrams
    classifier: Classifier
    threshold: float
    report: Report


def learned(
    compared: Compared, columns: Sequence[tuple[str, str]], labels: Labels, watch: Watch = unwatched
) -> Learned:
    """What labelled pairs of these tables teach. Raises InputError as `learn` does, and for rows that are not there."""
    check_labels(labels, *compared.rows)
    check_enough(labels)
    scikit_learn("ensemble")  # whether it can be had is known before the work, not after it

    def watched(done: int) -> None:
        watch("comparing pairs", done, len(labels.match))

    features = compared.features(labels.left, labels.right, watched)
    return Learned(tuple(columns), tuple(compared.weights), compared.ngrams, *learn(features, labels))


def candidates(learned: Learned | None, compared: Compared, watch: Watch = unwatched) -> Matches:
    """Pairs that may be matches, with their probabilities; without a matcher, with their scores.

    By left row, then the highest.
    """
    found = compared.candidates()
    scores = found.scores

    def watched(done: int) -> None:
        watch("comparing pairs", done, len(found.left))

    if learned is not None:
        scores = compared.judged(found.left, found.right, learned.classifier, watched).astype(np.float32)
    found = Matches(found.left, found.right, scores)
    return taken(found, np.lexsort((found.right, -found.scores, found.left)))


def chosen(scored: Matches, top: int, threshold: float, *, one_to_one: bool) -> Matches:
    """Of candidates the matches: of a score of at least the threshold, the best `top` of each left row."""
    if not 0 <= threshold <= 1:
        raise InputError(f"the threshold must be from 0 to 1, not {threshold:g}", field="threshold")
    if top < 1:
        raise InputError(f"top must be at least 1, not {top}", field="top")
    kept = taken(scored, scored.scores >= np.float32(threshold))
    if one_to_one:
        return paired(kept)
    place = np.arange(len(kept.left)) - np.searchsorted(kept.left, kept.left)
    return taken(kept, place < top)


def uncertain(scored: Matches, threshold: float | None, known: Labels | None, most: int) -> Matches:
    """The pairs that a person should label: those whose scores are nearest the threshold, the nearest first.

    Without a threshold (nothing was learned yet) left rows' best pairs, evenly from the highest score to the lowest.
    known: pairs that are labelled already, and left out.
    """
    if known is not None and len(known.left):
        width = 1 + int(max(scored.right.max(initial=0), known.right.max()))
        scored = taken(scored, ~np.isin(scored.left * width + scored.right, known.left * width + known.right))
    if threshold is not None:
        return taken(scored, np.argsort(np.abs(scored.scores - np.float32(threshold)), kind="stable")[:most])
    best = taken(scored, np.flatnonzero(np.diff(scored.left, prepend=-1)))
    order = np.argsort(-best.scores, kind="stable")
    places = np.unique(np.linspace(0, max(len(order) - 1, 0), min(most, len(order))).round().astype(np.int64))
    return taken(best, order[places])
