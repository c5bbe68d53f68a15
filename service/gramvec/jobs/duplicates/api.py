"""Public function: duplicates among texts, or among the rows of a table in memory."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np

from gramvec.embed.embedder import MAX_CHARACTERS, Embedder
from gramvec.embed.loading import load
from gramvec.errors import InputError
from gramvec.jobs.common.engines import EngineName, open_engine
from gramvec.jobs.duplicates.distinct import (
    MAX_PAIRS,
    DistinctRows,
    DuplicateRows,
    RowNames,
    distinct_rows,
    join_sources,
    staying_rows,
)
from gramvec.jobs.duplicates.group_file import GroupFile
from gramvec.jobs.duplicates.labeled import labeled_pairs, labels_of_texts
from gramvec.jobs.duplicates.likely import KEEPS, Keep, LikelyPairs, likely_pairs
from gramvec.jobs.duplicates.meaning import meaning_pairs
from gramvec.jobs.matching.api import LabelTriples, Matcher
from gramvec.jobs.matching.inputs import labels_of
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
    labels: LabelTriples | None = None,
    matcher: Matcher | None = None,
    groups_file: str | os.PathLike[str] | None = None,
    threads: int = 1,
    engine: EngineName | None = None,
) -> DuplicateRows:
    """Return the duplicates among rows: pairs, groups, and the rows that stay.

    Args:
        rows: texts, any iterable of str; or a table: an iterable of dicts, a dict of lists, or a frame of pandas,
            polars or pyarrow. None, NaN and pandas.NA are "". Several tables are one: a dict of tables by their names,
            or a list of frames. Rows are counted through all; `names.sources` has the table of each.
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
        labels: (row, other row, whether they are the same thing) for some pairs, rows from 0. These are then as
            labeled, and other pairs have the probabilities of a matcher that learns from them, if there are enough.
        matcher: scores the pairs, learned before; without `on` its columns are compared.
        groups_file: a file that keeps the ids of groups, which `group_ids` has: the first call makes it, and the next
            one, with new or changed rows, continues it. Rows are known again by `id`, or without one by their texts.
        threads: threads of the comparison by letters.
        engine: "ray" or "spark" to compare rows and pairs on the machines of a cluster, with the same pairs; by letters
            and without labels. This process reads the table.

    Returns:
        `pairs` (left and right rows from 0, int64, and scores, float32), `groups` (lists of rows that a chain of pairs
        joins), `kept` (rows, int64), `threshold`, and the share of pairs that is `expected` to be right. A row that is
        not kept repeats one that is, never by a chain. Rows whose compared texts are empty repeat nothing; `empty` is
        their number. `to_pandas()`, `to_polars()` and `to_arrow()` have the pairs with their ids and texts.

    Raises:
        InputError: rows or options are not valid, or SciPy is not installed.
    """
    _check_options(by, keep, model, labels, matcher, precision)
    if engine is not None and (by == "meaning" or labels is not None or matcher is not None):
        raise InputError(
            "engine: compares by letters, without labels and a matcher; leave it out, or these", field="engine"
        )
    machines = open_engine(engine)
    sources, rows = join_sources(rows)
    columns, names, cells = _columns(rows, on, id, matcher, count=keep == "complete")
    names = names._replace(sources=sources)
    has_sources = sources is not None and id is not None
    file = None if groups_file is None else GroupFile(Path(groups_file), names.columns, id, has_sources=has_sources)
    for row, texts in enumerate(zip(*columns, strict=True)):
        if why := next(filter(None, map(why_not_compared, texts)), None):
            raise InputError(f"row {row}: {why}", index=row)
    distinct = distinct_rows(columns)
    if labels is not None or matcher is not None:
        likely = _labeled(distinct, names, labels, matcher, threshold, threads)
    elif by == "meaning":
        embedder = model if isinstance(model, Embedder) else load(model) if model else load()
        likely = meaning_pairs(distinct.join_columns(), embedder, threshold, max_pairs=MAX_PAIRS)
    else:
        likely = likely_pairs(
            distinct.columns, threshold, precision, threads=threads, engine=machines, max_pairs=MAX_PAIRS
        )
    group_ids = None if file is None else file.update(distinct, likely.pairs, names.ids, sources).ids
    stays = staying_rows(distinct, likely.sure_pairs(), keep, cells)
    return DuplicateRows(distinct, likely, stays, names, group_ids)


def _check_options(
    by: By, keep: Keep, model: Any, labels: Any, matcher: Matcher | None, precision: float | None
) -> None:
    """Raise InputError for options that are none, or contradict each other."""
    if by not in BYS:
        raise InputError(f"by: must be 'letters' or 'meaning', got {by!r}", field="by")
    if keep not in KEEPS:
        raise InputError(f"keep: must be one of {', '.join(map(repr, KEEPS))}, got {keep!r}", field="keep")
    if by == "meaning" and precision is not None:
        raise InputError("precision: is of probabilities, and meanings have cosines; give threshold", field="precision")
    if by == "letters" and model is not None:
        raise InputError("model: is for by='meaning'; letters are compared without one, so leave it out", field="model")
    if (labels is not None or matcher is not None) and by == "meaning":
        field = "matcher" if labels is None else "labels"
        raise InputError(f"{field}: scores rows by letters and words; leave out by='meaning'", field=field)
    if (labels is not None or matcher is not None) and precision is not None:
        raise InputError("precision: is promised without labels only; give threshold", field="precision")
    if labels is not None and matcher is not None:
        raise InputError("matcher: was learned before, and `labels` teach another; give one of them", field="matcher")


def _labeled(
    distinct: DistinctRows,
    names: RowNames,
    labels: LabelTriples | None,
    matcher: Matcher | None,
    threshold: float | None,
    threads: int,
) -> LikelyPairs:
    of_texts = None if labels is None else labels_of_texts(labels_of(labels), distinct.of_row)
    if of_texts is not None and (wrong := of_texts.sentences()):
        raise InputError(f"labels: {'; '.join(wrong)}", field="labels")
    return labeled_pairs(
        distinct.columns, names.columns, None if of_texts is None else of_texts.labels,
        None if matcher is None else matcher.learned, threshold, threads=threads, max_pairs=MAX_PAIRS,
    ).likely  # fmt: skip


def why_not_compared(text: str) -> str | None:
    """Return why a text cannot be compared, None if it can."""
    if len(text) > MAX_CHARACTERS:
        return f"the text has {len(text):,} characters; at most {MAX_CHARACTERS:,}: cut it"
    if has_surrogate(text):
        return "the text has a lone surrogate, which is not a character; remove it or decode the text properly"
    return None


def _columns(
    rows: Any, on: str | Sequence[str] | None, id_column: str | None, matcher: Matcher | None, *, count: bool
) -> tuple[list[list[str]], RowNames, Int64s | None]:
    """Return the compared columns, the names of both, and where it counts the filled cells of each row."""
    if on is not None:
        refuse_file(rows, "gramvec.jobs.DedupeJob")
    table = rows if isinstance(rows, Mapping) or len(getattr(rows, "shape", ())) == 2 else table_of(rows)
    if isinstance(table, list):
        if on is not None or id_column is not None:
            raise InputError("on and id name columns, and these rows are texts; leave them out", field="on")
        return [table], RowNames(), np.ones(len(table), np.int64) if count else None
    on = matcher.columns if on is None and matcher is not None else on
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
    compared = [*dict.fromkeys(wanted)]
    ids = None if id_column is None else texts_of_column(table, id_column)
    cells = np.array([sum(map(bool, row)) for row in zip(*read.values(), strict=True)], np.int64) if count else None
    return [read[name] for name in compared], RowNames(compared, ids, id_column=id_column), cells
