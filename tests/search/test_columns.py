"""Conditions on columns: tantivy, the files of columns and a plain reading of the records agree."""

from __future__ import annotations

import math
import os
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import gramvec
from gramvec.errors import InputError
from gramvec.jobs.search import columns as columns_module
from gramvec.jobs.search import snapshot as snapshot_module
from gramvec.jobs.search.columns import ColumnFile, ColumnWriter
from gramvec.jobs.search.filters import (
    FilterColumn,
    columns_of,
    conditions_of,
    parse_conditions,
    query_of,
    value_of,
    values_in,
)
from gramvec.jobs.search.segments import tantivy
from support.errors import refused

pytest.importorskip("tantivy", reason="tantivy is not installed: pip install '.[search]'")

TEAMS = ["post", "web", "", None, "a b", "['x']", ["post", "web"], [], ["web", None], True, 7]
PRICES = [3, 4.5, -1, "2", None, "", [1, 9], 0, 2**53, -0.0, "1e-05", Decimal("0.5")]
DAYS = [
    "2024-01-05", "2024-01-05T23:59:59.999999", "2024-01-06T00:00:00Z", "2024-01-05T23:30:00-02:00", None,
    ["2024-01-04", "2024-01-07"], "1969-12-31", "2024-01-05T12:00:00.000001",
]  # fmt: skip
FILTERS = ["team:text", "price:number", "day:date"]
ROWS = [
    {
        "text": f"row {at}",
        "team": TEAMS[at % len(TEAMS)],
        "price": PRICES[at % len(PRICES)],
        "day": DAYS[at % len(DAYS)],
    }
    for at in range(300)
]
TEAM = st.sampled_from([one for one in TEAMS if not isinstance(one, list)] + ["nothing"])
PRICE = st.sampled_from([3, 4.5, "9", None, 0, -0.0, 7, 2**53, 1e-05, Decimal("0.5"), np.float32(4.5), np.int64(3)])
MOMENT = st.sampled_from(
    [
        "2024-01-05", "2024-01-05T23:59:59.999999", date(2024, 1, 5), datetime(2024, 1, 6), "2024-01-04T00:00:00Z",
        datetime(2024, 1, 6, 1, 30, tzinfo=UTC), np.datetime64("2024-01-05T12:00:00.000001"), "1969-12-31", "20240107",
    ]
)  # fmt: skip


def condition(values: Any, bounds: bool) -> Any:
    several = (
        values | st.lists(values, max_size=4) | st.fixed_dictionaries({"ne": values | st.lists(values, max_size=3)})
    )
    if not bounds:
        return several
    ends = values.filter(lambda one: one is not None)
    lower = st.fixed_dictionaries({}) | st.fixed_dictionaries({"gt": ends}) | st.fixed_dictionaries({"gte": ends})
    upper = st.fixed_dictionaries({"lt": ends}) | st.fixed_dictionaries({"lte": ends})
    return several | st.builds(lambda a, b: a | b, lower, upper)


WHERE = st.fixed_dictionaries(
    {},
    optional={
        "team": condition(TEAM.filter(lambda one: one != ""), False),
        "price": condition(PRICE, True),
        "day": condition(MOMENT | st.none(), True),
    },
)


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory, small: gramvec.Embedder) -> gramvec.Index:
    rows = [{name: str(value) if isinstance(value, Decimal) else value for name, value in row.items()} for row in ROWS]
    made = gramvec.Index.build(tmp_path_factory.mktemp("c") / "x.index", rows[:200], model=small, filter=FILTERS)
    made.add(rows[200:])
    return made


def instants(value: Any) -> tuple[datetime, datetime]:
    """The first and the last moment that a value names."""
    whole = type(value) is date or (isinstance(value, str) and "T" not in value)
    if isinstance(value, np.datetime64):
        value = value.astype("datetime64[us]").tolist()
    if isinstance(value, str):
        value = datetime.fromisoformat(value)
    if type(value) is date:
        value = datetime(value.year, value.month, value.day)
    first = value.astimezone(UTC) if value.tzinfo else value.replace(tzinfo=UTC)
    return first, first + (timedelta(days=1, microseconds=-1) if whole else timedelta())


def is_within(kind: str, held: Any, given: Any) -> bool:
    """A plain reading of one condition over the record's value."""
    values = values_in(held)

    def equal(wanted: Any) -> bool:
        if wanted is None:
            return not values
        if kind == "date":
            first, last = instants(wanted)
            return any(first <= instants(one)[0] <= last for one in values)
        if kind == "number":
            return any(float(one) == float(wanted) for one in values)
        return any(value_of("text", one) == value_of("text", wanted) for one in values)

    if not isinstance(given, dict):
        return any(map(equal, given if isinstance(given, list) else [given]))
    if "ne" in given:
        unwanted = given["ne"] if isinstance(given["ne"], list) else [given["ne"]]
        return not any(map(equal, unwanted))

    def inside(one: Any) -> bool:
        compare = {
            "gt": lambda a, end: a > end[1], "gte": lambda a, end: a >= end[0],
            "lt": lambda a, end: a < end[0], "lte": lambda a, end: a <= end[1],
        }  # fmt: skip
        if kind == "date":
            return all(compare[name](instants(one)[0], instants(end)) for name, end in given.items())
        return all(compare[name](float(one), (float(end), float(end))) for name, end in given.items())

    return any(map(inside, values))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(where=WHERE, slab=st.sampled_from([7, 1 << 18]))
def test_all_readings_of_conditions_agree(index: gramvec.Index, where: dict[str, Any], slab: int) -> None:
    kinds = {"team": "text", "price": "number", "day": "date"}
    expected = [
        at
        for at, row in enumerate(ROWS)
        if all(is_within(kinds[name], row[name], given) for name, given in where.items())
    ]
    conditions = conditions_of(index.manifest.filters, where)
    snapshot = index.snapshot()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(columns_module, "SLAB", slab)
        snapshot._allowed.clear()
        found = snapshot._rows_within(conditions)
    assert (list(range(300)) if found is None else found.rows().tolist()) == expected
    query = query_of(tantivy(), snapshot._schema, snapshot._fields, conditions)
    hits = snapshot._searcher.search(query, 300, count=False).hits
    assert sorted(snapshot._rows([one for _, one in hits])) == expected


@pytest.mark.parametrize("compared", [20, 1 << 15])
def test_rows_within_conditions_are_searched_as_if_there_were_no_others(
    index: gramvec.Index, monkeypatch: pytest.MonkeyPatch, compared: int
) -> None:
    monkeypatch.setattr(snapshot_module, "COMPARED_ROWS", compared)
    for where in ({"team": "post"}, {"price": {"gte": 1}}, {"day": {"ne": None}}, {"team": {"ne": ["post", "web"]}}):
        for only in (None, "letters", "meaning"):
            hits = index.search("row 17", 300, where=where, only=only)[0]  # type: ignore[arg-type]
            all_of_them = index.search("row 17", 300, only=only)[0]  # type: ignore[arg-type]
            there = {str(row + 1) for row in _rows(index, where)}
            assert {hit.id for hit in hits} == {hit.id for hit in all_of_them} & there


def _rows(index: gramvec.Index, where: Any) -> list[int]:
    found = index.snapshot()._rows_within(conditions_of(index.manifest.filters, where))
    assert found is not None
    return found.rows().tolist()


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (["02134", "10001"], "text"),
        (["1e5", "22"], "text"),
        (["1_000"], "text"),
        (["nan", "1"], "text"),
        (["9007199254740993"], "text"),
        ([9007199254740993], "text"),
        (["1e-05", "2.5", "-3", "+4", ".5", "0", "0.1"], "number"),
        ([1, 2.5, None, ""], "number"),
        ([[1, 2], 3], "number"),
        (["2024-01-05", "2024-01-05T10:00:00Z"], "date"),
        (["20240105"], "number"),
        ([True, False], "text"),
        ([["a", "b"]], "text"),
    ],
)
def test_what_a_column_holds_follows_from_its_values(values: list[Any], kind: str) -> None:
    (found,) = columns_of(["c"], [{"c": value} for value in values])
    assert found.kind == kind


def test_a_code_in_a_column_of_numbers_stops_the_build(tmp_path: Path, small: gramvec.Embedder) -> None:
    rows = [{"text": "a", "zip": "10001"}] * 3_000 + [{"text": "b", "zip": "02134"}]
    with refused(InputError, "02134", "zip"):
        gramvec.Index.build(tmp_path / "x", rows, model=small, filter=["zip"])
    index = gramvec.Index.build(tmp_path / "x", rows, model=small, filter=["zip:text"])
    assert [hit.id for hit in index.search("b", where={"zip": "02134"})[0]] == ["3001"]
    assert index.search("b", where={"zip": "2134"}) == [[]]


@pytest.mark.parametrize(
    "value", [2**53 + 1, "9007199254740993", "9007199254740993.0", 1e300, "1e400", math.inf, "nan"]
)
def test_numbers_that_have_equal_neighbors_are_refused(index: gramvec.Index, value: Any) -> None:
    with refused(InputError, "price", "number"):
        index.search("x", where={"price": value})
    with pytest.raises(ValueError, match=r"^$"):
        value_of("number", value)


def test_conditions_of_a_command_may_have_spaces_and_be_negative() -> None:
    assert parse_conditions(["price >= 6", "price < 9"]) == {"price": {"gte": "6", "lt": "9"}}
    assert parse_conditions(["a != x", "a!=y"]) == {"a": {"ne": ["x", "y"]}}
    assert parse_conditions(["a=", "b!="]) == {"a": [None], "b": {"ne": [None]}}
    assert parse_conditions(["a= x"]) == {"a": [" x"]}
    assert parse_conditions(["a>=1", "a!=3"]) == {"a": {"gte": "1", "ne": ["3"]}}
    with refused(InputError, "on a"):
        parse_conditions(["a=1", "a!=2"])


def test_a_column_grows_in_any_steps_and_lost_rows_are_cut_off(tmp_path: Path) -> None:
    path, column = tmp_path / "filter0.bin", FilterColumn(column="n", kind="number")
    (within,) = conditions_of([column], {"n": {"gte": 2}})
    for first, values in ((0, [[1.0], [2.0, 3.0]]), (2, [[], [5.0]]), (2, [[0.0], [9.0], [9.0]]), (4, [[2.0]])):
        writer = ColumnWriter(path, "number", first)
        writer.append(first, values)
        writer.save()
        writer.close()
    assert ColumnFile(path, "number", 5).within(within).tolist() == [False, True, False, True, True]
    assert ColumnFile(path, "number", 2).within(within).tolist() == [False, True]


def test_forged_columns_do_no_harm(tmp_path: Path) -> None:
    path, column = tmp_path / "filter0.bin", FilterColumn(column="n", kind="number")
    (within,) = conditions_of([column], {"n": {"ne": 2}})
    entries = np.zeros(3, columns_module.ENTRIES["number"])
    entries["row"] = [2**32 - 1, 1, 1]
    path.write_bytes(entries.tobytes() + b"half")
    with pytest.raises(InputError, match="a damaged index"):
        ColumnFile(path, "number", 5).within(within)
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(InputError, match="unreadable|damaged"):
        ColumnFile(path, "number", 5).within(within)
    path.unlink()
    with pytest.raises(InputError, match="unreadable"):
        ColumnFile(path, "number", 5)


def test_columns_that_are_not_those_of_the_documents_are_refused(tmp_path: Path, small: gramvec.Embedder) -> None:
    path = tmp_path / "x.index"
    rows = [{name: str(value) if isinstance(value, Decimal) else value for name, value in row.items()} for row in ROWS]
    gramvec.Index.build(path, rows, model=small, filter=FILTERS)
    for name, column in (("filter0.bin", "team"), ("filter1.bin", "price"), ("filter2.bin", "day")):
        (file,) = path.glob(f"*/{name}")
        data = file.read_bytes()
        for changed in (data[: len(data) // 2], data[:4] + bytes(8) + data[12:]):
            file.write_bytes(changed)
            with refused(InputError, "damaged", column):
                gramvec.Index(path, model=small)
        file.write_bytes(data)
    assert len(gramvec.Index(path, model=small)) == 300
