"""A made table, and how one is drawn from a family: its things, how often each is in it, how it is written."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Callable, Sequence
from random import Random
from typing import Any, NamedTuple

from gramvec_training.data.made_tables.styles import PLAIN, Style, draw_style, is_missing

Thing = dict[str, Any]
# Rows of a side, at a scale of 1; fewer in tables of half of the kinds.
LEAST_ROWS, MOST_ROWS = 300, 1_800
# How much two records of one thing differ.
NOISES = (0.0, 0.15, 0.4, 0.4, 0.7, 1.0)
# Parts of the things that are kin of another.
KINS = (0.0, 0.1, 0.3, 0.5)
# Parts of the rows that are in both tables, and of the things that stand more than once: by turns in a family's tables.
OVERLAPS = (0.5, 0.8, 0.1, 1.0, 0.3, 0.02, 0.5, 0.0)
COPIED = (0.1, 0.25, 0.0, 0.05, 0.5, 0.01)
COPIES = (2, 2, 3)
SPELLINGS = (2, 2, 2, 3, 5, 10, 20)
# Two records of one thing share at least this part of their letters' trigrams, or are written again.
LEAST_ALIKE = 0.4
TRIES = 4


class MadeTable(NamedTuple):
    """Two tables, or one, and the pairs of rows that are one thing.

    Attributes:
        name: of the table, as no other has it.
        family: what is left out together.
        kind: "register" (two tables), "one register" (one table), "ordered list" (one table in which few things or
            none stand twice), "halves" (two tables of different things), "offers" (two tables of products), "answers"
            (a column beside its codes).
        left: names of columns, and a value for each row.
        right: the same of the other table, its columns in the order of those of `left`, or None where there is one.
        pairs: all pairs (row of left, row of right) that are one thing; of one table (row, row below it).
    """

    name: str
    family: str
    kind: str
    left: dict[str, list[str]]
    right: dict[str, list[str]] | None
    pairs: list[tuple[int, int]]


class Column(NamedTuple):
    """A column of a family.

    Attributes:
        headers: names that a table may give it.
        write: writes a value in the way of a table, with what goes wrong.
        empty: how often it is empty.
        weak: whether two things that differ in it alone are one to a person who reads the table.
    """

    headers: tuple[str, ...]
    write: Callable[[Any, Style, Random, float], str]
    empty: float = 0.06
    weak: bool = False


class ThingFamily(NamedTuple):
    """A kind of things.

    Attributes:
        name: what its tables are left out by.
        columns: those that its things have.
        layouts: the columns that a table shows: one of these, which semicolons part.
        draw: returns things of a number, and the part of them that are kin of another (household, branch, size).
        change: returns a thing as it is at another time: moved, married, renamed.
        kinds: of tables: (two tables, one table).
        most: records of a thing in each of two tables.
        noises: how much two records of one thing differ: one of these.
        overlaps: how much two tables share: by turns.
        kins: what `draw` is given: one of these.
        copied: parts of the things that stand more than once in one table: by turns.
        copies: the most records of a thing in one table that is a register: one of these.
        sources: from which one table is put together, each with its own habits.
    """

    name: str
    columns: dict[str, Column]
    layouts: str
    draw: Callable[[Random, int, float], list[Thing]]
    change: Callable[[Thing, Random, float], Thing]
    kinds: tuple[str, str] = ("register", "one register")
    most: int = 1
    noises: Sequence[float] = NOISES
    overlaps: Sequence[float] = OVERLAPS
    kins: Sequence[float] = KINS
    copied: Sequence[float] = COPIED
    copies: Sequence[int] = COPIES
    sources: int = 1


class TablePlan(NamedTuple):
    """What is drawn for one table before its rows are."""

    rows: int
    noise: float
    kin: float
    layout: tuple[str, ...]
    styles: tuple[Style, Style]
    joined: tuple[int, int, int] | None


def fold(text: str) -> str:
    """Return a value as two values are compared here: without case, marks and runs of spaces."""
    letters = unicodedata.normalize("NFKD", text.casefold())
    return " ".join("".join(letter for letter in letters if not unicodedata.combining(letter)).split())


def draw_rows(drawn: Random, scale: float) -> int:
    """Return a number of rows, many of them small."""
    return max(40, int(scale * math.exp(drawn.uniform(math.log(LEAST_ROWS), math.log(MOST_ROWS)))))


def make_two_tables(family: ThingFamily, number: int, drawn: Random, scale: float, *, turn: int = 0) -> MadeTable:
    """Return two tables of a family, of which a part of the rows is one thing: another one for each number and turn."""
    plan = _draw_plan(family, drawn, scale)
    overlap = _take_turns(family.overlaps, family, number + turn)
    twice = drawn.choice((0.0, 0.0, 0.0, 0.05, 0.2))
    # Of the things, those in both tables and in one of them.
    count = round(2 * plan.rows / (1 + overlap))
    things = _draw_things(family, plan, count, drawn)
    drawn.shuffle(things)
    both = round(overlap * plan.rows)
    sides: tuple[list[tuple[int, list[str]]], list[tuple[int, list[str]]]] = ([], [])
    for number_of_thing, thing in enumerate(things):
        if number_of_thing >= both:
            side = (number_of_thing - both) % 2
            sides[side].append((number_of_thing, _write(family, plan, thing, side, drawn, plan.noise / 3)))
            continue
        first = _write(family, plan, thing, 0, drawn, plan.noise / 3)
        sides[0].append((number_of_thing, first))
        for _ in range(drawn.randint(1, family.most) - 1):
            sides[0].append((number_of_thing, _write_other(family, plan, thing, 0, drawn, first)))
        for _ in range(2 if drawn.random() < twice else drawn.randint(1, family.most)):
            sides[1].append((number_of_thing, _write_other(family, plan, thing, 1, drawn, first)))
    for rows in sides:
        drawn.shuffle(rows)
    left, right = keep_different(sides)
    tables = [
        _make_table(family, plan, side, [row for _, row in rows], drawn) for side, rows in enumerate((left, right))
    ]
    places: dict[int, list[int]] = {}
    for place, (which, _) in enumerate(right):
        places.setdefault(which, []).append(place)
    pairs = [(place, other) for place, (which, _) in enumerate(left) for other in places.get(which, ())]
    kind = family.kinds[0] if pairs else "halves"
    return MadeTable(f"{family.name}-{number}", family.name, kind, tables[0], tables[1], pairs)


def make_one_table(family: ThingFamily, number: int, drawn: Random, scale: float, *, turn: int = 0) -> MadeTable:
    """Return one table of a family, of which a part stands more than once: another one for each number and turn."""
    plan = _draw_plan(family, drawn, scale)
    copied = _take_turns(family.copied, family, number + turn)
    most = drawn.choice(family.copies if copied > 0.1 else SPELLINGS)
    if copied <= 0.1 and most > 3:
        # Things that are written in many ways are few, and no two ways are equal.
        copied, plan = min(copied, 0.05), plan._replace(noise=max(plan.noise, 0.4))
    things = _draw_things(family, plan, plan.rows, drawn)
    plans = [plan, *(plan._replace(styles=(draw_style(drawn), PLAIN)) for _ in range(family.sources - 1))]
    rows: list[tuple[int, list[str]]] = []
    for which, thing in enumerate(things):
        first = _write(family, plan, thing, 0, drawn, plan.noise / 3)
        rows.append((which, first))
        if drawn.random() < copied:
            for _ in range(drawn.randint(1, most - 1)):
                source = drawn.choice(plans) if len(plans) > 1 else plan
                rows.append((which, _write_copy(family, source, thing, drawn, first)))
    drawn.shuffle(rows)
    kept, _ = keep_different((rows, []))
    name = f"{family.name}-{number}"
    table = _make_table(family, plan, 0, [row for _, row in kept], drawn)
    kind = family.kinds[1] if copied > 0.1 else "ordered list"
    return MadeTable(name, family.name, kind, table, None, pairs_within([which for which, _ in kept]))


def _take_turns(values: Sequence[float], family: ThingFamily, number: int) -> float:
    return values[(number + sum(map(ord, family.name))) % len(values)]


def pairs_within(things: Sequence[object]) -> list[tuple[int, int]]:
    """Return the pairs of places at which the same thing stands."""
    places: dict[object, list[int]] = {}
    for place, which in enumerate(things):
        places.setdefault(which, []).append(place)
    return sorted(
        (first, second) for group in places.values() for at, first in enumerate(group) for second in group[at + 1 :]
    )


def _draw_things(family: ThingFamily, plan: TablePlan, count: int, drawn: Random) -> list[Thing]:
    """Return things that differ in what the table shows of them."""
    shown: dict[tuple[str, ...], Thing] = {}
    telling = [name for name in plan.layout if not family.columns[name].weak]
    for thing in family.draw(drawn, count, plan.kin):
        shown.setdefault(make_key(write_clean(family, telling, thing)), thing)
    return list(shown.values())


def write_clean(family: ThingFamily, layout: Sequence[str], thing: Thing, style: Style = PLAIN) -> list[str]:
    """Return the cells of a thing in the way of a table, none of them changed or lost."""
    steady = Random(0)
    values = [(family.columns[name], thing.get(name)) for name in layout]
    return ["" if value in (None, "") else column.write(value, style, steady, 0.0) for column, value in values]


def _draw_plan(family: ThingFamily, drawn: Random, scale: float) -> TablePlan:
    layout = tuple(drawn.choice(family.layouts.split(";")).split())
    styles = draw_style(drawn), draw_style(drawn)
    joined = None
    if len(layout) > 2 and drawn.random() < 0.12:
        # One side writes two columns in one.
        at = drawn.randrange(len(layout) - 1)
        joined = (drawn.randrange(2), at, at + 1)
    return TablePlan(
        draw_rows(drawn, scale), drawn.choice(family.noises), drawn.choice(family.kins), layout, styles, joined
    )


def _write(family: ThingFamily, plan: TablePlan, thing: Thing, side: int, drawn: Random, noise: float) -> list[str]:
    """Return the cells of a record, at least one of them filled."""
    style = plan.styles[side]
    cells = []
    for name in plan.layout:
        column = family.columns[name]
        value = thing.get(name)
        if value in (None, "") or drawn.random() < column.empty * (0.3 + 2.5 * noise):
            cells.append(style.missing)
        else:
            text = " ".join(column.write(value, style, drawn, noise).split())
            cells.append(text or style.missing)
    # Two thirds of the cells say something, and the first of two.
    empty = [at for at, cell in enumerate(cells) if is_missing(cell)]
    for at in empty if 3 * len(empty) > len(cells) and (len(cells) > 2 or 0 in empty) else []:
        name = plan.layout[at]
        if thing.get(name) not in (None, ""):
            cells[at] = family.columns[name].write(thing[name], style, drawn, 0.0)
    if plan.joined is not None and plan.joined[0] == side:
        _join_cells(cells, plan.joined[1], plan.joined[2])
    if len(cells) > 1 and drawn.random() < 0.03 * noise:
        first, second = drawn.sample(range(len(cells)), 2)
        cells[first], cells[second] = cells[second], cells[first]
    if len(cells) > 1 and drawn.random() < 0.03 * noise:
        _join_cells(cells, *drawn.sample(range(len(cells)), 2))
    return cells


def _join_cells(cells: list[str], first: int, second: int) -> None:
    """Write two cells into the first of them."""
    if is_missing(cells[second]):
        return
    cells[first] = cells[second] if is_missing(cells[first]) else f"{cells[first]}, {cells[second]}"
    cells[second] = ""


def _write_other(
    family: ThingFamily, plan: TablePlan, thing: Thing, side: int, drawn: Random, first: list[str]
) -> list[str]:
    """Return another record of a thing, that a person could tell to be of it."""
    noise = plan.noise
    for _ in range(TRIES):
        cells = _write(family, plan, family.change(thing, drawn, noise), side, drawn, noise)
        if are_alike(first, cells):
            return cells
        noise /= 2
    return _write(family, plan, thing, side, drawn, 0.0)


def _write_copy(family: ThingFamily, plan: TablePlan, thing: Thing, drawn: Random, first: list[str]) -> list[str]:
    """Return another record of a thing in one table, which is rarely equal to the first."""
    copy = _write_other(family, plan, thing, 0, drawn, first)
    for noise in (0.4, 0.7, 1.0):
        if make_key(copy) != make_key(first) or drawn.random() < 0.1:
            break
        copy = _write_other(family, plan._replace(noise=noise), thing, 0, drawn, first)
    return copy


def are_alike(one: Sequence[str], other: Sequence[str]) -> bool:
    """Return whether two rows share a long number or an address of mail, or enough of their trigrams."""
    first, second = ({fold(cell) for cell in row if not is_missing(cell)} for row in (one, other))
    digits = [{"".join(filter(str.isdigit, cell))[-7:] for cell in cells} for cells in (first, second)]
    if any(len(number) >= 6 for number in digits[0] & digits[1]) or any("@" in cell for cell in first & second):
        return True
    grams = [
        {text[at : at + 3] for at in range(len(text))} for text in (" ".join(sorted(first)), " ".join(sorted(second)))
    ]
    return len(grams[0] & grams[1]) >= LEAST_ALIKE * min(len(grams[0]), len(grams[1]))


def keep_different(
    sides: tuple[list[tuple[int, list[str]]], list[tuple[int, list[str]]]],
) -> tuple[list[tuple[int, list[str]]], list[tuple[int, list[str]]]]:
    """Return the rows of two sides without those that a row of another thing equals in all that they say."""
    owner: dict[tuple[str, ...], int] = {}
    for rows in sides:
        for which, row in rows:
            owner.setdefault(make_key(row), which)
    by_cell: dict[tuple[int, str], list[tuple[str, ...]]] = {}
    for key in owner:
        for place, cell in enumerate(key):
            if cell:
                by_cell.setdefault((place, cell), []).append(key)
    kept: tuple[list[tuple[int, list[str]]], list[tuple[int, list[str]]]] = ([], [])
    for side, rows in enumerate(sides):
        for which, row in rows:
            key = make_key(row)
            # The rarest of its cells has the fewest others to compare.
            rivals = min((by_cell[place, cell] for place, cell in enumerate(key) if cell), key=len)
            if owner[key] == which and not any(owner[other] != which and _says(other, key) for other in rivals):
                kept[side].append((which, row))
    return kept


def _says(whole: Sequence[str], part: Sequence[str]) -> bool:
    """Return whether a row has all that another says."""
    return all(cell in ("", other) for cell, other in zip(part, whole, strict=True))


def make_key(row: Sequence[str]) -> tuple[str, ...]:
    """Return what rows that look equal share."""
    return tuple("" if is_missing(cell) else fold(cell) for cell in row)


def _make_table(
    family: ThingFamily, plan: TablePlan, side: int, rows: list[list[str]], drawn: Random
) -> dict[str, list[str]]:
    headers: list[str] = []
    for name in plan.layout:
        known = family.columns[name].headers
        header = known[0] if side == 0 else drawn.choice(known)
        headers.append(header if header not in headers else f"{header}_{len(headers)}")
    return {header: [row[at] for row in rows] for at, header in enumerate(headers)}
