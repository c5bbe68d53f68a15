"""Public function: duplicates among texts, or among the rows of a table in memory."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, get_args

import numpy as np

from gramvec.embed.embedder import MAX_CHARACTERS, Embedder
from gramvec.embed.loading import load
from gramvec.errors import InputError
from gramvec.jobs.duplicates.distinct import MAX_PAIRS, DuplicateRows, distinct_rows, staying_rows
from gramvec.jobs.duplicates.likely import KEEPS, Keep, likely_pairs
from gramvec.jobs.duplicates.meaning import meaning_pairs
from gramvec.text.arrays import Int64s
from gramvec.text.frames import names_of, refuse_file, table_of, texts_of_column
from gramvec.text.inputs import has_surrogate

By = Literal["letters", "meaning"]
BYS: tuple[By, ...] = get_args(By)


def dedupe(
    rows: Any,
    *,
    on: str | Sequence[str] | None = None,
    id: str | None = None,  # noqa: A002 - the name of the option
    by: By = "letters",
    model: Embedder | str | None = None,
    threshold: float | None = None,
    precision: float | None = None,
    keep: Keep = "first",
    threads: int = 1,
) -> DuplicateRows:
    """Return the duplicates among rows: pairs, groups, and the rows that stay.

    Args:
        rows: texts, any iterable of str; or a table: an iterable of dicts, a dict of lists, or a frame of pandas,
            polars or pyarrow. None, NaN and pandas.NA are "".
        on: the compared columns, at most 16; None for all of them but `id`.
        id: a column that names the rows, and is not compared unless `on` has it.
        by: "letters" for the probability that two rows are the same thing, by their words, numbers and letters, as
            `match` has it; "meaning" for the cosine of a model's vectors.
        model: for "meaning", a loaded model, or its name or folder; None for the default one.
        threshold: the lowest score, 0 to 1. None, by letters, for that of the highest expected F1, and at least 0.4;
            by meaning it must be given.
        precision: by letters, take the lowest threshold from which on, in nine of ten tables, at least this share of
            the pairs is right, above 0 and below 1; no pair of different rows where none is so sure.
        keep: which of several rows stays: the "first", the "longest", the most "complete" (it has the most filled
            cells), or the one whose compared texts are most "frequent". Of two that are equal in this, the first.
        threads: threads of the comparison by letters.

    Returns:
        `pairs` (left and right rows from 0, int64, and scores, float32), `groups` (lists of rows that a chain of pairs
        joins), `kept` (rows, int64). A row that is not kept repeats one that is, never by a chain. Rows whose compared
        texts are empty repeat nothing; `empty` is their number.

    Raises:
        InputError: rows or options are not valid, or SciPy is not installed.
    """
    if by not in BYS:
        raise InputError(f"by: must be 'letters' or 'meaning', got {by!r}", field="by")
    if keep not in KEEPS:
        raise InputError(f"keep: must be one of {', '.join(map(repr, KEEPS))}, got {keep!r}", field="keep")
    if by == "meaning" and precision is not None:
        raise InputError("precision: is of probabilities, and meanings have cosines; give threshold", field="precision")
    if by == "letters" and model is not None:
        raise InputError("model: is for by='meaning'; letters are compared without one, so leave it out", field="model")
    columns, ids, cells = _columns(rows, on, id, count=keep == "complete")
    for row, texts in enumerate(zip(*columns, strict=True)):
        if why := next(filter(None, map(why_not_compared, texts)), None):
            raise InputError(f"row {row}: {why}", index=row)
    distinct = distinct_rows(columns)
    if by == "meaning":
        embedder = model if isinstance(model, Embedder) else load(model) if model else load()
        likely = meaning_pairs(distinct.join_columns(), embedder, threshold, max_pairs=MAX_PAIRS)
    else:
        likely = likely_pairs(distinct.columns, threshold, precision, threads=threads, max_pairs=MAX_PAIRS)
    return DuplicateRows(distinct, likely, staying_rows(distinct, likely.sure_pairs(), keep, cells), ids)


def why_not_compared(text: str) -> str | None:
    """Return why a text cannot be compared, None if it can."""
    if len(text) > MAX_CHARACTERS:
        return f"the text has {len(text):,} characters; at most {MAX_CHARACTERS:,}: cut it"
    if has_surrogate(text):
        return "the text has a lone surrogate, which is not a character; remove it or decode the text properly"
    return None


def _columns(
    rows: Any, on: str | Sequence[str] | None, id_column: str | None, *, count: bool
) -> tuple[list[list[str]], list[Any] | None, Int64s | None]:
    """Return the compared columns, the ids if a column has them, and where it counts the filled cells of each row."""
    if on is not None:
        refuse_file(rows, "gramvec.jobs.DedupeJob")
    table = rows if isinstance(rows, Mapping) or len(getattr(rows, "shape", ())) == 2 else table_of(rows)
    if isinstance(table, list):
        if on is not None or id_column is not None:
            raise InputError("on and id name columns, and these rows are texts; leave them out", field="on")
        return [table], None, np.ones(len(table), np.int64) if count else None
    if on is not None and (isinstance(on, Mapping) or not isinstance(on, Iterable)):
        raise InputError(f"on: must be a column's name or a list of names, got {type(on).__name__}", field="on")
    every = [str(name) for name in names_of(table)]
    if id_column is not None and id_column not in every:
        raise InputError(f"id: the table has no column {id_column!r}", field="id")
    wanted = [name for name in every if name != id_column] if on is None else [on] if isinstance(on, str) else [*on]
    if not wanted:
        raise InputError("the table has no column to compare; name one with on", field="on")
    read = {name: texts_of_column(table, name) for name in dict.fromkeys([*wanted, *(every if count else [])])}
    if len({len(column) for column in read.values()}) > 1:
        raise InputError("the columns of the table have different lengths", field="rows")
    columns = [read[name] for name in dict.fromkeys(wanted)]
    ids = None if id_column is None else texts_of_column(table, id_column)
    cells = np.array([sum(map(bool, row)) for row in zip(*read.values(), strict=True)], np.int64) if count else None
    return columns, ids, cells
