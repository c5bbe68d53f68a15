"""The columns of tables that tell something, folded, in an order that only what stands in them decides.

Letters of a whole row and n-grams over two columns depend on which column comes first. Neither the place of a column
in a file nor its name says anything of two rows, so columns are ordered by their cells: a pair has one score however
the columns of its tables are sorted.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from gramvec.jobs.pairs.tokens import fold_column

# The cells of one column, of each table.
CellsByTable = list[list[str]]


class TellingColumns(NamedTuple):
    """Folded columns of one table or two.

    Attributes:
        tables: the columns of each table, of which each is the texts of its rows.
        places: where each column was among the given ones.
    """

    tables: list[list[list[str]]]
    places: list[int]


def telling_columns(tables: Sequence[Sequence[Sequence[str]]], *, paired: bool = False) -> TellingColumns:
    """Return the folded columns of tables in the order of their content, without empty ones and copies of another one.

    These say nothing, and must not change what the others say. Of empty columns alone the first is returned.

    Args:
        tables: the columns of one table or two, the same number of each.
        paired: whether each row of the first table stands beside one row of the second; else the rows of a table may
            be in any order.
    """
    columns: list[CellsByTable] = [[fold_column(side) for side in column] for column in zip(*tables, strict=True)]
    told = [place for place, column in enumerate(columns) if any(map(any, column))]
    kept = [place for at, place in enumerate(told) if columns[place] not in [columns[one] for one in told[:at]]] or [0]
    places = [kept[at] for at in order_by_content([columns[place] for place in kept], paired=paired)]
    return TellingColumns([[columns[place][side] for place in places] for side in range(len(tables))], places)


def order_by_content(columns: Sequence[CellsByTable], *, paired: bool = False) -> list[int]:
    """Return the places of different columns, that of the most characters first, whatever order they are given in.

    Of columns with as many characters and different texts, the texts decide, and then what stands beside each of them.
    """
    sizes = [
        (-sum(sum(map(len, side)) for side in column), -sum(len(set(side)) for side in column)) for column in columns
    ]
    tied = [at for at, size in enumerate(sizes) if sizes.count(size) > 1]
    contents: dict[int, list[Any]] = {}
    if tied:
        cells: list[list[Any]] = [[[*zip(*column, strict=True)]] if paired else column for column in columns]
        rows = [[sorted(row) for row in zip(*side, strict=True)] for side in zip(*cells, strict=True)]
        contents = {at: [sorted(zip(*side, strict=True)) for side in zip(cells[at], rows, strict=True)] for at in tied}
    return sorted(range(len(columns)), key=lambda at: (sizes[at], contents.get(at, [])))
