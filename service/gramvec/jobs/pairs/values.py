"""Cells of a column, read once as what they are: numbers, dates, phones, e-mails, codes, texts, or nothing.

What a cell is, its column's other cells decide where it may be several things: 19990101 is a day among days, 1.234 is
a thousand among prices such as 12,50, NA is Namibia among codes of two letters. Nothing else about a column counts,
neither its name nor its place. `gramvec.jobs.pairs.levels` compares what was read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gramvec.jobs.pairs.cells import CODE, DATE, EMPTY, MAX_CELL, MAX_SHORTS, NUMBER, PHONE, Cell, make_code, read_cell
from gramvec.jobs.pairs.empties import find_empty
from gramvec.jobs.pairs.jaro import pack_texts
from gramvec.jobs.pairs.tokens import fold_text
from gramvec.jobs.pairs.words import read_style
from gramvec.text.arrays import Bools, Doubles, Int32s, Int64s, UInt64s

# Keys of a value; marks and names of a text that are compared.
KEYS, MAX_MARKS, MAX_GENDERS = 5, 6, 4
# Share of a column's other cells from which they decide what one is; of its digits that are years, or as long.
MOST, NEARLY_ALL = 0.5, 0.9
# Different amounts of a column, and the rows that have one, in the mean.
AMOUNTS, ROWS_OF_AMOUNT = 20, 2
# Share of numbers with zeros in front from which a column's numbers are codes; digits of codes that are as long.
ZEROS_IN_FRONT, LONG_CODE = 0.02, 5


class ColumnValues(NamedTuple):
    """Values of a column, each different one once.

    Attributes:
        of_row: int32[n], the value of each row.
        kinds: uint8[v], EMPTY, NUMBER, DATE, PHONE, EMAIL, CODE or TEXT.
        texts: uint32 and int32[v + 1]: code points of texts as letters are compared, and where each begins.
        keys: uint64[v, 5], hashes of the folded value, of its tokens, of its words in order of letters, of those
            without single letters, and of what else it is known by: of an e-mail the domain, of a phone all
            digits, of words and codes their letters and digits; 0 for none.
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
        shorts: uint64[v, 4], hashes of each word of a name with the first letters of the others.
        in_order: as `texts`, with the words in order of letters; empty for one word.
        amounts: whether its numbers are amounts, of money or measured, of which a near one may be the same.
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
    cut: Bools
    shorts: UInt64s
    in_order: tuple[NDArray[np.uint32], Int32s]
    amounts: bool


def read_column(texts: Sequence[str]) -> ColumnValues:
    """Read the cells of a column. Linear in their characters.

    Args:
        texts: of any length, in any script; folded ones give the same.
    """
    raw: dict[str, int] = {}
    of_raw = np.array([raw.setdefault(text, len(raw)) for text in texts], np.int64)
    known: dict[str, int] = {}
    numbers = [known.setdefault(" ".join(fold_text(text).split()), len(known)) for text in raw]
    of_row = np.array(numbers, np.int32)[of_raw]
    values = list(known)
    empty = find_empty(values, np.bincount(of_row, minlength=len(values)))
    style = read_style(values)
    cells = [
        Cell(EMPTY) if nothing else read_cell(text, style) for text, nothing in zip(values, empty.tolist(), strict=True)
    ]
    _decide(cells, values)
    return _pack(of_row, values, cells)


def _decide(cells: Sequence[Cell], values: Sequence[str]) -> None:
    """Say what those are that may be several things, by the kinds of the others."""
    kinds = Counter(
        cell.kind for cell in cells if not (cell.is_whole or cell.is_lettered or cell.is_dashed or cell.kind == EMPTY)
    )
    others = sum(kinds.values()) - kinds[PHONE] + sum(cell.is_whole and not cell.digits for cell in cells)
    for cell, text in zip(cells, values, strict=True):
        # 1234 GB is a postcode among 1234 AB; 14g a house among 14a; 12345-6789 a code among 12345.
        if (cell.is_lettered and kinds[CODE] > kinds[NUMBER]) or (cell.is_dashed and kinds[PHONE] < others):
            make_code(cell, text)
            if cell.is_dashed and kinds[NUMBER] > MOST * others and " " in text:
                cell.kind, cell.number, cell.step = NUMBER, float(cell.digits), 1.0
                cell.written = cell.number
    whole = [at for at, cell in enumerate(cells) if cell.is_whole]
    if not whole:
        return
    kind = _kind_of_digits([values[at] for at in whole], [cells[at] for at in whole], kinds)
    for at in whole:
        cell = cells[at]
        fits = {DATE: cell.day is not None, PHONE: cell.digits > 0, NUMBER: not np.isnan(cell.number)}
        if fits.get(kind, False):
            cell.kind = kind


def _kind_of_digits(texts: Sequence[str], cells: Sequence[Cell], kinds: Counter[int]) -> int:
    """Return what a column's values of digits alone are.

    Args:
        texts: those values.
        cells: the same, read.
        kinds: how many of the column's other values are of each kind; none is EMPTY.
    """
    others = sum(kinds.values())
    for kind in (PHONE, DATE):
        if kinds[kind] > MOST * others:
            return kind
    total = len(texts)
    days = sum(cell.day is not None and (1850 if cell.day.is_full else 1500) <= cell.day.year <= 2100 for cell in cells)
    if days >= NEARLY_ALL * total and not kinds[NUMBER]:
        return DATE
    if kinds[NUMBER] > MOST * max(others, 1):
        return NUMBER
    zeros = sum(text[0] == "0" and len(text) > 2 for text in texts)
    length, same = Counter(map(len, texts)).most_common(1)[0]
    is_code = zeros > ZEROS_IN_FRONT * total or (length >= LONG_CODE and same >= NEARLY_ALL * total)
    return CODE if is_code or kinds[CODE] > MOST * max(others, 1) else NUMBER


def _pack(of_row: Int32s, values: Sequence[str], cells: Sequence[Cell]) -> ColumnValues:
    hashes = [_hash(key) for text, cell in zip(values, cells, strict=True) for key in (text, *cell.keys)]
    return ColumnValues(
        of_row,
        np.array([cell.kind for cell in cells], np.uint8),
        pack_texts([cell.text for cell in cells]),
        np.array(hashes, np.uint64).reshape(len(cells), KEYS),
        np.array([cell.number for cell in cells], np.float64),
        np.array([cell.written for cell in cells], np.float64),
        np.array([cell.step for cell in cells], np.float64),
        np.array([cell.unit for cell in cells], np.uint8),
        np.array([int(cell.day.digits) if cell.day else 0 for cell in cells], np.int32),
        np.array([cell.digits for cell in cells], np.int64),
        np.array([cell.house[0] for cell in cells], np.int32),
        np.array([cell.house[1] for cell in cells], np.uint32),
        np.array([cell.generation for cell in cells], np.uint8),
        _pack_marks([cell.marks for cell in cells]),
        _pack_marks([cell.initials for cell in cells]),
        _pack_genders([cell.genders for cell in cells]),
        np.array([len(cell.text) > MAX_CELL for cell in cells], np.bool_),
        _pack_marks([cell.shorts for cell in cells], MAX_SHORTS),
        pack_texts([cell.in_order for cell in cells]),
        _are_amounts(of_row, cells),
    )


def _are_amounts(of_row: Int32s, cells: Sequence[Cell]) -> bool:
    """Return whether numbers of a column are many, most have decimals, and each stands in few rows."""
    numbers = [cell.kind == NUMBER and not cell.unit for cell in cells]
    different, rows = sum(numbers), int(np.array(numbers, np.bool_)[of_row].sum())
    decimals = sum(cell.step < 1 for cell, number in zip(cells, numbers, strict=True) if number)
    return different >= AMOUNTS and decimals > MOST * different and rows <= ROWS_OF_AMOUNT * different


def _hash(text: str) -> int:
    """Return 64 bits of a text: odd, and 0 for no text. They hold within this process; nobody can make two collide."""
    return hash(text) & 0xFFFFFFFFFFFFFFFF | 1 if text else 0


def _pack_marks(marks: Sequence[Sequence[str]], width: int = MAX_MARKS) -> UInt64s:
    packed = np.zeros((len(marks), width), np.uint64)
    for at, cell_marks in enumerate(marks):
        if cell_marks:
            different = {_hash(mark) for mark in cell_marks}
            if len(different) > width:
                packed[at] = np.uint64(2**64 - 1)
            else:
                packed[at, width - len(different) :] = sorted(different)
    return packed


def _pack_genders(genders: Sequence[Sequence[str]]) -> UInt64s:
    packed = np.zeros((len(genders), MAX_GENDERS), np.uint64)
    for at, cell_marks in enumerate(genders):
        for place, mark in enumerate(cell_marks[:MAX_GENDERS]):
            packed[at, place] = _hash(mark[:-1]) - 1 + (mark[-1] == "+")
    return packed
