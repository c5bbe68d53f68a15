"""Compared columns as people name them: COLUMN, COLUMN=OTHER, COLUMN:WEIGHT, pairs, lists and mappings of these."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from gramvec.errors import InputError, quote

# The name of the column of texts that are in no table, and of the one that is compared where none is named.
TEXT = "text"
# A = with the backslashes before it.
_EQUALS = re.compile(r"(?<!\\)(\\*)=")


class ComparedColumn(NamedTuple):
    """Column that is compared: its names in the left and the right table, and its weight (above 0)."""

    left: str
    right: str
    weight: float = 1.0

    def __str__(self) -> str:
        """Return the column as `parse_column` reads it."""
        left, right = (_EQUALS.sub(r"\1\1\\=", name) for name in self[:2])
        at_end = left[len(left.rstrip("\\")) :]  # before the = that parts both names they count in pairs, too
        name = left if left == right else f"{left}{at_end}={right}"
        return f"{name}:{self.weight:g}" if ":" in name or self.weight != 1 else name


# What names compared columns in a program; the first is what the command takes.
On = str | Sequence[str | Sequence[Any]] | Mapping[str, float]


def parse_on(on: On) -> tuple[ComparedColumn, ...]:
    """Return the compared columns.

    Args:
        on: one or more of COLUMN, COLUMN=OTHER, COLUMN:WEIGHT, COLUMN=OTHER:WEIGHT and (left, right) or (left, right,
            weight); or a mapping of COLUMN or COLUMN=OTHER to weights.

    Raises:
        InputError: it is none of these.
    """
    if isinstance(on, Mapping):
        names = ((*split_both("on", str(name)), weight) for name, weight in on.items())
        columns = [ComparedColumn(left or "", right or "", weight) for left, right, weight in names]
    elif isinstance(on, str):
        columns = [parse_column(on)]
    elif isinstance(on, Iterable):
        columns = [parse_column(one) if isinstance(one, str) else _pair_columns(one) for one in on]
    else:
        raise InputError(f"on: must name columns, got {type(on).__name__}", field="on")
    for column in columns:
        if not isinstance(column.weight, int | float) or not 0 < column.weight < float("inf"):
            raise InputError(
                f"on: the weight of {quote(column.left)} must be above 0, got {quote(column.weight)}", field="on"
            )
    return tuple(columns)


def pair_on(left_on: str | Sequence[str] | None, right_on: str | Sequence[str] | None) -> tuple[ComparedColumn, ...]:
    """Return the compared columns that the two tables call differently, as pandas has it; names are taken as they are.

    Raises InputError where one of both is missing, or has fewer columns than the other.
    """
    left, right = ([names] if isinstance(names, str) else [*(names or ())] for names in (left_on, right_on))
    if len(left) != len(right):
        missing = "left_on" if len(left) < len(right) else "right_on"
        raise InputError(
            f"{missing}: must name as many columns as the other, got {min(len(left), len(right))} of"
            f" {max(len(left), len(right))}", field=missing,
        )  # fmt: skip
    return tuple(ComparedColumn(*names) for names in zip(left, right, strict=True))


def parse_column(value: str) -> ComparedColumn:
    """Return the column that COLUMN, COLUMN=OTHER, COLUMN:WEIGHT or COLUMN=OTHER:WEIGHT names.

    Raises InputError for anything else.
    """
    names, colon, weight = value.rpartition(":")
    try:
        number = float(weight) if colon else 1.0
    except ValueError:  # a column's name may have a colon
        names, colon, number = value, "", 1.0
    left, right = split_names(names if colon else value)
    if not left or right == "" or not 0 < number < float("inf"):
        raise InputError(f"{value!r}: is not COLUMN, COLUMN=OTHER or COLUMN:WEIGHT with a weight above 0", field="on")
    return ComparedColumn(left, right or left, number)


def _pair_columns(value: Sequence[Any]) -> ComparedColumn:
    """Return the column of (left, right) or (left, right, weight). Raises InputError for anything else."""
    if isinstance(value, ComparedColumn):
        return value
    names = isinstance(value, Sequence) and 2 <= len(value) <= 3 and all(isinstance(name, str) for name in value[:2])
    if not names:
        raise InputError("on: must be a name, or (left, right) or (left, right, weight)", field="on")
    return ComparedColumn(*value)


def split_names(value: str) -> tuple[str, str | None]:
    r"""Return both names of LEFT=RIGHT, None for a second that is not there.

    Before a = backslashes count in pairs: \= is a = in a name, \\= ends a name with a backslash.
    """
    names, start = [""], 0
    for equals in _EQUALS.finditer(value):
        pairs, odd = divmod(len(equals[1]), 2)
        names[-1] += value[start : equals.start()] + "\\" * pairs
        start = equals.end()
        if odd or len(names) == 2:
            names[-1] += "="
        else:
            names.append("")
    names[-1] += value[start:]
    return names[0], names[1] if len(names) == 2 else None


def split_both(field: str, value: str | None) -> tuple[str | None, str | None]:
    """Return the names that NAME or NAME=OTHER has for the left and the right table; None twice for None.

    Raises InputError for anything else.
    """
    if value is None or not value:
        return None, None
    left, right = split_names(value)
    if not left or right == "":
        raise InputError(f"{field}: must be COLUMN or COLUMN=OTHER, got {value!r}", field=field)
    return left, right or left
