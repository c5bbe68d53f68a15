"""Two tables into matches: columns into one sparse vector a row, the nearest rows, one-to-one."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from gramvec.errors import InputError
from gramvec.lexical.hashing import COLUMNS
from gramvec.lexical.sparse import MAX_CHARACTERS, ORDERS, SIF_A, Weighting, fit
from gramvec.lexical.sparse_vectors import SparseVectors
from gramvec.matching.nearest import Matches, best, joined, nearest, none, places, scipy_sparse, taken
from gramvec.matching.scoring import Sides, column_scores, threshold_of, with_lead

# The nearest rows of each left one that are scored, and among which --one-to-one chooses.
DEPTH = 10
MOST_COLUMNS = 16
# Blocks of fewer pairs are scored pair by pair.
FEW_PAIRS = 50_000

Watch = Callable[[str, int, int], None]
Blocks = tuple[Sequence[str], Sequence[str]]


def unwatched(what: str, done: int, total: int) -> None:
    """A Watch that does nothing."""


class Field(NamedTuple):
    """A column that is compared: its texts in both tables, and its weight (above 0)."""

    left: Sequence[str]
    right: Sequence[str]
    weight: float


class Ngrams(NamedTuple):
    """What `gramvec.lexical.fit` is told about a column's n-grams."""

    weighting: Weighting = "sif"
    orders: tuple[int, ...] = ORDERS
    a: float = SIF_A


class Matched(NamedTuple):
    """Matches; the least score, given or from the data; the pairs of at least that score that `top` left out.

    left_out counts among each left row's DEPTH nearest.
    """

    matches: Matches
    threshold: float
    left_out: int


def match_fields(
    fields: Sequence[Field],
    blocks: Blocks | None = None,
    *,
    top: int = 1,
    threshold: float | None = None,
    one_to_one: bool = False,
    threads: int = 1,
    watch: Watch = unwatched,
) -> Matched:
    """Match two tables by columns, without labels.

    threshold: the least score, from 0 to 1; None takes the one of the highest expected F1. watch: called with what is
    done, how much since then, and of how much. The rest is as in `gramvec.match`.
    """
    if threshold is not None and not 0 <= threshold <= 1:
        raise InputError(f"the threshold must be from 0 to 1, not {threshold:g}", field="threshold")
    if top < 1:
        raise InputError(f"top must be at least 1, not {top}", field="top")
    scipy_sparse()  # a missing SciPy is known before minutes of work
    vectors = vectors_of(fields, watch)
    scored = with_lead(nearest_rows(vectors, blocks, max(top, DEPTH), 0.0, threads=threads, watch=watch))
    least = threshold_of(scored) if threshold is None else threshold
    above = taken(scored, scored.scores >= np.float32(least))
    matches = paired(above) if one_to_one else taken(above, places(above.left) < top)
    return Matched(matches, least, len(above.left) - len(matches.left))


def nearest_rows(
    vectors: tuple[SparseVectors, SparseVectors],
    blocks: Blocks | None,
    k: int,
    threshold: float,
    *,
    threads: int = 1,
    watch: Watch = unwatched,
) -> Matches:
    """Return `nearest` of both tables' vectors; with blocks, a row is compared only with rows of its block."""
    left, right = vectors
    if blocks is not None and (len(blocks[0]), len(blocks[1])) != (len(left), len(right)):
        raise InputError("the columns of a table have different lengths", field="block")

    def watched(done: int) -> None:
        watch("matching", done, len(left))

    if blocks is not None:
        return _in_blocks(left, right, blocks, k, threshold, threads, watched)
    return nearest(left, right, k, threshold, threads=threads, watch=watched)


def vectors_of(fields: Sequence[Field], watch: Watch = unwatched) -> tuple[SparseVectors, SparseVectors]:
    """Return both tables' rows as vectors of length 1, whose product is the cosine that scores two rows.

    Each column's n-grams and words are weighed by that column's texts in both tables. Where there are several columns,
    all of them joined are one more, with the weight of the others together. An empty column has no part in its row.

    Raises:
        InputError: columns, weights or texts cannot be compared.
    """
    check_fields(fields)
    every = list(fields)
    if len(fields) > 1:
        left, right = (
            [" ".join(filter(None, row))[:MAX_CHARACTERS] for row in zip(*columns, strict=True)]
            for columns in ([field.left for field in fields], [field.right for field in fields])
        )
        every.append(Field(left, right, sum(field.weight for field in fields)))
    total = 4 * sum(len(field.left) + len(field.right) for field in every)
    sides: Sides = ([], [])
    weights: list[float] = []
    for field in every:
        try:
            found, shares = column_scores(
                field.left, field.right, lambda done: watch("reading n-grams and words", done, total)
            )
        except InputError as error:
            raise _in_its_table(error, len(field.left)) from error
        for side, vectors in zip(sides, found, strict=True):
            side.extend(vectors)
        weights += [field.weight * share for share in shares]
    return beside(*sides, weights)


def check_fields(fields: Sequence[Field]) -> None:
    """Raise InputError for columns and weights that cannot be compared."""
    if not 1 <= len(fields) <= MOST_COLUMNS:
        raise InputError(f"{len(fields)} columns to compare; give 1 to {MOST_COLUMNS}", field="on")
    for field in fields:
        if not 0 < field.weight < math.inf:
            raise InputError(f"a column's weight must be above 0, not {field.weight:g}", field="on")
        if any(len(texts) != len(first) for texts, first in zip(field[:2], fields[0][:2], strict=True)):
            raise InputError("the columns of a table have different lengths", field="on")


def column_vectors(fields: Sequence[Field], ngrams: Ngrams, watch: Watch = unwatched) -> Sides:
    """Each column's vectors of length 1, of the left table and of the right one.

    Raises InputError for columns, weights and texts that cannot be compared.
    """
    check_fields(fields)
    sides: Sides = ([], [])
    total = 2 * sum(len(field.left) + len(field.right) for field in fields)

    def watched(done: int) -> None:
        watch("reading n-grams", done, total)

    for field in fields:
        try:
            made = fit([*field.left, *field.right], **ngrams._asdict(), watch=watched)
        except InputError as error:
            raise _in_its_table(error, len(field.left)) from error
        for texts, side in zip(field[:2], sides, strict=True):
            side.append(made.embed(texts, watch=watched))
    return sides


def _in_its_table(error: InputError, left: int) -> InputError:
    """The error with the table and the row, from 1, instead of the text's place among all."""
    if error.index is None:
        return error
    table, row = ("left", error.index) if error.index < left else ("right", error.index - left)
    return InputError(f"row {row + 1} of the {table} table: {error}", index=row)


def beside(
    left: Sequence[SparseVectors], right: Sequence[SparseVectors], weights: Sequence[float]
) -> tuple[SparseVectors, SparseVectors]:
    """The vectors of several columns as one of length 1, of either table."""
    return _beside(left, weights), _beside(right, weights)


def _beside(parts: Sequence[SparseVectors], weights: Sequence[float]) -> SparseVectors:
    if len(parts) == 1:
        return parts[0]
    lengths = np.stack([np.diff(part.indptr) for part in parts], axis=1)
    # What all columns that a row has weigh together.
    whole = np.maximum((lengths > 0) @ np.array(weights), np.finfo(np.float64).tiny)
    starts = np.append(0, np.cumsum(lengths))
    indices = np.empty(starts[-1], np.int64)
    values = np.empty(starts[-1], np.float32)
    for number, (part, weight) in enumerate(zip(parts, weights, strict=True)):
        places = np.repeat(starts[:-1].reshape(lengths.shape)[:, number] - part.indptr[:-1], lengths[:, number])
        places += np.arange(len(part.indices))
        indices[places] = part.indices.astype(np.int64) + number * COLUMNS
        values[places] = part.values * np.repeat(np.sqrt(weight / whole), lengths[:, number])
    indptr = np.append(0, np.cumsum(lengths.sum(axis=1)))
    return SparseVectors(indptr, indices.astype(np.int32), values, len(parts) * COLUMNS)


def _in_blocks(
    left: SparseVectors,
    right: SparseVectors,
    blocks: Blocks,
    k: int,
    threshold: float,
    threads: int,
    watch: Callable[[int], None],
) -> Matches:
    rows: dict[str, tuple[list[int], list[int]]] = {}
    for side, keys in enumerate(blocks):
        for row, key in enumerate(keys):
            if name := " ".join(key.split()).casefold():
                rows.setdefault(name, ([], []))[side].append(row)
    found = []
    for some, others in rows.values():
        if some and others:
            a, b = np.array(some, np.int64), np.array(others, np.int64)
            if len(a) * len(b) <= FEW_PAIRS:
                found.append(best(left, right, np.repeat(a, len(b)), np.tile(b, len(a)), k, threshold))
            else:
                found_there = nearest(left.rows(a), right.rows(b), k, threshold, threads=threads)
                found.append(Matches(a[found_there.left], b[found_there.right], found_there.scores))
        watch(len(some))
    pairs = joined(found) if found else none()
    order = np.lexsort((pairs.right, -pairs.scores, pairs.left))
    return taken(pairs, order)


def paired(pairs: Matches) -> Matches:
    """One-to-one, greedily: from the highest score down, a pair is taken if neither of its rows is in one yet."""
    lefts: set[int] = set()
    rights: set[int] = set()
    kept = []
    for at in np.lexsort((pairs.right, pairs.left, -pairs.scores)).tolist():
        one, other = int(pairs.left[at]), int(pairs.right[at])
        if one not in lefts and other not in rights:
            lefts.add(one)
            rights.add(other)
            kept.append(at)
    return taken(pairs, np.sort(np.array(kept, np.int64)))
