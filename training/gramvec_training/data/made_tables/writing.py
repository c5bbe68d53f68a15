"""How values are written: by the habits of a table, and with what goes wrong in one record."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date
from decimal import Decimal
from random import Random
from typing import Any

from gramvec_training.data.made_tables import slips
from gramvec_training.data.made_tables.lexicon import LEXICON
from gramvec_training.data.made_tables.styles import DATES, PHONES, Style

Write = Callable[[Any, Style, Random, float], str]
_SHORT: dict[str, list[str]] = {}
for _row in LEXICON["writing"]["short"]:
    if "=" in _row:
        _long, _short = _row.split("=")
        _SHORT.setdefault(_long.strip(), []).append(_short.strip())
_WORD = re.compile(r"[^\W\d_]+")
_MINOR = ("new", "old", "ca.", "nr", "the", "ref", "*", "(alt)", "(neu)", "tbc", "etc", "see notes", "copy")


def dress(text: str, style: Style, drawn: Random) -> str:
    """Return a text in a table's case, alphabet and length."""
    if style.latin:
        text = slips.to_latin(text)
    if style.plain:
        text = slips.write_umlauts_out(text) if drawn.random() < 0.3 else slips.strip_marks(text)
    if style.case == "upper":
        text = text.upper()
    elif style.case == "lower":
        text = text.lower()
    elif style.case == "title":
        text = text.title()
    if style.limit and len(text) > style.limit:
        text = text[: style.limit].rstrip()
    return text


def shorten(text: str, share: float, drawn: Random) -> str:
    """Return a text in which a share of the words that have an abbreviation are abbreviated."""

    def one(match: re.Match[str]) -> str:
        known = _SHORT.get(match[0].lower())
        return drawn.choice(known) if known and drawn.random() < share else match[0]

    return _WORD.sub(one, text)


def write_text(value: Any, style: Style, drawn: Random, noise: float) -> str:
    """Return some words: slips, other order, other marks, a word less or more."""
    text = shorten(str(value), style.short, drawn)
    for chance, way in (
        (0.22, slips.slip), (0.04, slips.slip), (0.05, slips.move_word), (0.06, slips.lose_word),
        (0.06, slips.split_or_join), (0.05, slips.initial_of_word), (0.08, slips.change_marks), (0.05, _shorten_all),
        (0.02, _add_word), (0.02, cut),
    ):  # fmt: skip
        if drawn.random() < chance * noise:
            text = way(text, drawn)
    text = dress(text, style, drawn)
    return slips.change_case(text, drawn) if drawn.random() < 0.06 * noise else text


def write_identity(text: str, style: Style, drawn: Random, noise: float) -> str:
    """Return a text of which every word may tell it from others: slips and other marks, nothing cut or lost."""
    text = shorten(text, style.short, drawn)
    for chance, way in (
        (0.2, slips.slip), (0.05, slips.split_or_join), (0.06, slips.change_marks), (0.05, _shorten_all),
    ):  # fmt: skip
        if drawn.random() < chance * noise:
            text = way(text, drawn)
    text = dress(text, style._replace(limit=0), drawn)
    return slips.change_case(text, drawn) if drawn.random() < 0.06 * noise else text


def _shorten_all(text: str, drawn: Random) -> str:
    return shorten(text, 1.0, drawn)


def _add_word(text: str, drawn: Random) -> str:
    return f"{text} {drawn.choice(_MINOR)}" if drawn.random() < 0.7 else f"{drawn.choice(_MINOR)} {text}"


def cut(text: str, drawn: Random, least: float = 0.5) -> str:
    """Return the beginning of a text: at least a part of it, and eight letters."""
    return text[: max(8, int(len(text) * drawn.uniform(least, 0.9)))].rstrip()


def write_code(value: Any, style: Style, drawn: Random, noise: float) -> str:
    """Return an identifier: rarely a digit is wrong; its groups may stand apart or not."""
    text = str(value)
    if drawn.random() < 0.05 * noise:
        text = slips.slip_digit(text, drawn)
    if drawn.random() < 0.15 * noise:
        text = re.sub(r"[-/. ]", drawn.choice(("", " ", "-")), text)
    if drawn.random() < 0.04 * noise:
        text = text.lstrip("0") or text
    return text.lower() if style.case == "lower" else text


def write_plain(value: Any, style: Style, drawn: Random, noise: float) -> str:
    """Return a word of a column that many rows share, such as a state, in a table's case."""
    text = str(value)
    if drawn.random() < 0.06 * noise:
        text = slips.slip(text, drawn)
    return dress(text, style, drawn)


def write_date(value: date, style: Style, drawn: Random, noise: float) -> str:
    """Return a date in the table's form, rarely in another, with day and month swapped, or another digit."""
    if drawn.random() < 0.05 * noise and value.day <= 12:
        value = value.replace(month=value.day, day=value.month)
    elif drawn.random() < 0.05 * noise:
        value = value.replace(day=drawn.randint(1, 28))
    elif drawn.random() < 0.02 * noise:
        value = value.replace(year=value.year + drawn.choice((-10, -1, 1, 10)), day=min(value.day, 28))
    form = drawn.choice(DATES) if drawn.random() < 0.05 * noise else style.date
    return value.strftime(form)


def write_year(value: Any, style: Style, drawn: Random, noise: float) -> str:
    """Return a year, rarely the one beside it, or of two digits."""
    year = int(value)
    if drawn.random() < 0.06 * noise:
        year += drawn.choice((-1, 1))
    return f"'{year % 100:02d}" if drawn.random() < 0.02 * noise else str(year)


def write_number(value: Decimal, style: Style, drawn: Random, noise: float) -> str:
    """Return a number: point or comma, thousands apart or not, zeros behind or none."""
    text = f"{value:,f}" if style.thousands else f"{value:f}"
    if "." in text and drawn.random() < 0.3:
        text = text.rstrip("0").rstrip(".")
    elif "." not in text and drawn.random() < 0.15:
        text += ".00"
    if style.comma:
        text = text.translate(str.maketrans(".,", ",."))
    if drawn.random() < 0.02 * noise:
        text = slips.slip_digit(text, drawn)
    return text


def write_amount(value: Decimal, style: Style, drawn: Random, noise: float) -> str:
    """Return an amount of money, at times with its currency."""
    text = write_number(value, style, drawn, noise)
    way = drawn.random()
    return f"{text} EUR" if way < 0.04 * noise else f"${text}" if way < 0.06 * noise else text


def write_quantity(value: tuple[Decimal, str], style: Style, drawn: Random, noise: float) -> str:
    """Return a number with its unit, apart or not."""
    number, unit = value
    text = f"{number.normalize():f}"
    if style.comma and drawn.random() < 0.7:
        text = text.replace(".", ",")
    apart = style.space if drawn.random() > 0.2 * noise else not style.space
    unit = unit.upper() if style.case == "upper" else unit
    return f"{text} {unit}" if apart and unit else f"{text}{unit}"


def write_phone(value: tuple[str, str, str], style: Style, drawn: Random, noise: float) -> str:
    """Return a phone number in the table's form, or in another; with an extension, or a digit wrong."""
    form = drawn.choice(PHONES) if drawn.random() < 0.35 * noise else style.phone
    country, area, number = value
    if drawn.random() < 0.04 * noise:
        number = slips.slip_digit(number, drawn)
    half = len(number) // 2
    text = {
        "international": f"+{country} {area} {number}",
        "national": f"0{area} {number}",
        "digits": f"0{area}{number}",
        "spaces": f"0{area} {number[:half]} {number[half:]}",
        "hyphens": f"{area}-{number[:half]}-{number[half:]}",
        "parentheses": f"({area}) {number[:half]}-{number[half:]}",
        "double zero": f"00{country}{area}{number}",
    }[form]
    return f"{text} ext. {drawn.randint(1, 99)}" if drawn.random() < 0.02 * noise else text


def write_email(value: str, style: Style, drawn: Random, noise: float) -> str:
    """Return an address of mail, rarely with a slip."""
    if drawn.random() < 0.05 * noise:
        name, _, host = value.partition("@")
        value = f"{slips.slip_word(name, drawn)}@{host}"
    return value.upper() if style.case == "upper" and drawn.random() < 0.5 else value


def write_address(value: tuple[str, str, str], style: Style, drawn: Random, noise: float) -> str:
    """Return street, number and flat: abbreviated, a slip, the number in front or behind, the flat left out."""
    street, number, flat = value
    street = shorten(street, max(style.short, 0.25 * noise), drawn)
    if drawn.random() < 0.12 * noise:
        street = slips.slip(street, drawn)
    if drawn.random() < 0.02 * noise:
        number = slips.slip_digit(number, drawn)
    if number and number[-1:].isalpha() and drawn.random() < 0.3 * noise:
        number = f"{number[:-1]} {drawn.choice((number[-1].upper(), number[-1].lower()))}"
    text = f"{street} {number}".strip()
    if (
        re.match(r"^[A-Za-z' ]+(Street|St\.?|Road|Rd|Avenue|Ave\.?|Lane|Ln|Drive|Dr|Way|Close|\w+s)$", street)
        and number
    ):
        text = f"{number} {street}"
    if flat and drawn.random() > 0.15 * noise:
        text = f"{text}{drawn.choice((' ', ', ', ' / ') if drawn.random() < noise else (', ',))}{flat}"
    return dress(text, style, drawn)
