"""Labelled pairs from files: ids of both tables, and whether they are the same thing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from gramvec.errors import InputError, quoted
from gramvec.matching.fit_matcher import Labels
from gramvec.tables.columns import MOST_ROWS, TableRows, text_of
from gramvec.tables.inputs import Form, form_of

MOST_LABELS = 1_000_000
WANTED = "labels have columns left and right (ids of both tables; or left_id and right_id) and match (1 or 0)"
# In a file that `gramvec match` wrote, left and right are texts.
ID_COLUMNS = (("left_id", "right_id"), ("left", "right"))
ANSWERS = {"1": True, "true": True, "yes": True, "0": False, "false": False, "no": False}


def read_labels(paths: Sequence[Path], left: Sequence[str], right: Sequence[str]) -> Labels:
    """The labelled pairs of files that `gramvec embed` reads. left, right: the ids of the tables' rows.

    match is 1, true or yes, or 0, false or no, in any case; a row in which it is empty is passed over. A pair may be
    there twice. Raises InputError, naming file and line, for other columns and values, ids of no table, pairs with
    both labels, and more than 1,000,000.
    """
    rows = [{one: row for row, one in enumerate(ids)} for ids in (left, right)]
    found: dict[tuple[int, int], tuple[bool, str]] = {}
    for path in paths:
        for place, (one, other, match) in _rows(path):
            pair = (_row(one, rows[0], "left", place), _row(other, rows[1], "right", place))
            first = found.setdefault(pair, (match, place))
            if first[0] != match:
                raise InputError(
                    f"{place}: {quoted(one)} and {quoted(other)} are labelled otherwise in {first[1]}; keep one"
                )
            if len(found) > MOST_LABELS:
                raise InputError(f"{place}: more than {MOST_LABELS:,} labelled pairs; give fewer")
    return _labels((*pair, match) for pair, (match, _) in found.items())


def labels_of(triples: Iterable[Sequence[Any]]) -> Labels:
    """(left row, right row, match) each, as Labels. Raises InputError for anything else, and for contradictions."""
    found: dict[tuple[int, int], bool] = {}
    for number, triple in enumerate(triples):
        try:
            left, right, match = (int(value) for value in triple)
            good = (
                min(left, right) >= 0
                and max(left, right) < MOST_ROWS
                and match in (0, 1)
                and [left, right, match] == list(triple)
            )
        except (TypeError, ValueError, OverflowError):
            good = False
        if not good:
            raise InputError(f"label {number} is not (left row, right row, 1 or 0), rows from 0", field="labels")
        if found.setdefault((left, right), bool(match)) != bool(match):
            raise InputError(f"rows {left} and {right} match in one label and not in another", field="labels")
        if len(found) > MOST_LABELS:
            raise InputError(f"more than {MOST_LABELS:,} labelled pairs; give fewer", field="labels")
    return _labels((*pair, match) for pair, match in found.items())


def check_labels(labels: Labels, left: int, right: int) -> None:
    """Raise InputError unless all rows are in tables of so many rows."""
    for table, rows, size in (("left", labels.left, left), ("right", labels.right, right)):
        if len(rows) and int(rows.max()) >= size:
            raise InputError(
                f"a label is of row {int(rows.max())} of the {table} table, which has {size}", field="labels"
            )


def _labels(triples: Iterable[tuple[int, int, bool]]) -> Labels:
    # Sorted: what is learned does not depend on the order of labels and files.
    columns = np.array(sorted(triples), np.int64).reshape(-1, 3)
    return Labels(columns[:, 0].copy(), columns[:, 1].copy(), columns[:, 2].astype(np.bool_))


def _row(one: str, rows: dict[str, int], side: str, place: str) -> int:
    if one not in rows:
        raise InputError(f"{place}: no row of the {side} table has the id {quoted(one)}; correct it or remove the line")
    return rows[one]


def _rows(path: Path) -> Iterator[tuple[str, tuple[str, str, bool]]]:
    """(file and line, (left id, right id, match)) of each row that is labelled."""
    names: tuple[str, str] | None = None
    for place, record in _records(path, form_of(path)):
        names = names or next((pair for pair in ID_COLUMNS if record.keys() >= set(pair)), None)
        if names is None or not record.keys() >= {*names, "match"}:
            has = ", ".join(quoted(name) for name in list(record)[:20])
            raise InputError(f"{place}: {WANTED}; it has {has or 'none'}")
        said = text_of(record["match"]).strip().casefold()
        if said and said not in ANSWERS:
            raise InputError(f"{place}: match is {quoted(said)}; write 1 or 0 (true, false, yes, no), or nothing")
        if said:
            yield place, (text_of(record[names[0]]), text_of(record[names[1]]), ANSWERS[said])


def _records(path: Path, form: Form) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield (file and line, columns by name) of each row; values of any type, since ids are often numbers."""
    if form == "txt":
        raise InputError(f"{path}: {WANTED}; give a .csv, .tsv, .jsonl or .parquet file")
    with TableRows(path, form) as rows:
        if rows.names is not None and "match" not in rows.names:
            has = ", ".join(quoted(name) for name in rows.names[:20])
            raise InputError(f"{path}: {WANTED}; it has {has or 'none'}")
        for number, record, why in rows:
            place = f"{path}: {rows.unit} {number}"
            if why is not None:
                raise InputError(f"{place}: {why}")
            yield place, record
