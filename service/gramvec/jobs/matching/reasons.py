"""Reasons of the scores of rows of two tables, or of one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, Protocol

import numpy as np

from gramvec.jobs.pairs.model import SURE, log_odds
from gramvec.jobs.pairs.reasons import EQUAL_ROWS, OTHERS, PairReasons, ScoredPairs, ScoreReason
from gramvec.text.arrays import Int64s

# Pairs that are explained together.
BLOCK_PAIRS = 4_096
EQUAL = PairReasons([ScoreReason(OTHERS[EQUAL_ROWS], f"at least {SURE}", log_odds(SURE))], 0.0)
UNKNOWN = PairReasons([], 0.0)


class TellsReasons(Protocol):
    """What tells why two rows have their score."""

    def of(
        self, left: Int64s, right: Int64s, names: Sequence[str], words: Callable[[int, int], str]
    ) -> Iterator[PairReasons]:
        """Yield the reasons of pairs of rows, as `MatchReasons.of` does."""


class MatchReasons(NamedTuple):
    """What tells why two rows have their score.

    Attributes:
        scored: the candidates, pairs of groups of equal rows.
        left: int64[n], the group of each left row; -1 for an empty one.
        right: int64[m], of each right row.
        columns: places of the columns that were compared among the given ones.
        same: whether both tables are one.
    """

    scored: ScoredPairs
    left: Int64s
    right: Int64s
    columns: list[int]
    same: bool

    def of(
        self, left: Int64s, right: Int64s, names: Sequence[str], words: Callable[[int, int], str]
    ) -> Iterator[PairReasons]:
        """Yield the reasons of pairs of rows; none of a pair that was not scored.

        Args:
            left: int64[p], rows; -1 for none.
            right: int64[p], rows.
            names: of the columns that were given.
            words: returns the words that only one of two rows has, as a text.
        """
        width = int(self.right.max(initial=0)) + 1
        known = self.scored.left * width + self.scored.right
        compared = [names[place] for place in self.columns]
        for start in range(0, len(left), BLOCK_PAIRS):
            part = slice(start, start + BLOCK_PAIRS)
            one, other = _groups(self.left, left[part]), _groups(self.right, right[part])
            if self.same:
                one, other = np.minimum(one, other), np.maximum(one, other)
            keys = one * width + other
            at = np.minimum(np.searchsorted(known, keys), max(len(known) - 1, 0))
            there = (known[at] == keys) & (one >= 0) & (other >= 0) if len(known) else np.zeros(len(keys), np.bool_)
            rows = zip(left[part][there].tolist(), right[part][there].tolist(), strict=True)
            only = [words(a, b) for a, b in rows]
            told = self.scored.reasons(at[there], compared, only)
            equal = self.same & (one == other) & (one >= 0)
            for is_there, is_equal in zip(there.tolist(), equal.tolist(), strict=True):
                yield next(told) if is_there else EQUAL if is_equal else UNKNOWN


def _groups(of_row: Int64s, rows: Int64s) -> Int64s:
    """Return the group of each row; -1 where it has none, or is none."""
    return np.append(of_row, -1)[rows]
