"""Columns in which one thing has another value in each of two tables: its number there, the day of its entry, a note.

The pair models hold such a column against every pair. So it is found by rows that are one thing by their other columns,
and left out. What differs in rows that are otherwise one may also be what tells things apart, a dose or a year, but
then rows within a table are as often equal but for it: these are the null, after the idea of AutoFuzzyJoin (Li et al.
2021). Of one table there is no such null, so nothing is left out there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import combinations
from typing import NamedTuple
from zlib import crc32

import numpy as np

from gramvec.jobs.pairs.cells import DATE, EMPTY, KINDS, TEXT
from gramvec.jobs.pairs.levels import ALIKE, LEVELS, NEARLY, compare_values
from gramvec.jobs.pairs.values import read_column
from gramvec.text.arrays import Bools, Doubles, Int64s, UInt8s

FoldedTable = Sequence[Sequence[str]]
RowPairs = tuple[Int64s, Int64s]
# Cells of a table by which rows are paired: of more, those of a part of the values. Each pair is read in all columns.
LOOKED_AT = 4_000
# A value is rare if at most that part of the rows has it, or one row. Rows of a table that share a value are paired if
# they are no more than that.
RARE, FAMILY = 0.001, 4
# Pairs of rows by chance, and characters of a cell, that are compared.
BY_CHANCE, MOST_CHARACTERS = 200, 200
# Pairs of rows from which anything is said.
FEWEST = 10
# Rows are one thing that share rare values in so many columns, one of them words; or in one, where that part of the
# rows of the smaller table does.
SHARED, MANY_ROWS = 2, 0.2
# Of pairs of rows that are one thing: the part that may be alike in a column that is left out, beyond chance, and how
# many pairs within a table may be one thing but for it.
MOST_ALIKE, MOST_WITHIN = 0.15, 0.25
# The part of pairs with one number that may be alike in words, beyond chance, and the part that may share a rare value,
# where both tables number their rows.
MOST_NUMBERED = 0.2
# Words of a note, in the mean: fewer may be a name, in which alone a family differs. The part of its words that the
# shorter of two alike ones shares.
NOTE_WORDS, SHARED_WORDS = 3, 1 / 3
# The part of the filled cells that are different: of notes, which are no classes; and of numbers of rows.
NOTES_DIFFER, NUMBERS_DIFFER = 0.5, 0.95


class _Kinds(NamedTuple):
    """What columns are: bool[c] each.

    Attributes:
        words: most cells are words.
        judged: it may be a table's own: numbers, codes, days, or notes.
        numbers: it may number the rows: nearly all cells are different, and neither words nor days.
    """

    words: Bools
    judged: Bools
    numbers: Bools


class _Compared(NamedTuple):
    """Pairs of rows that share a rare value, and how they compare.

    Attributes:
        alike: bool[p, c], whether the values of a column are alike, nearly equal or equal; words that are few must be
            nearly equal.
        apart: bool[p, c], whether they differ.
        shared: bool[p, c], whether they are equal, or nearly, and rare.
        cells: uint8[2 * p, c], what the cells are.
    """

    alike: Bools
    apart: Bools
    shared: Bools
    cells: UInt8s

    def count_one_things(self, column: int, kinds: _Kinds, left_out: Bools, least: int) -> tuple[int, int]:
        """Return how many pairs are alike in a column, and how many apart, of those that are one thing by the others.

        What another column says that may be a table's own does not count against a pair; but days and notes do
        where one rare value is enough.

        Args:
            column: the place of the column.
            kinds: of all columns.
            left_out: bool[c], columns that say nothing any more.
            least: rare values that a pair shares in other columns.
        """
        others = ~left_out & (np.arange(len(left_out)) != column)
        against = others & ~(kinds.judged if least >= SHARED else kinds.numbers)
        one = ~self.apart[:, against].any(axis=1) & self.shared[:, others & kinds.words].any(axis=1)
        one &= self.shared[:, others].sum(axis=1) >= least
        return int((one & self.alike[:, column]).sum()), int((one & self.apart[:, column]).sum())


def find_own_columns(tables: Sequence[FoldedTable]) -> list[int]:
    """Return the places of columns in which rows of two tables differ that are one thing by their other columns.

    Args:
        tables: the columns of two tables, folded; of one, none is found.
    """
    if len(tables) < 2 or len(tables[0]) < 2:
        return []
    rows = [len(table[0]) for table in tables]
    every = max(1, max(rows) * len(tables[0]) // LOOKED_AT)
    pairs = _pair_across(tables, every)
    if len(pairs[0]) < FEWEST:
        return []
    across = _compare_rows(tables, pairs)
    kinds = _tell_kinds(tables, across.cells)
    by_chance = _compare_rows(tables, (pairs[0][:BY_CHANCE], np.roll(pairs[1], 1)[:BY_CHANCE]))
    chance = _share(by_chance.alike.sum(axis=0), by_chance.apart.sum(axis=0))
    within = [_compare_rows([table, table], _pair_within(table, every)) for table in tables]
    left_out = kinds.numbers & np.array([_says_nothing(across, column, kinds, chance) for column in range(len(chance))])
    while True:
        # That of which most is known comes first: what is left out says nothing of others any more.
        most, surest = 0, -1
        for column in np.flatnonzero(kinds.judged & ~left_out).tolist():
            ways = [(SHARED, FEWEST), (1, max(FEWEST, MANY_ROWS * min(rows) / every))]
            # A name alone says little of a day: all whose day differs may be others of this name.
            for least, fewest in ways[: 1 + kinds.numbers[column]]:
                alike, apart = across.count_one_things(column, kinds, left_out, least)
                null = sum(table.count_one_things(column, kinds, left_out, least)[1] for table in within)
                one = alike + apart
                if one >= max(fewest, most + 1) and alike <= (MOST_ALIKE + chance[column]) * one:
                    most, surest = (one, column) if null <= MOST_WITHIN * one else (most, surest)
        if surest < 0:
            return np.flatnonzero(left_out).tolist()
        left_out[surest] = True


def _says_nothing(across: _Compared, column: int, kinds: _Kinds, chance: Doubles) -> bool:
    """Return whether rows that are equal in a column are no more alike than others, as two that have one number are."""
    equal = across.shared[:, column]
    alike, apart = (values[equal][:, kinds.words].sum(axis=0) for values in (across.alike, across.apart))
    no_likelier = bool((_share(alike, apart) <= chance[kinds.words] + MOST_NUMBERED).all())
    share = across.shared[equal][:, ~kinds.numbers].any(axis=1).sum()
    return equal.sum() >= FEWEST and no_likelier and bool(share <= MOST_NUMBERED * equal.sum())


def _share(alike: Int64s, apart: Int64s) -> Doubles:
    share: Doubles = alike / np.maximum(alike + apart, 1)
    return share


def _pair_across(tables: Sequence[FoldedTable], every: int) -> RowPairs:
    """Return the pairs of rows that alone have a value in their table."""
    pairs: set[tuple[int, int]] = set()
    for columns in zip(*tables, strict=True):
        left, right = (_rows_of_values(column, every) for column in columns)
        pairs |= {
            (rows[0], right[value][0])
            for value, rows in left.items()
            if len(rows) == 1 and len(right.get(value, ())) == 1
        }
    return _sort_pairs(tables, pairs)


def _pair_within(table: FoldedTable, every: int) -> RowPairs:
    """Return the pairs of rows of a table that have the same value, which few others have."""
    pairs: set[tuple[int, int]] = set()
    for column in table:
        for rows in _rows_of_values(column, every).values():
            if 2 <= len(rows) <= FAMILY:
                pairs |= {*combinations(rows, 2)}
    return _sort_pairs([table, table], pairs)


def _sort_pairs(tables: Sequence[FoldedTable], pairs: set[tuple[int, int]]) -> RowPairs:
    """Return pairs in an order that their texts decide, whatever that of the rows is."""

    def key(pair: tuple[int, int]) -> int:
        row, other = (" ".join(column[at] for column in table) for table, at in zip(tables, pair, strict=True))
        return crc32(f"{row}\n{other}".encode())

    left, right = np.array(sorted(pairs, key=key), np.int64).reshape(-1, 2).T
    return left, right


def _rows_of_values(column: Sequence[str], every: int) -> dict[str, list[int]]:
    """Return the rows of each value: of all values, or of a part of them that is the same in any table."""
    rows: dict[str, list[int]] = {}
    for row, value in enumerate(column):
        if value and (every == 1 or crc32(value.encode()) % every == 0):
            rows.setdefault(value, []).append(row)
    return rows


def _compare_rows(tables: Sequence[FoldedTable], pairs: RowPairs) -> _Compared:
    made = [_compare_cells(columns, pairs, same=tables[0] is tables[1]) for columns in zip(*tables, strict=True)]
    return _Compared(*(np.stack(part, axis=1) for part in zip(*made, strict=True)))


def _compare_cells(
    columns: Sequence[Sequence[str]], pairs: RowPairs, *, same: bool
) -> tuple[Bools, Bools, Bools, UInt8s]:
    """Return a column of `_Compared`, of one of each table."""
    texts = [[column[row] for row in rows.tolist()] for column, rows in zip(columns, pairs, strict=True)]
    left, right = (read_column([text[:MOST_CHARACTERS] for text in side]) for side in texts)
    places = np.arange(len(pairs[0]))
    levels = compare_values(left, right, places, places)
    rare = np.ones(len(places), np.bool_)
    for column, side in zip(columns, texts, strict=True):
        wanted = {*side}
        counts = Counter(value for value in column if value in wanted)
        rare &= np.array([counts[value] for value in side], np.int64) <= max(1, int(RARE * len(column))) + same
    alike = (levels >= ALIKE) & (levels < LEVELS)
    shared = rare & alike & (levels >= NEARLY)
    both_words = (left.kinds[left.of_row] == TEXT) & (right.kinds[right.of_row] == TEXT)
    for at in np.flatnonzero(both_words & (levels < NEARLY)).tolist():
        words, others = ({*side[at].split()} for side in texts)
        few = min(len(words), len(others))
        # Of a family the last name is the same.
        alike[at] = few > NOTE_WORDS and len(words & others) >= SHARED_WORDS * few
    apart = (levels < LEVELS) & ~alike
    return alike, apart, shared, np.append(left.kinds[left.of_row], right.kinds[right.of_row])


def _tell_kinds(tables: Sequence[FoldedTable], cells: UInt8s) -> _Kinds:
    """Return what columns are, of which some cells are known."""
    kinds = []
    for number, columns in enumerate(zip(*tables, strict=True)):
        counts = np.bincount(cells[:, number], minlength=KINDS)
        counts[EMPTY] = 0
        kind = int(counts.argmax())
        filled = [[value for value in column if value] for column in columns]
        different = min(len({*side}) / max(len(side), 1) for side in filled)
        words = sum(value.count(" ") + 1 for side in filled for value in side) / max(sum(map(len, filled)), 1)
        is_note = words > NOTE_WORDS and different > NOTES_DIFFER
        kinds.append((kind == TEXT, kind != TEXT or is_note, kind not in (TEXT, DATE) and different > NUMBERS_DIFFER))
    return _Kinds(*np.array(kinds).T)
