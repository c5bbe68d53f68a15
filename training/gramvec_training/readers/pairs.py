"""Paraphrases as pairs and groups (TSV, CSV, PPDB), and pairs with labels.

A group holds the wordings of one meaning; a pair is a group of two.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from gramvec.errors import InputError
from gramvec_training.readers.columns import (
    ChosenColumns,
    choose_columns,
    describe_header,
    has_names,
    is_number,
    is_zero,
    table_rows,
)
from gramvec_training.readers.lines import SkippedRows, read_lines, shorten_path
from gramvec_training.sections import FileLayout, OnBad, TableFormat

Group = tuple[str, ...]

PAIRS_REMEDY = "write one text, a tab and the other text on each line"
_PPDB_REMEDY = "write LHS ||| phrase ||| paraphrase ||| features on each line"
_PPDB_SEPARATOR = " ||| "
# How the columns of a pair are called.
LEFT = frozenset(
    {"left", "source", "query", "question", "question1", "anchor", "premise", "phrase"}
    | {f"{noun}{mark}" for noun in ("text", "sentence", "phrase") for mark in ("1", "_1", " 1", "a", "_a", " a")}
)
RIGHT = frozenset(
    {"right", "target", "title", "answer", "question2", "positive", "hypothesis", "paraphrase"}
    | {f"{noun}{mark}" for noun in ("text", "sentence", "phrase") for mark in ("2", "_2", " 2", "b", "_b", " b")}
)


def read_pairs(
    path: Path, *, on_bad: OnBad = "skip", given: TableFormat | None = None
) -> tuple[list[Group], SkippedRows]:
    """Read groups of two from `a<TAB>b` rows, or from two columns of a CSV file.

    A header and a column of scores are recognized and reported, see `readers.columns`; rows with a score of 0 among
    scores of 0 and 1 are left out. Bad rows (one column, an empty side, identical sides, not UTF-8, longer than 16 MiB)
    are skipped and counted, or refused with InputError.
    """
    bad = SkippedRows(path, on_bad, PAIRS_REMEDY, given)
    chosen, rows = choose_columns(table_rows(bad), bad, LEFT, RIGHT)
    groups: list[Group] = []
    zeros = 0
    for number, values, why in rows:
        if why or len(values) <= max(chosen.wanted):
            bad.add(number, why or describe_missing(values, chosen))
        elif is_zero(chosen, values):
            zeros += 1
        else:
            _keep([values[place] for place in chosen.wanted], number, groups, bad)
    if zeros:
        bad.add_note(f"{zeros:,} row{'s' if zeros > 1 else ''} with a score of 0 left out")
    return groups, bad


def describe_missing(values: list[str], chosen: ChosenColumns) -> str:
    """Return the reason for a row that lacks the wanted columns."""
    return "one column" if len(values) == 1 else f"fewer than {max(chosen.wanted) + 1} columns"


def read_groups(
    path: Path, *, on_bad: OnBad = "skip", given: TableFormat | None = None
) -> tuple[list[Group], SkippedRows]:
    """Read groups of two or more wordings separated by tabs; repeated wordings count once.

    Bad rows as in `read_pairs`; an empty column between others is left out without making the row bad.
    """
    groups: list[Group] = []
    bad = SkippedRows(path, on_bad, PAIRS_REMEDY, given)
    rows = table_rows(bad)
    if has_names(bad.format.form) and next(rows, None) is not None:
        bad.add_note(f"{describe_header(bad)}; every column is a wording")
    for number, values, why in rows:
        if why or len(values) == 1:
            bad.add(number, why or "one column")
        else:
            _keep([value for value in values if value], number, groups, bad)
    return groups, bad


def read_ppdb(
    path: Path, *, on_bad: OnBad = "skip", given: TableFormat | None = None
) -> tuple[list[Group], SkippedRows]:
    """Read groups of two from PPDB rows `LHS ||| phrase ||| paraphrase ||| features ||| alignment ||| entailment`.

    Three fields are enough (PPDB 1.0 has no entailment). Bad rows as in `read_pairs`.
    """
    groups: list[Group] = []
    bad = SkippedRows(path, on_bad, _PPDB_REMEDY, given)
    for number, text, why in read_lines(path, bad.encoding):
        fields = [field.strip() for field in text.split(_PPDB_SEPARATOR)]
        if why or len(fields) < 3:
            bad.add(number, why or "fewer than three fields")
        else:
            _keep(fields[1:3], number, groups, bad)
    return groups, bad


def read_paraphrases(
    path: Path, *, layout: FileLayout | None = None, on_bad: OnBad = "skip", given: TableFormat | None = None
) -> tuple[list[Group], SkippedRows]:
    """Read groups of any layout; without `layout`, `*.groups.tsv`, plain or compressed, are groups and all else pairs.

    Raises:
        InputError: The file is missing or holds no usable row.
    """
    if layout is None:
        plain_name = path.name.removesuffix(".gz").removesuffix(".zst")
        layout = "groups" if plain_name.endswith(".groups.tsv") else "pairs"
    groups, bad = _READERS[layout](path, on_bad=on_bad, given=given)
    bad.require(groups, layout)
    return groups, bad


def _keep(columns: list[str], number: int, groups: list[Group], bad: SkippedRows) -> None:
    if not columns or "" in columns:
        bad.add(number, "an empty side")
        return
    wordings = tuple(dict.fromkeys(columns))
    if len(wordings) < 2:
        bad.add(number, "identical sides")
        return
    groups.append(wordings)


_READERS = {"pairs": read_pairs, "groups": read_groups, "ppdb": read_ppdb}


# Rows by which a file is found to hold labels.


class LabeledPairs(NamedTuple):
    """Texts `left` and `right`, and labels float64[n]: 0 and 1 if `binary`, else scores of any range."""

    left: list[str]
    right: list[str]
    labels: npt.NDArray[np.float64]
    binary: bool


def read_labeled_pairs(
    path: Path, *, on_bad: OnBad = "skip", given: TableFormat | None = None
) -> tuple[LabeledPairs, SkippedRows]:
    """Read labeled pairs; the labels are binary where those of the first hundred rows are 0 or 1.

    Bad rows (too few columns, an empty side, not UTF-8, longer than 16 MiB) are skipped and counted, or refused.

    Raises:
        InputError: At the line: a label that is no number, or another than 0 and 1 where they are binary; and
            for a file without labels.
    """
    bad = SkippedRows(path, on_bad, PAIRS_REMEDY, given)
    chosen, rows = choose_columns(table_rows(bad), bad, LEFT, RIGHT, labels=True)
    if chosen.score is None:
        raise InputError(f"{shorten_path(path)}: no column of labels; write 0, 1 or a score behind the two texts")
    left, right, labels = [], [], []
    for number, values, why in rows:
        if why or len(values) <= max(*chosen.wanted, chosen.score):
            bad.add(number, why or describe_missing(values, chosen))
            continue
        left_text, right_text = (values[place] for place in chosen.wanted)
        if not left_text or not right_text:
            bad.add(number, "an empty side")
            continue
        labels.append(_label(values[chosen.score], f"{shorten_path(path)} line {number}", binary=chosen.zero_is_not))
        left.append(left_text)
        right.append(right_text)
    return LabeledPairs(left, right, np.array(labels, np.float64), chosen.zero_is_not), bad


def _label(value: str, where: str, *, binary: bool) -> float:
    number = float(value) if is_number(value) else float("nan")
    if binary and number not in (0, 1):
        raise InputError(f"{where}: the label is {value[:40]!r}, and others are 0 or 1; fix it, or call fit-pairs")
    if not np.isfinite(number):
        raise InputError(f"{where}: the label is {value[:40]!r}, which is not a number; fix it, or call fit-pairs")
    return number
