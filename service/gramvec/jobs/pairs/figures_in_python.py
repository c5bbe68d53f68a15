"""Figures of pairs in Python: what native/pair_figures.h computes, slowly, where the loops in C are not there.

Tokens of two texts are aligned: equal ones first, each once however often it stands there; then, of those that are
left, letters with letters, always the most alike two. Numbers are equal without zeros in front, and where the digits
that are left are the same in the same order: 312-555-0142 and 3125550142.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from gramvec.jobs.pairs.columns import (
    ALIKE_VALUE,
    BY_LETTERS,
    DATE,
    IDENTIFIER,
    NAME,
    NEAR_VALUE,
    NUMBER,
    PLACE,
    TEXT,
    ColumnFacts,
)
from gramvec.jobs.pairs.levels import ALIKE, CONTRADICTS, DIFFERENT, EQUAL, LEVELS, MISSING, NEARLY
from gramvec.jobs.pairs.tokens import DIGITS, LETTERS, ZEROS, PairVocabulary, Tokens
from gramvec.text.arrays import Floats, Int64s, UInt8s

# Characters, and tokens of one side, that are compared with others.
LONGEST_COMPARED, MAX_LEFT = 64, 24
# The least likeness of tokens that are aligned; of one that begins with the other; of an initial; of an abbreviation
# such as Ct of Court.
NEAR_TOKEN, BEGINNING, INITIAL, SHORTENED = 0.7, 0.85, 0.75, 0.72
LOW_COLUMN = 0.4
EQUAL_TEXT = 17
_NO_VALUE = math.nan


def edits(first: str, second: str) -> int:
    """Return the edits between two strings: letters more, less, others, or two neighbors swapped (not edited again)."""
    before: list[int] = []
    last = list(range(len(second) + 1))
    for i, a in enumerate(first, start=1):
        row = [i]
        for j, b in enumerate(second, start=1):
            cost = min(last[j] + 1, row[j - 1] + 1, last[j - 1] + (a != b))
            if i > 1 and j > 1 and a == second[j - 2] and first[i - 2] == b:
                cost = min(cost, before[j - 2] + 1)
            row.append(cost)
        before, last = last, row
    return last[-1]


def ratio(first: str, second: str) -> float:
    """Return 1 less the share of the longer string that is edited."""
    longer = max(len(first), len(second))
    return 1.0 - edits(first, second) / longer if longer else 0.0


def token_likeness(first: str, second: str) -> float:
    """Return how alike two runs of letters are, 0 to 1."""
    first, second = sorted((first, second), key=len)
    n, m = len(first), len(second)
    found = ratio(first, second) if m <= LONGEST_COMPARED and m - n <= (1 - NEAR_TOKEN) * m + 1e-9 else 0.0
    if first[0] != second[0]:
        return found
    if n == 1:
        return max(found, INITIAL)
    letters = iter(second)
    if not all(letter in letters for letter in first):
        return found
    if n >= 3 and second.startswith(first):
        return max(found, BEGINNING)
    return max(found, SHORTENED) if n <= 4 and m >= n + 2 else found


@dataclass
class _Side:
    """Tokens of a text, and what of them was aligned."""

    known: PairVocabulary
    tokens: list[int]
    order: list[int]
    weights: list[float] | None = None
    weight: float = 0.0
    equal: float = 0.0
    soft: float = 0.0
    heaviest: float = 0.0
    compared: int = 0
    left: int = 0
    numbers: int = 0
    letters: list[int] = field(default_factory=list)
    digits: list[int] = field(default_factory=list)
    lost: set[str] = field(default_factory=set)

    def value(self, place: int) -> int:
        return int(self.known.values[self.tokens[place]])

    def kind(self, place: int) -> int:
        return int(self.known.kinds[self.tokens[place]])

    def heaviness(self, place: int) -> float:
        if self.weights is not None:
            return self.weights[place]
        return float(self.known.weights[self.tokens[place]])

    def text(self, place: int) -> str:
        return token_text(self.known, self.tokens[place])

    def different(self) -> list[int]:
        """Return a place of each value, in the order of values."""
        return [at for before, at in zip([None, *self.order], self.order, strict=False)
                if before is None or self.value(before) != self.value(at)]  # fmt: skip

    def count(self, place: int, *, equal: bool) -> None:
        weight = self.heaviness(place)
        self.compared += 1
        self.weight += weight
        if equal:
            self.equal += weight
            return
        self.left += 1
        self.numbers += self.kind(place) == DIGITS
        self.heaviest = max(self.heaviest, weight)

    def leave(self, place: int) -> None:
        name = "digits" if self.kind(place) in (DIGITS, ZEROS) else "letters"
        kept = self.digits if name == "digits" else self.letters
        if len(kept) < MAX_LEFT:
            kept.append(place)
            return
        self.lost.add(name)
        lightest = min(range(MAX_LEFT), key=lambda at: self.heaviness(kept[at]))
        if self.heaviness(kept[lightest]) < self.heaviness(place):
            kept[lightest] = place

    def left_digits(self) -> str | None:
        text = "".join(self.text(at) for at in sorted(self.digits))
        return None if "digits" in self.lost or len(text) > LONGEST_COMPARED else text

    def take_digits(self) -> None:
        for place in self.digits:
            if self.kind(place) == DIGITS:
                self.equal += self.heaviness(place)
                self.left -= 1
                self.numbers -= 1
        self.digits = []

    def weigh_left(self, taken: set[int]) -> None:
        if self.lost:
            return
        rest = [self.heaviness(at) for number, at in enumerate(self.letters) if number not in taken]
        rest += [self.heaviness(at) for at in self.digits if self.kind(at) == DIGITS]
        self.heaviest = max(rest, default=0.0)


@dataclass
class _Alignment:
    first: _Side
    second: _Side
    soft: int = 0
    common: int = 0
    nearest_number: float = _NO_VALUE
    commonest_pair: float = _NO_VALUE

    def share(self) -> float:
        first, second = self.first, self.second
        return _share(first.equal + first.soft + second.equal + second.soft, first.weight + second.weight)


def _align(first: _Side, second: _Side) -> _Alignment:
    found = _Alignment(first, second)
    lefts, rights = ({side.value(at): at for at in side.different()} for side in (first, second))
    for value in sorted(lefts.keys() | rights.keys()):
        if value in lefts and value in rights:
            if first.kind(lefts[value]) != ZEROS:
                first.count(lefts[value], equal=True)
                second.count(rights[value], equal=True)
                found.common += first.kind(lefts[value]) == DIGITS
            continue
        side, at = (first, lefts[value]) if value in lefts else (second, rights[value])
        if side.kind(at) != ZEROS:
            side.count(at, equal=False)
        side.leave(at)
    _align_numbers(found)
    _align_letters(found)
    return found


def _align_numbers(found: _Alignment) -> None:
    first, second = found.first, found.second
    if not first.numbers or not second.numbers:
        return
    # In order of the text from here on, as the loops in C have them.
    text, against = first.left_digits(), second.left_digits()
    if text and text == against:
        found.common += 1
        first.take_digits()
        second.take_digits()
        return
    ratios = [
        ratio(first.text(a), second.text(b)) for a in first.digits for b in second.digits
        if first.kind(a) == second.kind(b) == DIGITS
        and max(len(first.text(a)), len(second.text(b))) <= LONGEST_COMPARED
    ]  # fmt: skip
    found.nearest_number = max(ratios, default=_NO_VALUE)


def _align_letters(found: _Alignment) -> None:
    first, second = found.first, found.second
    near = {
        (i, j): np.float32(token_likeness(first.text(a), second.text(b)))
        for i, a in enumerate(first.letters) for j, b in enumerate(second.letters)
        if first.kind(a) == second.kind(b) == LETTERS
    }  # fmt: skip
    near = {pair: value for pair, value in near.items() if value > np.float32(NEAR_TOKEN) - np.float32(1e-6)}
    lefts: set[int] = set()
    rights: set[int] = set()
    for i, j in sorted(near, key=lambda pair: (-near[pair], pair)):
        if i in lefts or j in rights:
            continue
        lefts.add(i)
        rights.add(j)
        value = float(near[i, j])
        weights = first.heaviness(first.letters[i]), second.heaviness(second.letters[j])
        first.soft += value * weights[0]
        second.soft += value * weights[1]
        # Two common words that are alike are two words more often than one and a slip.
        found.commonest_pair = min(max(weights), math.inf if not found.soft else found.commonest_pair)
        first.left -= 1
        second.left -= 1
        found.soft += 1
    first.weigh_left(lefts)
    second.weigh_left(rights)


def token_text(known: PairVocabulary, token: int) -> str:
    """Return a token of a vocabulary."""
    points = known.characters[known.starts[token] : known.starts[token + 1]]
    return "".join(map(chr, points.tolist()))


def _share(part: float, whole: float) -> float:
    return part / whole if whole > 0 else 0.0


def _likeness(first: _Side, second: _Side) -> float:
    texts = [
        "".join(token_text(side.known, token) for token in side.tokens)[:LONGEST_COMPARED] for side in (first, second)
    ]
    return ratio(*texts)


def _are_equal(first: _Side, second: _Side) -> bool:
    return [first.value(at) for at in range(len(first.tokens))] == [
        second.value(at) for at in range(len(second.tokens))
    ]


def _text_figures(first: _Side, second: _Side) -> list[float]:
    found = _align(first, second)
    heaviest = first.known.heaviest
    mean = (first.equal + first.soft + second.equal + second.soft) / 2
    equal = sorted(_share(side.equal, side.weight) for side in (first, second))
    left = sorted(side.weight - side.equal - side.soft for side in (first, second))
    heavy = sorted(side.heaviest for side in (first, second))
    counts = [
        sorted(both)
        for both in ((first.left, second.left), (first.compared, second.compared), (first.numbers, second.numbers))
    ]
    return [
        found.share(), min(_share(mean, min(first.weight, second.weight)), 1.0), *equal,
        *(value / heaviest for value in left), *(value / heaviest for value in heavy), *counts[0],
        found.soft, *counts[1], found.common, *counts[2], found.nearest_number, 0.0, _likeness(first, second),
        found.commonest_pair / heaviest,
    ]  # fmt: skip


class _Compared(NamedTuple):
    """What the two values of a column have in common."""

    level: int
    near: float
    tells: float
    lighter: float = 0.0
    heavier: float = 0.0
    common: float = 0.0
    left: int = 0
    commonest_pair: float = _NO_VALUE


def _compare(
    first: _Side, second: _Side, facts: ColumnFacts, column: int, cells: tuple[int, int], typed: int
) -> _Compared:
    if cells[0] == cells[1] and not typed < EQUAL:
        common = sum(first.heaviness(at) for at in first.different() if first.kind(at) != ZEROS)
        return _Compared(EQUAL, 1.0, float(facts.equal[cells[0]]), common=common)
    found = _align(first, second)
    near = 1.0 if typed == EQUAL else max(found.share(), _likeness(first, second))
    by_letters = NEARLY if near >= NEAR_VALUE else ALIKE if near >= ALIKE_VALUE else DIFFERENT
    level = by_letters if typed == BY_LETTERS else typed
    heaviest = first.heaviest, second.heaviest
    common = (first.equal + first.soft + second.equal + second.soft) / 2
    return _Compared(
        level, near, float(facts.levels[column * LEVELS + level]), min(heaviest), max(heaviest), common,
        first.left + second.left, found.commonest_pair,
    )  # fmt: skip


def _column_figures(compared: Sequence[_Compared | None], either: int) -> list[float]:
    if len(compared) < 2:
        return [_NO_VALUE] * 6
    near = [value.near for value in compared if value is not None]
    filled = _share(len(near), either)
    if not near:
        return [_NO_VALUE] * 4 + [filled, _NO_VALUE]
    equal = sum(value is not None and value.level == EQUAL for value in compared)
    low = sum(value < LOW_COLUMN for value in near)
    return [sum(near) / len(near), min(near), max(near), equal / len(near), filled, low / len(near)]


def _evidence_figures(compared: Sequence[_Compared | None], facts: ColumnFacts) -> list[float]:
    there = [(int(facts.kinds[column]), value) for column, value in enumerate(compared) if value is not None]
    told = sorted((value.tells for _, value in there), reverse=True)

    def some(*kinds: int) -> list[_Compared]:
        return [value for kind, value in there if kind in kinds]

    def tells(kind: int) -> tuple[float, float]:
        values = [value.tells for value in some(kind)]
        return max(values, default=_NO_VALUE), min(values, default=_NO_VALUE)

    def place(values: Sequence[float], at: int) -> float:
        return values[at] if len(values) >= (at + 1 if at >= 0 else -at) else _NO_VALUE

    def most_and_least(values: Sequence[float]) -> tuple[float, float]:
        return max(values, default=_NO_VALUE), min(values, default=_NO_VALUE)

    names, places = some(NAME, TEXT), some(PLACE)
    pairs = [value.commonest_pair for _, value in there if not math.isnan(value.commonest_pair)]
    levels = [value.level for _, value in there]
    none = not there
    return [
        _NO_VALUE if none else sum(value.tells for _, value in there),
        _NO_VALUE if none else sum(value.tells for _, value in there) - facts.rows,
        place(told, 0), place(told, 1), place(told, 2), place(told, -1), place(told, -2),
        _NO_VALUE if none else levels.count(EQUAL),
        _NO_VALUE if none else sum(level <= DIFFERENT for level in levels),
        _NO_VALUE if none else levels.count(CONTRADICTS),
        len(there), *tells(IDENTIFIER), *tells(NAME),
        sum(value.tells for value in places) if places else _NO_VALUE, tells(PLACE)[1],
        *tells(NUMBER), *tells(DATE), *tells(TEXT),
        *most_and_least([value.lighter for value in names]), *most_and_least([value.heavier for value in names]),
        max((value.common for value in names), default=_NO_VALUE),
        sum(value.left for value in names) if names else _NO_VALUE,
        max((value.lighter for value in places), default=_NO_VALUE), min(pairs, default=_NO_VALUE),
        len(compared) - len(there), len(names),
    ]  # fmt: skip


def _join_columns(parts: Sequence[_Side], filled: Sequence[bool]) -> _Side:
    """Return the columns of a row that both rows fill as one text."""
    known = parts[0].known
    tokens = [token for part, there in zip(parts, filled, strict=True) if there for token in part.tokens]
    return _Side(known, tokens, sorted(range(len(tokens)), key=lambda at: int(known.values[tokens[at]])))


class _Rows:
    """Rows of tables as sides."""

    def __init__(self, tokens: Tokens, facts: ColumnFacts) -> None:
        self.tokens, self.facts = tokens, facts

    def whole(self, table: int, row: int) -> _Side:
        rows, columns = self.tokens.tables[table], self.tokens.columns
        whole = slice(int(rows.bounds[row * columns]), int(rows.bounds[(row + 1) * columns]))
        return _Side(self.tokens.vocabulary, rows.tokens[whole].tolist(), rows.together[whole].tolist())

    def parts(self, table: int, row: int) -> list[_Side]:
        rows, columns = self.tokens.tables[table], self.tokens.columns
        bounds = rows.bounds[row * columns : (row + 1) * columns + 1].tolist()
        known, weights = self.tokens.vocabulary, self.facts.weights[table]
        return [
            _Side(known, rows.tokens[a:b].tolist(), rows.sorted[a:b].tolist(), weights[a:b].tolist())
            for a, b in pairwise(bounds)
        ]

    def compare(self, left: int, right: int, typed: Sequence[int]) -> list[_Compared | None]:
        columns, made = self.tokens.columns, []
        for column, (one, other) in enumerate(zip(self.parts(0, left), self.parts(-1, right), strict=True)):
            cells = (
                int(self.facts.cells[0][left * columns + column]), int(self.facts.cells[-1][right * columns + column])
            )  # fmt: skip
            there = bool(one.tokens and other.tokens) and typed[column] != MISSING
            made.append(_compare(one, other, self.facts, column, cells, typed[column]) if there else None)
        return made


def column_levels(
    tokens: Tokens, facts: ColumnFacts, left: Int64s, right: Int64s, typed: UInt8s | None = None
) -> UInt8s:
    """Return what `gramvec.jobs.pairs.figures.column_levels` does."""
    rows, made = _Rows(tokens, facts), np.full((len(left), tokens.columns), MISSING, np.uint8)
    for pair, (first, second) in enumerate(zip(left.tolist(), right.tolist(), strict=True)):
        given = [BY_LETTERS] * tokens.columns if typed is None else typed[pair].tolist()
        for column, value in enumerate(rows.compare(first, second, given)):
            if value is not None:
                made[pair, column] = value.level
    return made


def pair_figures(
    tokens: Tokens, facts: ColumnFacts, left: Int64s, right: Int64s, typed: UInt8s | None = None
) -> Floats:
    """Return what `gramvec.jobs.pairs.figures.pair_figures` does."""
    rows, made = _Rows(tokens, facts), []
    for pair, (first, second) in enumerate(zip(left.tolist(), right.tolist(), strict=True)):
        a, b = rows.whole(0, first), rows.whole(-1, second)
        of_a, of_b = rows.parts(0, first), rows.parts(-1, second)
        equal = bool(a.tokens) and _are_equal(a, b)
        filled = [bool(x.tokens and y.tokens) for x, y in zip(of_a, of_b, strict=True)]
        if any(filled):
            # What one row lacks does not speak against it.
            a, b = _join_columns(of_a, filled), _join_columns(of_b, filled)
        found = _text_figures(a, b)
        found[EQUAL_TEXT] = float(equal)
        compared = rows.compare(first, second, [BY_LETTERS] * tokens.columns if typed is None else typed[pair].tolist())
        either = sum(bool(x.tokens or y.tokens) for x, y in zip(of_a, of_b, strict=True))
        made.append([*found, *_column_figures(compared, either), *_evidence_figures(compared, facts)])
    return np.array(made, np.float32).reshape(len(left), -1 if made else 0)
