"""Pairs of one list by what labels teach, or by a matcher that learned before; labeled pairs are as labeled."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from gramvec.errors import InputError
from gramvec.jobs.common.columns import MAX_ROWS
from gramvec.jobs.duplicates.distinct import MAX_PAIRS
from gramvec.jobs.duplicates.likely import LikelyPairs, likely_pairs
from gramvec.jobs.duplicates.pairs import groups
from gramvec.jobs.matching.features import TablePair
from gramvec.jobs.matching.fields import Field
from gramvec.jobs.matching.fit_matcher import check_enough, fit_matcher
from gramvec.jobs.matching.learned_reasons import HeldReasons, LearnedReasons
from gramvec.jobs.matching.matcher import LearnedMatcher, PairLabels, hold_labels, score_candidates
from gramvec.jobs.matching.nearest import Matches, select_pairs
from gramvec.progress import NO_PROGRESS, Progress
from gramvec.text.arrays import Int64s


class TextLabels(NamedTuple):
    """Labels of different texts, and how many labels are none.

    Attributes:
        labels: pairs of texts, the lower one left, each once.
        equal: labels that rows of equal texts are not the same thing.
        empty: labels of a row without a text.
        both: pairs of texts that have both labels.
    """

    labels: PairLabels
    equal: int
    empty: int
    both: int

    def sentences(self) -> list[str]:
        """Return what is not done as it was labeled."""
        said = {
            "labels say that rows of equal texts are not the same, and these are; compare another column": self.equal,
            "labels are of rows without a text, which repeat nothing": self.empty,
            "pairs of texts are labeled both ways, and count as not labeled": self.both,
        }
        return [f"{number:,} {sentence}" for sentence, number in said.items() if number]


def labels_of_texts(labels: PairLabels, of_row: Int64s) -> TextLabels:
    """Return the labels of rows as those of their texts.

    Args:
        labels: pairs of rows.
        of_row: int64[n], the text of each row; -1 for none.

    Raises:
        InputError: a row is not there.
    """
    if len(labels.left) and (highest := int(max(labels.left.max(), labels.right.max()))) >= len(of_row):
        raise InputError(f"a label is of row {highest}, and there are {len(of_row)} rows", field="labels")
    left, right, match = of_row[labels.left], of_row[labels.right], labels.match
    empty = (left < 0) | (right < 0)
    equal = (left == right) & ~empty
    low, high = np.minimum(left, right), np.maximum(left, right)
    kept = ~empty & ~equal
    pairs, of_pair = np.unique(np.stack([low[kept], high[kept]]), axis=1, return_inverse=True)
    of_pair = of_pair.reshape(-1)
    matches = np.bincount(of_pair, match[kept], pairs.shape[1])
    total = np.bincount(of_pair, minlength=pairs.shape[1])
    sure = (matches == 0) | (matches == total)
    found = PairLabels(pairs[0, sure], pairs[1, sure], matches[sure] > 0)
    # A row that is labeled beside itself says nothing.
    differ = equal & ~match & (labels.left != labels.right)
    return TextLabels(found, int(differ.sum()), int(empty.sum()), int((~sure).sum()))


class TaughtPairs(NamedTuple):
    """Pairs of texts, the matcher that scored them, None for the pair model, and why nothing was learned, if so."""

    likely: LikelyPairs
    matcher: LearnedMatcher | None
    why_not: str | None = None


def labeled_pairs(
    columns: Sequence[Sequence[str]],
    names: Sequence[str],
    labels: PairLabels | None,
    known: LearnedMatcher | None,
    threshold: float | None = None,
    *,
    explain: bool = False,
    threads: int = 1,
    max_pairs: int | None = None,
    progress: Progress = NO_PROGRESS,
) -> TaughtPairs:
    """Return the pairs of different rows that are the same thing by labels: with a score of 1, or by what they teach.

    Labels that are too few to learn from hold for their pairs, and the pair model scores the others.

    Args:
        columns: the compared columns, n texts each.
        names: of the columns.
        labels: pairs of different rows, the lower one left, each once; None without labels.
        known: a matcher that learned before; None to learn from the labels.
        threshold: the lowest probability; None for the matcher's own.
        explain: keep what tells why pairs have their scores.
        threads: of the comparison.
        max_pairs: pairs that may be found.
        progress: shows the tasks.

    Raises:
        InputError: the matcher compares other columns, there are too many rows or pairs, or a library is missing.
    """
    if known is not None and known.columns != tuple((name, name) for name in names):
        there = ", ".join(left if left == right else f"{left}={right}" for left, right in known.columns)
        raise InputError(f"on: the matcher was learned from other columns; compare {there}", field="on")
    if len(columns[0]) > MAX_ROWS:
        raise InputError(f"{len(columns[0]):,} different rows; labels score at most {MAX_ROWS:,}", field="labels")
    if known is None and labels is not None:
        try:
            check_enough(labels)
        except InputError as error:
            likely = likely_pairs(
                columns, threshold, explain=explain, threads=threads, max_pairs=max_pairs, progress=progress
            )
            every = with_implied(labels)
            held, candidates = (_hold(pairs, every) for pairs in (likely.pairs, likely.candidates))
            reasons = HeldReasons(likely.reasons, every, same=True) if explain else None
            return TaughtPairs(likely._replace(pairs=held, candidates=candidates, reasons=reasons), None, str(error))
    weights = [1.0] * len(columns) if known is None else known.weights
    fields = [Field(texts, texts, weight) for texts, weight in zip(columns, weights, strict=True)]
    pair = TablePair(
        fields, ngrams=known.ngrams if known else None, same=True, explain=explain, threads=threads, progress=progress
    )
    if known is None:
        assert labels is not None
        known = fit_matcher(pair, [(name, name) for name in names], labels, progress)
    scored = score_candidates(known, pair, progress)
    implied = None if labels is None else with_implied(labels)
    candidates = _hold(scored, implied)
    lowest = known.threshold if threshold is None else threshold
    kept = candidates.scores >= np.float32(lowest)
    if max_pairs is not None and int(kept.sum()) > max_pairs:
        raise InputError(f"more than {max_pairs:,} pairs; raise `threshold`, or the most pairs (`max_pairs`)")
    pairs = select_pairs(candidates, kept)
    reasons = HeldReasons(LearnedReasons(known, pair), implied, same=True) if explain else None
    return TaughtPairs(LikelyPairs(pairs, lowest, None, lowest, candidates=candidates, reasons=reasons), known)


def with_implied(labels: PairLabels) -> PairLabels:
    """Return labels with the matches that they imply: of a = b and b = c, a = c, unless that is labeled otherwise.

    Args:
        labels: pairs of different rows, the lower one left, each once.

    Raises:
        InputError: there are more than 10,000,000 of them.
    """
    left, right = labels.left[labels.match], labels.right[labels.match]
    rows, places = np.unique(np.concatenate([left, right]), return_inverse=True)
    firsts = groups(len(rows), *np.split(places.reshape(-1), 2))
    order = np.argsort(firsts, kind="stable")
    members = np.split(rows[order], np.flatnonzero(np.diff(firsts[order])) + 1)
    if sum(len(group) * (len(group) - 1) // 2 for group in members) > MAX_PAIRS:
        raise InputError(f"labels join more than {MAX_PAIRS:,} pairs of rows; give fewer", field="labels")
    both = [np.stack([group[at] for at in np.triu_indices(len(group), 1)]) for group in members if len(group) > 2]
    low, high = np.concatenate([np.zeros((2, 0), np.int64), *both], axis=1)
    width = 1 + int(max(labels.right.max(initial=0), high.max(initial=0)))
    new = ~np.isin(low * width + high, labels.left * width + labels.right)
    return PairLabels(
        np.append(labels.left, low[new]),
        np.append(labels.right, high[new]),
        np.append(labels.match, np.ones(int(new.sum()), np.bool_)),
    )


def _hold(pairs: Matches, labels: PairLabels | None) -> Matches:
    """Return pairs as labels have them, by left, then right text."""
    if labels is not None and len(labels.left):
        pairs = hold_labels(pairs, labels)
    return select_pairs(pairs, np.lexsort((pairs.right, pairs.left)))
