"""Two tables into matches, by the pair model: groups of equal rows, candidates, probabilities, and what is chosen."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import numpy as np

from gramvec.errors import InputError
from gramvec.jobs.common.engines import HERE, Engine
from gramvec.jobs.matching import candidates
from gramvec.jobs.matching.fields import (
    Blocks,
    ChosenMatches,
    Field,
    check_choice,
    check_fields,
    named_rows,
)
from gramvec.jobs.matching.groups import GroupPairs, group_rows, sort_groups
from gramvec.jobs.matching.nearest import Matches, scipy_sparse, select_pairs
from gramvec.jobs.matching.reasons import MatchReasons
from gramvec.jobs.pairs.figures import read_rows
from gramvec.jobs.pairs.model import SURE, pair_model
from gramvec.jobs.pairs.own_columns import find_own_columns
from gramvec.jobs.pairs.reasons import ScoredPairs
from gramvec.jobs.pairs.scores import score_pairs_of_tables
from gramvec.jobs.pairs.telling_columns import telling_columns
from gramvec.progress import NO_PROGRESS, Progress
from gramvec.text.arrays import Doubles, Floats, Int64s

# Below it the expected F1 may be higher, and more than half of what is written wrong: of two tables, and of one, where
# a wrong pair leaves out a row. One to one it is the threshold: a pair that has won against its rivals is likelier than
# its probability says.
MIN_THRESHOLD, MIN_DUPLICATE = 0.35, 0.4
# Less probable pairs are no candidates of any report.
MIN_SCORE = 0.01
_WHOLE = re.compile(r"(-?\d+)\.0+")


def match_fields(
    fields: Sequence[Field],
    blocks: Blocks | None = None,
    *,
    top: int | None = None,
    threshold: float | None = None,
    precision: float | None = None,
    one_to_one: bool = False,
    same: bool = False,
    explain: bool = False,
    threads: int = 1,
    engine: Engine = HERE,
    progress: Progress = NO_PROGRESS,
) -> ChosenMatches:
    """Match two tables by columns, without labels.

    Args:
        fields: the compared columns.
        blocks: a key for each row of both tables; rows are compared only with rows of the same key.
        top: right rows for a left row at most; None for all above the threshold.
        threshold: the lowest score, 0 to 1; None for that of the highest expected F1, and at least 0.35; one to one
            for 0.35, and 0.4 of one table.
        precision: take the lowest threshold from which on, in nine of ten tables, at least this share is right.
        one_to_one: whether a row is in one match at most.
        same: whether both are one table, whose rows are not compared with themselves.
        explain: keep what tells why pairs have their scores.
        threads: threads of the sparse product.
        engine: where blocks of rows and pairs are worked on.
        progress: shows the tasks.
    """
    check_choice(top, threshold)
    check_precision(precision, threshold)
    found = score_fields(fields, blocks, same=same, explain=explain, threads=threads, engine=engine, progress=progress)
    return choose_pairs(found, top, threshold, precision, one_to_one=one_to_one)


def score_fields(
    fields: Sequence[Field],
    blocks: Blocks | None = None,
    *,
    same: bool = False,
    explain: bool = False,
    threads: int = 1,
    engine: Engine = HERE,
    progress: Progress = NO_PROGRESS,
) -> GroupPairs:
    """Return the candidate pairs of two tables with their probabilities. Arguments as of `match_fields`."""
    check_fields(fields)
    check_unweighted(fields)
    scipy_sparse()  # a missing library is reported before minutes of work
    keys = [None, None] if blocks is None else [[block_of(key) for key in side] for side in blocks]
    if blocks is not None and [*map(len, blocks)] != [len(fields[0].left), len(fields[0].right)]:
        raise InputError("the columns of a table have different lengths", field="block")
    columns, places = telling_columns([[field[:2][side] for field in fields] for side in range(1 if same else 2)])
    own = find_own_columns(columns)
    ignored = sorted(places[at] for at in own)
    kept = [at for at in range(len(places)) if at not in own]
    columns, places = [[side[at] for at in kept] for side in columns], [places[at] for at in kept]
    progress.start("grouping rows", sum(len(side[0]) for side in columns))
    sides = []
    for number, (side, key) in enumerate(zip(columns, keys, strict=False)):
        texts = [fields[place][:2][number] for place in places]
        sides.append(sort_groups(group_rows(side, key), side, key, texts))
        progress.advance(len(side[0]))
    left_groups, right_groups = sides[0], sides[-1]
    with named_rows(len(left_groups.counts), np.concatenate([side.firsts for side in sides])):
        of_groups = [
            [key[row] for row in side.firsts.tolist()]
            for side, key in zip(sides, keys, strict=False)
            if key is not None
        ]
        found = candidates.of(
            [side.join_columns() for side in sides], of_groups or None, threads=threads, engine=engine,
            progress=progress,
        )  # fmt: skip
    progress.start("reading cells", sum(len(side.counts) for side in sides) * len(places), "cells")
    rows, model = read_rows([side.columns for side in sides], progress=progress), pair_model(same=same)
    several = np.flatnonzero(left_groups.counts > 1) if same else None
    told = score_pairs_of_tables(
        rows, found[:3], model, same=same, repeated=several, engine=engine, progress=progress
    )  # fmt: skip
    scores, reasons = told.scores, None
    if explain:
        scored = ScoredPairs(rows, found.left, found.right, told.figures, told.scores, model)
        reasons = MatchReasons(scored, left_groups.of_row, right_groups.of_row, places, same)
    left, right = found.left, found.right
    if several is not None:
        left, right = np.concatenate([left, right, several]), np.concatenate([right, left, several])
        scores = np.concatenate([scores, scores, np.full(len(several), SURE, np.float32)])
    order = np.lexsort((right, -scores, left))
    pairs = select_pairs(Matches(left, right, scores), order)
    return GroupPairs(pairs, left_groups, right_groups, same, (found.sampled, found.sampled_found), reasons, ignored)


def check_unweighted(fields: Iterable[Field]) -> None:
    """Raise InputError for columns of different weights: the pair model knows none."""
    if len({field.weight for field in fields}) > 1:
        raise InputError(
            "weights of columns count only for a matcher that learns from labels; leave them out, or give labels",
            field="on",
        )


def block_of(value: str) -> str:
    """Return a value as blocks compare it: without case, spaces around it, and .0 behind whole numbers."""
    plain = " ".join(value.split()).casefold()
    whole = _WHOLE.fullmatch(plain)
    return whole[1] if whole else plain


def choose_pairs(
    found: GroupPairs, top: int | None, threshold: float | None, precision: float | None = None, *, one_to_one: bool
) -> ChosenMatches:
    """Choose matches from scored pairs: `top` of each left row, or one-to-one, and then those above the threshold."""
    check_choice(top, threshold)
    floor = MIN_SCORE if threshold is None else threshold
    above = found.select(found.pairs.scores >= np.float32(floor))
    if one_to_one or top is not None:
        narrow = above.one_to_one() if one_to_one else above.rows(top)
        own = own_threshold(narrow.scores, precision, same=found.same, one_to_one=one_to_one)
        lowest = own if threshold is None else threshold
        matches = select_pairs(narrow, narrow.scores >= np.float32(lowest))
    else:
        own = own_threshold(above.pairs.scores, precision, above.numbers(), same=found.same)
        lowest = own if threshold is None else threshold
        matches = above.select(above.pairs.scores >= np.float32(lowest)).rows()
    reached = above.select(above.pairs.scores >= np.float32(lowest))
    left_out = int(reached.numbers().sum()) - len(matches.left)
    with_candidate = np.zeros(len(found.left.counts), np.bool_)
    with_candidate[found.pairs.left[found.numbers() > 0]] = True
    rows = int(found.left.counts[with_candidate].sum())
    expected = pair_model(same=found.same).promise.of(matches.scores)
    below = rows - len(np.unique(matches.left))
    return ChosenMatches(matches, lowest, left_out, below, expected, found.first_rows(), found.reasons, found.ignored)


def check_precision(precision: float | None, threshold: float | None) -> None:
    """Raise InputError for a precision outside of 0 to 1, or beside a threshold."""
    if precision is None:
        return
    if not 0 < precision < 1:
        raise InputError(f"precision: must be above 0 and below 1, got {precision:g}", field="precision")
    if threshold is not None:
        raise InputError("precision: chooses the threshold; give one of both", field="precision")


def own_threshold(
    scores: Floats,
    precision: float | None,
    numbers: Int64s | None = None,
    *,
    same: bool = False,
    one_to_one: bool = False,
) -> float:
    """Return the threshold of a precision, above all scores where none reaches it.

    Without one it is that of `threshold_of`, or one to one the least.
    """
    if precision is None:
        return least_threshold(same=same) if one_to_one else threshold_of(scores, numbers, same=same)
    model = pair_model(same=same)
    lowest = model.promise.precise_from(scores, precision, numbers)
    return 1.0 if lowest is None else lowest


def least_threshold(*, same: bool) -> float:
    """Return the lowest threshold that is taken without being asked for, of one table or of two."""
    return MIN_DUPLICATE if same else MIN_THRESHOLD


def threshold_of(scores: Floats, numbers: Int64s | None = None, *, same: bool = False) -> float:
    """Return the threshold of the highest expected F1, at least MIN_THRESHOLD, or MIN_DUPLICATE within one table.

    Args:
        scores: float32[p], probabilities.
        numbers: int64[p], how many pairs each stands for; None for one.
        same: whether the pairs are of one table.
    """
    least = least_threshold(same=same)
    order = np.argsort(-scores, kind="stable")
    ranked: Doubles = scores[order].astype(np.float64)
    number = np.ones(len(ranked)) if numbers is None else numbers[order].astype(np.float64)
    right = np.cumsum(ranked * number)
    if not len(ranked) or not right[-1]:
        return least
    f1 = 2 * right / (np.cumsum(number) + right[-1])
    return max(least, float(ranked[int(np.argmax(f1))]))
