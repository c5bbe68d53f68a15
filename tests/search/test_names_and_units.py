"""Searches of shops: a brand beside a common word, numbers with a unit, pages, totals and rows by their ids."""

from __future__ import annotations

import json
from pathlib import Path

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gramvec
from gramvec.errors import InputError
from gramvec.jobs.search.documents import plain_number
from gramvec.lexical.units import UNITS, with_units
from gramvec.server.settings import Settings
from support.bulk import gramvec_command
from support.errors import assert_names, refused
from support.http import PATIENCE, running

pytest.importorskip("tantivy", reason="tantivy is not installed: pip install '.[search]'")

# Written for this test: brands that no model knows, beside common words that other products have in full.
GOODS = [
    "ZYVORAX 10% OINTM 15GM", "ZYVORAX SOLU. 100ML", "ZYVORAX GARGLE 50ML", "HALOX OINTMENT", "CLONATE OINTMENT",
    "ARNOPEN OINTMENT", "QUELDRIN SYP 60ML", "QUELDRIN TAB", "ROFY SYRUP", "LCF SYRUP", "memory 16 gb", "memory 64gb",
    "memory 8 GB", "video cable 3m", "video cable 5 m", "video cable 10 meters",
]  # fmt: skip
ROWS = [{"key": f"k{at}", "name": name, "price": f"{at}.50"} for at, name in enumerate(GOODS)]


@pytest.fixture(scope="module")
def goods(tmp_path_factory: pytest.TempPathFactory, embedder: gramvec.Embedder) -> gramvec.Index:
    path = tmp_path_factory.mktemp("goods") / "goods.index"
    return gramvec.Index.build(path, ROWS, model=embedder, column="name", id="key", filter=["price:number"])


@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("zyvorax ointment", "ZYVORAX"), ("queldrin syrup", "QUELDRIN"),
        ("64 gb memory", "memory 64gb"), ("memory 64 gigabytes", "memory 64gb"), ("8gb memory", "memory 8 GB"),
        ("video cable 3 meters", "video cable 3m"), ("5m video cable", "video cable 5 m"),
        ("video cable 10m", "video cable 10 meters"), ("halox ointment", "HALOX"), ("ointment", "OINTMENT"),
    ],
)  # fmt: skip
def test_the_rare_word_and_the_number_decide(query: str, first: str, goods: gramvec.Index) -> None:
    assert first in goods.search(query, k=1)[0][0].record["name"]


def test_a_name_finds_all_that_have_it_before_others(goods: gramvec.Index) -> None:
    found = [hit.record["name"] for hit in goods.search("zyvorax ointment", k=3)[0]]
    assert all(name.startswith("ZYVORAX") for name in found)
    scores = [hit.score for hit in goods.search("zyvorax ointment", k=16)[0]]
    assert scores == sorted(scores, reverse=True)
    # Of a name that no document has, meaning and the other words decide.
    assert "OINTMENT" in goods.search("wkwqjx ointment", k=1)[0][0].record["name"]


@pytest.mark.parametrize(
    "query", ["bosh", "bosh drill", "bosh angle grinder", "bosh angel grindr", "bosh anglee grindr 18v", "bosh jigsw"]
)
def test_a_misspelt_brand_is_before_another_that_begins_as_it_does(
    query: str, tmp_path: Path, embedder: gramvec.Embedder
) -> None:
    goods = ("angle grinder 18V", "cordless drill 12V", "jigsaw 600W", "bluetooth speaker", "electric shaver")
    names = [f"{brand} {name}" for brand in ("Bose", "Braun", "Makita", "Bosch", "Sony") for name in goods]
    index = gramvec.Index.build(tmp_path / "brands.index", names, model=embedder)
    assert index.search(query, k=1)[0][0].record["text"].startswith("Bosch")


@pytest.mark.parametrize(
    ("query", "spelled"),
    [
        ("ram 32 gb", "ram 32 gb 32gb"), ("32GB ram", "32 gb 32gb ram"), ("cable 3 meters", "cable 3 m 3m"),
        ("2.5mg", "2.5 mg 2.5mg"), ("top 10 hits", "top 10 hits"), ("6205-2Z", "6205-2Z"), ("a32 gb", "a32 gb"),
        ("", ""),
    ],
)  # fmt: skip
def test_numbers_with_a_unit_by_hand(query: str, spelled: str) -> None:
    assert with_units(query) == spelled


@given(st.text("0123456789 .gbmetrs", max_size=60))
def test_units_are_spelled_in_bounded_room(query: str) -> None:
    spelled = with_units(query)
    assert len(spelled) <= len(query) + 16 * 40
    assert with_units("x" * 1_000) == "x" * 1_000
    assert all(short == short.lower() for short in UNITS)
    british = "met" + "res"
    assert with_units(f"3 {british}") == "3 m 3m"


def test_pages_are_cuts_of_one_list(goods: gramvec.Index) -> None:
    whole = [hit.id for hit in goods.search("ointment", k=9)[0]]
    for first, k in ((0, 4), (4, 5), (2, 3)):
        assert [hit.id for hit in goods.search("ointment", k=k, offset=first)[0]] == whole[first : first + k]
    assert goods.search("ointment", k=1, offset=9_999)[0] == []
    for offset in (-1, 10_000, True, 1.0):
        with refused(InputError, "offset", field="offset"):
            goods.search("ointment", k=1, offset=offset)


def test_totals_rows_and_ids(goods: gramvec.Index) -> None:
    assert (goods.count(), goods.count({"price": {"gte": 10}}), goods.count({"price": 99})) == (16, 6, 0)
    assert goods.get(["k3", "none"]) == [{"key": "k3", "name": "HALOX OINTMENT", "price": 3.5}, None]
    assert [given_id for given_id, _ in goods.items()] == [row["key"] for row in ROWS]
    assert dict(goods.items())["k0"]["price"] == 0.5


def test_numbers_come_back_as_numbers(tmp_path: Path, goods: gramvec.Index) -> None:
    (hit,) = goods.search("halox", k=1)[0]
    assert hit.record == {"key": "k3", "name": "HALOX OINTMENT", "price": 3.5}
    done = gramvec_command("index", "get", goods.path, "k1", "k2")
    assert [json.loads(line) for line in done.stdout.splitlines()] == [
        {"id": f"k{at}", "record": {"key": f"k{at}", "name": GOODS[at], "price": at + 0.5}} for at in (1, 2)
    ]
    assert len(gramvec_command("index", "get", goods.path).stdout.splitlines()) == 16
    failed = gramvec_command("index", "get", goods.path, "k1", "gone")
    assert failed.returncode == 1 and failed.stdout == b""
    assert_names(failed.stderr.decode(), "gone", "1 of 2 ids")
    paged = gramvec_command("search", goods.path, "ointment", "-k", "2", "--offset", "1", "--format", "jsonl")
    assert [json.loads(line)["id"] for line in paged.stdout.splitlines()] == [
        hit.id for hit in goods.search("ointment", k=3)[0][1:]
    ]


@given(st.one_of(st.integers(-(10**15) + 1, 10**15 - 1), st.floats(allow_nan=False, allow_infinity=False)))
def test_a_number_is_its_text(number: float) -> None:
    assert plain_number(repr(number)) == number


@pytest.mark.parametrize("text", ["", "12345678901234567890.1", "1_000", "nan", "x", "99999999999999999999"])
def test_what_no_number_is_stays_a_text(text: str) -> None:
    assert plain_number(text) == text


def test_the_service_finds_what_the_library_finds(goods: gramvec.Index, embedder: gramvec.Embedder) -> None:
    asked = ["zyvorax ointment", "64 gb memory", "ointment"]
    with running(Settings(index=(f"goods={goods.path}",)), [embedder]) as started:
        found = httpx.post(f"{started.url}/search", json={"queries": asked, "k": 5}, timeout=PATIENCE).json()["results"]
    wanted = [[hit.id for hit in hits] for hits in goods.search(asked, k=5)]
    assert [[hit["id"] for hit in hits] for hits in found] == wanted
