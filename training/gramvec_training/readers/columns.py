"""Rows of TSV, CSV and JSON lines files, and the choice of their columns by header or position.

A file whose name ends in .csv (or .csv.gz) has a header, quotes and commas (RFC 4180). One that ends in .jsonl or
.ndjson has an object a line, and the names of the first one are its header. In any other a line is a row without
quotes, and its first row is a header where it names the wanted columns in a known way.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from gramvec.errors import InputError
from gramvec.tables.inputs import Source, form_of
from gramvec.tables.readers import open_reader
from gramvec_training.readers.lines import NOT_UTF8, TOO_LONG, BadRows, near, number_lines, split_lines

Names = frozenset[str]

SCORES: Names = frozenset({"score", "similarity", "gold", "label", "rating", "is_duplicate", "quality"})
NAMED = frozenset({"csv", "jsonl"})  # forms that always have a header
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


def table_rows(path: Path) -> Iterator[FieldRow]:
    """Yield the rows of a file, including the header of a CSV or JSON file.

    Raises:
        InputError: The file is missing or no text, and where a CSV header names one column, or one twice.
    """
    if form_of(path) in NAMED:
        yield from _csv_rows(path) if form_of(path) == "csv" else _json_rows(path)
        return
    for number, raw in split_lines(path):
        if raw is None:
            yield FieldRow(number, [], TOO_LONG)
            continue
        try:
            yield FieldRow(number, [value.strip() for value in raw.decode("utf-8").split("\t")])
        except UnicodeDecodeError:
            yield FieldRow(number, [], NOT_UTF8)


def _csv_rows(path: Path) -> Iterator[FieldRow]:
    names = _csv_header(path)
    if not names:
        return
    if len(names) < 2:
        raise InputError(f"{near(path)}: one column, {names[0]!r}; write a header and commas between the columns")
    yield FieldRow(1, [name.strip() for name in names])
    source = Source(path)
    try:
        for block in open_reader(source, "csv", names[0], keep=True).blocks():
            for index, (number, record) in enumerate(zip(block.numbers, block.records or (), strict=True)):
                why = block.bad.get(index)
                yield FieldRow(number, [value.strip() for value in record.values()], why and why.split(";")[0])
    finally:
        source.close()


def _json_rows(path: Path) -> Iterator[FieldRow]:
    """Yield rows of JSON objects; a value that is missing or neither text nor number is empty."""
    names: list[str] | None = None
    for number, raw in split_lines(path):
        if raw is None:
            yield FieldRow(number, [], TOO_LONG)
            continue
        try:
            found = orjson.loads(raw.decode("utf-8"))
        except UnicodeDecodeError:
            yield FieldRow(number, [], NOT_UTF8)
            continue
        except orjson.JSONDecodeError:
            found = None
        if not isinstance(found, dict):
            yield FieldRow(number, [], "no JSON object")
            continue
        if names is None:
            names = list(found)
            if len(names) < 2:
                raise InputError(f"{near(path)} line {number}: fewer than two members; write two in each object")
            yield FieldRow(number, names)
        yield FieldRow(number, [_plain(found.get(name)) for name in names])


def _plain(value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        return str(value).lower() if isinstance(value, bool) else ""
    return str(value).strip()


def _csv_header(path: Path) -> list[str]:
    try:
        lines = (raw.decode("utf-8") + "\n" for _, raw in number_lines(path))
        return next(csv.reader(lines, strict=True), [])
    except (UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"{near(path)} line 1: {error}; its first line must name the columns") from error


def choose_columns(
    rows: Iterator[FieldRow], bad: BadRows, first: Names, second: Names, *, labels: bool = False
) -> tuple[ChosenColumns, Iterator[FieldRow]]:
    """Return the places of the two columns named in `first` and `second`, and the rows below the header.

    Without a header with such names they are the first two that hold more than numbers, where a CSV file has a
    header and where the first or third of three columns, in a tab-separated file, are scores. What was found is said.
    labels: whether the scores are learned from; then a tenth of those may be no numbers.
    """
    header, rows = split_header(rows, bad.path, first, second)
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
        named = f"{header_of(bad.path)}; the texts are {header[wanted[0]]!r} and {header[wanted[1]]!r}"
        named += f", the score is {header[score]!r}" if score is not None else ""
    if score is None:
        bad.add_remark(named)
        return ChosenColumns(wanted), below
    scores = [values[score] for values in readable if len(values) > score]
    if labels:  # the others are refused when they are read
        scores = [value for value in scores if is_number(value)]
    is_binary = bool(scores) and all(is_number(value) and float(value) in (0, 1) for value in scores)
    if labels:
        bad.add_remark(f"{named}, which is learned: {'0 or 1' if is_binary else 'a score'}")
    else:
        bad.add_remark(
            f"{named}, {'so rows with 0 are left out' if is_binary else 'which is not used: every row counts'}"
        )
    return ChosenColumns(wanted, score, is_binary), below


def split_header(
    rows: Iterator[FieldRow], path: Path, first: Names, second: Names
) -> tuple[list[str] | None, Iterator[FieldRow]]:
    """Return the values of the header row, if there is one, and the rows below; see `choose_columns`."""
    top = next(rows, None)
    if top is None:
        return None, rows
    if form_of(path) in NAMED or find_places(top.values, first, second) is not None:
        return top.values, rows
    return None, chain([top], rows)


def header_of(path: Path) -> str:
    """Return the phrase that tells a user where the column names come from."""
    return "the first object names the columns" if form_of(path) == "jsonl" else "line 1 is a header"


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
