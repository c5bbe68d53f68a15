"""Learning tables that are made: registers, offers and lists in order, in which it is known what is one thing."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from gramvec_training.data.made_tables.companies import COMPANIES
from gramvec_training.data.made_tables.lists import make_list_tables
from gramvec_training.data.made_tables.media import ARTISTS, BOOKS, DRINKS, SONGS
from gramvec_training.data.made_tables.medicines import MEDICINES
from gramvec_training.data.made_tables.orders import ORDERS
from gramvec_training.data.made_tables.papers import PAPERS, SPECIES
from gramvec_training.data.made_tables.parts import PARTS
from gramvec_training.data.made_tables.people import PEOPLE
from gramvec_training.data.made_tables.places import read_place_lists
from gramvec_training.data.made_tables.products import PRODUCTS, SOFTWARE
from gramvec_training.data.made_tables.records import Family, MadeTable, make_one_table, make_two_tables
from gramvec_training.data.made_tables.restaurants import RESTAURANTS
from gramvec_training.data.made_tables.sites import SITES
from gramvec_training.data.made_tables.transfers import TRANSFERS

__all__ = ["MadeTable", "make_tables"]

# A family, and how many pairs of tables and single tables are made of it.
FAMILIES: tuple[tuple[Family, int, int], ...] = (
    (PEOPLE, 12, 10),
    (COMPANIES, 8, 7),
    (MEDICINES, 4, 4),
    (PARTS, 5, 4),
    (TRANSFERS, 5, 2),
    (SITES, 6, 5),
    (RESTAURANTS, 4, 2),
    (ORDERS, 3, 2),
    (PRODUCTS, 9, 3),
    (SOFTWARE, 3, 1),
    (PAPERS, 5, 3),
    (BOOKS, 3, 2),
    (SONGS, 3, 2),
    (DRINKS, 3, 1),
    (ARTISTS, 2, 3),
    (SPECIES, 2, 3),
)


def make_tables(seed: int = 0, *, scale: float = 1.0) -> Iterator[MadeTable]:
    """Yield made tables of all kinds.

    The same seed and versions of the packages of the group `tables` give the same bytes.

    Args:
        seed: of all that is drawn.
        scale: of the numbers of rows; 1 has 300 to some 2,500 a side.

    Yields:
        Tables, of which no two rows are equal but those of one thing.
    """
    for family, registers, lists in FAMILIES:
        for number in range(registers):
            yield make_two_tables(family, number, Random(f"{seed} {family.name} two {number}"), scale)
        for number in range(registers, registers + lists):
            yield make_one_table(family, number, Random(f"{seed} {family.name} one {number}"), scale)
    for source in read_place_lists(Random(f"{seed} places")):
        yield from make_list_tables(source, Random(f"{seed} {source.name}"), scale)
