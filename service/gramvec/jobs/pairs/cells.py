"""One cell, read as what it may be: a number with a unit, a date, a phone, an e-mail, a code, or words."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from decimal import Decimal

import numpy as np

from gramvec.jobs.pairs.companies import LEGAL
from gramvec.jobs.pairs.dates import Date, read_compact_date, read_date
from gramvec.jobs.pairs.numbers import RUN, CellStyle, read_number
from gramvec.jobs.pairs.people import GENDERS, TITLES, generation_of
from gramvec.jobs.pairs.units import NO_UNIT, Unit, read_unit
from gramvec.jobs.pairs.words import find_tokens

EMPTY, NUMBER, DATE, PHONE, EMAIL, CODE, TEXT = range(7)
KINDS = 7
# Characters of a cell that may be something else than words; words of a name in which first names are
# looked for, and that may be initials.
MAX_CELL, MAX_NAME, MAX_SHORTS = 64, 6, 4
# Digits of a phone; a number of more is a code.
PHONE_DIGITS = range(7, 16)
NO_HOUSE = -1
_NO_KEYS = ("", "", "", "")
_ONE = Unit(NO_UNIT, Decimal(1))
_has_digit = re.compile(r"\d").search
# A space that is not between two numbers.
_space = re.compile(r"(?<!\d) | (?![\d-])").sub
_email = re.compile(r"(?:mailto:)?([^\s@]+)@([^\s@]+\.[^\s@.]{2,})").fullmatch
_measure = re.compile(
    r"(?P<sign>[-+]?)\s?(?P<front>us\$|[$€£¥₹₽]|usd|eur|gbp|chf|inr|jpy|pln|rs\.?)?\s?(?P<minus>-?)"
    rf"(?P<run>{RUN})\s?(?P<unit>[^\W\d_]{{1,12}}[23]?\.?|us\$|fl\.? ?oz\.?|[%°$€£¥₹₽\"]|''?|°[cf])?"
).fullmatch
_exponent = re.compile(r"[-+]?(?:\d+\.\d+e[-+]?|\d+e[-+])\d{1,2}").fullmatch
_gap = re.compile(r"(?<=\d)[ '](?=\d{3}(?!\d))")
_gapped = re.compile(
    r"[-+]?(?:[^\W\d_]{0,3}|[$€£¥₹₽]) ?\d{1,3}(?:[ ']\d{3})+(?:[.,]\d+)?(?: ?[^\W\d_]{1,12}| ?[%$€£¥₹₽])?"
).fullmatch
_phone = re.compile(
    r"(?:tel|phone|fon|mobil|fax|t|p)?[.:]?\s?(?P<number>\+?[\d\s()./-]{6,24}\d\)?)(?:\s?(?:x|ext\.?)\s?\d{1,5})?"
).fullmatch
_code = re.compile(r"[^\W_]+(?:[-_./ #][^\W_]+){0,6}").fullmatch
_separator = re.compile(r"[-_./ #]").split
_digits = re.compile(r"\d+").findall
_house = re.compile(r"0*(\d{1,5})[ -]?([^\W\d_])?").fullmatch


@dataclass(slots=True)
class Cell:
    """A value as it is read: what it is, and all that is compared.

    Attributes:
        kind: EMPTY, NUMBER, DATE, PHONE, EMAIL, CODE or TEXT.
        text: its words as letters are compared, without legal forms, titles and generations; a code's letters and
            digits, an e-mail's name.
        in_order: its words in order of letters; "" for one word.
        keys: its tokens, its words in order of letters, those without single letters, and what else it is known by: an
            e-mail's domain, a phone's digits with its extension, or the letters and digits of words and codes; "" for
            none.
        number: its number in the smallest unit of its kind; NaN for none.
        written: the same without its unit.
        step: what the last written decimal place is worth.
        unit: the kind of the unit; 0 for none.
        day: its date.
        digits: of a phone, without zeros in front; 0 for none.
        house: a house's number, -1 for none, and the code point of the letter behind it, 0 for none.
        generation: see `people`; 0 for none.
        marks: numbers inside of a text.
        initials: single letters beside words.
        genders: see `people`.
        shorts: of a name each word with the first letters of the others: "a robinson" of Ashleigh Robinson.
        is_whole: whether it is digits alone, which may be a number, a code, a date or a phone.
        is_lettered: whether it is a whole number and letters, which may be a unit or of a code.
        is_dashed: whether it may be a phone, a code such as 12345-6789, or a number such as 1 234 567.
    """

    kind: int = TEXT
    text: str = ""
    in_order: str = ""
    keys: tuple[str, str, str, str] = _NO_KEYS
    number: float = np.nan
    written: float = np.nan
    step: float = 0.0
    unit: int = NO_UNIT
    day: Date | None = None
    digits: int = 0
    house: tuple[int, int] = (NO_HOUSE, 0)
    generation: int = 0
    marks: list[str] = field(default_factory=list)
    initials: list[str] = field(default_factory=list)
    genders: list[str] = field(default_factory=list)
    shorts: list[str] = field(default_factory=list)
    is_whole: bool = False
    is_lettered: bool = False
    is_dashed: bool = False


def read_cell(text: str, style: CellStyle) -> Cell:
    """Read a folded text.

    Args:
        text: see `tokens.fold_text`; white space is single spaces.
        style: how its column writes numbers and dates.
    """
    if len(text) <= MAX_CELL:
        if "@" in text and (parts := _email(text)):
            return Cell(EMAIL, parts[1], keys=("", "", "", parts[2]), marks=_digits(parts[1]))
        if text.isdecimal():
            return _read_digits(text)
        if _has_digit(text):
            for read in (_read_measure, _read_day, _read_phone, _read_code):
                if (cell := read(text, style)) is not None:
                    return cell
    return _read_words(text, style)


def make_code(cell: Cell, text: str) -> None:
    """Make a cell a code: its letters and digits, without zeros in front of digits alone."""
    plain = "".join(filter(str.isalnum, text))
    cell.kind = CODE
    cell.text = (plain.lstrip("0") or "0") if plain.isdecimal() else plain
    cell.keys = ("", "", "", cell.text)


def _read_digits(text: str) -> Cell:
    """Return a cell of digits alone: a code, unless its column says else."""
    cell = Cell(is_whole=True, house=_read_house(text))
    make_code(cell, text)
    if len(text) <= PHONE_DIGITS[-1]:
        cell.number = cell.written = float(text)
        cell.step = 1.0
        cell.digits = int(text) if len(cell.text) in PHONE_DIGITS else 0
    if len(text) == 8:
        cell.day = read_compact_date(text)
    elif len(text) == 4 and "1000" <= text <= "2199":
        cell.day = Date(int(text))
    return cell


def _read_house(text: str) -> tuple[int, int]:
    parts = _house(text)
    return (int(parts[1]), ord(parts[2]) if parts[2] else 0) if parts else (NO_HOUSE, 0)


def _read_measure(text: str, style: CellStyle) -> Cell | None:
    """Return a number with or without a unit, None for anything else."""
    if "e" in text and _exponent(text):
        return Cell(NUMBER, text, number=float(text), written=float(text))
    plain = _gap.sub("", text) if (" " in text or "'" in text) and _gapped(text) else text
    parts = _measure(plain)
    number = read_number(parts["run"], comma=style.comma) if parts else None
    if parts is None or number is None or len(number.text) > PHONE_DIGITS[-1]:
        return None
    name = (parts["unit"] or parts["front"] or "").replace(" ", "")
    unit = (read_unit(name) or read_unit(name.rstrip("."))) if name else _ONE
    is_plain = parts["run"].isdecimal()
    if unit is None or (is_plain and not name and parts["sign"] != "-" and len(parts["run"]) in PHONE_DIGITS):
        # +4930123456 and 030 123 456 are phones.
        return None
    value = Decimal(number.text) * (-1 if parts["sign"] == "-" or parts["minus"] else 1)
    return Cell(
        NUMBER, text, number=float(value * unit.factor) + 0.0, written=float(value) + 0.0,
        step=float(Decimal(1).scaleb(-number.places) * unit.factor), unit=unit.kind, house=_read_house(text),
        is_lettered=is_plain and not parts["front"] and name.isalpha(),
    )  # fmt: skip


def _read_day(text: str, style: CellStyle) -> Cell | None:
    day = read_date(text, style.dates)
    return None if day is None else Cell(DATE, text, day=day)


def _read_phone(text: str, style: CellStyle) -> Cell | None:
    parts = _phone(text)
    if parts is None:
        return None
    # A zero in parentheses is left out behind the country's number.
    digits = "".join(filter(str.isdecimal, parts["number"].replace("(0)", ""))).lstrip("0")
    if len(digits) not in PHONE_DIGITS:
        return None
    whole = "".join(filter(str.isdecimal, text)).lstrip("0")
    return Cell(PHONE, digits, keys=("", "", "", whole), digits=int(digits), is_dashed=not set(text) & set("+(./tpfm"))


def _read_code(text: str, style: CellStyle) -> Cell | None:
    """Return a code: SW1A 1AA, INV-1001, 14a. No 7 is words."""
    if _code(text) is None:
        return None
    parts = _separator(text)
    has_digits = [_has_digit(part) is not None for part in parts]
    if (" " in text and not has_digits[0]) or any(
        len(part) > 3 and not has for part, has in zip(parts, has_digits, strict=True)
    ):
        return None
    cell = Cell(house=_read_house(text))
    make_code(cell, text)
    return cell


def _read_words(text: str, style: CellStyle) -> Cell:
    tokens = words = find_tokens(text, style)
    generation = 0
    if len(tokens) > 1:
        generation = generation_of(tokens)
        words = tokens[:-1] if generation else tokens
        words = [word for word in words if word not in LEGAL and word not in TITLES] or tokens
    plain = " ".join(words)
    cell = Cell(TEXT, plain, generation=generation)
    long = words
    if len(words) > 1:
        cell.initials = [word for word in words if word[0].isalpha() and len(word.rstrip("+-#")) == 1]
        if cell.initials:
            long = [word for word in words if word not in cell.initials]
    if _has_digit(plain):
        cell.marks = [word.lstrip("0") or "0" for word in words if _has_digit(word)]
    elif 1 < len(words) <= MAX_SHORTS:
        firsts = [word[0] for word in words]
        cell.shorts = [
            f"{''.join(sorted(firsts[:at] + firsts[at + 1 :]))} {word}"
            for at, word in enumerate(words)
            if len(word) > 1
        ]
    if len(words) <= MAX_NAME:
        cell.genders = [mark for word in words for mark in GENDERS.get(word, ())]
    in_order = " ".join(sorted(words))
    if len(words) > 1:
        cell.in_order = in_order
    closed = _space("", f"{plain} {tokens[-1]}" if generation else plain)
    cell.keys = (" ".join(tokens), in_order, " ".join(sorted(long)) if long is not words else in_order, closed)
    return cell
