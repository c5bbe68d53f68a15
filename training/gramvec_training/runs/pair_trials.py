"""Try what could mend the pair models' probabilities without other figures: make pair-model TRIALS=1.

Less is learned than for the models that are shipped, so that a try takes minutes: its figures are to be read beside
each other. The pairs within each of two tables are their null: they are nearly all of different things.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gramvec.jobs.pairs.trees import Trees
from gramvec.text.arrays import Doubles, Int64s
from gramvec_training.data.pair_tables import LearningTable, read_learning_tables, read_made_tables
from gramvec_training.runs.pair_model import (
    MADE_SCALE,
    SEED,
    Effort,
    Scored,
    SumCalibration,
    TableSums,
    add_table_figures,
    calibrate,
    list_figures,
    score_left_out,
    sum_left_out,
)

TWO_TABLES, ONE_TABLE = Effort(80, 0.15, 900, 250), Effort(60, 0.2, 500, 150)
# How much of the first trees' log odds is added to those of the second ones.
PARTS_OF_FIRST = (0.1, 0.2, 0.3, 0.4, 0.5)
# What is taken from the log odds of a pair whose row has a better one in its own table.
PENALTIES = (0.75, 1.5)
# Rows of a side that the null is estimated from, at most and at least; log odds from which on a pair within a table is
# held for a copy; and the lowest cap.
SAMPLE, LEAST_ROWS, COPY, LEAST_CAP = 2_000, 30, 2.2, 0.3
# Columns of what is printed, and what of `list_figures` each is the mean of.
TWO_TABLE_COLUMNS = {
    "joins": "join", "halves of joins": "half", "customer lists": "made registers customer lists", "six sets": "set ",
    "made halves": "made halves", "made registers": "made registers", "made offers": "made offers",
    "nothing to be found: pairs": "made halves, nothing to be found: pairs",
}  # fmt: skip
ONE_TABLE_COLUMNS = {
    "lists": "list", "answered lists": "answered list", "early childhood": "register early-childhood",
    "fake people": "register fake-people", "febrl 3": "register febrl3",
    "customer lists": "made register customer lists",
    "made lists": "made list", "made registers": "made register",
    "nothing to be found: pairs": "made list, nothing to be found: pairs",
}  # fmt: skip
# Shoes are no part of the mean of six.
NOT_MEANT = "set wdc-shoes"
Figures = dict[str, tuple[float, float]]


class LeftOut(NamedTuple):
    """Log odds of all tables by trees that have not learned from their sources.

    Attributes:
        first: by the first trees.
        second: by the second ones.
        own: of two tables, the first trees' greatest log odds of each row within its own table; -inf for none.
    """

    first: TableSums
    second: TableSums
    own: dict[str, tuple[Doubles, Doubles]]


def leave_out(tables: Sequence[LearningTable], effort: Effort) -> LeftOut:
    """Return the log odds of all tables, of which those of the kind "set" are not learned from."""
    own_sums: dict[str, list[Doubles]] = {}

    def score_own(table: LearningTable, trees: Trees) -> None:
        own_sums[f"{table.kind} {table.name}"] = [trees.sums(pairs.figures) for pairs in table.own]

    first = sum_left_out(tables, sets=False, effort=effort, also=score_own)
    calibration = calibrate([*first.values()])
    whole = [add_table_figures(table, sums, calibration) for table, sums in first.values()]
    second = sum_left_out(whole, sets=False, effort=effort)
    own = {
        name: _best_own(table, [calibration.scale * sums + calibration.shift for sums in own_sums[name]])
        for name, (table, _) in first.items()
        if table.own
    }
    return LeftOut(_log_odds(first, calibration), _log_odds(second, calibrate([*second.values()])), own)


def _log_odds(sums: TableSums, calibration: SumCalibration) -> TableSums:
    return {name: (table, calibration.scale * own + calibration.shift) for name, (table, own) in sums.items()}


def _best_own(table: LearningTable, odds: Sequence[Doubles]) -> tuple[Doubles, Doubles]:
    made = []
    for rows, pairs, of_pairs in zip((table.left, table.right), table.own, odds, strict=True):
        every = np.append(pairs.left, pairs.right)
        made.append(_best_of_rows(every, np.append(of_pairs, of_pairs), int(max(_top(rows), _top(every))) + 1))
    return made[0], made[1]


def _top(rows: Int64s) -> int:
    return int(rows.max(initial=-1))


def _best_of_rows(rows: Int64s, odds: Doubles, number: int) -> Doubles:
    best = np.full(number, -np.inf)
    np.maximum.at(best, rows, odds)
    return best


def share_of_null(table: LearningTable, first: Doubles, own: tuple[Doubles, Doubles]) -> Doubles | None:
    """Return the share of rows that have a pair of at least each pair's log odds within their table, over that across.

    It is the lesser one of both tables; None where one has too few rows to tell.
    """
    ratios = []
    for side, (rows, best_own) in enumerate(zip((table.left, table.right), own, strict=True)):
        every = np.unique(rows)
        if len(every) < LEAST_ROWS:
            return None
        if len(every) > SAMPLE:
            every = np.random.default_rng([SEED, side]).choice(every, SAMPLE, replace=False)
        across = _best_of_rows(rows, first, _top(rows) + 1)[every]
        within = best_own[every]
        of_null = _number_from(within[within < COPY], first)
        ratios.append(of_null / np.maximum(_number_from(across, first), 1e-9))
    return np.minimum(*ratios)


def _number_from(values: Doubles, odds: Doubles) -> Int64s:
    """Return how many values are at least as great as each of the log odds."""
    return len(values) - np.searchsorted(np.sort(values), odds, side="left")


def cap(scored: Scored, left_out: LeftOut) -> Scored:
    """Return probabilities that are at most one less the share of the null; small tables have none."""
    made = dict(scored)
    for name, (table, scores) in scored.items():
        share = None
        if table.kind != "small" and name in left_out.own:
            share = share_of_null(table, left_out.first[name][1], left_out.own[name])
        if share is not None:
            most = np.clip(1 - share, LEAST_CAP, 1)
            made[name] = (table, np.minimum(scores, most).astype(np.float32))
    return made


def penalize(table: LearningTable, first: Doubles, own: tuple[Doubles, Doubles]) -> NDArray[np.bool_]:
    """Return which pairs have a row that has a better one within its own table."""
    return np.asarray((own[0][table.left] > first) | (own[1][table.right] > first))


def try_all(left_out: LeftOut) -> Iterator[tuple[str, Scored]]:
    """Yield what was tried by name: calibrated anew, each without and, of two tables, with the cap."""

    def score(odds_of: Callable[[str], Doubles]) -> Scored:
        odds = {name: (table, odds_of(name)) for name, (table, _) in left_out.second.items()}
        return score_left_out(odds, calibrate([*odds.values()]))

    def tries() -> Iterator[tuple[str, Scored]]:
        yield "the first trees alone", score(lambda name: left_out.first[name][1])
        yield "the second trees", score(lambda name: left_out.second[name][1])
        for part in PARTS_OF_FIRST:

            def blend(name: str, part: float = part) -> Doubles:
                return left_out.second[name][1] + part * left_out.first[name][1]

            yield f"and {part:g} of the first ones' log odds", score(blend)
        for penalty in PENALTIES if left_out.own else ():

            def take(name: str, penalty: float = penalty) -> Doubles:
                table, odds = left_out.second[name]
                if name not in left_out.own:
                    return odds
                return odds - penalty * penalize(table, left_out.first[name][1], left_out.own[name])

            yield f"log odds {penalty:g} less where a row has a better one in its own table", score(take)

    for name, scored in tries():
        yield name, scored
        if left_out.own:
            yield f"{name}, at most 1 - w", cap(scored, left_out)


def describe_trials(trials: dict[str, Figures], columns: dict[str, str]) -> Iterator[str]:
    """Yield the lines of a table of F1 at the own threshold, in the mean of tables of a kind; then one by families."""
    yield f"| F1 at the own threshold | {' | '.join(columns)} |"
    yield "| --- |" + " ---: |" * len(columns)
    for name, figures in trials.items():
        yield f"| {name} | {' | '.join(_mean_of(figures, kind) for kind in columns.values())} |"
    yield ""
    yield f"| the same, by families | {' | '.join(trials)} |"
    yield "| --- |" + " ---: |" * len(trials)
    for family in next(iter(trials.values())):
        yield f"| {family} | {' | '.join(f'{figures[family][0]:.1f}' for figures in trials.values())} |"


def _mean_of(figures: Figures, kind: str) -> str:
    """Return the mean of the figures of a kind: of one name, or of all families of the kind but the customer lists."""
    number, total = 0, 0.0
    for name, (own, _) in figures.items():
        count, _, rest = name.partition(" x ")
        of_kind = rest or name
        family = kind.startswith("made") and of_kind.startswith(f"{kind} ") and "customer" not in of_kind
        if of_kind == kind or family or (kind == "set " and of_kind.startswith(kind) and of_kind != NOT_MEANT):
            tables = int(count) if rest else 1
            number, total = number + tables, total + tables * own
    return f"{total / number:.1f}" if number else ""


def print_trials(data: Path) -> None:
    """Print what was tried, of two tables and of one."""
    tables = [*read_learning_tables(data, own=True), *read_made_tables(data, 1, MADE_SCALE, own=True)]
    for is_one_table, effort, columns in ((False, TWO_TABLES, TWO_TABLE_COLUMNS), (True, ONE_TABLE, ONE_TABLE_COLUMNS)):
        left_out = leave_out([table for table in tables if table.is_one_table == is_one_table], effort)
        trials = {name: list_figures(scored) for name, scored in try_all(left_out)}
        for line in describe_trials(trials, columns):
            sys.stdout.write(f"{line}\n")
            sys.stdout.flush()
        sys.stdout.write("\n")
