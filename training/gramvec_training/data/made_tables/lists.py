"""Lists in order: rows that are all different, with no copies or few, and their halves."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import NamedTuple

from gramvec_training.data.made_tables import slips
from gramvec_training.data.made_tables.records import (
    MadeTable,
    ThingFamily,
    draw_rows,
    fold,
    make_key,
    pairs_within,
    write_clean,
)
from gramvec_training.data.made_tables.styles import draw_style

# Parts of the rows that get misspelt copies; how many copies.
SHARES = (0.0, 0.0, 0.01, 0.1, 0.1)
SPELLINGS = (1, 1, 1, 1, 2, 4, 9, 19)
# Lists that have classes, of at most so many columns, and the rows of a class.
CLASSED, MOST_CLASSED, CLASS_SIZES = 0.4, 4, (2, 3, 6, 15, 40)
# Of the cells of a copy beside its name, those that are lost.
LOST = 0.2


class ListSource(NamedTuple):
    """Rows that are all different.

    Attributes:
        name: of the list.
        family: what it is left out with.
        columns: the name of a thing first; the same number of values in each.
    """

    name: str
    family: str
    columns: dict[str, list[str]]


def read_list_of(family: ThingFamily, drawn: Random, rows: int) -> ListSource:
    """Return things of a family as a list in which each stands once, all written in one way."""
    layouts = [row.split() for row in family.layouts.split(";")]
    # The first column names a thing.
    naming = [row for row in layouts if family.columns[row[0]].empty == 0] or layouts
    shown = max(drawn.sample(naming, min(3, len(naming))), key=len)
    things = family.draw(drawn, rows, drawn.choice((0.0, 0.1, 0.3)))
    style = draw_style(drawn)._replace(limit=0, missing="")
    cells = [write_clean(family, shown, thing, style) for thing in things]
    return ListSource(family.name, family.name, {name: [row[at] for row in cells] for at, name in enumerate(shown)})


def read_join_lists(folder: Path) -> Iterator[ListSource]:
    """Yield the left side of each name join, in which nothing stands twice."""
    for number, path in enumerate(sorted(folder.iterdir())):
        with (path / "left.csv").open(encoding="utf-8", newline="") as file:
            names = [row["title"] for row in csv.DictReader(file)]
        yield ListSource(f"join-{path.name.lower()}", f"joins {number % 5 + 1} of 5", {"title": names})


def make_list_tables(
    source: ListSource, drawn: Random, scale: float, *, lists: int = 1, halves: int = 1
) -> Iterator[MadeTable]:
    """Yield lists with copies and halves of a source, each with some of its rows and columns."""
    for number in range(lists):
        name = f"{source.name}-list-{number}"
        yield _add_copies(name, source.family, _add_classes(name, _draw_part(source, drawn, scale)), drawn)
    for number in range(halves):
        name = f"{source.name}-halves-{number}"
        yield _halve(name, source.family, _add_classes(name, _draw_part(source, drawn, 2 * scale)), drawn)


def _draw_part(source: ListSource, drawn: Random, scale: float) -> dict[str, list[str]]:
    names = list(source.columns)
    shown = [names[0], *drawn.sample(names[1:], drawn.randint(0, min(5, len(names) - 1)))]
    rows = list(zip(*(source.columns[name] for name in shown), strict=True))
    wanted = draw_rows(drawn, scale)
    if len(rows) > wanted:
        if drawn.random() < 0.5:
            # Neighbors of a source that is sorted: much is alike.
            start = drawn.randrange(len(rows) - wanted)
            rows = rows[start : start + wanted]
        else:
            rows = drawn.sample(rows, wanted)
    different = {make_key(row): row for row in rows if fold(row[0])}
    rows = list(different.values())
    return {name: [row[at] for row in rows] for at, name in enumerate(shown)}


def _add_classes(name: str, columns: dict[str, list[str]]) -> dict[str, list[str]]:
    """Return the columns of a list, some with a code of classes that neighbors by name share, and of classes of these.

    What stands in one class is alike, and not the same.
    """
    drawn = Random(f"classes {name}")
    names = next(iter(columns.values()))
    if drawn.random() > CLASSED or len(columns) > MOST_CLASSED:
        return columns
    size = drawn.choice(CLASS_SIZES)
    codes = [""] * len(names)
    number = drawn.randrange(200)
    for row in sorted(range(len(names)), key=lambda at: fold(names[at])):
        number += drawn.random() < 1 / size
        codes[row] = f"{chr(65 + number // 100 % 26)}{number % 100:02}"
    made = columns | {"class": codes}
    return made | {"group": [code[0] for code in codes]} if drawn.random() < 0.5 else made


def misspell_row(row: list[str], drawn: Random) -> list[str]:
    """Return a copy of a row: a slip in the longest word of its first cell, other order or case, cells lost."""
    name = row[0]
    if drawn.random() < 0.8:
        name = slips.slip_longest(name, drawn)
    if drawn.random() < 0.1:
        name = slips.slip(name, drawn)
    if drawn.random() < 0.15:
        name = slips.move_word(name, drawn)
    if drawn.random() < 0.15:
        name = slips.change_case(name, drawn)
    if drawn.random() < 0.08:
        name = slips.change_marks(name, drawn)
    if drawn.random() < 0.05:
        name = slips.split_or_join(name, drawn)
    if fold(name) == fold(row[0]) and drawn.random() < 0.8:
        name = slips.slip(name, drawn)
    return [name, *("" if drawn.random() < LOST else cell for cell in row[1:])]


def _add_copies(name: str, family: str, columns: dict[str, list[str]], drawn: Random) -> MadeTable:
    share, most = drawn.choice(SHARES), drawn.choice(SPELLINGS)
    rows = [list(row) for row in zip(*columns.values(), strict=True)]
    known = [(which, row) for which, row in enumerate(rows)]
    for which in drawn.sample(range(len(rows)), round(share * len(rows))):
        known += [(which, misspell_row(rows[which], drawn)) for _ in range(drawn.randint(1, most))]
    drawn.shuffle(known)
    owner = {make_key(row): which for which, row in enumerate(rows)}
    known = [(which, row) for which, row in known if owner.setdefault(make_key(row), which) == which]
    made = {header: [row[at] for _, row in known] for at, header in enumerate(columns)}
    return MadeTable(name, family, "ordered list", made, None, pairs_within([which for which, _ in known]))


def _halve(name: str, family: str, columns: dict[str, list[str]], drawn: Random) -> MadeTable:
    """Return two halves of a list; in some a twentieth of the rows has a misspelt copy in the other half."""
    rows = [list(row) for row in zip(*columns.values(), strict=True)]
    if drawn.random() < 0.7:
        drawn.shuffle(rows)
    half = len(rows) // 2
    left, right = [rows[:half], rows[half:]] if drawn.random() < 0.5 else [rows[::2], rows[1::2]]
    share = drawn.choice((0.0, 0.0, 0.02, 0.1))
    owner = {make_key(row): -1 for row in rows}
    pairs = []
    for place in drawn.sample(range(len(left)), round(share * len(left))):
        copy = misspell_row(left[place], drawn)
        if owner.setdefault(make_key(copy), place) == place:
            pairs.append((place, len(right)))
            right.append(copy)
    tables = [{header: [row[at] for row in side] for at, header in enumerate(columns)} for side in (left, right)]
    return MadeTable(name, family, "halves", tables[0], tables[1], sorted(pairs))
