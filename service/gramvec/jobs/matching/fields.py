"""Columns of two tables into matches: sparse vectors of rows, blocks, the nearest rows, one-to-one."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np

from gramvec.errors import InputError
from gramvec.jobs.matching.nearest import NO_MATCHES, Matches, best, concatenate_matches, nearest, places, select_pairs
from gramvec.jobs.matching.reasons import TellsReasons
from gramvec.jobs.pairs.model import ExpectedShare
from gramvec.lexical.sparse import MAX_CHARACTERS, ORDERS, SIF_A, Weighting, fit
from gramvec.lexical.sparse_vectors import SparseVectors
from gramvec.progress import NO_PROGRESS, Progress
from gramvec.text.arrays import Int64s
from gramvec.text.folding import fold_texts
from gramvec.text.scripts import close_gaps

MAX_COLUMNS = 16
# Blocks of fewer pairs are scored pair by pair.
FEW_PAIRS = 50_000

Blocks = tuple[Sequence[str], Sequence[str]]
BothTables = tuple[SparseVectors, SparseVectors]


class Field(NamedTuple):
    """A compared column: its texts in both tables, and its weight (above 0)."""

    left: Sequence[str]
    right: Sequence[str]
    weight: float


class NgramSettings(NamedTuple):
    """Settings of `gramvec.lexical.fit` for the columns of a matcher."""

    weighting: Weighting = "sif"
    orders: tuple[int, ...] = ORDERS
    a: float = SIF_A


class ChosenMatches(NamedTuple):
    """Matches, the threshold, and the number of pairs above it that were left out.

    Attributes:
        matches: what is reported.
        threshold: the lowest score, given or from the data.
        left_out: pairs of at least that score that `top` or `one_to_one` left out.
        below: left rows without a match that have a candidate of a lower score.
        expected: the share of matches that is expected to be right; None where nothing is known of it.
        candidates: all scored pairs, of equal rows the first.
        reasons: what tells why pairs have their scores, where it was asked for.
        ignored: the places of the columns that were not compared, since rows that are otherwise one differ in them.
    """

    matches: Matches
    threshold: float
    left_out: int
    below: int = 0
    expected: ExpectedShare | None = None
    candidates: Matches = NO_MATCHES
    reasons: TellsReasons | None = None
    ignored: Sequence[int] = ()


def check_choice(top: int | None, threshold: float | None) -> None:
    """Raise InputError for a `top` below 1 and a threshold outside of 0 to 1."""
    if threshold is not None and not 0 <= threshold <= 1:
        raise InputError(f"threshold: must be from 0 to 1, got {threshold:g}", field="threshold")
    if top is not None and top < 1:
        raise InputError(f"top: must be at least 1, got {top}", field="top")


def choose(
    scored: Matches,
    ranks: Sequence[Int64s],
    top: int | None,
    threshold: float,
    *,
    one_to_one: bool,
    same: bool = False,
) -> ChosenMatches:
    """Choose matches from scored candidates: at least the threshold, `top` of each left row or one-to-one.

    With `same`, the candidates are pairs of one table, each given once. It is returned both ways, but by one-to-one.

    Args:
        scored: the candidates, each once.
        ranks: int64[n] and int64[m], a number for each row of both tables; of equal scores the lowest are chosen.
        top: right rows for a left row at most; None for all.
        threshold: the lowest score, 0 to 1.
        one_to_one: whether a row is in one match at most.
        same: whether both are one table.
    """
    check_choice(top, threshold)
    above = select_pairs(scored, scored.scores >= np.float32(threshold))
    if one_to_one:
        matches = pair_greedily(above, ranks, same=same)
    else:
        above = _both_ways(above) if same else above
        order = np.lexsort((ranks[1][above.right], -above.scores, above.left))
        matches = above if top is None else select_pairs(above, order[places(above.left[order]) < top])
    matches = select_pairs(matches, np.lexsort((matches.right, -matches.scores, matches.left)))
    return ChosenMatches(matches, threshold, len(above.left) - len(matches.left), candidates=scored)


def nearest_rows(
    vectors: BothTables,
    blocks: Blocks | None,
    k: int,
    threshold: float,
    *,
    threads: int = 1,
    progress: Progress = NO_PROGRESS,
) -> Matches:
    """Return `nearest` of both tables' vectors; with blocks, a row is compared only with rows of its block."""
    left, right = vectors
    if blocks is not None and (len(blocks[0]), len(blocks[1])) != (len(left), len(right)):
        raise InputError("the columns of a table have different lengths", field="block")
    progress.start("matching", len(left))
    if blocks is not None:
        return _in_blocks(left, right, blocks, k, threshold, threads, progress)
    return nearest(left, right, k, threshold, threads=threads, progress=progress)


def folded_field(field: Field) -> Field:
    """Return a column as its letters are compared, cut where only the folded text is longer than MAX_CHARACTERS."""
    left, right = (
        [
            close_gaps(fold)[: max(MAX_CHARACTERS, len(text))]
            for text, fold in zip(texts, fold_texts(texts), strict=True)
        ]
        for texts in field[:2]
    )
    return Field(left, right, field.weight)


def joined_field(fields: Sequence[Field], weight: float) -> Field:
    """Return all columns of each row as one text, cut to MAX_CHARACTERS unless one column is longer."""
    left, right = (
        [" ".join(filter(None, row))[: max(MAX_CHARACTERS, *map(len, row))] for row in zip(*columns, strict=True)]
        for columns in ([field.left for field in fields], [field.right for field in fields])
    )
    return Field(left, right, weight)


def check_number(fields: Sequence[Field]) -> None:
    """Raise InputError for no columns, and for more than MAX_COLUMNS."""
    if not 1 <= len(fields) <= MAX_COLUMNS:
        raise InputError(f"{len(fields)} columns to compare; give 1 to {MAX_COLUMNS}", field="on")


def check_fields(fields: Sequence[Field]) -> None:
    """Raise InputError for columns and weights that cannot be compared."""
    check_number(fields)
    for field in fields:
        if not 0 < field.weight < math.inf:
            raise InputError(f"the weight of a column: must be above 0, got {field.weight:g}", field="on")
        if any(len(texts) != len(first) for texts, first in zip(field[:2], fields[0][:2], strict=True)):
            raise InputError("the columns of a table have different lengths", field="on")


def ngram_vectors(
    fields: Sequence[Field],
    settings: NgramSettings,
    progress: Progress = NO_PROGRESS,
    rows: Int64s | None = None,
) -> list[BothTables]:
    """Return the n-gram vectors of length 1 of each column, without words, for the features of a matcher.

    Args:
        fields: the columns.
        settings: of their n-grams.
        progress: advances by texts.
        rows: the rows of both tables, by which errors name them; None where they are in order.

    Raises:
        InputError: columns, weights or texts cannot be compared.
    """
    check_fields(fields)
    total = 2 * sum(len(field.left) + len(field.right) for field in fields)
    progress.start("reading n-grams", total)
    found = []
    for field in fields:
        with named_rows(len(field.left), rows):
            texts = [*field.left, *field.right]
            vectors = fit(texts, **settings._asdict(), progress=progress).embed(texts, progress=progress)
        found.append(split(vectors, len(field.left)))
    return found


@contextmanager
def named_rows(left: int, rows: Int64s | None = None) -> Iterator[None]:
    """Name the table and the row, from 1, in an InputError that counts texts.

    Args:
        left: texts of the left table, which come first.
        rows: the row of each text; None where they are in order.
    """
    try:
        yield
    except InputError as error:
        if error.index is None:
            raise
        table, place = ("left", error.index) if error.index < left else ("right", error.index - left)
        row = place if rows is None else int(rows[error.index])
        raise InputError(f"row {row + 1} of the {table} table: {error}", index=row) from error


def split(vectors: SparseVectors, rows: int) -> BothTables:
    """Return the first `rows` rows and the others."""
    indptr, entries = vectors.indptr, int(vectors.indptr[rows])
    return (
        SparseVectors(indptr[: rows + 1], vectors.indices[:entries], vectors.values[:entries], vectors.columns),
        SparseVectors(indptr[rows:] - entries, vectors.indices[entries:], vectors.values[entries:], vectors.columns),
    )


def _in_blocks(
    left: SparseVectors,
    right: SparseVectors,
    blocks: Blocks,
    k: int,
    threshold: float,
    threads: int,
    progress: Progress,
) -> Matches:
    rows: dict[str, tuple[list[int], list[int]]] = {}
    for side, keys in enumerate(blocks):
        for row, key in enumerate(keys):
            if name := " ".join(key.split()).casefold():
                rows.setdefault(name, ([], []))[side].append(row)
    found = []
    for left_rows, right_rows in rows.values():
        if left_rows and right_rows:
            a, b = np.array(left_rows, np.int64), np.array(right_rows, np.int64)
            if len(a) * len(b) <= FEW_PAIRS:
                found.append(best(left, right, np.repeat(a, len(b)), np.tile(b, len(a)), k, threshold))
            else:
                in_block = nearest(left.rows(a), right.rows(b), k, threshold, threads=threads)
                found.append(Matches(a[in_block.left], b[in_block.right], in_block.scores))
        progress.advance(len(left_rows))
    pairs = concatenate_matches(found)
    return select_pairs(pairs, np.lexsort((pairs.right, -pairs.scores, pairs.left)))


def _both_ways(pairs: Matches) -> Matches:
    """Return each pair of one table with either row on the left."""
    left, right = np.append(pairs.left, pairs.right), np.append(pairs.right, pairs.left)
    return Matches(left, right, np.append(pairs.scores, pairs.scores))


def pair_greedily(pairs: Matches, ranks: Sequence[Int64s], *, same: bool = False) -> Matches:
    """Return one-to-one pairs: from the highest score down, a pair is taken if neither of its rows is in one yet.

    Args:
        pairs: the candidates.
        ranks: as of `choose`.
        same: whether rows of both sides are of one table.
    """
    lefts: set[int] = set()
    rights = lefts if same else set[int]()
    kept = []
    left, right = ranks[0][pairs.left], ranks[1][pairs.right]
    if same:
        left, right = np.minimum(left, right), np.maximum(left, right)
    for at in np.lexsort((right, left, -pairs.scores)).tolist():
        left_row, right_row = int(pairs.left[at]), int(pairs.right[at])
        if left_row not in lefts and right_row not in rights:
            lefts.add(left_row)
            rights.add(right_row)
            kept.append(at)
    return select_pairs(pairs, np.array(kept, np.int64))
