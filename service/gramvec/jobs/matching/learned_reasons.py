"""Reasons of the scores of learned matchers: what labels taught beside what the pair model knew, by column."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from gramvec.jobs.matching.features import LIKELY, OF_A_COLUMN, OF_A_PAIR, OF_JOINED, PairFeatures, TablePair
from gramvec.jobs.matching.matcher import LearnedMatcher, PairLabels
from gramvec.jobs.matching.reasons import BLOCK_PAIRS, EQUAL, UNKNOWN, TellsReasons
from gramvec.jobs.pairs.model import SURE, log_odds
from gramvec.jobs.pairs.reasons import OTHERS, RIVALS, WORDS, PairReasons, ScoreReason, say_rivals
from gramvec.text.arrays import Int64s

LABELED = PairReasons([ScoreReason("labels", "these two are one", log_odds(SURE))], 0.0)
PAIR_MODEL = "pair model"
# Of a column's features, those that say how alike its values are, and the cosine from which on they are alike.
COSINE, IS_EQUAL, IS_EMPTY = OF_A_COLUMN.index("cosine"), OF_A_COLUMN.index("equal"), OF_A_COLUMN.index("empty_left")
ALIKE = 0.5
# What the pair model adds is told by its reasons, each so many times at most, and not where labels taught the opposite.
MOST_TIMES = 5.0


class LearnedReasons(NamedTuple):
    """What tells why two rows have their score by a learned matcher.

    Attributes:
        matcher: what scored.
        pair: the tables, with the reasons of the pair model.
    """

    matcher: LearnedMatcher
    pair: TablePair

    def of(
        self, left: Int64s, right: Int64s, names: Sequence[str], words: Callable[[int, int], str]
    ) -> Iterator[PairReasons]:
        """Yield the reasons of pairs of rows, as `MatchReasons.of` does; none of a row without a partner.

        What the pair model knew is one of the features, and is told by its reasons.
        """
        of_model = self.pair.reasons(left, right, names, words)
        classifier, places = self.matcher.classifier, np.array(_places(len(names)))
        for start in range(0, len(left), BLOCK_PAIRS):
            one, other = left[start : start + BLOCK_PAIRS], right[start : start + BLOCK_PAIRS]
            features = self.pair.features(np.maximum(one, 0), np.maximum(other, 0))
            added = classifier.contributions(features)
            sums = np.stack(
                [added[:, places == place].sum(axis=1) for place in range(len(names) + len(OTHERS))], axis=1
            )
            for is_pair, row, adds, by_model in zip(
                ((one >= 0) & (other >= 0)).tolist(), features, sums.tolist(), added[:, LIKELY].tolist(), strict=True
            ):
                before = next(of_model)
                if not is_pair:
                    yield UNKNOWN
                    continue
                says = [*_say_columns(row, len(names)), *([""] * len(OTHERS))]
                taught = [ScoreReason(*one) for one in zip([*names, *OTHERS], says, adds, strict=True)]
                yield _join(taught, classifier.start, by_model, before)


def _join(taught: Sequence[ScoreReason], start: float, by_model: float, before: PairReasons) -> PairReasons:
    """Return what labels taught and what the pair model knew as reasons that sum to the log odds of the score.

    Args:
        taught: what the features add, but for the probability of the pair model.
        start: the sum before them.
        by_model: what that probability adds.
        before: the reasons of that probability.
    """
    reasons = {reason.about: reason for reason in taught}
    log_odds_before = before.start + sum(reason.adds for reason in before.reasons)
    times = by_model / log_odds_before if log_odds_before else 0.0
    if before.reasons and 0 < times <= MOST_TIMES:
        start += times * before.start
        for about, said, adds in before.reasons:
            reasons[about] = ScoreReason(about, said, reasons[about].adds + times * adds)
    else:
        said = "likely" if log_odds_before > 0 else "not likely" if before.reasons else "not among the nearest rows"
        reasons[PAIR_MODEL] = ScoreReason(PAIR_MODEL, said, by_model)
    every = [reason._replace(says=reason.says or _say_other(reason)) for reason in reasons.values() if reason.adds]
    return PairReasons(sorted(every, key=lambda reason: -abs(reason.adds)), start)


def _places(columns: int) -> list[int]:
    """Return of each feature the place of what it is about among the columns and OTHERS; -1 for the pair model's."""
    words, rivals = columns + WORDS, columns + RIVALS
    of_pair = {"score": words, "likely": -1}
    several = columns > 1
    return [
        *(of_pair.get(name, rivals) for name in OF_A_PAIR),
        *([rivals] * len(OF_JOINED) if several else []),
        *(column for column in range(columns) for _ in OF_A_COLUMN),
        *([words] * len(OF_A_COLUMN) if several else []),
    ]


def _say_columns(features: PairFeatures, columns: int) -> Iterator[str]:
    """Yield how alike the values of each column are, by the features of a pair."""
    begin = len(OF_A_PAIR) + (len(OF_JOINED) if columns > 1 else 0)
    for of_column in features[begin : begin + columns * len(OF_A_COLUMN)].reshape(columns, -1):
        if of_column[IS_EMPTY : IS_EMPTY + 2].any():
            yield "empty"
        elif of_column[IS_EQUAL] == 1:
            yield "equal"
        else:
            yield "alike" if of_column[COSINE] >= ALIKE else "different"


def _say_other(reason: ScoreReason) -> str:
    """Return what is said of the words or the rivals of a pair where the pair model says nothing of them."""
    if reason.about == OTHERS[RIVALS]:
        return say_rivals(reason.adds)
    return "those of both rows are alike" if reason.adds > 0 else "few of both rows are alike"


class HeldReasons(NamedTuple):
    """Reasons of scores where labeled pairs are as labeled, and equal rows of one table are one.

    Attributes:
        reasons: of the other pairs; None where they have none.
        labels: the labeled pairs, of one table the lower row left; None without labels.
        same: whether both tables are one.
    """

    reasons: TellsReasons | None
    labels: PairLabels | None
    same: bool

    def of(
        self, left: Int64s, right: Int64s, names: Sequence[str], words: Callable[[int, int], str]
    ) -> Iterator[PairReasons]:
        """Yield the reasons of pairs of rows, as `MatchReasons.of` does."""
        labeled: set[tuple[int, int]] = set()
        if self.labels is not None:
            sides = (self.labels.left, self.labels.right)
            labeled = {*zip(*(side[self.labels.match].tolist() for side in sides), strict=True)}
        told = None if self.reasons is None else self.reasons.of(left, right, names, words)
        for one, other in zip(left.tolist(), right.tolist(), strict=True):
            before = UNKNOWN if told is None else next(told)
            low, high = (min(one, other), max(one, other)) if self.same else (one, other)
            if self.same and one == other:
                yield EQUAL
            else:
                yield LABELED if (low, high) in labeled else before
