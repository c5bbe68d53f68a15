"""Rows that are equal, as groups: they share one list of candidates, however many they are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from gramvec.errors import InputError
from gramvec.jobs.matching.nearest import Matches, places, select_pairs
from gramvec.jobs.matching.reasons import MatchReasons
from gramvec.jobs.pairs.tokens import spell_column
from gramvec.lexical.sparse import MAX_CHARACTERS
from gramvec.lexical.sparse_vectors import ranges
from gramvec.text.arrays import Bools, Int64s

MAX_PAIRS = 10_000_000


class RowGroups(NamedTuple):
    """Groups of rows whose compared columns are equal without punctuation.

    Attributes:
        columns: the texts of each column of the first row of each group.
        of_row: int64[n], the group of each row; -1 for a row without any text.
        counts: int64[g], the rows of each group.
        starts: int64[g], where the rows of each group begin in `members`.
        members: int64, rows by group.
    """

    columns: list[list[str]]
    of_row: Int64s
    counts: Int64s
    starts: Int64s
    members: Int64s

    @property
    def firsts(self) -> Int64s:
        """The first row of each group, int64[g]."""
        return self.members[self.starts]

    def join_columns(self) -> list[str]:
        """Return all columns of each group as one text, cut to MAX_CHARACTERS unless one column is longer."""
        if len(self.columns) == 1:
            return self.columns[0]
        rows = zip(*self.columns, strict=True)
        return [" ".join(filter(None, row))[: max(MAX_CHARACTERS, *map(len, row))] for row in rows]


def group_rows(columns: Sequence[Sequence[str]], keys: Sequence[str] | None = None) -> RowGroups:
    """Group rows that are equal without punctuation, of which `keys` are equal, too, in the order of first rows."""
    known: dict[tuple[str, ...], int] = {}
    first: list[int] = []
    plain = [spell_column(column) for column in columns]
    every = zip(*plain, strict=True) if keys is None else zip(*plain, keys, strict=True)
    width = len(columns)
    of_row = np.full(len(columns[0]), -1)
    for number, row in enumerate(every):
        if any(row[:width]):
            group = known.setdefault(row, len(known))
            of_row[number] = group
            if group == len(first):
                first.append(number)
    counts = np.bincount(of_row[of_row >= 0], minlength=len(known))
    members = np.argsort(of_row, kind="stable")[int((of_row < 0).sum()) :]
    texts = [[column[number] for number in first] for column in columns]
    return RowGroups(texts, of_row, counts, np.cumsum(counts) - counts, members)


def sort_groups(
    groups: RowGroups,
    columns: Sequence[Sequence[str]],
    keys: Sequence[str] | None = None,
    texts: Sequence[Sequence[str]] = (),
) -> RowGroups:
    """Return groups, and the rows of each, in the order of their texts, and where these are equal of their numbers.

    So rows in any order have the same candidates, figures and choices among equal scores. The texts of a group of rows
    that differ in punctuation are those of the least.

    Args:
        groups: of rows.
        columns: the folded texts of each column of the rows.
        keys: of the rows.
        texts: the columns before they were folded, by which rows of equal folded texts are ordered.
    """
    known = [*columns, *([] if keys is None else [keys]), *texts]
    order = np.array(sorted(groups.members.tolist(), key=[*zip(*known, strict=True)].__getitem__), np.int64)
    rows = order[np.sort(np.unique(groups.of_row[order], return_index=True)[1])]
    number = np.full(len(rows) + 1, -1)
    number[groups.of_row[rows]] = np.arange(len(rows))
    of_row, counts = number[groups.of_row], groups.counts[groups.of_row[rows]]
    least = [[column[row] for row in rows.tolist()] for column in columns]
    members = order[np.argsort(of_row[order], kind="stable")]
    return RowGroups(least, of_row, counts, np.cumsum(counts) - counts, members)


class GroupPairs(NamedTuple):
    """Scored pairs of groups: by left group, then descending score.

    Attributes:
        pairs: of groups.
        left: the groups.
        right: the groups; of one table the same.
        same: whether both are rows of one table.
        sampled: as of `CandidatePairs`, with sampled_found.
        reasons: what tells why pairs have their scores, where it was asked for.
        ignored: the places of the columns that were not compared, as of `find_own_columns`.
    """

    pairs: Matches
    left: RowGroups
    right: RowGroups
    same: bool
    sampled: tuple[int, int] = (0, 0)
    reasons: MatchReasons | None = None
    ignored: Sequence[int] = ()

    def numbers(self) -> Int64s:
        """Return the pairs of rows that each pair stands for, int64[p]."""
        number = self.left.counts[self.pairs.left] * self.right.counts[self.pairs.right]
        itself = self.same & (self.pairs.left == self.pairs.right)
        return np.where(itself, number - self.left.counts[self.pairs.left], number)

    def select(self, mask: Bools) -> GroupPairs:
        """Return the pairs of a mask."""
        return self._replace(pairs=select_pairs(self.pairs, mask))

    def first_rows(self) -> Matches:
        """Return the first rows of both groups of each pair; of one table each pair once, the lower row left."""
        own = self.same & (self.pairs.left == self.pairs.right)
        left = self.left.firsts[self.pairs.left]
        right = self.right.members[self.right.starts[self.pairs.right] + own]
        if not self.same:
            return Matches(left, right, self.pairs.scores)
        once = Matches(np.minimum(left, right), np.maximum(left, right), self.pairs.scores)
        return select_pairs(once, self.pairs.left <= self.pairs.right)

    def rows(self, top: int | None = None) -> Matches:
        """Return pairs of rows: all, or the `top` best of each left row, by left row, descending score and right row.

        Of equal scores, those of the first groups are the best.

        Raises InputError if they are more than MAX_PAIRS.
        """
        pairs, own = self.pairs, self.same
        room = self.right.counts[pairs.right]
        if top is not None:
            top = min(top, len(self.right.members))
            before = np.cumsum(room) - room
            first = np.searchsorted(pairs.left, pairs.left)
            # One more for a row's self, which is left out below.
            room = np.clip(top + own - (before - before[first]), 0, room)
        total = int((room * self.left.counts[pairs.left]).sum())
        if total > MAX_PAIRS:
            raise InputError(
                f"{total:,} pairs of rows; at most {MAX_PAIRS:,}: take the best of each with top, or one_to_one"
            )
        lengths = np.bincount(pairs.left, room, minlength=len(self.left.counts)).astype(np.int64)
        rights = self.right.members[ranges(self.right.starts[pairs.right], room)]
        scores = np.repeat(pairs.scores, room)
        of_row = self.left.of_row[self.left.of_row >= 0]
        filled = np.flatnonzero(self.left.of_row >= 0)
        at = ranges((np.cumsum(lengths) - lengths)[of_row], lengths[of_row])
        matches = Matches(np.repeat(filled, lengths[of_row]), rights[at], scores[at])
        if own:
            matches = select_pairs(matches, matches.left != matches.right)
            if top is not None:
                matches = select_pairs(matches, places(matches.left) < top)
        return select_pairs(matches, np.lexsort((matches.right, -matches.scores, matches.left)))

    def one_to_one(self) -> Matches:
        """Return pairs of rows in which no row is twice: the most probable first, as many as equal rows allow.

        Of one table, no row is on both sides either: each pair is given once.
        """
        used = [np.zeros(len(groups.counts), np.int64) for groups in (self.left, self.right)]
        if self.same:
            used[1] = used[0]
        counts = self.left.counts, self.right.counts
        found: list[tuple[int, int, int, int]] = []
        for at in np.lexsort((self.pairs.right, self.pairs.left, -self.pairs.scores)).tolist():
            left_group, right_group = int(self.pairs.left[at]), int(self.pairs.right[at])
            free = int(counts[0][left_group] - used[0][left_group]), int(counts[1][right_group] - used[1][right_group])
            number = free[0] // 2 if self.same and left_group == right_group else min(free)
            if number:
                first = int(used[0][left_group])
                used[0][left_group] += number
                found.append((at, number, first, int(used[1][right_group])))
                used[1][right_group] += number
        return self._members(found)

    def _members(self, found: list[tuple[int, int, int, int]]) -> Matches:
        at, number, first, other = np.array(found, np.int64).reshape(-1, 4).T
        left = self.left.members[ranges(self.left.starts[self.pairs.left[at]] + first, number)]
        right = self.right.members[ranges(self.right.starts[self.pairs.right[at]] + other, number)]
        made = Matches(left, right, np.repeat(self.pairs.scores[at], number))
        return select_pairs(made, np.lexsort((made.right, -made.scores, made.left)))
