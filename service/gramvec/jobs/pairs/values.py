"""Cells of a column, read once as what they are: numbers, dates, phones, e-mails, codes, texts, or nothing.

What a cell is, its column's other cells decide where it may be several things: 19990101 is a day among days, 1.234 is
a thousand among prices such as 12,50, NA is Namibia among codes of two letters. Nothing else about a column counts,
neither its name nor its place. `gramvec.jobs.pairs.levels` compares what was read.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gramvec.jobs.pairs.companies import FORMS, UNSPACED
from gramvec.jobs.pairs.dates import Date, date_order, read_compact_date, read_date
from gramvec.jobs.pairs.empties import find_empty
from gramvec.jobs.pairs.jaro import pack_texts
from gramvec.jobs.pairs.numbers import RUN, Style, has_decimal_comma, read_number
from gramvec.jobs.pairs.people import GENDERS, generation_of
from gramvec.jobs.pairs.tokens import fold_text
from gramvec.jobs.pairs.units import NO_UNIT, Unit, read_unit
from gramvec.jobs.pairs.words import find_tokens
from gramvec.text.arrays import Doubles, Int32s, Int64s, UInt64s

EMPTY, NUMBER, DATE, PHONE, EMAIL, CODE, TEXT = range(7)
# Characters of a cell that may be something else than a text; numbers and others marks of a text that are compared.
MAX_CELL, MAX_MARKS = 64, 6
KEYS = 5
# Digits of a phone, and of numbers that are read by value.
PHONE_DIGITS = range(7, 16)
_EMAIL = re.compile(r"(?:mailto:)?([^\s@]+)@([^\s@]+\.[^\s@.]{2,})")
_CURRENCY = r"us\$|[$€£¥₹₽]|usd|eur|gbp|chf|inr|jpy|pln|rs\.?"
_MEASURE = re.compile(
    rf"(?P<sign>[-+]?)\s?(?P<front>{_CURRENCY})?\s?(?P<minus>-?)(?P<run>{RUN})(?P<gap>\s?)"
    r"(?P<unit>[^\W\d_]{1,12}[23]?\.?|us\$|fl\.? ?oz\.?|[%°$€£¥₹₽\"]|''?|°[cf])?"
)
_EXPONENT = re.compile(r"[-+]?(?:\d+\.\d+e[-+]?|\d+e[-+])\d{1,2}")
_GAPS = re.compile(r"(?<=\d)[ '](?=\d{3}(?!\d))")
_GROUPED = re.compile(
    r"[-+]?(?:[^\W\d_]{0,3}|[$€£¥₹₽]) ?\d{1,3}(?:[ ']\d{3})+(?:[.,]\d+)?(?: ?[^\W\d_]{1,12}| ?[%$€£¥₹₽])?"
)
_PHONE = re.compile(
    r"(?:tel|phone|fon|mobil|fax|t|p)?[.:]?\s?(?:\+|00)?[\d\s()./-]{6,24}\d\)?(?:\s?(?:x|ext\.?)\s?\d{1,5})?"
)
_CODE = re.compile(r"[^\W_]+(?:[-_./ #][^\W_]+){0,6}")
_HOUSE = re.compile(r"0*(\d{1,5})[ -]?([^\W\d_])?")
_LEGAL = frozenset((*FORMS, *FORMS.values(), *UNSPACED))
_has_digit = re.compile(r"\d").search
_NO_DAY, _NO_HOUSE = 0, -1
# Share of a column's cells from which they decide what others are.
MOST = 0.5


class ColumnValues(NamedTuple):
    """Values of a column, each different one once.

    Attributes:
        of_row: int32[n], the value of each row.
        kinds: uint8[v], EMPTY, NUMBER, DATE, PHONE, EMAIL, CODE or TEXT.
        texts: uint32 and int32[v + 1]: code points of texts as letters are compared, and where each begins.
        keys: uint64[v, 5], hashes of the folded value, of its tokens, of its words in order of letters, of those
            without single letters, and of what else it is known by: of an e-mail the domain, of a code its letters and
            digits; 0 for none.
        numbers: float64[v], in the smallest unit of its kind; NaN for none.
        written: float64[v], the numbers without units.
        steps: float64[v], what the last written decimal place is worth.
        units: uint8[v], kinds of units; 0 for none.
        days: int32[v], year, month and day as eight digits; 0 for none, and zeros for an unknown day or month.
        digits: int64[v], digits of what may be a phone, without zeros in front; 0 for none.
        houses: int32[v], number of what may be of a house or flat; -1 for none.
        letters: uint32[v], the letter behind it; 0 for none.
        generations: uint8[v], see `people`; 0 for none.
        marks: uint64[v, 6], hashes of numbers inside of texts, ascending behind zeros; all ones where they are more.
        initials: uint64[v, 6], hashes of single letters inside of texts, in the same way.
        genders: uint64[v, 4], hashes of first names that have another gender's form, which differs in the last bit.
        cut: bool[v], whether a text is longer than what is compared.
    """

    of_row: Int32s
    kinds: NDArray[np.uint8]
    texts: tuple[NDArray[np.uint32], Int32s]
    keys: UInt64s
    numbers: Doubles
    written: Doubles
    steps: Doubles
    units: NDArray[np.uint8]
    days: Int32s
    digits: Int64s
    houses: Int32s
    letters: NDArray[np.uint32]
    generations: NDArray[np.uint8]
    marks: UInt64s
    initials: UInt64s
    genders: UInt64s
    cut: NDArray[np.bool_]


@dataclass
class _Cell:
    """A value as it is read: what it may be, and all that is compared."""

    kind: int = TEXT
    text: str = ""
    keys: tuple[str, str, str, str] = ("", "", "", "")  # as of ColumnValues, but for the first
    number: float = np.nan
    written: float = np.nan
    step: float = 0.0
    unit: int = NO_UNIT
    day: Date | None = None
    digits: int = 0
    house: tuple[int, int] = (_NO_HOUSE, 0)
    generation: int = 0
    marks: list[str] = field(default_factory=list)
    initials: list[str] = field(default_factory=list)
    genders: list[str] = field(default_factory=list)
    # Digits alone; digits and letters that may be a unit; digits with a dash that may be a phone: the column decides.
    is_whole: bool = False
    is_lettered: bool = False
    is_dashed: bool = False


def read_column(texts: Sequence[str]) -> ColumnValues:
    """Read the cells of a column. Linear in their characters.

    Args:
        texts: of any length, in any script; folded ones give the same.
    """
    raw: dict[str, int] = {}
    of_raw = np.array([raw.setdefault(text, len(raw)) for text in texts], np.int64)
    known: dict[str, int] = {}
    of_folded = np.array([known.setdefault(" ".join(fold_text(text).split()), len(known)) for text in raw], np.int64)
    of_row = of_folded[of_raw] if len(raw) else of_raw
    values = list(known)
    counts = np.bincount(of_row, minlength=len(values))
    empty = find_empty(values, counts)
    style = read_style(values)
    cells = [
        _Cell(EMPTY) if nothing else _read(text, style) for text, nothing in zip(values, empty.tolist(), strict=True)
    ]
    _decide(cells, values)
    return _pack(of_row.astype(np.int32), values, cells)


def read_style(texts: Sequence[str]) -> Style:
    """Return how a column of folded texts writes numbers and dates."""
    return Style(has_decimal_comma(texts), date_order(texts))


def _read(text: str, style: Style) -> _Cell:
    if len(text) > MAX_CELL:
        return _read_words(text, style)
    if "@" in text and (parts := _EMAIL.fullmatch(text)):
        cell = _read_words(text, style)
        cell.kind, cell.text = EMAIL, parts[1]
        cell.keys = (f"{parts[1]}@{parts[2]}", parts[1], "", parts[2])
        return cell
    cell = _read_words(text, style)
    if not cell.marks and not _has_digit(text):
        return cell
    _read_measure(cell, text, style)
    if " " not in text or _has_digit(text.split(" ", 1)[0]):
        # SW1A 1AA and 9423 OC are codes, No 7 is words.
        _read_code(cell, text)
    if cell.kind == NUMBER:
        return cell
    if (day := read_date(text, style.dates)) is not None:
        cell.kind, cell.day = DATE, day
    elif (digits := _phone_digits(text)) is not None:
        cell.digits, cell.text = int(digits), digits.lstrip("0")
        cell.is_dashed = not cell.is_whole and not set(text) & set("+( ./")
        if not cell.is_whole:
            cell.kind = PHONE
    elif cell.is_whole:
        cell.kind = CODE
    if cell.is_whole:
        cell.day = read_compact_date(text) or (Date(int(text)) if _is_year(text) else None)
    return cell


def _read_words(text: str, style: Style) -> _Cell:
    tokens = words = find_tokens(text, style)
    generation = 0
    if len(tokens) > 1:
        generation = generation_of(tokens)
        words = [word for word in (tokens[:-1] if generation else tokens) if word not in _LEGAL] or tokens
    plain = " ".join(words)
    cell = _Cell(TEXT, plain, generation=generation)
    long = words
    if len(words) > 1:
        cell.initials = [word for word in words if word[0].isalpha() and len(word.rstrip("+-#")) == 1]
        if cell.initials:
            long = [word for word in words if word not in cell.initials]
    if _has_digit(plain):
        cell.marks = [word.lstrip("0") or "0" for word in words if _has_digit(word)]
    if len(words) <= MAX_MARKS:
        cell.genders = [mark for word in words for mark in GENDERS.get(word, ())]
    in_order = " ".join(sorted(words))
    cell.keys = (" ".join(tokens), in_order, " ".join(sorted(long)) if long is not words else in_order, "")
    return cell


def _read_measure(cell: _Cell, text: str, style: Style) -> None:
    """Read a number with or without a unit. One of digits alone may be something else."""
    if _EXPONENT.fullmatch(text):
        cell.kind, cell.number = NUMBER, float(text)
        cell.written = cell.number
        return
    if " " in text or "'" in text:
        text = _GAPS.sub("", text) if _GROUPED.fullmatch(text) else text
    parts = _MEASURE.fullmatch(text)
    if parts is None:
        return
    number = read_number(parts["run"], comma=style.comma)
    if number is None or sum(map(str.isdecimal, number.text)) > PHONE_DIGITS[-1]:
        cell.is_whole = text.isdecimal()
        return
    name = (parts["unit"] or parts["front"] or "").replace(" ", "")
    unit = Unit(NO_UNIT, Decimal(1)) if not name else read_unit(name) or read_unit(name.rstrip("."))
    if unit is None:
        return
    is_plain = parts["run"].isdecimal()
    if is_plain and parts["sign"] == "+" and len(parts["run"]) in PHONE_DIGITS:
        return
    value = Decimal(number.text) * (-1 if parts["sign"] == "-" or parts["minus"] else 1)
    cell.written = float(value) + 0.0
    cell.number, cell.unit = float(value * unit.factor) + 0.0, unit.kind
    cell.step = float(Decimal(1).scaleb(-number.places) * unit.factor)
    cell.is_whole = text.isdecimal()
    cell.is_lettered = is_plain and not parts["front"] and name.isalpha()
    if not cell.is_whole:
        # Its currency is no token.
        cell.kind, cell.keys = NUMBER, ("", *cell.keys[1:])


def _read_code(cell: _Cell, text: str) -> None:
    if house := _HOUSE.fullmatch(text):
        cell.house = int(house[1]), ord(house[2]) if house[2] else 0
    if cell.kind == TEXT and _CODE.fullmatch(text):
        parts = re.split(r"[-_./ #]", text)
        has_digits = [_has_digit(part) is not None for part in parts]
        if all(has or len(part) <= 3 for part, has in zip(parts, has_digits, strict=True)):
            plain = "".join(parts)
            cell.kind = CODE
            cell.text = plain.lstrip("0") if plain.isdecimal() else plain
            cell.keys = (*cell.keys[:3], cell.text or "0")


def _is_year(text: str) -> bool:
    return len(text) == 4 and 1000 <= int(text) <= 2199


def _phone_digits(text: str) -> str | None:
    if _PHONE.fullmatch(text) is None:
        return None
    # A zero in parentheses is left out behind the country's number; so is what stands behind the number.
    plain = re.split(r"x|ext", text.replace("(0)", ""))[0]
    digits = "".join(filter(str.isdecimal, plain))
    return digits if len(digits.lstrip("0")) in PHONE_DIGITS else None


def _decide(cells: list[_Cell], values: list[str]) -> None:
    """Say what those are that may be several things, by the kinds of the others."""
    kinds = Counter(cell.kind for cell in cells if not cell.is_whole and not cell.is_lettered)
    others = len(cells) - kinds[EMPTY]
    for cell in cells:
        # 1234 GB is a postcode among 1234 AB; 14g a house among 14a; 12345-6789 a code among 12345.
        if (cell.is_lettered and kinds[CODE] > kinds[NUMBER]) or (cell.is_dashed and kinds[PHONE] <= MOST * others):
            _be_code(cell)
    whole = [(cell, text) for cell, text in zip(cells, values, strict=True) if cell.is_whole]
    if not whole:
        return
    kind = _kind_of_digits([text for _, text in whole], [cell for cell, _ in whole], kinds, others)
    for cell, _ in whole:
        fits = {DATE: cell.day is not None, PHONE: cell.digits > 0, NUMBER: not np.isnan(cell.number)}.get(kind, False)
        if fits:
            cell.kind = kind
        else:
            _be_code(cell)


def _be_code(cell: _Cell) -> None:
    cell.kind = CODE
    cell.text = cell.keys[0].replace(" ", "").lstrip("0")
    cell.keys = (*cell.keys[:3], cell.text or "0")


def _kind_of_digits(texts: list[str], cells: list[_Cell], kinds: Counter[int], others: int) -> int:
    """Return what a column's values of digits alone are."""
    for kind in (PHONE, DATE):
        if others and kinds[kind] > MOST * others:
            return kind
    total = len(texts)
    years = sum(1500 <= int(text) <= 2100 for text in texts if len(text) == 4)
    days = sum(cell.day is not None and cell.day.is_full and 1850 <= cell.day.year <= 2100 for cell in cells)
    if max(years, days) >= 0.9 * total and (total > 1 or not kinds[NUMBER]):
        return DATE
    if kinds[NUMBER] > MOST * max(others, 1):
        return NUMBER
    lengths = Counter(map(len, texts))
    zeros = sum(text[0] == "0" and len(text) > 2 for text in texts)
    same = lengths.most_common(1)[0]
    if zeros > 0.02 * total or (same[0] >= 5 and same[1] >= 0.9 * total) or kinds[CODE] > MOST * max(others, 1):
        return CODE
    return NUMBER


def _pack(of_row: Int32s, values: list[str], cells: list[_Cell]) -> ColumnValues:
    hashes = np.array(
        [_hash(key) for text, cell in zip(values, cells, strict=True) for key in (text, *cell.keys)], np.uint64
    )
    return ColumnValues(
        of_row, np.array([cell.kind for cell in cells], np.uint8), pack_texts([cell.text for cell in cells]),
        hashes.reshape(len(cells), KEYS),
        np.array([cell.number for cell in cells], np.float64), np.array([cell.written for cell in cells], np.float64),
        np.array([cell.step for cell in cells], np.float64), np.array([cell.unit for cell in cells], np.uint8),
        np.array([_day_of(cell) for cell in cells], np.int32), np.array([cell.digits for cell in cells], np.int64),
        np.array([cell.house[0] for cell in cells], np.int32), np.array([cell.house[1] for cell in cells], np.uint32),
        np.array([cell.generation for cell in cells], np.uint8),
        _pack_marks([cell.marks for cell in cells], MAX_MARKS), _pack_marks([cell.initials for cell in cells], MAX_MARKS),
        _pack_genders([cell.genders for cell in cells]),
        np.array([len(cell.text) > MAX_CELL for cell in cells], np.bool_),
    )  # fmt: skip


def _day_of(cell: _Cell) -> int:
    return int(cell.day.digits) if cell.day is not None else _NO_DAY


def _hash(text: str) -> int:
    """Return 64 bits of a text: odd, and 0 for no text. They hold within this process, and nobody can make two collide."""
    return hash(text) & 0xFFFFFFFFFFFFFFFF | 1 if text else 0


def _pack_marks(marks: list[list[str]], width: int) -> UInt64s:
    packed = np.zeros((len(marks), width), np.uint64)
    for at, some in enumerate(marks):
        if some:
            different = set(some)
            if len(different) > width:
                packed[at] = np.uint64(2**64 - 1)
            else:
                packed[at, width - len(different) :] = sorted(map(_hash, different))
    return packed


def _pack_genders(genders: list[list[str]]) -> UInt64s:
    packed = np.zeros((len(genders), 4), np.uint64)
    for at, some in enumerate(genders):
        for place, mark in enumerate(some[:4]):
            packed[at, place] = _hash(mark[:-1]) - 1 + (mark[-1] == "+")
    return packed
