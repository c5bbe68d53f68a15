"""Two tables into matches: columns into one sparse vector a row, the nearest rows, one-to-one."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from gramvec.embedding import listed
from gramvec.errors import InputError
from gramvec.matching.cosines import Ids, Matches, best, joined, nearest, none, scipy_sparse, taken
from gramvec.sparse import COLUMNS, SparseVectors, fit

THRESHOLD = 0.3
# The nearest rows of each left one among which --one-to-one chooses.
ONE_TO_ONE_DEPTH = 10
MOST_COLUMNS = 16
# Blocks of fewer pairs are scored pair by pair.
FEW_PAIRS = 50_000

Watch = Callable[[str, int, int], None]


class Field(NamedTuple):
    """A column that is compared: its texts in both tables, and its weight (above 0)."""

    left: Sequence[str]
    right: Sequence[str]
    weight: float


def match(
    left: Any,
    right: Any,
    *,
    on: str | Sequence[str] | Mapping[str, float] | None = None,
    top: int = 1,
    threshold: float = THRESHOLD,
    one_to_one: bool = False,
    block: str | None = None,
    threads: int = 1,
) -> Matches:
    """The rows of `right` that are most alike to each row of `left`.

    left, right: texts (any iterable of str) if `on` is None; else tables, whose columns are left[name]: a dict of
    lists, or a frame of pandas, polars or pyarrow. None and NaN are "".
    on: the columns that are compared, with their weights. top: so many right rows for a left one at most.
    threshold: the least score, from 0 to 1. one_to_one: no row is in two matches: pairs are taken from the highest
    score down among each left row's 10 (or `top`) nearest. block: only rows with the same value in this column, but for
    case and spaces around it, are compared; rows without one are compared with nothing.
    Returns rows from 0 and scores float32, by left row and then the highest score. Raises InputError for what cannot
    be matched.
    """
    if block is not None and on is None:
        raise InputError("block names a column, so the tables need columns: give on=", field="block")
    if on is None:
        fields = [Field(_texts(left), _texts(right), 1.0)]
    else:
        weights = dict(on) if isinstance(on, Mapping) else dict.fromkeys([on] if isinstance(on, str) else on, 1.0)
        fields = [Field(_column(left, name), _column(right, name), weight) for name, weight in weights.items()]
    keys = (_column(left, block), _column(right, block)) if block is not None else None
    return match_fields(fields, keys, top=top, threshold=threshold, one_to_one=one_to_one, threads=threads)


def match_fields(
    fields: Sequence[Field],
    blocks: tuple[Sequence[str], Sequence[str]] | None = None,
    *,
    top: int = 1,
    threshold: float = THRESHOLD,
    one_to_one: bool = False,
    threads: int = 1,
    watch: Watch = lambda what, done, total: None,
) -> Matches:
    """`match` of columns. watch: called with what is done, how much since the last time, and of how much."""
    if not 0 <= threshold <= 1:
        raise InputError(f"the threshold must be from 0 to 1, not {threshold:g}", field="threshold")
    if top < 1:
        raise InputError(f"top must be at least 1, not {top}", field="top")
    scipy_sparse()  # whether it can be had is known before minutes of work, not after them
    left, right = vectors_of(fields, watch)
    if blocks is not None and (len(blocks[0]), len(blocks[1])) != (len(left), len(right)):
        raise InputError("the columns of a table have different lengths", field="block")
    depth = max(top, ONE_TO_ONE_DEPTH) if one_to_one else top

    def watched(done: int) -> None:
        watch("matching", done, len(left))

    if blocks is None:
        found = nearest(left, right, depth, threshold, threads=threads, watch=watched)
    else:
        found = _in_blocks(left, right, blocks, depth, threshold, threads, watched)
    return _one_to_one(found) if one_to_one else found


def vectors_of(
    fields: Sequence[Field], watch: Watch = lambda what, done, total: None
) -> tuple[SparseVectors, SparseVectors]:
    """Both tables' rows as vectors of length 1: each column's vector of length 1 times the root of its weight.

    Each column's n-grams are weighed by their shares of that column's texts in both tables. A column that is empty in
    a row has no part in that row, so the product is the mean of the columns' cosines, by weight, where both rows have
    all columns, and less where one lacks what the other has.
    """
    if not 1 <= len(fields) <= MOST_COLUMNS:
        raise InputError(f"{len(fields)} columns to compare; give 1 to {MOST_COLUMNS}", field="on")
    sides: tuple[list[SparseVectors], list[SparseVectors]] = ([], [])
    weights = [field.weight for field in fields]
    total = 2 * sum(len(field.left) + len(field.right) for field in fields)

    def watched(done: int) -> None:
        watch("reading n-grams", done, total)

    for field in fields:
        if not 0 < field.weight < math.inf:
            raise InputError(f"a column's weight must be above 0, not {field.weight:g}", field="on")
        if any(len(texts) != len(first) for texts, first in zip(field[:2], fields[0][:2], strict=True)):
            raise InputError("the columns of a table have different lengths", field="on")
        try:
            made = fit([*field.left, *field.right], watch=watched)
        except InputError as error:
            raise _in_its_table(error, len(field.left)) from error
        for texts, side in zip(field[:2], sides, strict=True):
            side.append(made.embed(texts, watch=watched))
    return _beside(sides[0], weights), _beside(sides[1], weights)


def _in_its_table(error: InputError, left: int) -> InputError:
    """The error with the table and the row, from 1, instead of the text's place among all."""
    if error.index is None:
        return error
    table, row = ("left", error.index) if error.index < left else ("right", error.index - left)
    return InputError(f"row {row + 1} of the {table} table: {error}", index=row)


def _beside(parts: Sequence[SparseVectors], weights: Sequence[float]) -> SparseVectors:
    """The vectors of several columns as one of length 1."""
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
    blocks: tuple[Sequence[str], Sequence[str]],
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
                near = nearest(left.rows(a), right.rows(b), k, threshold, threads=threads)
                found.append(Matches(a[near.left], b[near.right], near.scores))
        watch(len(some))
    pairs = joined(found) if found else none()
    order = np.lexsort((pairs.right, -pairs.scores, pairs.left))
    return taken(pairs, order)


def _one_to_one(pairs: Matches) -> Matches:
    """Greedily: from the highest score down, a pair is taken if neither of its rows is in one yet."""
    lefts: set[int] = set()
    rights: set[int] = set()
    kept = []
    for at in np.lexsort((pairs.right, pairs.left, -pairs.scores)).tolist():
        one, other = int(pairs.left[at]), int(pairs.right[at])
        if one not in lefts and other not in rights:
            lefts.add(one)
            rights.add(other)
            kept.append(at)
    places: Ids = np.sort(np.array(kept, np.int64))
    return taken(pairs, places)


def _texts(values: Any) -> list[str]:
    return ["" if value is None or value != value else value for value in listed(values)]


def _column(table: Any, name: str) -> list[str]:
    try:
        column = table[name]
    except (KeyError, IndexError, TypeError, ValueError) as error:
        raise InputError(f"a table has no column {name!r}; columns are read as table[name]", field="on") from error
    except Exception as error:  # polars has an exception of its own
        raise InputError(f"a table has no column {name!r} ({error})", field="on") from error
    return [value if isinstance(value, str) else str(value) for value in _texts(column)]
