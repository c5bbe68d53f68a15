"""Levels of likeness of two cells: equal, nearly, alike, different, contradicting each other, or one of them missing.

Values of one kind are compared as what they are: a number by its value, a day by its digits, a phone by its last ones.
What contradicts is another value of one unit, another day, another flat or house, another number inside of the same
words, another generation, or the other gender's form of a first name. Days of one week are alike, since what is booked
later may be the same, and so are amounts, less a fee.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gramvec.jobs.pairs.cells import CODE, DATE, EMAIL, EMPTY, NUMBER, PHONE, TEXT
from gramvec.jobs.pairs.jaro import text_likeness
from gramvec.jobs.pairs.values import ColumnValues
from gramvec.text.arrays import Bools, Int32s, Int64s, UInt64s

CONTRADICTS, DIFFERENT, ALIKE, NEARLY, EQUAL = range(5)
LEVELS = 5
MISSING = 254
# Likeness of letters from which texts are nearly equal, or alike.
NEAR_TEXT, ALIKE_TEXT = 0.92, 0.8
# Numbers are nearly equal that round to each other, and differ by no larger share.
ROUNDING = 0.02
# Shares by which amounts differ that are nearly equal, and alike; days between those that are alike.
NEAR_AMOUNT, ALIKE_AMOUNT = 0.02, 0.08
WEEK = 7
# Letters of an e-mail's name that say whose it is, whatever its domain; characters of a code in which one slips.
LONG_NAME, LONG_CODE = 5, 5
# Digits of a phone that are its own; with the area.
_LAST, _WITH_AREA = 7, 9
_VALUE, _TOKENS, _SORTED, _LONG, _OTHER = range(5)
_MANY = np.uint64(2**64 - 1)

Levels = NDArray[np.uint8]


class _Pairs(NamedTuple):
    """Pairs of different values, and their places on both sides."""

    left: ColumnValues
    right: ColumnValues
    a: Int64s
    b: Int64s

    def select(self, mask: Bools) -> _Pairs:
        return self._replace(a=self.a[mask], b=self.b[mask])

    def likeness(self) -> NDArray[np.float32]:
        return text_likeness(self.left.texts, self.right.texts, self.a, self.b)

    def both(self, key: int) -> Bools:
        """Return whether a key is there and equal."""
        one, other = self.left.keys[self.a, key], self.right.keys[self.b, key]
        return np.asarray((one == other) & (one != 0), np.bool_)

    def lengths(self) -> tuple[Int32s, Int32s]:
        starts, others = self.left.texts[1], self.right.texts[1]
        return starts[self.a + 1] - starts[self.a], others[self.b + 1] - others[self.b]


def compare_values(left: ColumnValues, right: ColumnValues, i: Int64s, j: Int64s) -> Levels:
    """Return the level of each pair of cells, uint8[p]: CONTRADICTS, DIFFERENT, ALIKE, NEARLY, EQUAL or MISSING.

    Each two different values are compared once. It is symmetric, and equal texts are EQUAL or MISSING.

    Args:
        left: of `read_column`.
        right: of `read_column`; the same for one table.
        i: int64[p], rows of the left column.
        j: int64[p], rows of the right column.
    """
    width = max(len(right.kinds), 1)
    pairs = left.of_row[i].astype(np.int64) * width + right.of_row[j]
    different, place = np.unique(pairs, return_inverse=True)
    of = _Pairs(left, right, different // width, different % width)
    levels: Levels = _compare(of)[place.reshape(-1)]
    return levels


def _compare(of: _Pairs) -> Levels:
    levels = np.full(len(of.a), DIFFERENT, np.uint8)
    one, other = of.left.kinds[of.a], of.right.kinds[of.b]
    missing = (one == EMPTY) | (other == EMPTY)
    equal = of.both(_VALUE) | (of.both(_TOKENS) & ~((one == NUMBER) & (other == NUMBER)))
    # An extension may stand without its x.
    equal |= of.both(_OTHER) & ((one == PHONE) | (other == PHONE))
    levels[equal] = EQUAL
    levels[missing] = MISSING
    rest = ~equal & ~missing
    left, right = of.left, of.right
    has_both = {
        NUMBER: ~np.isnan(left.numbers[of.a]) & ~np.isnan(right.numbers[of.b]),
        DATE: (left.days[of.a] > 0) & (right.days[of.b] > 0),
        PHONE: (left.digits[of.a] > 0) & (right.digits[of.b] > 0),
    }
    ways = ((DATE, _compare_days), (NUMBER, _compare_numbers), (PHONE, _compare_phones))
    for kind, compare in ways:
        chosen = rest & ((one == kind) | (other == kind)) & has_both[kind]
        levels[chosen] = compare(of.select(chosen))
        rest &= ~chosen
    # 14g among measures is a house beside 14a.
    houses = (left.houses[of.a] >= 0) & (right.houses[of.b] >= 0) & ((one == CODE) | (other == CODE))
    for compare, chosen in (
        (_compare_emails, rest & (one == EMAIL) & (other == EMAIL)),
        (_compare_codes, rest & ((one == CODE) & (other == CODE) | houses)),
    ):
        levels[chosen] = compare(of.select(chosen))
        rest &= ~chosen
    letters = rest & ((one == TEXT) | (one == CODE)) & ((other == TEXT) | (other == CODE))
    levels[letters] = _compare_texts(of.select(letters))
    return levels


def _compare_numbers(of: _Pairs) -> Levels:
    left, right = of.left, of.right
    units, others = left.units[of.a], right.units[of.b]
    # A unit that one side leaves out is the other's.
    named = (units > 0) & (others > 0) | (units == others)
    one = np.where(named, left.numbers[of.a], left.written[of.a])
    other = np.where(named, right.numbers[of.b], right.written[of.b])
    largest = np.maximum(np.abs(one), np.abs(other))
    apart = np.abs(one - other)
    equal = apart <= 1e-9 * largest
    step = np.maximum(left.steps[of.a], right.steps[of.b])
    near = named & (apart < 0.5 * step) & (apart <= ROUNDING * largest)
    levels = np.full(len(of.a), CONTRADICTS, np.uint8)
    if left.amounts and right.amounts:
        levels[apart <= ALIKE_AMOUNT * largest] = ALIKE
        near |= named & (apart <= NEAR_AMOUNT * largest)
    levels[near] = NEARLY
    levels[equal] = np.where(named, EQUAL, NEARLY)[equal]
    levels[~named & ~equal] = DIFFERENT
    levels[(units != others) & named] = DIFFERENT
    return levels


def _compare_days(of: _Pairs) -> Levels:
    one, other = of.left.days[of.a], of.right.days[of.b]
    parts = [np.stack([days // 10000, days // 100 % 100, days % 100]) for days in (one, other)]
    known = (parts[0] > 0) & (parts[1] > 0)
    same = (parts[0] == parts[1]) | ~known
    full = known.all(axis=0)
    swapped = full & same[0] & (parts[0][1] == parts[1][2]) & (parts[0][2] == parts[1][1])
    digits = [np.stack([days // 10**place % 10 for place in range(8)]) for days in (one, other)]
    wrong = digits[0] != digits[1]
    slips = wrong.sum(axis=0)
    turned = wrong[:-1] & wrong[1:] & (digits[0][:-1] == digits[1][1:]) & (digits[0][1:] == digits[1][:-1])
    slip = full & ((slips == 1) | ((slips == 2) & turned.any(axis=0)))
    years = ~known[1]
    levels = np.full(len(of.a), CONTRADICTS, np.uint8)
    levels[full & (np.abs(_count_days(parts[0]) - _count_days(parts[1])) <= WEEK)] = ALIKE
    levels[years & (np.abs(parts[0][0] - parts[1][0]) == 1)] = ALIKE
    levels[same.all(axis=0) | swapped | slip] = NEARLY
    levels[one == other] = EQUAL
    return levels


def _count_days(parts: Int32s) -> Int64s:
    """Return the days since 1970 of years, months and days, int32[3, p]."""
    months = (12 * (parts[0].astype(np.int64) - 1970) + parts[1] - 1).astype("datetime64[M]")
    days: Int64s = months.astype("datetime64[D]").astype(np.int64) + parts[2]
    return days


def _compare_phones(of: _Pairs) -> Levels:
    one, other = of.left.digits[of.a], of.right.digits[of.b]
    ten = np.int64(10)
    shorter = np.minimum(one, other)
    lengths = np.zeros(len(of.a), np.int64)
    for places in range(1, 16):
        lengths += shorter >= ten ** np.int64(places - 1)
    ends = np.abs(one - other) % ten**lengths == 0
    area = np.minimum(lengths, _WITH_AREA)
    equal = (ends & (lengths >= _LAST)) | ((lengths >= _WITH_AREA) & (np.abs(one - other) % ten**area == 0))
    digits = [np.stack([number // ten**place % 10 for place in range(_WITH_AREA)]) for number in (one, other)]
    wrong = digits[0] != digits[1]
    turned = wrong[:-1] & wrong[1:] & (digits[0][:-1] == digits[1][1:]) & (digits[0][1:] == digits[1][:-1])
    slips = wrong.sum(axis=0)
    levels = np.full(len(of.a), DIFFERENT, np.uint8)
    levels[(slips == 1) | ((slips == 2) & turned.any(axis=0))] = ALIKE
    levels[np.abs(one - other) % ten ** np.int64(_LAST) == 0] = NEARLY
    levels[equal] = EQUAL
    return levels


def _compare_emails(of: _Pairs) -> Levels:
    near = of.likeness()
    domain = of.both(_OTHER)
    lengths = np.minimum(*of.lengths())
    levels = np.full(len(of.a), DIFFERENT, np.uint8)
    levels[(near >= ALIKE_TEXT) & domain | (near >= NEAR_TEXT)] = ALIKE
    levels[(near >= NEAR_TEXT) & domain & ~_others_on_both_sides(of.left.marks[of.a], of.right.marks[of.b])] = NEARLY
    levels[(near == 1) & (lengths >= LONG_NAME)] = NEARLY
    return levels


def _compare_codes(of: _Pairs) -> Levels:
    left, right = of.left, of.right
    near = of.likeness()
    levels = np.full(len(of.a), DIFFERENT, np.uint8)
    levels[(near >= NEAR_TEXT) & (np.minimum(*of.lengths()) >= LONG_CODE)] = ALIKE
    house, of_other = left.houses[of.a], right.houses[of.b]
    letter, other = left.letters[of.a], right.letters[of.b]
    houses = (house >= 0) & (of_other >= 0) & ((letter > 0) | (other > 0))
    levels[houses] = np.where((house != of_other) | ((letter > 0) & (other > 0)), CONTRADICTS, DIFFERENT)[houses]
    levels[of.both(_OTHER) | houses & (house == of_other) & (letter == other)] = EQUAL
    return levels


def _compare_texts(of: _Pairs) -> Levels:
    near = of.likeness()
    # Words in another order: where both sides have several.
    (first, last), (other_first, other_last) = (
        (starts[at], starts[at + 1]) for starts, at in ((of.left.in_order[1], of.a), (of.right.in_order[1], of.b))
    )
    again = (near < NEAR_TEXT) & (last > first) & (other_last > other_first)
    turned = text_likeness(of.left.in_order, of.right.in_order, of.a[again], of.b[again])
    near[again] = np.maximum(near[again], turned)
    levels = np.full(len(of.a), DIFFERENT, np.uint8)
    levels[near >= ALIKE_TEXT] = ALIKE
    initials = (levels == DIFFERENT) & ((of.left.initials[of.a, -1] != 0) | (of.right.initials[of.b, -1] != 0))
    levels[initials] = _compare_initials(of.select(initials))
    cut = of.left.cut[of.a] | of.right.cut[of.b]
    levels[(near >= NEAR_TEXT) & ~cut | of.both(_SORTED)] = NEARLY
    alike = levels >= ALIKE
    levels[alike] = _contradict(of.select(alike), levels[alike])
    # Red Bull and Redbull, 14 A and 14A.
    levels[of.both(_OTHER)] = NEARLY
    return levels


def _compare_initials(of: _Pairs) -> Levels:
    """Return ALIKE for A. Robinson and Ashleigh Robinson, else DIFFERENT."""
    one, other = of.left.shorts[of.a], of.right.shorts[of.b]
    same = ((one[:, :, None] == other[:, None, :]) & (one != 0)[:, :, None]).any(axis=(1, 2))
    return np.where(same, ALIKE, DIFFERENT).astype(np.uint8)


def _contradict(of: _Pairs, levels: Levels) -> Levels:
    """Return the levels of texts of which one may have what contradicts the other."""
    left, right = of.left, of.right
    lefts, rights = left.marks[of.a], right.marks[of.b]
    others, more = _others_on_both_sides(lefts, rights), _others_on_one_side(lefts, rights)
    letters = _others_on_both_sides(left.initials[of.a], right.initials[of.b]) & of.both(_LONG)
    one, other = left.generations[of.a], right.generations[of.b]
    generations = (one > 0) & (other > 0) & (one != other)
    # The last bit of a name's mark is its gender.
    genders = ((left.genders[of.a][:, :, None] ^ right.genders[of.b][:, None, :]) == 1).any(axis=(1, 2))
    words = (left.kinds[of.a] == TEXT) & (right.kinds[of.b] == TEXT)
    levels[(more & words) | (one != other)] = ALIKE
    levels[others | letters | generations | genders] = CONTRADICTS
    return levels


def _others_on_both_sides(one: UInt64s, other: UInt64s) -> Bools:
    """Return whether each side has a mark that the other lacks."""
    return _lacks(one, other) & _lacks(other, one)


def _others_on_one_side(one: UInt64s, other: UInt64s) -> Bools:
    return _lacks(one, other) | _lacks(other, one)


def _lacks(one: UInt64s, other: UInt64s) -> Bools:
    """Return whether a side has a mark that the other lacks; False where either has more than are compared."""
    there = (one[:, :, None] == other[:, None, :]).any(axis=2)
    known = (one[:, -1] != _MANY) & (other[:, -1] != _MANY)
    return np.asarray((~there & (one != 0)).any(axis=1) & known, np.bool_)
