"""Golden records: the best value of a group in each column, by hand, in every form, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gramvec
from gramvec.errors import InputError
from gramvec.jobs import DedupeJob
from gramvec.jobs.common.file_job import OptionError
from gramvec.jobs.duplicates.merge import KINDS, MergeRule, groups_of, merge_records, parse_merge
from support.errors import refused

pytest.importorskip("sparse_dot_topn", reason="gramvec dedupe needs SciPy: pip install 'gramvec[match]'")

RECORDS: dict[int, dict[str, Any]] = {
    4: {"id": "a", "name": "Ann", "phone": "", "seen": "2020-01-05"},
    1: {"id": "b", "name": "Anna ", "phone": "1", "seen": "5 Jan 2024"},
    2: {"id": "c", "name": "Anne", "phone": "22", "seen": ""},
    3: {"id": "d", "name": "Anne", "phone": "1", "seen": "2021-12-31T10:00:00"},
}
NAMES = ["id", "name", "phone", "seen"]


def merged(*rules: Any, records: dict[int, dict[str, Any]] = RECORDS) -> dict[str, Any]:
    """What changes in row 4, which stands for all."""
    changed = merge_records(parse_merge(rules), {4: [4, 1, 2, 3]}, records, NAMES, "id")
    return changed.get(4, {})


@pytest.mark.parametrize(
    ("rules", "changed"),
    [
        (["filled"], {"phone": "1"}),
        # Spaces around a text do not make it longer: of those of four letters the first.
        (["longest"], {"name": "Anna ", "phone": "22", "seen": "2021-12-31T10:00:00"}),
        (["frequent"], {"name": "Anne", "phone": "1"}),
        (["newest:seen"], {"name": "Anna ", "phone": "1", "seen": "5 Jan 2024"}),
        (["name=frequent"], {"name": "Anne"}),
        (["filled", "name=frequent"], {"name": "Anne", "phone": "1"}),
        (["phone=newest:seen", "seen=longest"], {"phone": "1", "seen": "2021-12-31T10:00:00"}),
    ],
)
def test_rules_by_hand(rules: list[str], changed: dict[str, str]) -> None:
    assert merged(*rules) == changed


def test_a_moment_is_a_date_a_time_or_a_number() -> None:
    def newest(*moments: Any) -> Any:
        records = {
            row: {"id": "", "name": f"n{row}", "phone": "", "seen": moment} for row, moment in enumerate(moments)
        }
        rows = [*range(len(moments))]
        return merge_records(parse_merge("name=newest:seen"), {0: rows}, records, NAMES, None).get(0, {}).get("name")

    assert newest("2020-01-05", "2020-01-06") == "n1"
    assert newest("2020-01-06 09:00", "2020-01-06 10:00") == "n1"
    assert newest("2020-01-06T09:00:00+02:00", "2020-01-06T08:00:00Z") == "n1"
    assert newest(9, 10) == newest("9", "10") == newest(9.5, "10") == "n1"
    # Of equal moments the own; what has none is not newer.
    assert newest("2020-01-05", "2020-01-05") is newest("2020-01-05", "soon") is newest("2020-01-05", "x" * 100) is None
    assert newest("13.02.2020", "01.03.2020") == "n1" and newest("02/13/2020", "01/03/2020") is None
    with refused(InputError, "seen", "date", field="merge"):
        newest("soon", "later")


@pytest.mark.parametrize(
    "rules", ["last", "newest", "filled:x", "=longest", "name=", "name=last", ["longest", "longest"], {"a": "b"}, ""]
)
def test_other_rules_are_refused(rules: Any) -> None:
    with refused(InputError, "merge", field="merge"):
        parse_merge(rules)


@given(st.text() | st.lists(st.text()) | st.dictionaries(st.none() | st.text(), st.text()))
def test_any_text_is_a_rule_or_one_sentence(rules: Any) -> None:
    try:
        assert all(rule.kind in KINDS for rule in parse_merge(rules))
    except InputError as error:
        assert error.field == "merge"


def test_rules_of_all_kinds_are_read() -> None:
    expected = [MergeRule(None, "longest"), MergeRule("a=b", "newest", "at"), MergeRule("c", "filled")]
    assert parse_merge(["longest", r"a\=b=newest:at", "c=filled"]) == expected
    assert parse_merge({None: "longest", "a=b": "newest:at", "c": "filled"}) == expected
    assert parse_merge("frequent") == parse_merge([MergeRule(None, "frequent")]) == [MergeRule(None, "frequent")]


def test_columns_that_are_not_there_and_ids_are_refused() -> None:
    for rules, name in ((["nme=longest"], "nme"), (["newest:when"], "when"), (["id=longest"], "id")):
        with refused(InputError, "merge", name, field="merge"):
            merged(*rules)


VALUES = st.sampled_from(["", "a", "bb", " bb", "2020-01-01", "2021-01-01"])


@given(st.lists(st.tuples(VALUES, VALUES), min_size=1, max_size=8), st.sampled_from(["filled", "longest", "frequent"]),
       st.randoms())  # fmt: skip
def test_a_value_is_one_of_its_group_and_never_less_than_the_own(rows: Any, rule: str, random: Any) -> None:
    records = {row: {"name": name, "phone": phone} for row, (name, phone) in enumerate(rows)}
    stays = np.array([random.randrange(row + 1) for row in range(len(rows))], np.int64)
    stays = stays[stays]  # a row that stays stands for itself
    stays = np.where(stays[stays] == stays, stays, np.arange(len(stays)))
    groups = groups_of(stays)
    changed = merge_records(parse_merge(rule), groups, records, ["name", "phone"], None)
    assert changed.keys() <= groups.keys()
    for kept, members in groups.items():
        for name in ("name", "phone"):
            texts = [records[row][name].strip() for row in members]
            value = changed.get(kept, {}).get(name, records[kept][name])
            assert value in [records[row][name] for row in members]
            filled = [text for text in texts if text]
            assert bool(value.strip()) == bool(filled)
            if rule == "longest":
                assert len(value.strip()) == max(map(len, texts))
            if rule == "frequent" and filled:
                assert filled.count(value.strip()) == max(map(filled.count, filled))
            if rule == "filled" and records[kept][name].strip():
                assert value == records[kept][name]


ROWS = [
    {"id": "p1", "name": "Maria Gonzalez", "street": "12 Oak Street", "phone": ""},
    {"id": "p2", "name": "Anna Lindqvist", "street": "7 Mill Lane", "phone": "312"},
    {"id": "p3", "name": "Maria  Gonzalez", "street": "12 Oak Street", "phone": "217; \"b\""},
]  # fmt: skip
MERGED = [{"id": "p1", "name": "Maria Gonzalez", "street": "12 Oak Street", "phone": '217; "b"'}, ROWS[1]]


def kinds() -> dict[str, Any]:
    columns = {name: [row[name] or None for row in ROWS] for name in ROWS[0]}
    found: dict[str, Any] = {"dicts": ROWS, "dict of lists": columns}
    for library, make in (("pandas", "DataFrame"), ("polars", "DataFrame"), ("pyarrow", "table")):
        try:
            found[library] = getattr(__import__(library), make)(columns)
        except ImportError:
            continue
    return found


@pytest.mark.parametrize("kind", kinds())
def test_in_python_any_table_is_merged(kind: str) -> None:
    rows = kinds()[kind]
    found = gramvec.dedupe(rows, on=["name", "street"], id="id")
    assert found.merge(rows, "filled") == {name: [row[name] for row in MERGED] for name in ROWS[0]}
    with refused(InputError, "rows", "3"):
        found.merge(ROWS[:2], "filled")


def test_texts_are_merged() -> None:
    texts = ["Oaks Nursery", "pears", "oaks  nursery!"]
    assert gramvec.dedupe(texts).merge(texts, "longest") == {"text": ["oaks  nursery!", "pears"]}


def run(source: Path, output: str, **options: Any) -> Path:
    made = source.with_name(output)
    DedupeJob(source=source, unique=made, merge="filled", on=["name", "street"], **options).run()
    return made


def test_a_file_keeps_its_own_form(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    lines = ["id;name;street;phone", 'p1;Maria Gonzalez;"12 Oak Street";', "p2;Jürgen ; 7 Mill Lane;312",
             'p3;Maria  Gonzalez;12 Oak Street;"217; ""b"""']  # fmt: skip
    for encoding, mark in (("utf-8", b"\xef\xbb\xbf"), ("cp1252", b"")):
        path.write_bytes(mark + "\r\n".join([*lines, ""]).encode(encoding))
        made = run(path, "clean.csv", encoding=encoding, overwrite=True).read_bytes()
        wanted = [lines[0], 'p1;Maria Gonzalez;12 Oak Street;"217; ""b"""', lines[2], ""]
        assert made == mark + "\r\n".join(wanted).encode(encoding)


def test_every_form_is_merged(tmp_path: Path) -> None:
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    orjson = pytest.importorskip("orjson")
    (tmp_path / "a.jsonl").write_bytes(b"".join(orjson.dumps(row) + b"\n" for row in ROWS))
    made = run(tmp_path / "a.jsonl", "b.jsonl").read_bytes()
    assert [orjson.loads(line) for line in made.splitlines()] == MERGED
    table = pa.table({name: [row[name] or None for row in ROWS] for name in ROWS[0]})
    pq.write_table(table, tmp_path / "a.parquet")
    read = pq.read_table(run(tmp_path / "a.parquet", "b.parquet"))
    assert read.to_pylist() == MERGED and read.schema == table.schema
    tsv = tmp_path / "a.tsv"
    tsv.write_text("\n".join("\t".join(row) for row in [ROWS[0], *(row.values() for row in ROWS)]))
    assert run(tsv, "b.tsv").read_text() == "\n".join(
        ["\t".join(row) for row in [ROWS[0], *(row.values() for row in MERGED)]] + [""]
    )
    other = pq.read_table(run(tsv, "c.parquet")).to_pylist()
    assert other == MERGED
    lines = tmp_path / "a.txt"
    lines.write_bytes(b"\xef\xbb\xbfOaks Nursery\npears\noaks  nursery!\n")
    DedupeJob(source=lines, unique=tmp_path / "b.txt", merge="longest").run()
    assert (tmp_path / "b.txt").read_bytes() == b"\xef\xbb\xbfoaks  nursery!\npears\n"


def test_what_cannot_be_is_refused_before_the_work(tmp_path: Path) -> None:
    for options in ({}, {"unique": "b.csv", "against": tmp_path}):
        with refused(OptionError, "merge", "unique", field="merge"):
            DedupeJob(source="a.csv", merge="longest", **options)
    path = tmp_path / "a.csv"
    path.write_text("text,b\nx,1\n")
    with refused(InputError, "merge", "c", "text, b", field="merge"):
        DedupeJob(source=path, unique=tmp_path / "b.csv", merge={"c": "longest"}).run()
    assert not (tmp_path / "b.csv").exists()
