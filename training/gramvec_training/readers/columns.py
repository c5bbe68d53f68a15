"""Rows of tables, read by `gramvec.jobs.tables`, and the choice of their columns by header or position.

A file with the ending of tab-separated values or of text has a row a line, without quotes; its first row is a header
where it names the wanted columns in a known way. In any other form the columns have names: CSV has a header, and the
names of the first JSON object are those of all.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain, islice
from typing import Any, NamedTuple

from gramvec.errors import InputError
from gramvec.jobs.tables.columns import TableRows
from gramvec.jobs.tables.inputs import Form
from gramvec_training.readers.lines import SkippedRows, check_exists, read_lines, short_reason, shorten_path

Names = frozenset[str]

SCORES: Names = frozenset({"score", "similarity", "gold", "label", "rating", "is_duplicate", "quality"})
_OBJECTS = frozenset({"jsonl", "json"})
_SAMPLE = 100  # rows by which a column is found to hold scores
_MOSTLY = 0.9  # of labels: one that is wrong is named, and does not make a column another one


class FieldRow(NamedTuple):
    """Line number from 1, stripped values, and the reason why the row cannot be read, if any."""

    number: int
    values: list[str]
    why: str | None = None


class ChosenColumns(NamedTuple):
    """Places of the two wanted columns and of the score, and whether a score of 0 marks a row to leave out."""

    wanted: tuple[int, int]
    score: int | None = None
    zero_is_not: bool = False


def has_names(form: Form) -> bool:
    """Return whether a form names its columns in any case."""
    return form not in ("txt", "tsv")


def table_rows(bad: SkippedRows) -> Iterator[FieldRow]:
    """Yield the rows of the file of `bad`; the names of its columns, where its form has them, are the first row.

    Raises:
        InputError: The file is missing or cannot be read in the form of its ending, or it names one column.
    """
    path, file_format = bad.path, bad.format
    if not has_names(file_format.form):
        for number, text, why in read_lines(path, file_format.encoding):
            yield FieldRow(number, [value.strip() for value in text.split("\t")], why)
        return
    check_exists(path)
    with TableRows(path, file_format) as rows:
        bad.unit = rows.unit
        for note in rows.reader.notes:
            bad.add_note(note)
        names = rows.names
        if names:
            yield _header(names, bad, 1)
        for number, record, why in rows:
            if why is not None:
                yield FieldRow(number, [], short_reason(why))
                continue
            if names is None:
                names = list(record)
                yield _header(names, bad, number)
            yield FieldRow(number, [_as_text(record.get(name)) for name in names])


def _header(names: list[str], bad: SkippedRows, number: int) -> FieldRow:
    if len(names) < 2:
        remedy = "write two in each object" if bad.format.form in _OBJECTS else "name each column, with commas between"
        raise InputError(f"{shorten_path(bad.path)}: one column, {', '.join(map(repr, names)) or 'no name'}; {remedy}")
    return FieldRow(number, [name.strip() for name in names])


def _as_text(value: Any) -> str:
    """Return a value as stripped text; what is neither text nor a number is empty."""
    if isinstance(value, bool):
        return str(value).lower()
    return str(value).strip() if isinstance(value, (str, int, float)) else ""


def choose_columns(
    rows: Iterator[FieldRow], bad: SkippedRows, first: Names, second: Names, *, labels: bool = False
) -> tuple[ChosenColumns, Iterator[FieldRow]]:
    """Return the places of the two columns named in `first` and `second`, and the rows below the header.

    Without a header with such names they are the first two that hold more than numbers, where a CSV file has a
    header and where the first or third of three columns, in a tab-separated file, are scores.
    What was found becomes a note of `bad`.

    labels: whether the scores are learned from; then a tenth of those may be no numbers.
    """
    header, rows = split_header(rows, bad, first, second)
    sample = list(islice(rows, _SAMPLE))
    below = chain(sample, rows)
    readable = [row.values for row in sample if row.why is None]
    width = min(map(len, readable), default=0)
    wanted_numbers = _MOSTLY * len(readable) if labels else len(readable)
    numeric = [
        column for column in range(width) if sum(is_number(values[column]) for values in readable) >= wanted_numbers
    ]
    if header is None:
        if width < 3 or len(readable) < 2 or not {0, 2} & {*numeric}:
            return ChosenColumns((0, 1)), below
        score: int | None = 0 if 0 in numeric else 2
        wanted = (1, 2) if score == 0 else (0, 1)
        named = f"column {(score or 0) + 1} holds numbers and is taken for a score"
    else:
        named_score = [place for place, name in enumerate(header) if name.lower() in SCORES - first - second]
        score = named_score[0] if named_score else None
        free = [place for place in range(len(header)) if place != score and place not in numeric]
        wanted = find_places(header, first, second) or (*free, *range(len(header)))[:2]
        named = f"{describe_header(bad)}; the texts are {header[wanted[0]]!r} and {header[wanted[1]]!r}"
        named += f", the score is {header[score]!r}" if score is not None else ""
    if score is None:
        bad.add_note(named)
        return ChosenColumns(wanted), below
    scores = [values[score] for values in readable if len(values) > score]
    if labels:  # the others are refused when they are read
        scores = [value for value in scores if is_number(value)]
    is_binary = bool(scores) and all(is_number(value) and float(value) in (0, 1) for value in scores)
    if labels:
        bad.add_note(f"{named}, which is learned: {'0 or 1' if is_binary else 'a score'}")
    else:
        bad.add_note(
            f"{named}, {'so rows with 0 are left out' if is_binary else 'which is not used: every row counts'}"
        )
    return ChosenColumns(wanted, score, is_binary), below


def split_header(
    rows: Iterator[FieldRow], bad: SkippedRows, first: Names, second: Names
) -> tuple[list[str] | None, Iterator[FieldRow]]:
    """Return the values of the header row, if there is one, and the rows below; see `choose_columns`."""
    top = next(rows, None)
    if top is None:
        return None, rows
    if has_names(bad.format.form) or find_places(top.values, first, second) is not None:
        return top.values, rows
    return None, chain([top], rows)


def describe_header(bad: SkippedRows) -> str:
    """Return the phrase that tells a user where the column names come from."""
    form = bad.format.form
    if form in _OBJECTS:
        return "the first object names the columns"
    return "the columns have names" if form == "parquet" else "line 1 is a header"


def is_zero(chosen: ChosenColumns, values: Sequence[str]) -> bool:
    """Return whether a row's score marks it as no example."""
    if not chosen.zero_is_not or chosen.score is None or chosen.score >= len(values):
        return False
    return is_number(values[chosen.score]) and float(values[chosen.score]) == 0


def find_places(header: Sequence[str], first: Names, second: Names) -> tuple[int, int] | None:
    """Return the places of the first header names in `first` and in `second`, or None without both."""
    names = [name.lower() for name in header]
    left = next((place for place, name in enumerate(names) if name in first), None)
    right = next((place for place, name in enumerate(names) if name in second), None)
    return None if left is None or right is None else (left, right)


def is_number(value: str) -> bool:
    """Return whether a value parses as a number other than NaN."""
    try:
        return float(value) == float(value)
    except ValueError:
        return False
