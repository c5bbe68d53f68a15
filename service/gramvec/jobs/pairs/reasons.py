"""Why a pair has its score: what counted for and against, by column, in words and in log odds.

What a figure of columns adds is shared by those whose values say the same: for a match by those that are alike, against
one by those that differ, each as much as it tells. Where none does, the others have less of what they say. What is of a
whole row are words and numbers; beside them stand the rivals of both rows, and the tables.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from gramvec.jobs.pairs.columns import DATE, IDENTIFIER, NAME, NUMBER, PLACE, TEXT
from gramvec.jobs.pairs.figures import (
    EQUAL,
    NAMES,
    OF_COLUMNS,
    OF_EVIDENCE,
    OF_RIVALS,
    OF_TABLES,
    PLACES,
    RowTables,
    column_levels,
)
from gramvec.jobs.pairs.levels import ALIKE, CONTRADICTS, DIFFERENT, LEVELS, MISSING, NEARLY
from gramvec.jobs.pairs.levels import EQUAL as EQUAL_LEVEL
from gramvec.jobs.pairs.model import SURE, PairModel, log_odds
from gramvec.text.arrays import Doubles, Floats, Int64s, UInt8s

SAYS = {
    CONTRADICTS: "contradicts", DIFFERENT: "different", ALIKE: "alike", NEARLY: "nearly equal", EQUAL_LEVEL: "equal",
    MISSING: "empty",
}  # fmt: skip
# What is not of one column, after the columns.
OTHERS = ("all columns", "words", "numbers", "rivals", "tables", "equal rows", "empty cells")
TOGETHER, WORDS, OF_NUMBERS, RIVALS, TABLES, EQUAL_ROWS, EMPTY_CELLS = range(7)
# Reasons of each side that are told, and the least that one adds to the log odds.
MOST_TOLD, LEAST_TOLD = 4, 0.05
_NUMBERS = {name for name in NAMES if name.startswith(("numbers_", "nearest_number"))}
_OF_COLUMNS = {name for name, _ in (*OF_COLUMNS, *OF_EVIDENCE)}
_RIVALS, _TABLES = ({name for name, _ in some} for some in (OF_RIVALS, OF_TABLES))
_KINDS = {
    "identifier": (IDENTIFIER,), "name": (NAME, TEXT), "place": (PLACE,), "number": (NUMBER,), "date": (DATE,),
    "text": (TEXT,), "names": (NAME, TEXT),
}  # fmt: skip
EVERY_KIND = tuple(range(6))


class ScoreReason(NamedTuple):
    """One thing that counted.

    Attributes:
        about: the name of a column, or "all columns", "words", "numbers", "rivals", "tables", "equal rows" or "empty
            cells".
        says: what was seen, such as "alike".
        adds: to the log odds that both rows are one thing: above 0 it counted for that, below 0 against it.
    """

    about: str
    says: str
    adds: float

    def __str__(self) -> str:
        return f"{self.about}: {self.says} ({self.adds:+.1f})"


class PairReasons(NamedTuple):
    """All that counted for a pair. `start` and what the reasons add are the log odds of its score.

    Attributes:
        reasons: the heaviest first.
        start: the log odds before anything is known of a pair.
    """

    reasons: list[ScoreReason]
    start: float

    def tell(self, *, against: bool) -> str:
        """Return the heaviest that counted for both being one thing, or against it, as a text; "" for none."""
        side = -1 if against else 1
        told = [str(reason) for reason in self.reasons if side * reason.adds >= LEAST_TOLD]
        return "; ".join(told[:MOST_TOLD])


class ScoredPairs(NamedTuple):
    """Candidate pairs with the figures by which they were scored.

    Attributes:
        rows: of the tables.
        left: int64[p], rows, ascending.
        right: int64[p].
        figures: returns those of the pairs at some places, float32[n, len(NAMES)].
        scores: float32[p], probabilities.
        model: what scored.
    """

    rows: RowTables
    left: Int64s
    right: Int64s
    figures: Callable[[Int64s], Floats]
    scores: Floats
    model: PairModel

    def reasons(self, at: Int64s, names: Sequence[str], only: Sequence[str]) -> Iterator[PairReasons]:
        """Yield the reasons of the pairs at these places, in their order.

        Args:
            at: int64[n], places among the pairs.
            names: of the compared columns.
            only: the words of each pair that only one row has, as a text.
        """
        figures = self.figures(at)
        levels = column_levels(self.rows, self.left[at], self.right[at])
        shared = self.share_contributions(at, levels)
        said = [[SAYS[int(level)] for level in row] for row in levels]
        others = _say_others(figures, shared[:, len(names) :], only, self.scores[at])
        start = self.model.trees.start
        for row, columns, more in zip(shared.tolist(), said, others, strict=True):
            every = [ScoreReason(*one) for one in zip([*names, *OTHERS], [*columns, *more], row, strict=True) if one[2]]
            yield PairReasons(sorted(every, key=lambda reason: -abs(reason.adds)), start)

    def share_contributions(self, at: Int64s, levels: UInt8s) -> Doubles:
        """Return what each column and each of OTHERS adds, float64[n, columns + len(OTHERS)]."""
        figures, columns = self.figures(at), levels.shape[1]
        added = self.model.trees.contributions(figures)
        tells = self._tells(at, levels)
        made = np.zeros((len(at), columns + len(OTHERS)))
        for place, name in enumerate(NAMES):
            here = added[:, place]
            if name in _OF_COLUMNS:
                made[:, : columns + 1] += here[:, None] * _shares(name, tells, self.rows.facts.kinds, here)
                continue
            other = (
                RIVALS if name in _RIVALS else TABLES if name in _TABLES else OF_NUMBERS if name in _NUMBERS else WORDS
            )
            made[:, columns + other] += here
        _take_from_columns(made[:, :columns], made[:, columns + TOGETHER])
        # Numbers that differ count against, others for; what they add beside that is of the words.
        differ = figures[:, PLACES["numbers_left_over_max"]] > 0
        odd = np.flatnonzero(np.equal(differ, made[:, columns + OF_NUMBERS] > 0))
        made[odd, columns + WORDS] += made[odd, columns + OF_NUMBERS]
        made[odd, columns + OF_NUMBERS] = 0.0
        sums = self.model.trees.sums(figures)
        sure = (figures[:, EQUAL] == 1) & (sums < log_odds(SURE))
        made[:, columns + EQUAL_ROWS] = np.where(sure, log_odds(SURE) - sums, 0.0)
        # What fuller pairs bound has a lower score than its figures alone.
        scores = self.scores[at].astype(np.float64)
        bounded = scores < self.model.probabilities(figures)
        told = self.model.trees.start + made[bounded].sum(axis=1)
        made[bounded, columns + EMPTY_CELLS] = np.log(scores[bounded] / (1 - scores[bounded])) - told
        return made

    def _tells(self, at: Int64s, levels: UInt8s) -> Doubles:
        """Return what each column tells, in nats, float64[n, columns]; NaN where one of both rows leaves it empty."""
        facts, columns = self.rows.facts, levels.shape[1]
        column = np.arange(columns)
        one = facts.cells[0].reshape(-1, columns)[self.left[at]]
        other = facts.cells[-1].reshape(-1, columns)[self.right[at]]
        there = levels < LEVELS
        told = facts.levels.reshape(columns, LEVELS)[column, np.where(there, levels, 0)].astype(np.float64)
        same = there & (one == other) & (levels == EQUAL_LEVEL)
        told[same] = facts.equal[one[same]]
        return np.where(there, told, np.nan)


def _shares(name: str, tells: Doubles, kinds: UInt8s, added: Doubles) -> Doubles:
    """Return the share of each column, and of all together, in what a figure adds, float64[n, columns + 1]."""
    # Comparing with NaN is False: an empty column says nothing.
    agreeing = tells * added[:, None] > 0
    about = agreeing & np.isin(kinds, _KINDS.get(name.split("_")[0], EVERY_KIND))
    about = np.where(np.any(about, axis=1, keepdims=True), about, agreeing)
    weight = np.where(about, np.abs(tells), 0.0)
    weight = np.append(weight, ~np.any(about, axis=1, keepdims=True), axis=1)
    return np.asarray(weight / weight.sum(axis=1, keepdims=True), np.float64)


def _take_from_columns(columns: Doubles, together: Doubles) -> None:
    """Take what no column says from what the columns say, as far as that goes; both are changed."""
    opposing = np.where(columns * together[:, None] < 0, columns, 0.0)
    most = np.abs(opposing.sum(axis=1))
    taken = np.minimum(most, np.abs(together))
    columns -= opposing * (taken / np.maximum(most, 1e-12))[:, None]
    together -= np.sign(together) * taken


def say_rivals(added: float) -> str:
    """Return what is said of the rivals of a pair that add so much to its log odds."""
    return "no other row is as alike" if added > 0 else "another row is as alike, or nearly"


def _say_others(figures: Floats, added: Doubles, only: Sequence[str], scores: Floats) -> list[list[str]]:
    """Return what is said of each of OTHERS, for each pair."""
    differ = figures[:, PLACES["numbers_left_over_max"]] > 0
    made = []
    each = zip(differ, only, scores.tolist(), added.tolist(), strict=True)
    for others, more, score, (together, words, _, rivals, tables, *_) in each:
        lacking = f"only one row has {more}" if more else "few, or common ones"
        made.append([
            "together they tell much" if together > 0 else "together they tell little",
            "those of both rows are alike" if words > 0 else lacking,
            "others" if others else "equal, or none",
            say_rivals(rivals),
            "many rows have a match" if tables > 0 else "few rows have a match, or none is sure",
            f"at least {SURE}",
            f"of pairs with fewer, equal in the same columns, {score:.0%} are right",
        ])  # fmt: skip
    return made
