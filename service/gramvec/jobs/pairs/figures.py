"""Figures of pairs of rows, from which a pair model tells whether they are one thing.

All of them lie between 0 and about 1, or are small counts, whatever the tables are about. `loops.pair_figures` has
those of the two rows (figures_in_python.py is the same in Python); here they get the rows' rivals beside them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from gramvec import native
from gramvec.jobs.pairs import figures_in_python
from gramvec.jobs.pairs.columns import DRAWN_PAIRS, ColumnFacts, facts_of, tell_levels
from gramvec.jobs.pairs.levels import compare_values
from gramvec.jobs.pairs.tied_columns import numbered_columns, pair_neighbors, share_evidence, tie_columns
from gramvec.jobs.pairs.tokens import Tokens, tokens_of
from gramvec.jobs.pairs.values import ColumnValues, read_column
from gramvec.progress import NO_PROGRESS, Progress
from gramvec.text.arrays import Bools, Doubles, Floats, Int64s, UInt8s

# Name, and whether a greater value speaks for a match (1), against it (-1), or either (0).
OF_TEXT = (
    ("aligned", 1), ("aligned_of_lighter", 1), ("equal_of_one_min", 1), ("equal_of_one_max", 1),
    ("left_over_min", -1), ("left_over_max", -1), ("heaviest_left_over_min", -1), ("heaviest_left_over_max", -1),
    ("tokens_left_over_min", -1), ("tokens_left_over_max", -1), ("softly_aligned", 0), ("tokens_min", 0),
    ("tokens_max", 0), ("numbers_common", 0), ("numbers_left_over_min", -1), ("numbers_left_over_max", -1),
    ("nearest_number", 0), ("equal", 1), ("alike", 1), ("commonest_pair", 0),
)  # fmt: skip
OF_COLUMNS = (
    ("column_mean", 1), ("column_min", 1), ("column_max", 1), ("columns_equal", 1), ("columns_filled", 0),
    ("columns_low", -1),
)  # fmt: skip
# In nats, but for the counts: what the columns tell together, beyond what singles a row out, each alone, and by kind of
# column; and what is left over, or in common, of the words of names.
OF_EVIDENCE = (
    ("evidence", 1), ("evidence_surplus", 1), ("evidence_most", 1), ("evidence_second", 1), ("evidence_third", 1),
    ("evidence_least", 1), ("evidence_second_least", 1), ("values_equal", 0), ("values_different", -1),
    ("values_contradicting", -1), ("values_filled", 0), ("identifier_max", 1), ("identifier_min", 1), ("name_max", 1),
    ("name_min", 1), ("place_sum", 1), ("place_min", 1), ("number_max", 1), ("number_min", 1), ("date_max", 1),
    ("date_min", 1), ("text_max", 1), ("text_min", 1), ("name_lighter_max", -1), ("name_lighter_min", -1),
    ("name_heavier_max", -1), ("name_heavier_min", -1), ("name_common", 0), ("name_left", -1),
    ("place_lighter_max", -1), ("column_commonest_pair", 0), ("columns_missing", 0), ("names_filled", 0),
)  # fmt: skip
OF_RIVALS = (
    ("rank_min", -1), ("rank_max", -1), ("lead_max", 1), ("lead_min", 1), ("lead_apart_max", 1), ("lead_apart_min", 1),
    ("evidence_lead_max", 1), ("evidence_lead_min", 1),
)  # fmt: skip
# What the first trees say of all candidates of the tables together: how clean they are.
OF_TABLES = (("rows_matched", 0), ("matches_sure", 0), ("rows_sure", 0), ("matches_of_row", 0))
OF_PAIR = (*OF_TEXT, *OF_COLUMNS, *OF_EVIDENCE)
FIRST = (*OF_PAIR, *OF_RIVALS)
NAMES = tuple(name for name, _ in (*FIRST, *OF_TABLES))
DIRECTIONS = tuple(direction for _, direction in (*FIRST, *OF_TABLES))
# A lead is at most that over a rival of this likeness. With fewer candidates in a row a lead is no evidence.
RIVAL, FEW = 0.4, 5
DRAWN_SEED = 0
# Probabilities of the first trees that are likely, sure, and almost certain.
LIKELY, QUITE_SURE, ALMOST = 0.2, 0.9, 0.95
# Rivals that are as alike as that may be spellings of one thing; of these, what is aligned; and how many are looked at.
SPELLING, SPELLING_ALIGNED, MOST_SPELLINGS = 0.55, 0.75, 12
PLACES = {name: place for place, name in enumerate(NAMES)}
ALIGNED, OF_LIGHTER, EQUAL, EVIDENCE = (PLACES[name] for name in ("aligned", "aligned_of_lighter", "equal", "evidence"))


class RowTables(NamedTuple):
    """Rows of one table or two, read for comparing.

    Attributes:
        tokens: of all rows.
        facts: what their columns tell.
        values: what the cells of each column of each table are; None where letters alone are compared.
    """

    tokens: Tokens
    facts: ColumnFacts
    values: list[list[ColumnValues]] | None = None


def read_rows(
    tables: Sequence[Sequence[Sequence[str]]],
    *,
    rows_count: bool = True,
    addresses: bool = True,
    progress: Progress = NO_PROGRESS,
) -> RowTables:
    """Return the rows of tables, each a list of columns of folded texts. Other arguments as of `tokens_of`.

    Args:
        tables: one or two.
        rows_count: whether what stands in other rows counts.
        addresses: whether the parts of addresses share what they tell, where there are two tables.
        progress: advances by cells.
    """
    tokens = tokens_of(tables, rows_count=rows_count)
    # What a value is, the others of its column decide.
    values = [[_read(texts, progress) for texts in columns] for columns in tables] if rows_count else None
    rows = RowTables(tokens, facts_of(tokens, values), values)
    number = [(len(table.bounds) - 1) // tokens.columns for table in tokens.tables]
    pairs = number[0] * (number[-1] if len(number) > 1 else number[0] - 1)
    if not rows_count or pairs <= 0:
        return rows
    left, right = _draw_pairs(number)
    drawn = column_levels(rows, left, right)
    facts = rows.facts._replace(levels=tell_levels(drawn, tokens.columns, pairs))
    tied = _tie_addresses(rows._replace(facts=facts)) if addresses else None
    return rows._replace(facts=share_evidence(facts, drawn, tied))


def _tie_addresses(rows: RowTables) -> Doubles | None:
    """Return how far columns say the same as addresses of either of two tables. See `tie_columns`.

    Rows of one table that share an address may be one thing, so nothing is tied there.
    """
    if rows.values is None or len(rows.values) < 2:
        return None
    tied, numbered = np.zeros((rows.tokens.columns, rows.tokens.columns)), numbered_columns(rows.values)
    for side in range(len(rows.values)):
        table = one_of_tables(rows, side)
        for address, above, below in pair_neighbors(rows.facts, numbered, side):
            levels = column_levels(table, above, below)
            tied = np.maximum(tied, tie_columns(rows.facts, numbered, side, address, levels))
    return tied


def _read(texts: Sequence[str], progress: Progress) -> ColumnValues:
    column = read_column(texts)
    progress.advance(len(texts))
    return column


def _draw_pairs(rows: Sequence[int]) -> tuple[Int64s, Int64s]:
    """Return pairs of rows of two tables, or of one, by chance: all where they are few."""
    if rows[0] * rows[-1] <= DRAWN_PAIRS:
        left, right = np.divmod(np.arange(rows[0] * rows[-1]), rows[-1])
    else:
        drawn = np.random.default_rng(DRAWN_SEED)
        left, right = (drawn.integers(0, many, DRAWN_PAIRS) for many in (rows[0], rows[-1]))
    other = (left != right) | (len(rows) > 1)
    return left[other], right[other]


def column_levels(rows: RowTables, left: Int64s, right: Int64s, levels: UInt8s | None = None) -> UInt8s:
    """Return the level of each column of pairs, uint8[p, columns]. Arguments as of `pair_figures`."""
    given = compare_columns(rows, left, right) if levels is None else levels
    loops: Any = native.loops  # or None
    if loops is None:
        return figures_in_python.column_levels(rows.tokens, rows.facts, left, right, given)
    out = np.empty((len(left), rows.tokens.columns), np.uint8)
    loops.column_levels(*_arguments(rows, left, right, out), given)
    return out


def _arguments(rows: RowTables, left: Int64s, right: Int64s, out: Any) -> tuple[Any, ...]:
    known, facts = rows.tokens.vocabulary, rows.facts
    return (
        known[:5], known.heaviest, rows.tokens.tables[0], rows.tokens.tables[-1], rows.tokens.columns,
        np.ascontiguousarray(left), np.ascontiguousarray(right), out,
        (
            facts.kinds, (facts.cells[0], facts.cells[-1]), facts.equal, facts.levels,
            (facts.weights[0], facts.weights[-1]), facts.rows,
        ),
    )  # fmt: skip


def compare_columns(rows: RowTables, left: Int64s, right: Int64s) -> UInt8s | None:
    """Return the level of each column of pairs by what the values are, uint8[p, columns]; None where letters decide."""
    if rows.values is None:
        return None
    sides = zip(rows.values[0], rows.values[-1], strict=True)
    return np.stack([compare_values(one, other, left, right) for one, other in sides], axis=1)


def pair_figures(rows: RowTables, left: Int64s, right: Int64s, levels: UInt8s | None = None) -> Floats:
    """Return the figures of pairs of rows, float32[p, len(OF_PAIR)]; NaN where one has no value.

    Args:
        rows: of two tables, or of one that is compared with itself.
        left: int64[p], rows of the first table.
        right: int64[p], rows of the last table.
        levels: uint8[p, columns]; None for those of `compare_columns`.
    """
    given = compare_columns(rows, left, right) if levels is None else levels
    loops: Any = native.loops  # or None
    if loops is None:
        return figures_in_python.pair_figures(rows.tokens, rows.facts, left, right, given)
    out = np.empty((len(left), len(OF_PAIR)), np.float32)
    loops.pair_figures(*_arguments(rows, left, right, out), given)
    return out


def likeness(figures: Floats, cosines: Floats) -> Floats:
    """Return how alike pairs are, by which rivals are ranked, float32[p].

    Args:
        figures: float32[p, f], of `pair_figures`.
        cosines: float32[p], of the pairs' n-grams.
    """
    mean: Floats = (figures[:, ALIGNED] + figures[:, OF_LIGHTER] + cosines) / np.float32(3)
    return mean


def rival_figures(rows: RowTables, left: Int64s, right: Int64s, figures: Floats, cosines: Floats) -> Floats:
    """Return OF_RIVALS of candidate pairs of two tables, or of one in which each pair is given once.

    A pair's rank among the candidates of a row is the number of those that are more alike; its lead is what it is more
    alike than the best other one, or what its columns tell more. Both rows have one: of the ranks and of the leads, the
    least and the greatest. Spellings of one thing are no rivals of each other in the leads "apart".
    NaN where neither row has FEW candidates.

    Args:
        rows: the tables.
        left: int64[p], rows.
        right: int64[p], rows.
        figures: float32[p, f], of `pair_figures`.
        cosines: float32[p], of the pairs' n-grams.

    Returns:
        float32[p, len(OF_RIVALS)].
    """
    return rivals_of(rows, left, right, likeness(figures, cosines), figures[:, EVIDENCE])


def rivals_of(rows: RowTables, left: Int64s, right: Int64s, alike: Floats, evidence: Floats) -> Floats:
    """Return as of `rival_figures`, by what is needed of the figures.

    Args:
        rows: the tables.
        left: int64[p], rows.
        right: int64[p], rows.
        alike: float32[p], of `likeness`.
        evidence: float32[p], what the columns of each pair tell; NaN for nothing.
    """
    told = np.nan_to_num(evidence, nan=0.0)
    if len(rows.tokens.tables) == 1:
        row, other = np.append(left, right), np.append(right, left)
        both = (row, other, np.append(alike, alike), np.append(told, told))
        found = _of_side(rows, *both).reshape(len(SIDE), 2, -1)
        return _combine_sides(found[:, 0], found[:, 1])
    return _combine_sides(
        _of_side(one_of_tables(rows, 1), left, right, alike, told),
        _of_side(one_of_tables(rows, 0), right, left, alike, told),
    )


def table_figures(probabilities: Doubles, left: Int64s, right: Int64s, *, same: bool) -> Floats:
    """Return OF_TABLES of all candidates of tables, float32[len(OF_TABLES)].

    Of the rows that have a candidate: the matches that are expected of each row's best one, a row; the share of what is
    likely that is sure; the share of rows that have a sure one; and the matches of a row that has one.

    Args:
        probabilities: float64[p], by the first trees.
        left: int64[p], rows.
        right: int64[p], rows.
        same: whether both are of one table.
    """
    if not len(probabilities):
        return np.array([0, 0, 0, 1], np.float32)
    sides = [np.append(left, right)] if same else [left, right]
    best = []
    for rows in sides:
        most = np.full(int(rows.max()) + 1, -1.0)
        np.maximum.at(most, rows, np.tile(probabilities, len(rows) // len(probabilities)))
        best.append(most[most >= 0])
    rows_best = min(best, key=len)
    matched = float(rows_best.sum())
    likely = float(probabilities[probabilities > LIKELY].sum())
    sure = float(probabilities[probabilities > QUITE_SURE].sum())
    found = [
        matched / len(rows_best), sure / max(likely, 1e-9), float((rows_best > ALMOST).mean()),
        float(probabilities.sum()) / max(matched, 1e-9),
    ]  # fmt: skip
    return np.array(found, np.float32)


# What the candidates of one row say of a pair: its rank, its lead, and its leads apart.
SIDE = ("rank", "lead", "apart", "evidence")


def _of_side(others_of: RowTables, row: Int64s, other: Int64s, alike: Floats, told: Floats) -> Floats:
    """Return float32[len(SIDE), p] of the candidates of the rows of one side; `others_of` has the others' table."""
    rank, lead = _rank_and_lead(row, alike)
    few = np.isnan(rank)
    apart = alike - np.maximum(_best_apart(others_of, row, other, alike, alike), np.float32(RIVAL))
    evidence = told - _best_apart(others_of, row, other, told, alike)
    nan = np.float32(np.nan)
    return np.stack([rank, lead, np.where(few, nan, apart), np.where(few, nan, evidence)])


def _combine_sides(one: Floats, other: Floats) -> Floats:
    figures = [np.fmin(one[0], other[0]), np.fmax(one[0], other[0])]
    for first, second in zip(one[1:], other[1:], strict=True):
        figures += [np.fmax(first, second), np.fmin(first, second)]
    return np.stack(figures, axis=1).astype(np.float32)


def one_of_tables(rows: RowTables, side: int) -> RowTables:
    """Return the table of a side alone, with the facts of both."""
    facts = rows.facts
    return RowTables(
        rows.tokens._replace(tables=[rows.tokens.tables[side]]),
        facts._replace(cells=[facts.cells[side]], weights=[facts.weights[side]]),
        rows.values and [rows.values[side]],
    )


def _best_apart(others_of: RowTables, row: Int64s, other: Int64s, value: Floats, alike: Floats) -> Floats:
    """Return the greatest value among the other candidates of each pair's row that are not spellings of its own."""
    order = np.lexsort((-value, row))
    sorted_rows = row[order]
    first = np.flatnonzero(np.diff(sorted_rows, prepend=-1) != 0)
    last = np.append(first, len(row))[1:]
    starts, ends = np.repeat(first, last - first), np.repeat(last, last - first)
    start, end = np.empty(len(row), np.int64), np.empty(len(row), np.int64)
    start[order], end[order] = starts, ends
    best = np.full(len(row), np.float32(min(0.0, float(value.min(initial=0)))), np.float32)
    open_pairs = np.arange(len(row))
    for place in range(MOST_SPELLINGS):
        open_pairs = open_pairs[start[open_pairs] + place < end[open_pairs]]
        if not len(open_pairs):
            break
        rival = order[start[open_pairs] + place]
        itself = rival == open_pairs
        near = ~itself & (np.minimum(alike[rival], alike[open_pairs]) >= SPELLING)
        same = np.zeros(len(open_pairs), np.bool_)
        same[near] = are_spellings(others_of, other[open_pairs[near]], other[rival[near]])
        decided = ~itself & ~same
        best[open_pairs[decided]] = value[rival[decided]]
        open_pairs = open_pairs[~decided]
    return best


def are_spellings(rows: RowTables, one: Int64s, other: Int64s) -> Bools:
    """Return whether rows of one table are one thing written in two ways: nothing is left over on one of the sides."""
    if not len(one):
        return np.zeros(0, np.bool_)
    number = len(rows.tokens.tables[0].bounds)
    keys, at = np.unique(np.minimum(one, other) * number + np.maximum(one, other), return_inverse=True)
    figures = pair_figures(rows, *np.divmod(keys, number))
    found: Bools = (
        (figures[:, PLACES["tokens_left_over_min"]] == 0)
        & (figures[:, PLACES["numbers_left_over_max"]] == 0)
        & (figures[:, ALIGNED] >= SPELLING_ALIGNED)
        & (figures[:, PLACES["values_contradicting"]] == 0)
    )
    same: Bools = found[at]
    return same


def _rank_and_lead(rows: Int64s, alike: Floats) -> tuple[Floats, Floats]:
    order = np.lexsort((-alike, rows))
    row, ranked = rows[order], alike[order]
    new = np.diff(row, prepend=-1) != 0
    first = np.maximum.accumulate(np.where(new, np.arange(len(row)), 0))
    place = np.arange(len(row)) - first
    # Equals share the rank of their first.
    start = new | (np.diff(ranked, prepend=np.float32(np.inf)) != 0)
    tied = np.maximum.accumulate(np.where(start, np.arange(len(row)), 0)) - first
    following = np.append(row[1:] == row[:-1], False)
    second = np.where(following, np.append(ranked[1:], np.float32(0)), np.float32(0))
    best_other = np.where(place == 0, second, ranked[first])
    lead = ranked - np.maximum(best_other, np.float32(RIVAL))
    number = np.bincount(row)[row] if len(row) else first
    ranks, leads = np.empty(len(row), np.float32), np.empty(len(row), np.float32)
    ranks[order] = np.where(number < FEW, np.float32(np.nan), tied)
    leads[order] = np.where(number < FEW, np.float32(np.nan), lead)
    return ranks, leads
