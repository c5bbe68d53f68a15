"""Tables with known answers, from which the pair models are learned: their candidates, figures and labels."""

from __future__ import annotations

import csv
import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gramvec.jobs.matching import candidates
from gramvec.jobs.matching.fields import nearest_rows, split
from gramvec.jobs.matching.groups import RowGroups, group_rows
from gramvec.jobs.pairs.figures import FIRST, RowTables, one_of_tables, pair_figures, read_rows, rival_figures
from gramvec.jobs.pairs.telling_columns import telling_columns
from gramvec.text.arrays import Floats, Int64s
from gramvec_training.data import changed_names
from gramvec_training.data.changed_names import KnownRows
from gramvec_training.data.made_tables import MadeTable, cut_lookups, cut_small, make_tables

ColumnTexts = Sequence[Sequence[str]]
# Families that are left out with another one.
KIN = {"customers": "people", "providers": "sites"}
# How heavy tables of a kind and of a name before its number are; of others, 1. Chosen by leaving tables out, and by
# reports of users, which the tests hold.
HEAVY = {
    ("made registers", "customers"): 2.5,
    ("made registers", "namesakes"): 6.0,
    ("made small", "namesakes"): 3.0,
    ("made list", "spellings"): 3.0,
}
# Kinds of made tables, as kinds of learning tables.
MADE_KINDS = {
    "register": "made registers", "halves": "made halves", "offers": "made offers", "one register": "made register",
    "ordered list": "made list", "answers": "made answers",
}  # fmt: skip
# Kinds of made tables that are cut into small ones, as kinds of learning tables.
SMALL_KINDS = {
    "register": "made small", "halves": "made small", "offers": "made small", "one register": "made small register",
    "ordered list": "made small register",
}  # fmt: skip
# Kinds of made tables whose rows are looked up. Offers are not: several of a side are one thing.
LOOKED_UP_KINDS = ("register", "halves")
# How heavy a lookup is that finds nothing, as four of five do.
NOTHING_FOUND = 0.5

NO_ROWS = np.zeros(0, np.int64)
# Rows of its own table that a row is compared with.
OWN_DEPTH = 8


class OwnPairs(NamedTuple):
    """Pairs within one of two tables, each row with its nearest ones: nearly all are different things.

    Attributes:
        left: int64[q], the lower group.
        right: int64[q], the higher one.
        figures: float32[q, len(FIRST)].
    """

    left: Int64s
    right: Int64s
    figures: NDArray[np.float32]


class LearningTable(NamedTuple):
    """Candidate pairs of groups of equal rows, and how many of the pairs of rows are matches.

    Attributes:
        name: of the tables.
        kind: "join", "half", "set", "changed", "small", "made registers", "made halves", "made offers", "made
            answers", "made small" or "made lookups"; of one table "list", "answered list", "register", "changed
            list", "small list", "made register", "made list" or "made small register".
        source: what is left out together.
        figures: float32[p, f], of the pairs, with those of rivals.
        pairs: int64[p], the pairs of rows that have a label.
        matches: int64[p], those that are matches.
        expected: matches of the tables, candidates or not.
        left: int64[p], the first group of each pair.
        right: int64[p], the second one.
        equal: pairs of equal rows of one table, and those of them that are matches.
        own: pairs within each of two tables, where they were asked for.
        shown: float32[p, f], the figures as the commands have them, where these are others: `figures` are without what
            parts of addresses share. Trees that know no others take two equal columns and one that differs for a match
            in tables in which nothing is shared, too.
        weight: beside other tables of the same kind, when trees and calibrations are learned.
    """

    name: str
    kind: str
    source: str
    figures: NDArray[np.float32]
    pairs: Int64s
    matches: Int64s
    expected: int
    equal: tuple[int, int] = (0, 0)
    left: Int64s = NO_ROWS
    right: Int64s = NO_ROWS
    own: tuple[OwnPairs, ...] = ()
    shown: NDArray[np.float32] | None = None
    weight: float = 1.0

    @property
    def is_one_table(self) -> bool:
        """Return whether the rows are of one table."""
        return self.kind.endswith(("list", "register"))


def read_learning_tables(folder: Path, *, own: bool = False) -> Iterator[LearningTable]:
    """Yield the tables of data/dev: joins, their halves, lists and changed names, labeled sets, and registers.

    Args:
        folder: data/dev.
        own: whether two tables have pairs within each, too, but for changed names.
    """
    for number, path in enumerate(sorted((folder / "joins").iterdir())):
        left, right, answers = (_read_rows(path / f"{name}.csv") for name in ("left", "right", "gt"))
        places = [{row["id"]: place for place, row in enumerate(table)} for table in (left, right)]
        lefts, rights = ([row["title"] for row in table] for table in (left, right))
        truth = sorted((places[1][row["right"]], places[0][row["left"]]) for row in answers)
        source = f"joins {number % 5 + 1} of 5"
        yield compare_two_tables(path.name, "join", source, [rights], [lefts], truth, own=own)
        # Half of the targets: what "no match" looks like.
        drawn = random.Random(path.name)
        kept = [place for place in range(len(lefts)) if drawn.random() < 0.5]
        new = {place: number for number, place in enumerate(kept)}
        half = [(right, new[left]) for right, left in truth if left in new]
        halved = [lefts[place] for place in kept]
        yield compare_two_tables(path.name, "half", source, [rights], [halved], half, own=own)
        known = KnownRows(lefts, rights, [(left, row) for row, left in truth])
        texts, things = changed_names.join_lists(known)
        yield compare_one_table(path.name, "list", source, [texts], things)
        # Without the targets that no row has: a list in which most names stand twice.
        texts, things = changed_names.join_lists(changed_names.answer_rows(known))
        yield compare_one_table(path.name, "answered list", source, [texts], things)
        yield from _make_changed(path.name, source, known, drawn)
    for path in sorted((folder / "matching").iterdir()):
        yield _read_labeled_set(path, own=own)
    for path in sorted((folder / "dedupe").glob("*.csv")):
        rows = _read_rows(path)
        if "cluster" in rows[0]:
            names = [name for name in rows[0] if name not in ("id", "cluster")]
            columns = [[row[name] or "" for row in rows] for name in names]
            source = "febrl" if path.stem.startswith("febrl") else path.stem
            yield compare_one_table(path.stem, "register", source, columns, [row["cluster"] for row in rows])
    for path in sorted((folder / "registers").iterdir()):
        yield from _read_register(path, own=own)


def _read_register(path: Path, *, own: bool) -> Iterator[LearningTable]:
    """Yield two customer lists, and both as one; columns correspond by their places, and the first has the ids."""
    left, right, answers = (_read_rows(path / f"{name}.csv") for name in ("left", "right", "gt"))
    sides = [[[row[name] or "" for row in table] for name in [*table[0]][1:]] for table in (left, right)]
    places = [{next(iter(row.values())): place for place, row in enumerate(table)} for table in (left, right)]
    truth = [(places[0][row["left"]], places[1][row["right"]]) for row in answers]
    # Each is left out alone: who has such lists has others than these.
    source = f"customer lists: {path.name}"
    yield compare_two_tables(path.name, "made registers", source, sides[0], sides[1], truth, own=own)
    things = list(range(len(left) + len(right)))
    for row, other in truth:
        things[len(left) + other] = row
    both = [[*one, *other] for one, other in zip(*sides, strict=True)]
    yield compare_one_table(path.name, "made register", source, both, things)


def read_made_tables(folder: Path, rounds: int, scale: float, *, own: bool = False) -> Iterator[LearningTable]:
    """Yield made tables of so many rounds: all kinds, each round of other things; the names of joins in the first.

    Args:
        folder: data/dev.
        rounds: that are made, of the seeds 0, 1, ...; together their tables weigh as those of one, but `HEAVY`.
        scale: of the numbers of rows.
        own: as of `read_learning_tables`.
    """
    lookups: list[LearningTable] = []
    for seed in range(rounds):
        # They come after the others: the order counts, as trees see where to cut in a part of the pairs.
        small: list[LearningTable] = []
        for made in make_tables(seed, scale=scale, joins=None if seed else folder / "joins"):
            drawn = random.Random(f"{seed} {made.name}")
            small += [_weigh(table, made, seed, rounds) for table in _compare_small(made, drawn)]
            several = [_weigh(table, made, seed, rounds) for table in _compare_lookups(made, drawn)]
            # Together they weigh as one table of their pairs would.
            lookups += [
                table._replace(
                    name=f"{table.name} {number}",
                    weight=table.weight / len(several) ** 0.5 * (1.0 if table.matches.any() else NOTHING_FOUND),
                )
                for number, table in enumerate(several)
                if len(table.pairs)
            ]
            yield _weigh(_compare_made(made, own=own), made, seed, rounds)
        yield from small
    yield from lookups


def _weigh(table: LearningTable, made: MadeTable, seed: int, rounds: int) -> LearningTable:
    """Return the candidates of a made table with its weight, named by its round."""
    # Names of joins are in one round alone.
    weight = 1.0 if made.family.startswith("joins") else 1 / rounds
    heavy = HEAVY.get((table.kind, made.name.partition("-")[0]), 1.0)
    return table._replace(name=f"{table.name} of {seed}", weight=weight * heavy)


def _compare_small(made: MadeTable, drawn: random.Random) -> Iterator[LearningTable]:
    """Yield the candidates of small tables of the rows of a made one, if it is of a kind that has them."""
    small = [_compare_made(table, own=False) for table in cut_small(made, drawn)] if made.kind in SMALL_KINDS else []
    if small:
        yield _join_tables(small)._replace(kind=SMALL_KINDS[made.kind])


def _compare_lookups(made: MadeTable, drawn: random.Random) -> Iterator[LearningTable]:
    """Yield the candidates of each table of a row or two that are looked up in a made one, if it is of such a kind."""
    if made.kind in LOOKED_UP_KINDS:
        yield from (_compare_made(table, own=False)._replace(kind="made lookups") for table in cut_lookups(made, drawn))


def _compare_made(made: MadeTable, *, own: bool) -> LearningTable:
    """Return the candidates of a made table."""
    sides = [[*columns.values()] for columns in (made.left, made.right) if columns is not None]
    # Lists of the names of joins are left out with these.
    source = made.family if made.family.startswith("joins") else f"made {KIN.get(made.family, made.family)}"
    kind = MADE_KINDS[made.kind]
    if made.right is None:
        things = _number_things(len(sides[0][0]), made.pairs)
        return compare_one_table(made.name, kind, source, sides[0], things)
    return compare_two_tables(made.name, kind, source, sides[0], sides[1], made.pairs, own=own)


def _number_things(rows: int, pairs: Sequence[tuple[int, int]]) -> list[int]:
    """Return the thing of each row of a table of which all pairs of one thing are given, the lower row first."""
    things = list(range(rows))
    for one, other in pairs:
        things[other] = min(things[other], one)
    return things


def _make_changed(name: str, source: str, known: KnownRows, drawn: random.Random) -> Iterator[LearningTable]:
    """Yield tables and lists of changed names, and many of some rows as one."""
    names = drawn.sample(known.left, min(changed_names.CHANGED_ROWS, len(known.left)))
    tables_by_kind = {
        "changed": [changed_names.change_rows(names, drawn)],
        "small": [*changed_names.make_small_tables(known, drawn)],
    }
    for kind, tables in tables_by_kind.items():
        yield _join_tables(
            [
                compare_two_tables(name, kind, source, [table.right], [table.left], [(b, a) for a, b in table.truth])
                for table in tables
            ]
        )
        lists = [changed_names.join_lists(table) for table in tables]
        yield _join_tables([compare_one_table(name, f"{kind} list", source, [rows], things) for rows, things in lists])


def _join_tables(tables: Sequence[LearningTable]) -> LearningTable:
    """Return the pairs of several tables as those of one."""
    starts = [np.cumsum([0, *(int(max(side.max(initial=-1) for side in (t.left, t.right))) + 1 for t in tables[:-1])])]
    return tables[0]._replace(
        left=np.concatenate([table.left + start for table, start in zip(tables, starts[0], strict=True)]),
        right=np.concatenate([table.right + start for table, start in zip(tables, starts[0], strict=True)]),
        figures=np.concatenate([table.figures for table in tables]),
        shown=np.concatenate([table.figures if table.shown is None else table.shown for table in tables])
        if any(table.shown is not None for table in tables)
        else None,
        pairs=np.concatenate([table.pairs for table in tables]),
        matches=np.concatenate([table.matches for table in tables]),
        expected=sum(table.expected for table in tables),
        equal=(sum(table.equal[0] for table in tables), sum(table.equal[1] for table in tables)),
    )


def _read_rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def _read_labeled_set(path: Path, *, own: bool) -> LearningTable:
    left, right = (_read_rows(path / f"{name}.csv") for name in ("left", "right"))
    names = [name for name in left[0] if name != "id" and name in right[0]]
    places = [{row["id"]: place for place, row in enumerate(table)} for table in (left, right)]
    labeled = {
        (places[0][row["left"]], places[1][row["right"]], int(row["match"]))
        for part in ("train", "valid", "test")
        for row in _read_rows(path / f"{part}.csv")
    }
    sides = [[[row[name] or "" for row in table] for name in names] for table in (left, right)]
    matches = [(left_row, right_row) for left_row, right_row, match in sorted(labeled) if match]
    pairs = [(left_row, right_row) for left_row, right_row, _ in sorted(labeled)]
    return compare_two_tables(path.name, "set", path.name, sides[0], sides[1], matches, pairs, own=own)


def compare_two_tables(
    name: str,
    kind: str,
    source: str,
    left: ColumnTexts,
    right: ColumnTexts,
    truth: Sequence[tuple[int, int]],
    labeled: Sequence[tuple[int, int]] | None = None,
    *,
    own: bool = False,
) -> LearningTable:
    """Return the candidates of two tables; all pairs of rows have a label unless `labeled` are those that do.

    With `own` the table has pairs within each of both, too.
    """
    left_groups, right_groups = map(group_rows, telling_columns([left, right]).tables)
    texts = left_groups.join_columns(), right_groups.join_columns()
    at, with_, cosines = candidates.of(texts)[:3]
    columns = [left_groups.columns, right_groups.columns]
    rows = read_rows(columns, addresses=False)
    shown = read_rows(columns) if len(columns[0]) > 1 else rows
    is_shown = np.array_equal(rows.facts.levels, shown.facts.levels)
    keys = at * len(right_groups.counts) + with_
    pairs = left_groups.counts[at] * right_groups.counts[with_]
    if labeled is not None:
        pairs = _count_pairs(keys, labeled, left_groups, right_groups)
    return LearningTable(
        name,
        kind,
        source,
        _compare_groups(rows, at, with_, cosines),
        pairs,
        _count_pairs(keys, truth, left_groups, right_groups),
        len(truth),
        left=at,
        right=with_,
        own=_pair_within(rows, texts) if own else (),
        shown=None if is_shown else _compare_groups(shown, at, with_, cosines),
    )


def _compare_groups(rows: RowTables, left: Int64s, right: Int64s, cosines: Floats) -> NDArray[np.float32]:
    """Return the figures of pairs, with those of rivals."""
    figures = pair_figures(rows, left, right)
    return np.concatenate([figures, rival_figures(rows, left, right, figures, cosines)], axis=1)


def _pair_within(rows: RowTables, texts: tuple[Sequence[str], Sequence[str]]) -> tuple[OwnPairs, ...]:
    """Return the pairs of each row with its nearest ones of the same table, of both tables."""
    vectors = split(candidates.count_ngrams([*texts[0], *texts[1]]).weighted(1.0), len(texts[0]))
    made = []
    for side, of_side in enumerate(vectors):
        if len(texts[side]) < 2:
            made.append(OwnPairs(NO_ROWS, NO_ROWS, np.zeros((0, len(FIRST)), np.float32)))
            continue
        # Each row is the nearest to itself.
        near = nearest_rows((of_side, of_side), None, OWN_DEPTH + 1, 0.0)
        low, high = np.minimum(near.left, near.right), np.maximum(near.left, near.right)
        keys, first = np.unique((low * len(texts[side]) + high)[low != high], return_index=True)
        cosines = near.scores[low != high][first]
        left, right = np.divmod(keys, len(texts[side]))
        table = one_of_tables(rows, side)
        made.append(OwnPairs(left, right, _compare_groups(table, left, right, cosines)))
    return tuple(made)


def _count_pairs(keys: Int64s, rows: Sequence[tuple[int, int]], left: RowGroups, right: RowGroups) -> Int64s:
    """Return how many of the pairs of rows each pair of groups has."""
    known, counts = np.unique(
        [
            left.of_row[a] * len(right.counts) + right.of_row[b]
            for a, b in rows
            if left.of_row[a] >= 0 <= right.of_row[b]
        ],
        return_counts=True,
    )
    if not len(known):
        return np.zeros(len(keys), np.int64)
    at = np.minimum(np.searchsorted(known, keys), len(known) - 1)
    return np.where(known[at] == keys, counts[at], 0)


def compare_one_table(
    name: str, kind: str, source: str, columns: ColumnTexts, things: Sequence[object]
) -> LearningTable:
    """Return the candidates of one table, in which rows of equal `things` are one."""
    groups = group_rows(telling_columns([columns]).tables[0])
    at, with_, cosines = candidates.of((groups.join_columns(),))[:3]
    figures = _compare_groups(read_rows([groups.columns]), at, with_, cosines)
    thing = np.unique(np.array(things).astype(str), return_inverse=True)[1]
    counts = np.bincount(thing)
    filled = groups.of_row >= 0
    # How many rows of a group are each thing.
    width = len(counts)
    held, number = np.unique(groups.of_row[filled] * width + thing[filled], return_counts=True)
    of_group: dict[int, dict[int, int]] = {}
    for key, count in zip(held.tolist(), number.tolist(), strict=True):
        of_group.setdefault(key // width, {})[key % width] = count
    matches = np.array(
        [
            sum(count * of_group[b].get(which, 0) for which, count in of_group[a].items())
            for a, b in zip(at.tolist(), with_.tolist(), strict=True)
        ],
        np.int64,
    )
    equal = int((groups.counts * (groups.counts - 1) // 2).sum()), int((number * (number - 1) // 2).sum())
    return LearningTable(
        name, kind, source, figures, groups.counts[at] * groups.counts[with_], matches,
        int((counts * (counts - 1) // 2).sum()), equal, at, with_,
    )  # fmt: skip
