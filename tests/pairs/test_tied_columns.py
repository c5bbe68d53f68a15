"""Columns that say the same as an address, of tables by hand."""

from __future__ import annotations

import numpy as np
import pytest

from gramvec.jobs.pairs.figures import RowTables, column_levels, one_of_tables, read_rows
from gramvec.jobs.pairs.tied_columns import numbered_columns, pair_neighbors, tie_columns
from gramvec.text.arrays import Doubles

STREETS = ("oak", "elm", "ash", "fir", "yew", "bay", "fig", "ivy", "box", "may")
FIRST = ("anna", "boris", "carla", "dmitri", "elena", "frank", "greta", "henry", "ivana", "jorge")
LAST = ("moore", "schmidt", "kovacs", "petrov", "garcia", "lindqvist", "okafor", "tanaka", "dubois", "fisher")
TOWNS = ("lyon", "kiel", "oslo", "bath", "genoa")
Rows = list[list[str]]


def name(number: int) -> str:
    """Return a name of its own for each number below 100."""
    return f"{FIRST[number % 10]} {LAST[number // 10]}"


def read(*tables: Rows) -> RowTables:
    return read_rows([[list(column) for column in zip(*rows, strict=True)] for rows in tables])


def tie(rows: Rows) -> Doubles:
    """Return how far columns of two equal tables say the same as addresses of the first."""
    rows_of = read(rows, rows)
    assert rows_of.values is not None
    numbered = numbered_columns(rows_of.values)
    tied = np.zeros((len(rows[0]), len(rows[0])))
    for address, above, below in pair_neighbors(rows_of.facts, numbered, 0):
        levels = column_levels(one_of_tables(rows_of, 0), above, below)
        tied = np.maximum(tied, tie_columns(rows_of.facts, numbered, 0, address, levels))
    return tied


def make_houses(alone: int = 0) -> Rows:
    """Return two people of other names and mails in each of 20 houses, and one in each of others."""
    return [
        [
            name(row), f"{name(row)}@example.org", f"{house + 3} {STREETS[house % 10]} road", f"{81_000 + house}",
            TOWNS[house % 5],
        ]
        for row, house in enumerate([*np.repeat(np.arange(20), 2).tolist(), *range(20, 20 + alone)])
    ]  # fmt: skip


def test_what_neighbors_share_is_one_address() -> None:
    expected = np.zeros((5, 5))
    expected[2:, 2:] = 1
    np.testing.assert_allclose(tie(make_houses()), expected, atol=1e-9)


def test_the_order_of_the_rows_ties_nothing() -> None:
    """Rows stand in the order of their firms, and many share a street: beside whom a row stands is drawn."""
    people = [[name(row), f"{name(row // 2)} gmbh", f"{row % 4 + 1} {STREETS[row % 2]} road"] for row in range(100)]
    assert not tie(people)[1].any()


def test_one_person_twice_ties_nothing() -> None:
    """Who stands twice in a table shares name and mail with herself at either address."""
    twice = [
        [name(row), f"{name(row)} at host{row}", f"{row * 2 + at} {STREETS[at]} road", f"{81_000 + row}"]
        for row in range(20)
        for at in (0, 1, 0)
    ]
    assert not tie(twice).any()


def test_one_person_in_two_spellings_ties_nothing() -> None:
    """Who stands twice at an address, once with a slip in the name, is no neighbor of herself."""
    twice = [
        [name(row) if at else name(row).replace(" ", "e ", 1), f"{row} {STREETS[row % 10]} road", f"{81_000 + row}"]
        for row in range(40)
        for at in (0, 1)
    ]
    assert not tie(twice).any()


def test_pages_of_one_product_tie_nothing() -> None:
    """A title with a number is no address where nothing but prices differs among rows that share it."""
    offers = [
        [f"phone {product} pro", f"brand{product % 6}", ("phones", "covers")[product % 2], f"{product * 7 + page}.99"]
        for product in range(20)
        for page in (0, 1)
    ]
    assert not tie(offers).any()


def test_a_column_is_numbered_if_most_of_its_cells_are_words_with_numbers() -> None:
    rows_of = read(
        [["12 oak road", "anna berg", "81000", ""], ["elm road 7", "room 7", "81001", ""], ["", "x", "", ""]]
    )
    assert rows_of.values is not None
    assert numbered_columns(rows_of.values).tolist() == [True, False, False, False]


def test_parts_of_an_address_share_what_they_tell() -> None:
    """Streets and postcodes are rarely shared, so that pairs by chance do not tie them; a third is told by each."""
    houses = make_houses(alone=60)
    facts = read(houses, houses).facts
    told = facts.equal[facts.cells[0][:5]].tolist()
    # An equal value tells log(0.7 / share); 30 rows are beside those of both tables. Of 200 in all two have
    # the name, and four the street and the postcode.
    rows = 230
    expected = [np.log(0.7 * rows / count) for count in (2, 2, 4, 4)]
    assert told[:4] == pytest.approx([*expected[:2], expected[2] / 3, expected[3] / 3], rel=1e-5)


def test_addresses_share_only_between_two_tables() -> None:
    """Within one table, rows that share an address may be one thing."""
    houses = make_houses(alone=60)
    facts = read(houses).facts
    told = facts.equal[facts.cells[0][2:4]].tolist()
    assert told == pytest.approx([np.log(0.7 * 130 / 2)] * 2, rel=1e-5)
    columns = [list(column) for column in zip(*houses, strict=True)]
    untied = read_rows([columns, columns], addresses=False).facts
    assert untied.equal[untied.cells[0][2]] == pytest.approx(np.log(0.7 * 230 / 4), rel=1e-5)
