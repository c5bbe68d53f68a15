"""Small tables of the rows of a made one, with partners and without: what a person pastes to try, or looks up."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from random import Random

from gramvec_training.data.made_tables.records import MadeTable

# Small tables of each made one, and the rows that are drawn of its left table for each.
TABLES, MOST_ROWS = 10, 6
# Of the rows that have a partner, the part whose partner is in the small table, too: one of these.
TOGETHER = (0.0, 0.5, 0.8, 1.0)
# How often what is drawn stands side by side in the order of the texts, read from their first word or from their last.
NEIGHBORS = 0.6
# Lookups in each made table; of these, rows of one side at most, and of the other at least and at most; the part of
# them in which partners are; and that in which the others stand next to what is looked up, in the order of the texts.
LOOKUPS, LOOKED_UP, BESIDE, FOUND, NEAR = 8, 2, (5, 16), 0.5, 0.8


def cut_small(made: MadeTable, drawn: Random) -> Iterator[MadeTable]:
    """Yield tables of a few rows of a made one: at most MOST_ROWS a side, or twice as many in one table."""
    partners: dict[int, list[int]] = {}
    for one, other in made.pairs:
        partners.setdefault(one, []).append(other)
        if made.right is None:
            partners.setdefault(other, []).append(one)
    orders = [_order_rows(made, last_word=last_word) for last_word in (False, True)]
    # Of which table those are that have no partner here.
    strange = 0 if made.right is None else 1
    for _ in range(TABLES):
        order, size = drawn.choice(orders), drawn.randint(1, MOST_ROWS)
        places = [place for place, (side, _) in enumerate(order) if side == 0]
        at = drawn.randrange(max(len(places) - size, 0) + 1)
        near = drawn.random() < NEIGHBORS
        chosen = places[at : at + size] if near else drawn.sample(places, min(size, len(places)))
        together = drawn.choice(TOGETHER)
        left, right = [order[place][1] for place in chosen], []
        for place, row in zip(chosen, left, strict=True):
            if row in partners and drawn.random() < together:
                right.append(drawn.choice(partners[row]))
            else:
                right.append(_draw_other(order, place if near else drawn.randrange(len(order)), strange))
        yield _take_rows(made, left, [*dict.fromkeys(right)])


def cut_lookups(made: MadeTable, drawn: Random) -> Iterator[MadeTable]:
    """Yield tables of a row or two of one side, the left and the right in turn, beside several of the other.

    Args:
        made: two tables.
        drawn: makes the choices.
    """
    partners: tuple[dict[int, set[int]], ...] = ({}, {})
    for pair in made.pairs:
        for side in (0, 1):
            partners[side].setdefault(pair[side], set()).add(pair[1 - side])
    orders = [_order_rows(made, last_word=last_word) for last_word in (False, True)]
    for number in range(LOOKUPS):
        order, side = drawn.choice(orders), number % 2
        places = [place for place, (of, _) in enumerate(order) if of == side]
        size, several = drawn.randint(1, LOOKED_UP), drawn.randint(*BESIDE)
        at = drawn.randrange(max(len(places) - size, 0) + 1)
        chosen = places[at : at + size]
        rows = [order[place][1] for place in chosen]
        near = drawn.random() < NEAR
        known = [partners[side].get(row, set()) for row in rows]
        found = [min(of_row) for of_row in known if of_row] if drawn.random() < FOUND else []
        if near:
            ranked = sorted(range(len(order)), key=lambda place: abs(place - chosen[0]))
        else:
            ranked = drawn.sample(range(len(order)), min(len(order), 4 * several))
        theirs = set().union(*known)
        strange = [row for of, row in (order[place] for place in ranked) if of != side and row not in theirs]
        others = [*dict.fromkeys(found)]
        others += strange[: max(several - len(others), 0)]
        beside = drawn.sample(others, len(others))
        yield _take_rows(made, rows, beside) if side == 0 else _take_rows(made, beside, rows)


def _order_rows(made: MadeTable, *, last_word: bool) -> list[tuple[int, int]]:
    """Return the side and number of all rows, in the order of their texts."""
    rows = []
    for side, columns in enumerate((made.left, made.right)):
        for row, cells in enumerate(zip(*columns.values(), strict=True) if columns else ()):
            words = " ".join(cells[:1] if cells[0] else cells).casefold().split()
            rows.append((words[::-1] if last_word else words, side, row))
    return [(side, row) for _, side, row in sorted(rows)]


def _draw_other(order: Sequence[tuple[int, int]], place: int, side: int) -> int:
    """Return the next row of a side after a place, round the end."""
    return next(row for of, row in (*order[place + 1 :], *order[: place + 1]) if of == side)


def _take_rows(made: MadeTable, left: list[int], right: list[int]) -> MadeTable:
    """Return a made table of these rows of the left and the right one, or of both in one table."""
    if made.right is None:
        left = right = sorted({*left, *right})
    known = set(made.pairs)
    pairs = [(a, b) for a, one in enumerate(left) for b, other in enumerate(right) if (one, other) in known]
    return made._replace(left=_take(made.left, left), right=made.right and _take(made.right, right), pairs=pairs)


def _take(columns: dict[str, list[str]], rows: list[int]) -> dict[str, list[str]]:
    return {name: [cells[row] for row in rows] for name, cells in columns.items()}
