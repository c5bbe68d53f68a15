"""Rows and duplicates among them: which rows are equal, pairs and groups of rows, and the row that stays of each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np

from gramvec.errors import InputError
from gramvec.jobs.duplicates.likely import Keep, LikelyPairs, standing_for
from gramvec.jobs.duplicates.pairs import NearPairs, groups
from gramvec.jobs.matching.fields import Field
from gramvec.jobs.matching.match_rows import words_of_one
from gramvec.jobs.pairs.reasons import PairReasons
from gramvec.lexical.sparse_vectors import ranges
from gramvec.text.arrays import Int64s

MAX_PAIRS = 10_000_000


class DistinctRows(NamedTuple):
    """Different rows of a table by their compared texts, in the order of their first row.

    Attributes:
        columns: the texts of each compared column, m each.
        of_row: int64[n], which of the m each row is; -1 for a row whose texts are empty or of white space, which
            repeats nothing.
    """

    columns: list[list[str]]
    of_row: Int64s

    def counts(self) -> Int64s:
        """Return how many rows each of the different ones stands for, int64[m]."""
        return np.bincount(self.of_row[self.of_row >= 0], minlength=len(self.columns[0])).astype(np.int64)

    def join_columns(self) -> list[str]:
        """Return all columns of each different row as one text."""
        if len(self.columns) == 1:
            return self.columns[0]
        return [" ".join(filter(None, row)) for row in zip(*self.columns, strict=True)]


def distinct_rows(columns: Sequence[Sequence[str]]) -> DistinctRows:
    """Return the different rows of a table: columns of n texts each."""
    places: dict[Any, int] = {}
    rows = columns[0] if len(columns) == 1 else zip(*columns, strict=True)
    blank = [not row.strip() for row in columns[0]]
    for column in columns[1:]:
        blank = [known and not text.strip() for known, text in zip(blank, column, strict=True)]
    found = (-1 if empty else places.setdefault(row, len(places)) for row, empty in zip(rows, blank, strict=True))
    of_row = np.fromiter(found, np.int64, len(columns[0]))
    if len(columns) == 1:
        return DistinctRows([list(places)], of_row)
    return DistinctRows([[row[at] for row in places] for at in range(len(columns))], of_row)


@dataclass(frozen=True, repr=False)
class DuplicateRows:
    """Duplicates among the n rows of a table; rows are numbers from 0.

    Attributes:
        distinct: the different rows.
        likely: the pairs of those, with the threshold and the share of them that is expected to be right.
        stays: int64[n], the row that stays for each row: itself, or one that is equal to it or makes a pair with it.
        ids: the value of each row in the column of ids; None without one.
    """

    distinct: DistinctRows
    likely: LikelyPairs
    stays: Int64s
    ids: list[Any] | None = None

    def __repr__(self) -> str:
        rows, kept = len(self.stays), len(self.kept)
        return f"DuplicateRows({rows:,} rows, {kept:,} kept, {self.empty:,} empty, threshold {self.threshold:.3f})"

    @property
    def threshold(self) -> float:
        """The lowest score of a pair, given or from the data."""
        return self.likely.threshold

    @property
    def kept(self) -> Int64s:
        """The rows that stay, ascending: int64[k]."""
        return np.flatnonzero(self.stays == np.arange(len(self.stays)))

    @property
    def dropped(self) -> Int64s:
        """The rows that repeat one that stays, ascending: int64[n - k]."""
        return np.flatnonzero(self.stays != np.arange(len(self.stays)))

    @property
    def empty(self) -> int:
        """The number of rows without a compared text, which repeat nothing."""
        return int((self.distinct.of_row < 0).sum())

    @cached_property
    def pairs(self) -> NearPairs:
        """All pairs of rows, the lower one left; equal rows have a score of 1. Raises InputError above 10,000,000."""
        return self.pairs_up_to(MAX_PAIRS)

    def pairs_up_to(self, limit: int) -> NearPairs:
        """Return all pairs of rows, by left, then right row.

        Raises InputError if they are more than `limit`.
        """
        of_row, near = self.distinct.of_row, self.likely.pairs
        counts = self.distinct.counts()
        equal, alike = int((counts * (counts - 1) // 2).sum()), counts[near.left] * counts[near.right]
        total = equal + int(alike.sum())
        if total > limit:
            raise InputError(
                f"{total:,} pairs of rows, with equal ones; take their groups or what is kept, or raise the threshold"
                " or the number of pairs that may be listed"
            )
        members = np.argsort(of_row, kind="stable")[self.empty :]
        starts = np.cumsum(counts) - counts
        # The rows of the same texts that follow each row.
        place = np.arange(len(members)) - starts[of_row[members]]
        following = counts[of_row[members]] - 1 - place
        one, at = np.repeat(near.left, alike), np.repeat(near.right, alike)
        step = ranges(np.zeros(len(alike), np.int64), alike)
        left = np.concatenate([np.repeat(members, following), members[starts[one] + step // counts[at]]])
        right = np.concatenate(
            [members[ranges(np.arange(len(members)) + 1, following)], members[starts[at] + step % counts[at]]]
        )
        scores = np.concatenate([np.ones(equal, np.float32), np.repeat(near.scores, alike)])
        left, right = np.minimum(left, right), np.maximum(left, right)
        order = np.lexsort((right, left))
        return NearPairs(left[order], right[order], scores[order])

    def reasons(self, pairs: NearPairs, names: Sequence[str]) -> Iterator[PairReasons]:
        """Yield why pairs of rows have their scores; none where that was not asked for.

        Args:
            pairs: of rows.
            names: of the compared columns.
        """
        if self.likely.reasons is None:
            return
        fields = [Field(column, column, 1.0) for column in self.distinct.columns]
        left, right = self.distinct.of_row[pairs.left], self.distinct.of_row[pairs.right]
        yield from self.likely.reasons.of(left, right, names, partial(words_of_one, fields))

    @cached_property
    def groups(self) -> list[list[int]]:
        """Groups of several rows that a chain of pairs joins, in the order of their first rows."""
        of_row = self.distinct.of_row
        different = len(self.distinct.columns[0])
        # A row without a text is a group of its own.
        of_text = groups(different, self.likely.pairs.left, self.likely.pairs.right)
        roots = np.where(of_row < 0, different + np.arange(len(of_row)), np.append(of_text, -1)[of_row])
        order = np.argsort(roots, kind="stable")
        edges = np.flatnonzero(np.diff(roots[order], prepend=-1, append=-1))
        rows = order.tolist()
        return [rows[a:b] for a, b in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True) if b - a > 1]


def staying_rows(distinct: DistinctRows, pairs: NearPairs, keep: Keep, cells: Int64s | None = None) -> Int64s:
    """Return int64[n], the row that stays for each row: no chain drops what is unlike it.

    Args:
        distinct: the different ones of n rows.
        pairs: pairs of different rows that are the same thing.
        keep: which of several rows stays.
        cells: int64[n], the filled cells of each row, for "complete".
    """
    text = distinct.of_row
    rows = np.arange(len(text))
    counts = distinct.counts()
    if keep == "longest":
        rank = -np.array([sum(map(len, row)) for row in zip(*distinct.columns, strict=True)], np.int64)
    else:
        rank = -counts if keep == "frequent" else np.zeros(len(counts), np.int64)
    filled = np.flatnonzero(text >= 0)
    of_row = -cells[filled] if keep == "complete" and cells is not None else rank[text[filled]]
    order = np.lexsort((filled, of_row, text[filled]))
    first = np.cumsum(counts) - counts
    best = filled[order[first]]
    of_text = np.append(standing_for(of_row[order[first]], pairs), -1)
    found: Int64s = np.where(text < 0, rows, np.append(best, -1)[of_text[text]])
    return found
