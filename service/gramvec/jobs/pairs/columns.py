"""What the columns of tables tell: how often each value stands there, what kind of values a column has, and what a
level of likeness is worth.

A column that both rows fill has a level: its values are equal, nearly, alike, different, or they contradict each other.
It tells log(m / u): m is the share of pairs of one thing that have the level, u that of pairs of rows by chance
(Fellegi and Sunter 1969). m is fixed; u is measured, and for an equal value it is the share of the rows that have it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from gramvec.jobs.pairs import cells as cell_kinds
from gramvec.jobs.pairs.levels import CONTRADICTS, DIFFERENT, EQUAL, LEVELS
from gramvec.jobs.pairs.tokens import DIGITS, ZEROS, Tokens
from gramvec.jobs.pairs.values import ColumnValues
from gramvec.jobs.pairs.word_shares import BACKGROUND_TEXTS, ONLY_BACKGROUND_TEXTS, shares_of
from gramvec.lexical.hashing import mix_key
from gramvec.text.arrays import Doubles, Floats, Int32s, Int64s, UInt8s, UInt64s

# No level of `levels`: the letters of the values decide.
BY_LETTERS = 255
# Of pairs of one thing, and of pairs by chance as long as few rows say it: the shares of the levels.
OF_MATCHES = (0.01, 0.05, 0.08, 0.17, 0.70)
BY_CHANCE = (0.01, 0.91, 0.05, 0.01, 0.02)
# Pairs that BY_CHANCE counts as; rows that a value's frequency counts as beside those of the tables.
BACKGROUND_PAIRS, BACKGROUND_ROWS = 100, 30
DRAWN_PAIRS = 20_000
# Likeness of letters from which values are nearly equal, or alike.
NEAR_VALUE, ALIKE_VALUE = 0.85, 0.65
IDENTIFIER, NAME, PLACE, NUMBER, DATE, TEXT = range(6)
# Words of a value from which a column is one of free texts.
TEXT_WORDS = 8


class ColumnFacts(NamedTuple):
    """What the columns of one table or two tell.

    Attributes:
        kinds: uint8[c], IDENTIFIER, NAME, ....
        cells: int32[rows * c] of each table, the value of each cell; those of a column that are equal have one number,
            and -1 is an empty one.
        equal: float32[v], what an equal value tells, in nats.
        levels: float32[c * LEVELS], what the levels tell.
        weights: float32[tokens] of each table, how rare a token is in its column: inverse document frequencies.
        rows: the logarithm of the rows of the last table.
        column: int64[v], the column of each value.
        hashes: uint64[rows * c] of each table, equal for equal cells of any column; 0 for empty ones.
    """

    kinds: UInt8s
    cells: list[Int32s]
    equal: Floats
    levels: Floats
    weights: list[Floats]
    rows: float
    column: Int64s
    hashes: list[UInt64s]


def facts_of(tokens: Tokens, values: Sequence[Sequence[ColumnValues]] | None) -> ColumnFacts:
    """Return the facts of columns, but for what their levels tell, which is as by BY_CHANCE.

    Args:
        tokens: of the tables.
        values: of the columns of each table; None where a row has the same figures beside any others.
    """
    known, columns = tokens.vocabulary, tokens.columns
    bounds, rows = [table.bounds for table in tokens.tables], [table.tokens for table in tokens.tables]
    is_digits = ((known.kinds == DIGITS) | (known.kinds == ZEROS)).astype(np.uint8)
    levels = tell_levels(np.zeros((0, columns), np.uint8), columns, 0)
    hashes = [_hash_cells(*table, known.values, is_digits) for table in zip(bounds, rows, strict=True)]
    cells, column = number_cells(hashes, bounds, columns)
    if values is None:
        told = np.log(OF_MATCHES[EQUAL] * ONLY_BACKGROUND_TEXTS)
        kinds = np.full(columns, NAME, np.uint8)
        return ColumnFacts(
            kinds, cells, np.full(len(column), told, np.float32), levels,
            [known.weights[ids] for ids in rows], float(np.log(ONLY_BACKGROUND_TEXTS)), column, hashes,
        )  # fmt: skip
    names = [
        "".join(map(chr, known.characters[a:b].tolist()))
        for a, b in zip(known.starts[:-1].tolist(), known.starts[1:].tolist(), strict=True)
    ]
    kinds = kind_columns(values, cells, [np.diff(table_bounds) for table_bounds in bounds], columns)
    if columns == 1:
        weights = [known.weights[ids] for ids in rows]
    else:
        weights = weigh_tokens(bounds, rows, known.values, shares_of(names), columns, BACKGROUND_TEXTS)
    return ColumnFacts(
        kinds, cells, tell_equals(cells, column, columns), levels, weights,
        float(np.log(max(len(bounds[-1]) // columns, 1) + BACKGROUND_ROWS)), column, hashes,
    )  # fmt: skip


def number_cells(hashed: Sequence[UInt64s], bounds: Sequence[Int64s], columns: int) -> tuple[list[Int32s], Int64s]:
    """Return the number of each cell's value in each table, and the column of each number.

    Values are equal that have the same words in any order, and the same numbers in the same one.
    """
    column = [np.tile(np.arange(columns), len(hashes) // columns) for hashes in hashed]
    filled = [np.diff(table_bounds) > 0 for table_bounds in bounds]
    keys = np.concatenate([hashes[there] for hashes, there in zip(hashed, filled, strict=True)])
    of_column = np.concatenate([numbers[there] for numbers, there in zip(column, filled, strict=True)])
    order = np.lexsort((keys, of_column))
    new = np.ones(len(order), np.bool_)
    new[1:] = (np.diff(keys[order]) != 0) | (np.diff(of_column[order]) != 0)
    number = np.empty(len(order), np.int32)
    number[order] = np.cumsum(new) - 1
    tables, start = [], 0
    for there in filled:
        cells = np.full(len(there), -1, np.int32)
        count = int(there.sum())
        cells[there] = number[start : start + count]
        tables.append(cells)
        start += count
    return tables, of_column[order][new]


def _hash_cells(bounds: Int64s, tokens: Int32s, values: Int32s, is_digits: UInt8s) -> UInt64s:
    cells = np.repeat(np.arange(len(bounds) - 1), np.diff(bounds))
    digits = is_digits[tokens].astype(np.int64)
    before = np.append(0, np.cumsum(digits))
    # Place of a number among those of its cell; words have none.
    place = np.where(digits, before[:-1] - before[bounds[cells]] + 1, 0)
    mixed = mix_key(
        (values[tokens].astype(np.uint64) << np.uint64(20)) | np.minimum(place, (1 << 20) - 1).astype(np.uint64), 0
    )
    sums = np.append(np.uint64(0), np.cumsum(mixed, dtype=np.uint64))
    return sums[bounds[1:]] - sums[bounds[:-1]]


def tell_equals(cells: Sequence[Int32s], column: Int64s, columns: int) -> Floats:
    """Return what each equal value tells: the logarithm of its share of matches over its share of rows."""
    counts = np.bincount(
        np.concatenate([table_cells[table_cells >= 0] for table_cells in cells]), minlength=len(column)
    )
    filled = np.bincount(column, counts, minlength=columns)
    told: Doubles = np.log(OF_MATCHES[EQUAL]) - np.log(counts / (filled[column] + BACKGROUND_ROWS))
    return told.astype(np.float32)


def tell_levels(drawn: UInt8s, columns: int, pairs: int) -> Floats:
    """Return what the levels of each column tell, float32[columns * LEVELS].

    Args:
        drawn: uint8[p, columns], levels of pairs by chance.
        columns: how many.
        pairs: of rows that there are.
    """
    told = []
    for column in range(columns):
        counts = np.bincount(drawn[drawn[:, column] < LEVELS, column], minlength=LEVELS)[:LEVELS].astype(np.float64)
        known = min(float(counts.sum()), float(pairs))
        shares = counts / max(counts.sum(), 1.0)
        chance = (shares * known + np.array(BY_CHANCE) * BACKGROUND_PAIRS) / (known + BACKGROUND_PAIRS)
        tells = np.log(np.array(OF_MATCHES)) - np.log(chance)
        # However rare they are: contradicting values speak more against one thing than different ones.
        tells[CONTRADICTS] = min(tells[CONTRADICTS], tells[DIFFERENT] - 1)
        told.append(tells)
    return np.concatenate(told).astype(np.float32)


def kind_columns(
    values: Sequence[Sequence[ColumnValues]], cells: Sequence[Int32s], counts: Sequence[Int64s], columns: int
) -> UInt8s:
    """Return the kind of each column, told from its values alone.

    Args:
        values: the columns of each table.
        cells: see ColumnFacts.
        counts: int64[rows * columns] of each table, the tokens of each cell.
        columns: how many.
    """
    kinds = np.full(columns, PLACE, np.uint8)
    for column in range(columns):
        different = words = 0.0
        of_kind = np.zeros(cell_kinds.KINDS, np.int64)
        for table, table_cells, number in zip(values, cells, counts, strict=True):
            read = table[column]
            of_kind += np.bincount(read.kinds[read.of_row], minlength=cell_kinds.KINDS)
            here = table_cells[column::columns]
            here = here[here >= 0]
            if len(here):
                different = max(different, len(np.unique(here)) / len(here))
                words = max(words, float(number[column::columns].sum() / len(here)))
        of_kind[cell_kinds.EMPTY] = 0
        most = int(np.argmax(of_kind))
        if most in (cell_kinds.NUMBER, cell_kinds.DATE):
            kinds[column] = NUMBER if most == cell_kinds.NUMBER else DATE
        elif most in (cell_kinds.PHONE, cell_kinds.EMAIL):
            kinds[column] = IDENTIFIER
        elif different > 0.5:
            kinds[column] = IDENTIFIER if most == cell_kinds.CODE else TEXT if words > TEXT_WORDS else NAME
    return kinds


def weigh_tokens(
    bounds: Sequence[Int64s], tokens: Sequence[Int32s], values: Int32s, shares: Doubles, columns: int, background: int
) -> list[Floats]:
    """Return how rare each token is in its column, float32[tokens] of each table."""
    number = int(values.max(initial=-1)) + 1
    keys = []
    cells, start = [], 0
    for table_bounds, ids in zip(bounds, tokens, strict=True):
        cell = np.repeat(np.arange(len(table_bounds) - 1), np.diff(table_bounds))
        keys.append((cell % columns) * number + values[ids])
        cells.append(cell + start)
        start += len(table_bounds) - 1
    every, cell = np.concatenate(keys), np.concatenate(cells)
    known, at = np.unique(every, return_inverse=True)
    # A token counts once in each cell.
    order = np.lexsort((at, cell))
    first = np.ones(len(order), np.bool_)
    first[1:] = (np.diff(at[order]) != 0) | (np.diff(cell[order]) != 0)
    held = np.bincount(at[order][first], minlength=len(known)).astype(np.float64)
    filled = np.zeros(columns)
    for table_bounds in bounds:
        there = np.flatnonzero(np.diff(table_bounds) > 0)
        filled += np.bincount(there % columns, minlength=columns)
    column = known // max(number, 1)
    of_value = shares[known % max(number, 1)] if number else np.zeros(0)
    weights = np.log((1 + filled[column] + background) / (1 + held + background * of_value)) + 1
    made = weights.astype(np.float32)[at]
    return np.split(made, np.cumsum([len(ids) for ids in tokens])[:-1])
