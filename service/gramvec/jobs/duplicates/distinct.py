"""Rows and duplicates among them: which rows are equal, pairs and groups of rows, and the row that stays of each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np

from gramvec.errors import InputError
from gramvec.jobs.common.frames import FrameColumn, ResultTable
from gramvec.jobs.duplicates.likely import Keep, LikelyPairs, standing_for
from gramvec.jobs.duplicates.merge import groups_of, merge_records, parse_merge
from gramvec.jobs.duplicates.pairs import groups
from gramvec.jobs.matching.fields import Field
from gramvec.jobs.matching.match_rows import words_of_one
from gramvec.jobs.matching.nearest import Matches
from gramvec.jobs.pairs.model import ExpectedShare, facts_of
from gramvec.jobs.pairs.reasons import PairReasons
from gramvec.jobs.tables.outputs import free_names
from gramvec.lexical.sparse_vectors import ranges
from gramvec.text.arrays import Floats, Int64s
from gramvec.text.frames import column_of, names_of, rows_of, table_of

MAX_PAIRS = 10_000_000
# The column that has the table of each row, where there are several.
SOURCE = "source"


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


def join_sources(rows: Any) -> tuple[list[str] | None, Any]:
    """Return the rows of several tables as one list of dicts, with the table of each; None and other rows as they are.

    Args:
        rows: several tables are a dict of frames, dicts of columns or lists of dicts, or a list of frames, whose names
            are their places.
    """
    tables: dict[str, Any] = {}
    if isinstance(rows, Mapping) and rows and all(map(_is_table, rows.values())):
        tables = {str(name): table for name, table in rows.items()}
    elif isinstance(rows, list | tuple) and rows and all(len(getattr(table, "shape", ())) == 2 for table in rows):
        tables = {str(place): table for place, table in enumerate(rows)}
    if not tables:
        return None, rows
    sources: list[str] = []
    joined: list[Any] = []
    for name, table in tables.items():
        joined += rows_of(table)
        sources += [name] * (len(joined) - len(sources))
    return sources, joined


def _is_table(value: Any) -> bool:
    is_rows = isinstance(value, list | tuple) and len(value) > 0 and isinstance(value[0], Mapping)
    return is_rows or isinstance(value, Mapping) or len(getattr(value, "shape", ())) == 2


class RowNames(NamedTuple):
    """What the rows and the compared columns of a table are called.

    Attributes:
        columns: the names of the compared columns.
        ids: the value of each row in the column of ids; None without one.
        lines: the line of each row of a file, or its number there; None for rows of no file.
        id_column: the column of ids.
        sources: the table of each row, where there are several.
    """

    columns: Sequence[str] = ("text",)
    ids: list[Any] | None = None
    lines: list[int] | None = None
    id_column: str | None = None
    sources: list[str] | None = None

    def of(self, rows: Int64s, prefix: str = "") -> dict[str, FrameColumn]:
        """Return the columns that name rows, `prefix` before their names."""
        found: dict[str, FrameColumn] = {f"{prefix}row": rows}
        for name, values in ((SOURCE, self.sources), ("id", self.ids), ("line", self.lines)):
            if values is not None:
                found[prefix + name] = [values[row] for row in rows.tolist()]
        return found


@dataclass(frozen=True)
class StayingMap(ResultTable):
    """Rows that go, each with the row that stays for it.

    Attributes:
        rows: int64[d], ascending.
        kept: int64[d], the row that stays for each.
        scores: float32[d], that of both rows; 1 where their compared texts are equal.
        names: what the rows are called.
    """

    rows: Int64s
    kept: Int64s
    scores: Floats
    names: RowNames

    def columns(self) -> dict[str, FrameColumn]:
        """Return what `gramvec dedupe --map` writes of each row that goes, and both rows, from 0."""
        return self.names.of(self.rows) | self.names.of(self.kept, "kept_") | {"score": self.scores}

    def facts(self) -> dict[str, float]:
        """Return nothing: the pairs have a threshold."""
        return {}


@dataclass(frozen=True, repr=False)
class DuplicateRows(ResultTable):
    """Duplicates among the n rows of a table; rows are numbers from 0. As a table, the pairs.

    Attributes:
        distinct: the different rows.
        likely: the pairs of those, with the threshold and the share of them that is expected to be right.
        stays: int64[n], the row that stays for each row: itself, or one that is equal to it or makes a pair with it.
        names: what the rows and the compared columns are called.
        group_ids: int64[n], the id of each row's group in a file of groups, 0 for a row without a text; None without a
            file.
    """

    distinct: DistinctRows
    likely: LikelyPairs
    stays: Int64s
    names: RowNames = field(default_factory=RowNames)
    group_ids: Int64s | None = None

    def __repr__(self) -> str:
        rows, kept = len(self.stays), len(self.kept)
        return f"DuplicateRows({rows:,} rows, {kept:,} kept, {self.empty:,} empty, threshold {self.threshold:.3f})"

    @property
    def ids(self) -> list[Any] | None:
        """The value of each row in the column of ids; None without one."""
        return self.names.ids

    @property
    def threshold(self) -> float:
        """The lowest score of a pair, given or from the data."""
        return self.likely.threshold

    @property
    def expected(self) -> ExpectedShare | None:
        """The share of pairs of different rows that is expected to be right; None where nothing is known of it."""
        return self.likely.expected

    def columns(self) -> dict[str, FrameColumn]:
        """Return what `gramvec dedupe` writes of each pair, and both rows, from 0.

        Raises InputError for more than 10,000,000 pairs.
        """
        left, right, scores = self.pairs
        found = self.names.of(left) | self.names.of(right, "other_") | {"score": scores}
        own = free_names(self.names.columns, "row_", found)
        other = free_names([f"other_{name}" for name in self.names.columns], "other_", [*found, *own.values()])
        for rows, free in ((left, own), (right, other)):
            texts = self.distinct.of_row[rows].tolist()
            for name, column in zip(free.values(), self.distinct.columns, strict=True):
                found[name] = [column[text] for text in texts]
        return found

    def facts(self) -> dict[str, float]:
        """Return the threshold, and the ends of the share that is expected to be right."""
        return facts_of(self.threshold, self.expected)

    @property
    def kept(self) -> Int64s:
        """The rows that stay, ascending: int64[k]."""
        return np.flatnonzero(self.stays == np.arange(len(self.stays)))

    @property
    def dropped(self) -> Int64s:
        """The rows that repeat one that stays, ascending: int64[n - k]."""
        return np.flatnonzero(self.stays != np.arange(len(self.stays)))

    @cached_property
    def map(self) -> StayingMap:
        """The rows that do not stay, each with the row that stays for it, and the score of both."""
        rows = self.dropped
        kept = self.stays[rows]
        near, different = self.likely.pairs, len(self.distinct.columns[0])
        texts = self.distinct.of_row[rows], self.distinct.of_row[kept]
        wanted = np.minimum(*texts) * different + np.maximum(*texts)
        # Pairs are in order of left, then right; equal texts make none.
        keys = np.append(near.left * different + near.right, np.iinfo(np.int64).max)
        places = np.searchsorted(keys, wanted)
        scores = np.append(near.scores, np.float32(1))[places]
        return StayingMap(rows, kept, np.where(keys[places] == wanted, scores, np.float32(1)), self.names)

    def merge(self, rows: Any, rules: Any) -> dict[str, list[Any]]:
        """Return one row for each that stays, with the best values of those that it stands for: a dict of columns.

        Args:
            rows: what `dedupe` was given, again: the texts, dicts, dict of lists, or frame.
            rules: "filled", "longest", "frequent" or "newest:COLUMN" for all columns; a list of such and of
                "name=longest" for one column; or a mapping of columns (None for all others) to them.

        Raises:
            InputError: the rules are not valid, or these are other rows.
        """
        sources, rows = join_sources(rows)
        table = rows if isinstance(rows, Mapping) or len(getattr(rows, "shape", ())) == 2 else table_of(rows)
        columns = {"text": table} if isinstance(table, list) else {
            str(name): column_of(table, name) for name in names_of(table)
        }  # fmt: skip
        if any(len(column) != len(self.stays) for column in columns.values()):
            raise InputError(f"rows: give the {len(self.stays):,} rows that were deduplicated", field="rows")
        groups = groups_of(self.stays)
        records = {
            row: {name: column[row] for name, column in columns.items()} for rows in groups.values() for row in rows
        }
        changed = merge_records(parse_merge(rules), groups, records, [*columns], self.names.id_column)
        kept = self.kept.tolist()
        merged: dict[str, list[Any]] = {} if sources is None else {SOURCE: [sources[row] for row in kept]}
        for name, free in free_names([*columns], "row_", merged).items():
            merged[free] = [changed.get(row, {}).get(name, columns[name][row]) for row in kept]
        return merged

    @property
    def empty(self) -> int:
        """The number of rows without a compared text, which repeat nothing."""
        return int((self.distinct.of_row < 0).sum())

    @cached_property
    def pairs(self) -> Matches:
        """All pairs of rows, the lower one left; equal rows have a score of 1. Raises InputError above 10,000,000."""
        return self.pairs_up_to(MAX_PAIRS)

    def pairs_up_to(self, limit: int) -> Matches:
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
        return Matches(left[order], right[order], scores[order])

    def reasons(self, pairs: Matches, names: Sequence[str]) -> Iterator[PairReasons]:
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
        """Groups of several rows that a chain of pairs joins, or a file of groups, in the order of their first rows."""
        return [rows for rows in self._all_groups() if len(rows) > 1]

    def numbered_groups(self) -> list[tuple[int, list[int]]]:
        """Return the groups with their numbers: those of several rows from 1, or all of a file of groups by their ids.

        A row without a text is in no group of a file.
        """
        ids = self.group_ids
        if ids is None:
            return [*enumerate(self.groups, start=1)]
        return [(int(ids[rows[0]]), rows) for rows in self._all_groups() if ids[rows[0]]]

    def _all_groups(self) -> list[list[int]]:
        """Return all groups, those of one row, too, in the order of their first rows."""
        of_row = self.distinct.of_row
        different = len(self.distinct.columns[0])
        # A row without a text is a group of its own.
        if self.group_ids is None:
            of_text = groups(different, self.likely.pairs.left, self.likely.pairs.right)
            roots = np.append(of_text, -1)[of_row]
        else:
            _, first, place = np.unique(self.group_ids, return_index=True, return_inverse=True)
            roots = first[place]
        roots = np.where(of_row < 0, len(of_row) + different + np.arange(len(of_row)), roots)
        order = np.argsort(roots, kind="stable")
        edges = np.flatnonzero(np.diff(roots[order], prepend=-1, append=-1))
        rows = order.tolist()
        return [rows[a:b] for a, b in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True)]


def staying_rows(distinct: DistinctRows, pairs: Matches, keep: Keep, cells: Int64s | None = None) -> Int64s:
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
