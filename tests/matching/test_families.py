"""Families at one address, of whom some have moved: who moved is found, and nobody's kin is written for him."""

from __future__ import annotations

from importlib.util import find_spec
from random import Random
from typing import NamedTuple

import pytest

import gramvec

pytestmark = pytest.mark.skipif(find_spec("faker") is None, reason="families want faker: pip install --group tables")

COLUMNS = ("name", "street", "postcode", "city", "mail", "phone")
FAMILIES, MOVED = 100, 1 / 6
Row = tuple[str, ...]


class Families(NamedTuple):
    """Two tables of people in the order of their families, those in both, and those of them that have moved."""

    left: list[Row]
    right: list[Row]
    both: set[tuple[int, int]]
    moved: set[tuple[int, int]]


def make_families(locale: str, seed: int) -> Families:
    from faker import Faker

    fake, drawn = Faker(locale), Random(seed)
    fake.seed_instance(seed)
    made = Families([], [], set(), set())

    def move_in() -> Row:
        return fake.street_address().replace("\n", " "), fake.postcode(), fake.city()

    for family in range(FAMILIES):
        address, last = move_in(), fake.last_name()
        for _ in range(drawn.randint(1, 4)):
            name = f"{fake.first_name()} {last}"
            mail, phone = f"{name.split()[0].lower()}{family}@example.org", fake.phone_number()
            where = drawn.random()
            if where < 0.4:
                made.left.append((name, *address, mail, phone))
            elif where < 0.6:
                made.right.append((name, *address, mail, phone))
            else:
                pair = (len(made.left), len(made.right))
                made.both.add(pair)
                made.left.append((name, *address, mail, phone))
                if drawn.random() < MOVED:
                    made.moved.add(pair)
                    # One of both ways to reach them is a new one.
                    if drawn.random() < 0.5:
                        mail = f"{name.split()[-1].lower()}.{family}@example.com"
                    else:
                        phone = fake.phone_number()
                    made.right.append((name, *move_in(), mail, phone))
                else:
                    made.right.append((name, *address, mail, phone))
    return made


@pytest.mark.parametrize(("locale", "seed"), [("en_US", 1), ("de_DE", 2), ("pl_PL", 3)])
def test_who_has_moved_is_found_and_kin_is_not(locale: str, seed: int) -> None:
    made = make_families(locale, seed)
    sides = [dict(zip(COLUMNS, map(list, zip(*rows, strict=True)), strict=True)) for rows in (made.left, made.right)]
    matches = gramvec.match(*sides, on=COLUMNS).matches
    found = set(zip(matches.left.tolist(), matches.right.tolist(), strict=True))
    assert len(found & made.moved) >= 0.8 * len(made.moved) > 8
    assert len(found - made.both) <= 0.03 * len(found)
