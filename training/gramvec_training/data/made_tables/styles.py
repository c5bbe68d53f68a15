"""Habits of a table: case, alphabet, order of names, forms of dates, numbers and phones, what is missing."""

from __future__ import annotations

from random import Random
from typing import NamedTuple

MISSING = (
    "",
    "N/A",
    "n/a",
    "NA",
    "-",
    "--",
    "unknown",
    "none",
    "NULL",
    "null",
    "?",
    "not available",
    "k.A.",
    "нет",
    "不明",
)
_MISSING = {text.casefold() for text in MISSING}
DATES = ("%Y-%m-%d", "%d.%m.%Y", "%m/%d/%Y", "%d %b %Y", "%d/%m/%Y", "%Y%m%d", "%b %d, %Y", "%-d.%-m.%y", "%B %-d, %Y")
PHONES = ("international", "national", "digits", "spaces", "hyphens", "parentheses", "double zero")
NAME_ORDERS = ("first last", "first last", "last, first", "last first")


class Style(NamedTuple):
    """The habits of one table.

    Attributes:
        case: "", "upper", "lower" or "title".
        plain: whether marks over letters are lost.
        latin: whether other alphabets are written in Latin letters.
        date: a form of strftime.
        phone: one of `PHONES`.
        order: one of `NAME_ORDERS`.
        comma: whether a comma stands before the fraction of a number.
        thousands: whether thousands are set apart.
        short: share of words that are abbreviated where an abbreviation is known.
        space: whether a unit stands apart from its number.
        missing: what stands in an empty cell.
        limit: letters that a cell holds, or 0.
        habit: a number; which of several ways, and which order of parts, the table has.
    """

    case: str
    plain: bool
    latin: bool
    date: str
    phone: str
    order: str
    comma: bool
    thousands: bool
    short: float
    space: bool
    missing: str
    limit: int
    habit: int


PLAIN = Style("", False, False, DATES[0], PHONES[0], NAME_ORDERS[0], False, False, 0.0, False, "", 0, 0)


def draw_style(drawn: Random) -> Style:
    """Return habits by chance, the plain ones more often."""
    return Style(
        case=drawn.choice(("", "", "", "", "upper", "lower", "title")),
        plain=drawn.random() < 0.2,
        latin=drawn.random() < 0.12,
        date=drawn.choice(DATES),
        phone=drawn.choice(PHONES),
        order=drawn.choice(NAME_ORDERS),
        comma=drawn.random() < 0.3,
        thousands=drawn.random() < 0.25,
        short=drawn.choice((0.0, 0.0, 0.3, 0.9)),
        space=drawn.random() < 0.6,
        missing="" if drawn.random() < 0.6 else drawn.choice(MISSING),
        limit=drawn.choice((24, 32, 40)) if drawn.random() < 0.12 else 0,
        habit=drawn.randrange(1, 1 << 20),
    )


def is_missing(text: str) -> bool:
    """Return whether a cell says nothing."""
    return text.strip().casefold() in _MISSING
