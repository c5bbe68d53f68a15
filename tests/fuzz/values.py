"""Columns of cells that look like numbers, dates, phones and names, cut and put together: each is read and compared.

Nothing is raised, a pair has one level whichever column comes first, an equal text is equal or missing, the loops in C
have the likeness, the figures and the levels that Python has, and arrays that do not fit together are refused.
"""

from __future__ import annotations

import random
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from gramvec import native
from gramvec.jobs.pairs import figures_in_python
from gramvec.jobs.pairs.columns import BY_LETTERS
from gramvec.jobs.pairs.figures import OF_PAIR, column_levels, compare_columns, pair_figures, read_rows
from gramvec.jobs.pairs.jaro import jaro_winkler, pack_texts, text_likeness
from gramvec.jobs.pairs.levels import ALIKE, CONTRADICTS, DIFFERENT, EQUAL, MISSING, NEARLY, compare_values
from gramvec.jobs.pairs.tokens import fold_text, spell_column
from gramvec.jobs.pairs.values import read_column

PARTS = (
    "2.5", "2,50", "1.234,50", "1,234.50", "-20", "1/2", "½", "0", "007", "1e-3", "mg", "g", "kg", "\"", "'", "°C",
    "GB", "k",
    "%", "$", "€", "2020-01-05", "05.01.2020", "5/1/20", "Jan", "März", "января", "2020年1月5日", "T10:30:00Z", "+49",
    "(0)",
    "030", "555-0142", "x12", "@", "jo@example.com", "INV-1001", "14A", "Flat", "A-", "C++", "Jr", "III", "Francisca",
    "S.R.L.",
    "株式会社", "メルカリ", "sp. z o.o.", "N/A", "unknown", "-", "?", "…", "é", "ﷺ", "\ud800", "\x00", "٣", "\u200f",
    "🎉",
)  # fmt: skip
# Pairs of rows of a round, cells of a row, and characters of a cell, which Python compares slowly.
ROW_PAIRS, MOST_COLUMNS, MOST_CHARACTERS = 40, 4, 80
LEVELS = {CONTRADICTS, DIFFERENT, ALIKE, NEARLY, EQUAL, MISSING}


def prepare(bases: Path) -> None:
    """Make the folder that other parts fill."""
    bases.mkdir(parents=True, exist_ok=True)


def one_round(numbers: random.Random, bases: Path, folder: Path) -> None:
    """Read two columns, compare all of their cells, and give the loop what it must refuse."""
    columns = [[cell(numbers) for _ in range(numbers.randint(1, 12))] for _ in range(2)]
    columns[1] += numbers.sample(columns[0], numbers.randint(0, len(columns[0])))
    (folder / "columns").write_text(repr(columns))
    left, right = map(read_column, columns)
    i, j = (at.ravel() for at in np.meshgrid(np.arange(len(columns[0])), np.arange(len(columns[1]))))
    levels = compare_values(left, right, i, j)
    assert set(levels.tolist()) <= LEVELS
    np.testing.assert_array_equal(levels, compare_values(right, left, j, i))
    for a, b, level in zip(i.tolist(), j.tolist(), levels.tolist(), strict=True):
        assert columns[0][a] != columns[1][b] or level in (EQUAL, MISSING)
    folded = [fold_text(text) for text in columns[0]]
    assert len(spell_column(folded)) == len(folded)
    near = text_likeness(pack_texts(columns[0]), pack_texts(columns[1]), i, j)
    expected = [jaro_winkler(columns[0][a], columns[1][b]) for a, b in zip(i.tolist(), j.tolist(), strict=True)]
    np.testing.assert_array_equal(near, np.array(expected, np.float32))
    refuse(numbers, columns[0])
    compare_rows(numbers, folder)


def compare_rows(numbers: random.Random, folder: Path) -> None:
    """Compare rows of several columns in C and in Python, and give the loop rows of which one array is another."""
    width = numbers.randint(1, MOST_COLUMNS)
    tables = [
        [[cell(numbers) for _ in range(rows)] for _ in range(width)] for rows in numbers.choices(range(1, 8), k=2)
    ]
    for column, of_other in zip(*tables, strict=True):
        of_other[0] = numbers.choice([of_other[0], column[0]])
    tables = [[[*map(fold_text, texts)] for texts in table] for table in tables[: numbers.choice([1, 2, 2])]]
    (folder / "rows").write_text(repr(tables))
    rows = read_rows(tables)
    left, right = (
        np.array(numbers.choices(range(len(table[0])), k=ROW_PAIRS), np.int64) for table in (tables[0], tables[-1])
    )
    by_values = compare_columns(rows, left, right)
    given = np.array(numbers.choices([*LEVELS, BY_LETTERS], k=ROW_PAIRS * width), np.uint8).reshape(ROW_PAIRS, width)
    for levels in (by_values, given):
        in_python = figures_in_python.pair_figures(rows.tokens, rows.facts, left, right, levels)
        np.testing.assert_array_equal(pair_figures(rows, left, right, levels), in_python)
        expected = figures_in_python.column_levels(rows.tokens, rows.facts, left, right, levels)
        np.testing.assert_array_equal(column_levels(rows, left, right, levels), expected)
    loops: Any = native.loops
    if loops is None:
        return
    table = rows.tokens.tables[0]
    name = numbers.choice(table._fields)
    array = getattr(table, name).copy()
    if len(array):
        array[numbers.randrange(len(array))] = numbers.choice([0, 1, 2**31 - 1, len(array)])
    changed = table._replace(**{name: array[: numbers.choice([len(array), len(array) - 1, 0])]})
    known, facts = rows.tokens.vocabulary, rows.facts
    sides = ((facts.cells[0], facts.cells[-1]), facts.equal, facts.levels, (facts.weights[0], facts.weights[-1]))
    for loop, dtype, wide in ((loops.pair_figures, np.float32, len(OF_PAIR)), (loops.column_levels, np.uint8, width)):
        out = np.empty((ROW_PAIRS, wide), dtype)[: numbers.choice([ROW_PAIRS, ROW_PAIRS, ROW_PAIRS - 1])]
        with suppress(ValueError):
            loop(
                known[:5], known.heaviest, changed, rows.tokens.tables[-1], width, left, right, out,
                (facts.kinds, *sides, facts.rows), numbers.choice([by_values, given, given[1:], given + np.uint8(6)]),
            )  # fmt: skip


def cell(numbers: random.Random) -> str:
    """Return parts, with or without spaces between, of which letters are lost or doubled now and then."""
    text = numbers.choice(["", " "]).join(numbers.choice(PARTS) for _ in range(numbers.choice([0, 1, 1, 2, 3, 5])))
    for _ in range(numbers.choice([0, 0, 1, 3])):
        at = numbers.randint(0, len(text))
        text = text[:at] + numbers.choice(["", text[at : at + 1], numbers.choice("0,./-+ aZ")]) + text[at + 1 :]
    return text * numbers.choice([1] * 20 + [2, 30, 300])


def refuse(numbers: random.Random, texts: list[str]) -> None:
    """Give the loop arrays of which one is another: it compares them, or says that they do not fit."""
    loops: Any = native.loops
    if loops is None:
        return
    characters, starts = pack_texts(texts)
    pairs = np.array([numbers.choice([0, len(texts) - 1, len(texts), -1, 2**62]) for _ in range(3)], np.int64)
    wrong = starts.copy()
    wrong[numbers.randrange(len(wrong))] = numbers.choice([-1, 0, 2**31 - 1, len(characters), len(characters) + 1])
    out = np.empty(numbers.choice([3, 3, 3, 2, 0]), np.float32)
    try:
        loops.jaro_winkler(
            (characters, numbers.choice([starts, wrong])), (characters, starts), pairs, pairs[::-1].copy(), out
        )
    except ValueError as error:
        assert "do not fit" in str(error)
    else:
        assert ((out >= 0) & (out <= 1)).all()
