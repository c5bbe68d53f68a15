"""Numbers in texts, by value: 2.50, 2,5 and 2 1/2 are one number; 2.5 and 25 are two, and so are -20 and 20.

A dot or comma before three digits may separate thousands or decimals: a column's other numbers tell. All texts are
folded (`tokens.fold_text`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from gramvec.jobs.pairs.dates import DateOrder, read_numeric_date

# Digits and separators of one number or date; longer runs are read as their digits.
MAX_RUN = 32
# A run of digits with single separators inside; in front a whole number before a fraction.
RUN = r"(?:\d{1,4} (?=\d{1,2}/\d{1,2}(?![\d/])))?\.?\d+(?:[.,/-]\d+)*"
_FRACTION = re.compile(r"(?:(\d{1,4})[ -])?(\d{1,2})/([2345689]|10|12|16|32|64)")
_SEPARATORS = re.compile(r"[^\d]+")
_DECIMAL_COMMA = re.compile(r"(?<![\d.,])(?:0,\d+|\d{1,3}(?:\.\d{3})*,(?:\d\d?|\d{4,}))(?![\d.,/-])")
_DECIMAL_POINT = re.compile(r"(?<![\d.,])(?:0\.\d+|\d{1,3}(?:,\d{3})*\.(?:\d\d?|\d{4,}))(?![\d.,/-])")


class CellStyle(NamedTuple):
    """How a column writes what can be read in two ways.

    Attributes:
        comma: whether a comma is the decimal mark, and a dot separates thousands.
        dates: whether the day or the month comes first in 01/02/2020.
    """

    comma: bool = False
    dates: DateOrder = DateOrder.DAY_FIRST


class ReadNumber(NamedTuple):
    """A number without a sign: its digits and point, without zeros that say nothing, and its written decimal places."""

    text: str
    places: int


def has_decimal_comma(texts: Iterable[str]) -> bool:
    """Return whether more texts have a decimal comma that can be nothing else than have such a decimal point."""
    commas = points = 0
    for text in texts:
        commas += "," in text and _DECIMAL_COMMA.search(text) is not None
        points += "." in text and _DECIMAL_POINT.search(text) is not None
    return commas > points


def read_number(run: str, *, comma: bool) -> ReadNumber | None:
    """Return the number that a run of digits and separators is; None if it is several, or something else.

    Args:
        run: matches RUN.
        comma: see `CellStyle`.
    """
    if run.isdecimal():
        return ReadNumber(run, 0)
    if len(run) > MAX_RUN:
        return None
    if "/" in run:
        return _read_fraction(run)
    if "-" in run or " " in run:
        return None
    head, *groups = re.split("[.,]", run)
    marks = [mark for mark in run if not mark.isdecimal()]
    last = marks[-1]
    if len(marks) == 1:
        # 0.123, 1234.567 and .123 are no thousands.
        grouped = len(groups[0]) == 3 and 1 <= len(head) <= 3 and head[0] != "0"
        return (
            _join(head + groups[0], 0)
            if grouped and (last == ",") != comma
            else _join(head + groups[0], len(groups[0]))
        )
    if not 1 <= len(head) <= 3 or any(len(group) != 3 for group in groups[:-1]) or len({*marks[:-1]}) > 1:
        return None
    if last == marks[0]:
        return _join("".join([head, *groups]), 0) if len(groups[-1]) == 3 else None
    return _join("".join([head, *groups]), len(groups[-1]))


def _read_fraction(run: str) -> ReadNumber | None:
    parts = _FRACTION.fullmatch(run)
    if parts is None:
        return None
    whole, over, under = int(parts[1] or 0), int(parts[2]), int(parts[3])
    if not 0 < over < under:
        return None
    millionths = round((whole + over / under) * 10**6)
    return _join(str(millionths).rjust(7, "0"), 6)


def _join(digits: str, places: int) -> ReadNumber:
    """Return the number of digits of which the last `places` are decimals."""
    whole = digits[: len(digits) - places].lstrip("0") or "0"
    decimals = digits[len(digits) - places :].rstrip("0") if places else ""
    return ReadNumber(f"{whole}.{decimals}" if decimals else whole, places)


def spell_run(run: str, style: CellStyle) -> str:
    """Return a run as tokens with spaces between: a number or a date by its value, else each of its numbers."""
    if run.isdecimal():
        return run
    number = read_number(run, comma=style.comma)
    if number is not None:
        return number.text
    if len(run) <= MAX_RUN:
        date = read_numeric_date(run, style.dates)
        if date is not None and date.is_full:
            return date.digits
        if "/" in run or "-" in run:
            # 1-3/4 has been read above; 10.5/2.5 and 1,5-2,5 are two numbers.
            parts = [read_number(part, comma=style.comma) for part in re.split("[/ -]", run) if part]
            if all(part is not None for part in parts):
                return " ".join(part.text for part in parts if part is not None)
    return _SEPARATORS.sub(" ", run)
