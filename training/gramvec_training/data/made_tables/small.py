"""Small tables of the rows of a made one: what a person pastes to try."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from gramvec_training.data.made_tables.records import MadeTable

TABLES, MOST_ROWS = 10, 6
# How often the rows stand beside each other in the order of the first column.
NEIGHBORS = 0.4
# Of the rows of the other table, those that have no partner here.
STRANGE = 0.3


def cut_small(made: MadeTable, drawn: Random) -> Iterator[MadeTable]:
    """Yield tables of at most MOST_ROWS rows a side of a made one; most rows have their partner in them."""
    partners: dict[int, list[int]] = {}
    for one, other in made.pairs:
        partners.setdefault(one, []).append(other)
    if not partners:
        return
    first = next(iter(made.left.values()))
    in_order = sorted(partners, key=lambda row: first[row])
    others = range(len(first) if made.right is None else len(next(iter(made.right.values()))))
    for _ in range(TABLES):
        size = min(drawn.randint(2, MOST_ROWS), len(in_order))
        start = drawn.randrange(len(in_order) - size + 1)
        rows = in_order[start : start + size] if drawn.random() < NEIGHBORS else drawn.sample(in_order, size)
        right = [drawn.choice(others) if drawn.random() < STRANGE else drawn.choice(partners[row]) for row in rows]
        yield _take_rows(made, rows, sorted(set(right), key=right.index))


def _take_rows(made: MadeTable, left: list[int], right: list[int]) -> MadeTable:
    known = set(made.pairs)
    if made.right is None:
        rows = sorted({*left, *right})
        table = {name: [cells[row] for row in rows] for name, cells in made.left.items()}
        pairs = [(a, b) for a, one in enumerate(rows) for b, other in enumerate(rows) if (one, other) in known]
        return made._replace(left=table, pairs=pairs)
    sides = [
        {name: [cells[row] for row in rows] for name, cells in columns.items()}
        for columns, rows in ((made.left, left), (made.right, right))
    ]
    pairs = [(a, b) for a, one in enumerate(left) for b, other in enumerate(right) if (one, other) in known]
    return made._replace(left=sides[0], right=sides[1], pairs=pairs)
