"""Columns that say the same share what they tell: a postcode and its town, a column and its copy, an address."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from gramvec.jobs.pairs import cells as cell_kinds
from gramvec.jobs.pairs.columns import DATE, DRAWN_PAIRS, NAME, NUMBER, PLACE, ColumnFacts
from gramvec.jobs.pairs.levels import DIFFERENT, EQUAL, LEVELS, NEARLY
from gramvec.jobs.pairs.values import ColumnValues
from gramvec.text.arrays import Bools, Doubles, Int32s, Int64s, UInt8s, UInt64s

# Equal values of both columns from which it is said whether one tells the other; the share of columns in which these
# rows differ at least; share of equal cells of a copy.
FEWEST_EQUAL, OTHERS, COPIED = 5, 0.3, 0.9
# Of neighbors, the part that shares another column's value, too, from which it is a part of their address.
TIED = 0.5
# Kinds of columns whose values many rows share, so that one may tell another.
SHARED_KINDS = {PLACE, NUMBER, DATE}
DRAWN_SEED = 0


def share_evidence(facts: ColumnFacts, drawn: UInt8s, tied: Doubles | None = None) -> ColumnFacts:
    """Return facts in which columns that say the same share what they tell.

    Two columns say the same as far as an equal value of one goes with an equal value of the other, beyond chance, in
    pairs of rows by chance: the logarithm of how much more often, over what the commoner of both could say at most.

    Args:
        facts: with what levels tell.
        drawn: uint8[p, columns], levels of pairs of rows by chance.
        tied: float64[columns, columns], how far columns say the same by other means.
    """
    columns = len(facts.kinds)
    if columns < 2:
        return facts
    same = copied_columns(facts.hashes, columns)
    if tied is not None:
        same = np.maximum(same, tied)
    # Rows that are one thing are equal in most columns, whatever these are, and say nothing of them.
    number = np.maximum((drawn < LEVELS).sum(axis=1), 1)
    drawn = drawn[(drawn <= DIFFERENT).sum(axis=1) >= OTHERS * number]
    for one in range(columns):
        for other in range(one + 1, columns):
            if {*facts.kinds[[one, other]].tolist()} - SHARED_KINDS:
                continue
            filled = (drawn[:, one] < LEVELS) & (drawn[:, other] < LEVELS)
            equal, of_other = (drawn[filled, column] == EQUAL for column in (one, other))
            both, number = int((equal & of_other).sum()), max(int(filled.sum()), 1)
            if both >= FEWEST_EQUAL:
                lift = both * number / (int(equal.sum()) * int(of_other.sum()))
                shared = _share_of(lift, max(int(equal.sum()), int(of_other.sum())) / number)
                same[one, other] = same[other, one] = max(same[one, other], shared)
    weight = 1 / same.sum(axis=1)
    levels = (facts.levels.reshape(columns, LEVELS) * weight[:, None]).astype(np.float32).ravel()
    return facts._replace(levels=levels, equal=(facts.equal * weight[facts.column]).astype(np.float32))


def _share_of(lift: float, most: float) -> float:
    """Return which part of what they tell two columns share.

    Args:
        lift: how much oftener both are equal than by chance.
        most: the share of pairs in which the commoner is equal.
    """
    return min(max(float(np.log(lift) / -np.log(most)), 0.0), 1.0) if most < 1 else 0.0


class SharedAddress(NamedTuple):
    """Pairs of rows of a table that share an address.

    Attributes:
        column: of the address.
        above: int64[p], rows.
        below: int64[p], the other ones.
    """

    column: int
    above: Int64s
    below: Int64s


def pair_neighbors(facts: ColumnFacts, numbered: Bools, side: int) -> Iterator[SharedAddress]:
    """Yield pairs of rows of a table that share an address, of each column of addresses.

    Args:
        facts: of the tables.
        numbered: see `numbered_columns`; those that are no free texts have addresses.
        side: the table.
    """
    cells = facts.cells[side].reshape(-1, len(facts.kinds))
    # Rows stand in an order, which must not choose who is beside whom.
    drawn = np.random.default_rng(DRAWN_SEED).permutation(len(cells))
    for address in np.flatnonzero(numbered & np.isin(facts.kinds, (NAME, PLACE))).tolist():
        order = drawn[np.argsort(cells[drawn, address], kind="stable")]
        ranked = cells[order, address]
        at = np.flatnonzero((ranked[1:] == ranked[:-1]) & (ranked[1:] >= 0))[:DRAWN_PAIRS]
        if len(at) >= FEWEST_EQUAL:
            yield SharedAddress(address, order[at], order[at + 1])


def tie_columns(facts: ColumnFacts, numbered: Bools, side: int, address: int, levels: UInt8s) -> Doubles:
    """Return float64[columns, columns]: how far columns say the same as an address, and each other with it.

    A street's values are rare, so that pairs by chance do not show that it tells its town. The rows within a table
    that share a street do, if they have other names more often than the same one: they are a family, or neighbors.
    Where they are offers of one product, or one person who stands twice, nothing is tied.

    Args:
        facts: of the tables.
        numbered: see `numbered_columns`.
        side: a table.
        address: a column.
        levels: uint8[p, columns], of pairs of rows of this table that share it.
    """
    columns = len(facts.kinds)
    tied = np.zeros((columns, columns))
    named = (facts.kinds == NAME) & ~numbered
    names = named & (levels < LEVELS)
    others = (names & (levels <= DIFFERENT)).any(axis=1)
    same = names.any(axis=1) & ((levels >= NEARLY) | ~names).all(axis=1)
    if others.sum() <= same.sum():
        return tied
    cells = facts.cells[side].reshape(-1, columns)
    number, both = (levels[others] < LEVELS).sum(axis=0), (levels[others] == EQUAL).sum(axis=0)
    chance_of_address = _chance_of_equal(cells[:, address])
    shared = np.zeros(columns)
    shared[address] = 1
    for other in np.flatnonzero((both >= FEWEST_EQUAL) & (both >= TIED * number)).tolist():
        chance = _chance_of_equal(cells[:, other])
        if other != address and chance:
            shared[other] = _share_of(both[other] / number[other] / chance, max(chance, chance_of_address))
    return np.minimum(shared[:, None], shared)


def _chance_of_equal(cells: Int32s) -> float:
    """Return the share of pairs of a column's filled cells that are equal."""
    counts = np.bincount(cells[cells >= 0]).astype(np.float64)
    return float((counts * (counts - 1)).sum() / max(counts.sum() * (counts.sum() - 1), 1.0))


def numbered_columns(values: Sequence[Sequence[ColumnValues]]) -> Bools:
    """Return bool[columns]: whether most filled cells of a column are words with numbers in them."""
    columns = len(values[0])
    numbered, filled = np.zeros(columns, np.int64), np.zeros(columns, np.int64)
    for table in values:
        for column, read in enumerate(table):
            inside = (read.kinds == cell_kinds.TEXT) & (read.marks != 0).any(axis=1)
            numbered[column] += int(inside[read.of_row].sum())
            filled[column] += int((read.kinds[read.of_row] != cell_kinds.EMPTY).sum())
    return np.asarray(2 * numbered > filled)


def copied_columns(hashes: Sequence[UInt64s], columns: int) -> Doubles:
    """Return float64[columns, columns]: 1 for two columns of which most cells are equal, and for one and itself."""
    same = np.eye(columns)
    cells = np.concatenate([table_hashes.reshape(-1, columns) for table_hashes in hashes])
    for one in range(columns):
        for other in range(one + 1, columns):
            filled = (cells[:, one] != 0) & (cells[:, other] != 0)
            equal = (cells[filled, one] == cells[filled, other]).sum()
            same[one, other] = same[other, one] = float(equal > COPIED * max(int(filled.sum()), 1))
    return same
