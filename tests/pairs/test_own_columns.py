"""Columns in which one thing has another value in each table: found, and only these, whatever the order of rows."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

import gramvec
from gramvec.jobs.pairs import own_columns
from gramvec.jobs.pairs.own_columns import find_own_columns
from gramvec.jobs.pairs.values import ColumnValues, read_column
from support.bulk import gramvec_command

pytest.importorskip("sparse_dot_topn", reason="gramvec match needs SciPy: pip install 'gramvec[match]'")

Rows = list[dict[str, str]]
FIRST = ("anna", "bert", "carla", "david", "emma", "frank", "greta", "hugo", "irene", "jonas", "klara", "luis")
LAST = ("adler", "bergmann", "castro", "dubois", "eriksen", "fischer", "garcia", "horvat", "ivanov", "jensen")
TOWNS = ("rome", "oslo", "kiel", "bath", "lyon")
WORDS = (
    "called",
    "twice",
    "asked",
    "about",
    "delivery",
    "invoice",
    "wants",
    "nothing",
    "more",
    "paid",
    "late",
    "again",
)


def draw_day(drawn: Random, first: int, last: int) -> str:
    return f"{drawn.randint(first, last)}-{drawn.randint(1, 12):02}-{drawn.randint(1, 28):02}"


def make_people(number: int, drawn: Random) -> Rows:
    names = [f"{first} {last}" for first in FIRST for last in LAST]
    return [
        {"name": name, "town": drawn.choice(TOWNS), "born": draw_day(drawn, 1940, 2005)}
        for name in drawn.sample(names, number)
    ]


def add_own(rows: Rows, drawn: Random, start: int) -> Rows:
    """Return rows with a number, a day and a note of their table."""
    return [
        row
        | {
            "number": str(start + 3 * place),
            "entered": draw_day(drawn, 2020, 2025),
            "note": " ".join(drawn.sample(WORDS, 6)),
        }
        for place, row in enumerate(rows)
    ]


def two_registers(seed: int = 0) -> tuple[Rows, Rows]:
    """Return 80 people and 80 others, of which 40 are the same, each table with columns of its own."""
    drawn = Random(seed)
    people = make_people(120, drawn)
    left, right = people[:80], people[40:]
    drawn.shuffle(right)
    return add_own(left, drawn, 1000), add_own(right, drawn, 70_000)


def find(left: Rows, right: Rows) -> set[str]:
    names = [*left[0]]
    return {
        names[place]
        for place in find_own_columns([[[row[name] for row in side] for name in names] for side in (left, right)])
    }


@pytest.mark.parametrize("seed", range(3))
def test_a_number_a_day_and_a_note_of_each_table(seed: int):
    left, right = two_registers(seed)
    assert find(left, right) == {"number", "entered", "note"}
    Random(1).shuffle(left)
    turned = [dict(reversed(row.items())) for row in right]
    assert find([dict(reversed(row.items())) for row in left], turned) == {"number", "entered", "note"}


def test_matches_are_those_without_them():
    left, right = two_registers()
    plain = gramvec.match(left, right, on=["name", "town", "born"])
    found = gramvec.match(left, right, on=[*left[0]])
    assert [part.tolist() for part in found.matches] == [part.tolist() for part in plain.matches]
    assert len(found.left) == 40
    assert [*found.ignored] == ["number", "entered", "note"]
    assert [*plain.ignored] == []
    assert repr(found).endswith("without number, entered, note)")


def test_rows_that_both_tables_number_from_0():
    drawn = Random(0)
    titles = [f"{' '.join(drawn.sample(WORDS, 4))} {drawn.randint(100, 999)}" for _ in range(120)]
    left = [{"id": str(row), "title": title} for row, title in enumerate(titles[:80])]
    # No title is equal.
    right = [{"id": str(row), "title": f"new {title}"} for row, title in enumerate(drawn.sample(titles[40:], 80))]
    assert find(left, right) == {"id"}
    assert [*gramvec.match(left, right, on=["id", "title"]).ignored] == ["id"]


def test_a_key_that_both_tables_have_stays():
    drawn = Random(0)
    people = [row | {"key": str(number)} for number, row in enumerate(make_people(120, drawn))]
    assert find(people[:80], people[40:]) == set()


def test_what_tells_things_apart_stays():
    drawn = Random(0)
    names = [f"{first} {last}" for first in FIRST for last in LAST]
    makers = [f"{name} pharma" for name in drawn.sample(names, 100)]
    drugs = [
        {"drug": drug, "maker": maker, "dose": dose}
        for drug, maker in zip(drawn.sample(names, 100), makers, strict=True)
        for dose in drawn.sample(["10 mg", "25 mg", "50 mg", "100 mg"], 3)
    ]
    drawn.shuffle(drugs)
    # None of one half is in the other one.
    assert find(drugs[:150], drugs[150:]) == set()


@pytest.mark.parametrize("in_one", [False, True])
def test_a_family_differs_in_its_first_names_alone(in_one: bool):
    drawn = Random(0)
    houses = [
        {"last": f"{last}{number}", "street": f"{drawn.choice(WORDS)} street {number}", "phone": f"030 5550{number:03}"}
        for number, last in enumerate(LAST * 6)
    ]
    sides = []
    for names in (FIRST[::2], FIRST[1::2]):
        side = [
            {"first": drawn.choice(names), "born": draw_day(drawn, 1940, 2000), "mail": f"{drawn.random()}@x.org"}
            | house
            for house in houses
        ]
        if in_one:
            side = [row | {"last": "", "first": f"{row['first']} {row['last']}"} for row in side]
        sides.append(side)
    assert find(*sides) == set()


def test_others_of_one_name_differ_in_their_days():
    drawn = Random(0)
    people = make_people(100, drawn)
    others = [row | {"born": draw_day(drawn, 1940, 2005), "town": drawn.choice(TOWNS)} for row in people]
    assert find(people, others) == set()


def test_other_papers_of_the_same_authors_differ_in_their_titles():
    drawn = Random(0)
    sides: list[Rows] = [
        [{"authors": f"{a}, {b}", "title": " ".join(drawn.sample(WORDS, 6)), "year": str(drawn.randint(1990, 2020))}
         for a in LAST for b in FIRST]
        for _ in range(2)
    ]  # fmt: skip
    assert find(*sides) == set()


def test_of_one_table_and_of_few_rows_nothing_is_said():
    left, right = two_registers()
    columns = [[row[name] for row in left] for name in left[0]]
    assert find_own_columns([columns]) == []
    assert find(left[:45], right[:5]) == set()
    assert find_own_columns([[[], []], [[], []]]) == []


@pytest.mark.parametrize(("rows", "columns"), [(100, 4), (300, 16), (1_200, 3)])
def test_a_part_of_the_cells_is_read(monkeypatch: pytest.MonkeyPatch, rows: int, columns: int):
    drawn = Random(0)
    table = [[f"{drawn.random()} {'letters ' * 40}" for _ in range(rows)] for _ in range(columns)]
    read: list[str] = []

    def count(texts: list[str]) -> ColumnValues:
        read.extend(texts)
        return read_column(texts)

    monkeypatch.setattr(own_columns, "LOOKED_AT", 400)
    monkeypatch.setattr(own_columns, "read_column", count)
    assert find_own_columns([table, [[*column] for column in table]]) == []
    # Each pair of both tables in all columns, and those by chance. A part of the values is a quarter more by chance.
    assert columns * own_columns.FEWEST < len(read) <= 2 * columns * (1.25 * 400 + own_columns.BY_CHANCE)
    assert max(map(len, read)) <= own_columns.MOST_CHARACTERS


cells = st.sampled_from(["", "a", "1", "2", "n/a", "anna adler", "2020-01-01", "one two three four five"]) | st.text(
    max_size=6
)


@given(st.integers(1, 4), st.lists(cells, max_size=60), st.lists(cells, max_size=60))
def test_any_tables(columns: int, left: list[str], right: list[str]):
    tables = [[side[at::columns][: len(side) // columns] for at in range(columns)] for side in (left, right)]
    found = find_own_columns(tables)
    assert found == sorted({*found}) and {*found} <= {*range(columns)}


def test_the_command_says_so(tmp_path: Path):
    for name, rows in zip(("ours", "theirs"), two_registers(), strict=True):
        lines = [",".join(rows[0]), *(",".join(row.values()) for row in rows)]
        (tmp_path / f"{name}.csv").write_text("\n".join(lines) + "\n")
    files = [str(tmp_path / f"{name}.csv") for name in ("ours", "theirs", "matches")]
    on = [word for name in ("name", "town", "born", "number", "entered", "note") for word in ("--on", name)]
    done = gramvec_command("match", *files[:2], *on, "-o", files[2])
    assert done.returncode == 0, done.stderr
    told = 'without "number" and "entered" and "note": rows that are otherwise one thing differ there'
    assert told in done.stderr.decode()
