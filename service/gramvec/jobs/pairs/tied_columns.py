"""Columns that say the same: a postcode and its town, a column and its copy. They share what they tell."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gramvec.jobs.pairs.columns import DATE, NUMBER, PLACE, ColumnFacts
from gramvec.jobs.pairs.levels import DIFFERENT, EQUAL, LEVELS
from gramvec.text.arrays import Doubles, UInt8s, UInt64s

# Equal values of both columns from which it is said whether one tells the other; the share of columns in which these
# rows differ at least; share of equal cells of a copy.
FEWEST_EQUAL, OTHERS, COPIED = 5, 0.3, 0.9
# Kinds of columns whose values many rows share, so that one may tell another.
SHARED_KINDS = {PLACE, NUMBER, DATE}


def share_evidence(facts: ColumnFacts, drawn: UInt8s) -> ColumnFacts:
    """Return facts in which columns that say the same share what they tell: a postcode and its town, a copied column.

    Two columns say the same as far as an equal value of one goes with an equal value of the other, beyond chance, in
    pairs of rows by chance: the logarithm of how much more often, over what the commoner of both could say at most.

    Args:
        facts: with what levels tell.
        drawn: uint8[p, columns], levels of pairs of rows by chance.
    """
    columns = len(facts.kinds)
    if columns < 2:
        return facts
    same = copied_columns(facts.hashes, columns)
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
            most = max(int(equal.sum()), int(of_other.sum()))
            if both >= FEWEST_EQUAL and most < number:
                lift = np.log(both * number / (int(equal.sum()) * int(of_other.sum())))
                shared = min(max(lift / -np.log(most / number), 0.0), 1.0)
                same[one, other] = same[other, one] = max(same[one, other], shared)
    weight = 1 / same.sum(axis=1)
    levels = (facts.levels.reshape(columns, LEVELS) * weight[:, None]).astype(np.float32).ravel()
    return facts._replace(levels=levels, equal=(facts.equal * weight[facts.column]).astype(np.float32))


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
