"""Names changed on purpose, and tables of some rows: what joins, lists and registers do not teach a pair model."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import NamedTuple

# Rows of a join that are changed; tables of some rows, and the names that each has at most.
CHANGED_ROWS, SMALL_TABLES, SMALL_ROWS = 80, 80, 6
# Share of changed names that stand in the other table; of those with a number that also stand with another one.
FOUND, OTHER_NUMBER = 0.75, 0.5
# Share of names that carry an address, and of small tables that are taken from the alphabet's order.
WITH_ADDRESS, NEIGHBORS = 0.25, 0.5
_WORD = re.compile(r"[^\W\d_]{4,}")
_NUMBER = re.compile(r"\d+")


class KnownRows(NamedTuple):
    """Rows of two tables, and the pairs (row of the first, row of the second) that are one thing."""

    left: list[str]
    right: list[str]
    truth: list[tuple[int, int]]


def swap_letters(name: str, drawn: Random) -> str:
    """Return a name with two letters of a word swapped."""
    return _in_word(name, drawn, lambda word, at: word[:at] + word[at + 1] + word[at] + word[at + 2 :])


def lose_letter(name: str, drawn: Random) -> str:
    """Return a name without a letter of a word."""
    return _in_word(name, drawn, lambda word, at: word[:at] + word[at + 1 :])


def double_letter(name: str, drawn: Random) -> str:
    """Return a name with a letter of a word twice."""
    return _in_word(name, drawn, lambda word, at: word[: at + 1] + word[at:])


def split_word(name: str, drawn: Random) -> str:
    """Return a name with a space within a word."""
    return _in_word(name, drawn, lambda word, at: f"{word[: at + 1]} {word[at + 1 :]}")


def drop_space(name: str, drawn: Random) -> str:
    """Return a name without one of its spaces."""
    places = [at for at, letter in enumerate(name) if letter == " "]
    if not places:
        return name
    at = drawn.choice(places)
    return name[:at] + name[at + 1 :]


WAYS: tuple[Callable[[str, Random], str], ...] = (swap_letters, lose_letter, double_letter, split_word, drop_space)


def _in_word(name: str, drawn: Random, change: Callable[[str, int], str]) -> str:
    words = list(_WORD.finditer(name))
    if not words:
        return name
    word = drawn.choice(words)
    changed = change(word[0], drawn.randrange(len(word[0]) - 1))
    return name[: word.start()] + changed + name[word.end() :]


def change_name(name: str, drawn: Random) -> str:
    """Return a name changed in one of the WAYS."""
    return drawn.choice(WAYS)(name, drawn)


def change_number(name: str, drawn: Random) -> str:
    """Return a name with another value in the place of a number, which makes it another thing; equal without one."""
    numbers = list(_NUMBER.finditer(name))
    if not numbers:
        return name
    number = drawn.choice(numbers)
    value = int(number[0]) + drawn.choice([-10, -2, -1, 1, 2, 10])
    return f"{name[: number.start()]}{abs(value)}{name[number.end() :]}"


def add_address(name: str, street: str, drawn: Random) -> tuple[str, str]:
    """Return a name with an address, telephone number and day, written in two ways."""
    house, day, month = drawn.randint(1, 200), drawn.randint(1, 9), drawn.randint(1, 9)
    phone = [drawn.randint(200, 999), drawn.randint(200, 999), drawn.randint(0, 9999)]
    joined, year = "{}{}{:04}".format(*phone), drawn.randint(1950, 2020)
    ends = drawn.choice([
        ("{}-{}-{:04}".format(*phone), joined),
        ("({}) {}-{:04}".format(*phone), joined),
        (f"{month:02}/{day:02}/{year}", f"{month}/{day}/{year}"),
        (f"{10_000 + phone[2]} {joined}", f"{10_000 + phone[2]}"),
        (joined, ""),
    ])  # fmt: skip
    first, second = ends if drawn.random() < 0.5 else ends[::-1]
    return f"{name} {house} {street} {first}".strip(), f"{name} {house} {street} {second}".strip()


def change_rows(names: Sequence[str], drawn: Random) -> KnownRows:
    """Return names, and most of them again, changed; and some with another number, which are other things."""
    made = KnownRows([], [], [])
    for name in names:
        left, right = name, change_name(name, drawn)
        if drawn.random() < WITH_ADDRESS:
            left, right = add_address(name, drawn.choice(names), drawn)
        made.left.append(left)
        if drawn.random() < FOUND:
            made.truth.append((len(made.left) - 1, len(made.right)))
            made.right.append(right)
        if drawn.random() < OTHER_NUMBER and (another := change_number(left, drawn)) != left:
            made.right.append(another)
    return made


def make_small_tables(known: KnownRows, drawn: Random) -> Iterator[KnownRows]:
    """Yield tables of 2 to SMALL_ROWS rows a side: pairs of the tables at hand, changed names, and rows without one."""
    by_name = sorted(range(len(known.left)), key=lambda row: known.left[row])
    answers: dict[int, list[int]] = {}
    for row, other in known.truth:
        answers.setdefault(row, []).append(other)
    for _ in range(SMALL_TABLES):
        size = min(drawn.randint(2, SMALL_ROWS), len(by_name))
        start = drawn.randrange(len(by_name) - size + 1)
        rows = by_name[start : start + size] if drawn.random() < NEIGHBORS else drawn.sample(by_name, size)
        made = change_rows([known.left[row] for row in rows], drawn)
        if drawn.random() < 0.5:
            made = KnownRows([known.left[row] for row in rows], [], [])
            for place, row in enumerate(rows):
                for other in answers.get(row, ())[:1]:
                    made.truth.append((place, len(made.right)))
                    made.right.append(known.right[other])
        if made.right:
            yield made


def answer_rows(known: KnownRows) -> KnownRows:
    """Return the tables with those rows of the first that are in a pair, and no others."""
    rows = sorted({row for row, _ in known.truth})
    place = {row: number for number, row in enumerate(rows)}
    truth = [(place[row], other) for row, other in known.truth]
    return KnownRows([known.left[row] for row in rows], known.right, truth)


def join_lists(known: KnownRows) -> tuple[list[str], list[int]]:
    """Return the rows of both tables as one list, and the number of each row's thing."""
    of_right = {right: left for left, right in known.truth}
    first = len(known.left)
    things = [*range(first), *(of_right.get(row, first + row) for row in range(len(known.right)))]
    return [*known.left, *known.right], things
