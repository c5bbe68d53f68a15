"""Learning tables that are made: registers, offers and lists in order, in which it is known what is one thing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from random import Random

from gramvec_training.data.made_tables.families.answers import make_answers
from gramvec_training.data.made_tables.families.companies import COMPANIES
from gramvec_training.data.made_tables.families.media import ARTISTS, BOOKS, DRINKS, SONGS
from gramvec_training.data.made_tables.families.medicines import MEDICINES
from gramvec_training.data.made_tables.families.namesakes import make_namesakes
from gramvec_training.data.made_tables.families.orders import ORDERS
from gramvec_training.data.made_tables.families.papers import PAPERS, SPECIES
from gramvec_training.data.made_tables.families.parts import PARTS
from gramvec_training.data.made_tables.families.people import CUSTOMERS, PEOPLE
from gramvec_training.data.made_tables.families.products import PRODUCTS, SOFTWARE
from gramvec_training.data.made_tables.families.providers import PROVIDERS
from gramvec_training.data.made_tables.families.restaurants import RESTAURANTS
from gramvec_training.data.made_tables.families.sites import SITES
from gramvec_training.data.made_tables.families.spellings import make_spellings
from gramvec_training.data.made_tables.families.transfers import TRANSFERS
from gramvec_training.data.made_tables.lists import make_list_tables, read_join_lists, read_list_of
from gramvec_training.data.made_tables.places import read_place_lists
from gramvec_training.data.made_tables.records import MadeTable, ThingFamily, make_one_table, make_two_tables
from gramvec_training.data.made_tables.small import cut_lookups, cut_small

__all__ = ["MadeTable", "cut_lookups", "cut_small", "make_tables"]

# A family, and of how many tables each: two tables, one table, lists in order, halves.
FAMILIES: tuple[tuple[ThingFamily, int, int, int, int], ...] = (
    (PEOPLE, 8, 6, 2, 2),
    (CUSTOMERS, 10, 6, 0, 0),
    (COMPANIES, 6, 4, 2, 2),
    (MEDICINES, 3, 2, 2, 1),
    (PARTS, 3, 2, 1, 1),
    (TRANSFERS, 4, 1, 1, 0),
    (SITES, 4, 2, 2, 2),
    (PROVIDERS, 2, 2, 0, 0),
    (RESTAURANTS, 3, 1, 1, 1),
    (ORDERS, 2, 1, 0, 0),
    (PRODUCTS, 7, 2, 1, 1),
    (SOFTWARE, 2, 1, 0, 1),
    (PAPERS, 4, 2, 3, 3),
    (BOOKS, 2, 1, 1, 0),
    (SONGS, 2, 1, 1, 1),
    (DRINKS, 2, 1, 1, 0),
    (ARTISTS, 2, 1, 2, 1),
    (SPECIES, 1, 1, 1, 1),
)
# Tables of answers beside codes, lists of names alone, and of names in many spellings.
ANSWERS, NAMESAKES, SPELLINGS = 21, 12, 4


def make_tables(seed: int = 0, *, scale: float = 1.0, joins: Path | None = None) -> Iterator[MadeTable]:
    """Yield made tables of all kinds.

    The same seed and versions of the packages of the group `tables` give the same bytes.

    Args:
        seed: of all that is drawn.
        scale: of the numbers of rows; 1 has 300 to some 2,500 a side.
        joins: the folder of name joins, whose left sides are lists in order, too.

    Yields:
        Tables, in which no two rows are equal but those of one thing.
    """
    for family, registers, singles, lists, halves in FAMILIES:
        for number in range(registers):
            yield make_two_tables(family, number, Random(f"{seed} {family.name} two {number}"), scale, turn=seed)
        for number in range(registers, registers + singles):
            yield make_one_table(family, number, Random(f"{seed} {family.name} one {number}"), scale, turn=seed)
        for number in range(max(lists, halves)):
            drawn = Random(f"{seed} {family.name} list {number}")
            source = read_list_of(family, drawn, round(3000 * scale) + 100)
            source = source._replace(name=f"{family.name}-{number}")
            yield from make_list_tables(source, drawn, scale, lists=int(number < lists), halves=int(number < halves))
    for source in read_place_lists(Random(f"{seed} places")):
        yield from make_list_tables(source, Random(f"{seed} {source.name}"), scale)
    for number, source in enumerate(read_join_lists(joins) if joins else ()):
        yield from make_list_tables(
            source, Random(f"{seed} {source.name}"), scale, lists=(number + 1) % 2, halves=number % 2
        )
    for number in range(seed * ANSWERS, (seed + 1) * ANSWERS):
        yield make_answers(number, Random(f"answers {number}"))
    for number in range(seed * NAMESAKES, (seed + 1) * NAMESAKES):
        yield make_namesakes(number, Random(f"namesakes {number}"))
    for number in range(seed * SPELLINGS, (seed + 1) * SPELLINGS):
        yield make_spellings(number, Random(f"spellings {number}"))
