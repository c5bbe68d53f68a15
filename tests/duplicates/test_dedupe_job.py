"""`DedupeJob`: a Python program does with a file what `gramvec dedupe` does."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

import gramvec
from gramvec.errors import InputError
from gramvec.jobs.common.file_job import OptionError
from gramvec.jobs.common.watch import JobWatch
from gramvec.jobs.duplicates.job import DedupeJob
from support.bulk import MODEL
from support.errors import assert_names, refused

pytest.importorskip("sparse_dot_topn", reason="gramvec dedupe needs SciPy: pip install 'gramvec[match]'")

PEOPLE = """id,name,street,phone
7,Oaks Nursery,7 Mill Lane,
8,bananas,1 Long Road,312
9,Oak Nursery,7 Mill Lane,312-555-0142
10,,,
"""


@pytest.fixture
def people(tmp_path: Path) -> Path:
    path = tmp_path / "people.csv"
    path.write_text(PEOPLE)
    return path


def test_a_record_lists_duplicates_and_writes_what_stays(people: Path, capfd: pytest.CaptureFixture[str]) -> None:
    job = DedupeJob(
        source=people, on=["name", "street"], output=people.with_name("pairs.csv"), columns="all", keep="complete",
        unique=people.with_name("kept.csv"), report=people.with_name("report.html"),
    )  # fmt: skip
    result = job.run()
    assert [result.ids[row] for row in result.dropped] == ["7"]
    assert result.duplicates is not None and result.duplicates.empty == 1 and result.known == []
    with people.with_name("pairs.csv").open(newline="") as file:
        (pair,) = csv.DictReader(file)
    assert (pair["id"], pair["other_id"], pair["other_phone"]) == ("7", "9", "312-555-0142")
    kept = people.with_name("kept.csv").read_text().splitlines()
    assert [line.partition(",")[0] for line in kept] == ["id", "8", "9", "10"]
    assert "<html" in people.with_name("report.html").read_text()
    assert capfd.readouterr() == ("", "")


def test_without_an_output_no_file_is_written(people: Path) -> None:
    result = DedupeJob(source=str(people), on=["name", "street"]).run()
    assert result.duplicates is not None and len(result.duplicates.pairs.left) == 1
    assert [path.name for path in people.parent.iterdir()] == ["people.csv"]


def test_rows_that_an_index_has_already(people: Path) -> None:
    index = gramvec.Index.build(
        people.with_name("known.index"), ["Oaks Nursery"], model=gramvec.load(MODEL, device="cpu")
    )
    result = DedupeJob(source=people, on=["name=text"], against=index.path, threshold=0.7).run()
    assert [(result.ids[row.row], row.text) for row in result.known] == [("7", "Oaks Nursery"), ("9", "Oaks Nursery")]
    assert result.duplicates is None and result.dropped.tolist() == [0, 2]


def test_groups_keep_their_ids_in_a_file(people: Path, capfd: pytest.CaptureFixture[str]) -> None:
    kept, output = people.with_name("groups.jsonl"), people.with_name("groups.csv")
    options = {"on": ["name", "street"], "groups": True, "groups_file": kept, "output": output, "columns": "none"}
    first = DedupeJob(source=people, **options).run()
    assert first.duplicates is not None and first.duplicates.group_ids is not None
    assert first.duplicates.group_ids.tolist() == [1, 2, 1, 0] and first.duplicates.groups == [[0, 2]]
    assert output.read_text() == "group,id,line\n1,7,2\n1,9,4\n2,8,3\n"
    head, *rows = PEOPLE.splitlines(keepends=True)
    people.write_text(head + "11,cherries,,\n" + "".join(rows[::-1]) + "12,Oak Nursery,7 Mill Lane,\n")
    again = DedupeJob(
        source=people, **options | {"output": people.with_name("groups.jsonl.list"), "format": "jsonl"}
    ).run()
    assert again.duplicates is not None and again.duplicates.group_ids is not None
    assert again.duplicates.group_ids.tolist() == [3, 0, 1, 2, 1, 1]
    listed = [json.loads(line) for line in people.with_name("groups.jsonl.list").read_text().splitlines()]
    assert [(row["group"], row["ids"]) for row in listed] == [(3, ["11"]), (1, ["9", "7", "12"]), (2, ["8"])]
    for change, said in (({"on": ["name"]}, "columns name, street"), ({"id": "none"}, "ids of id")):
        with refused(InputError, "groups.jsonl", said):
            DedupeJob(source=people, **options | change).run()
    people.write_text(head + rows[0] + rows[0])
    with refused(InputError, "line 2 and line 3", "id 7"):
        DedupeJob(source=people, **options).run()
    with refused(InputError, "people.csv", "read"):
        DedupeJob(source=people, **options | {"groups_file": people}).run()


def test_several_files_are_one_table_with_their_sources(people: Path, capfd: pytest.CaptureFixture[str]) -> None:
    more, lines = people.with_name("more.jsonl"), people.with_name("lines.csv")
    more.write_text('{"id":7,"name":"Oak Nursery","phone":"555"}\n{"id":1,"name":"cherries","extra":true}\n')
    lines.write_text("name;city\nbananas;Oslo\n")
    files = {"source": people, "more_sources": [more, lines]}
    folder, none = people.parent, {"columns": "none"}
    options = files | none | {"on": ["name"], "output": folder / "out.csv"}
    result = DedupeJob(**options, map=folder / "map.csv", unique=folder / "unique.csv", merge="filled").run()
    assert (folder / "out.csv").read_text().splitlines()[0] == ("source,other_source,id,other_id,line,other_line,score")
    rows = [row.split(",")[:6] for row in (folder / "out.csv").read_text().splitlines()[1:]]
    assert ["people.csv", "lines.csv", "8", "", "3", "2"] in rows
    assert ["people.csv", "more.jsonl", "7", "7", "2", "1"] in rows
    assert result.numbers == [2, 3, 4, 5, 1, 2, 2] and result.ids[4:] == ["7", "1", ""]
    assert (folder / "map.csv").read_text().startswith("source,kept_source,id,kept_id,line,kept_line,score\n")
    kept = list(csv.DictReader((folder / "unique.csv").read_text().splitlines()))
    assert [*kept[0]] == ["source", "id", "name", "street", "phone", "extra", "city"]
    assert {row["name"]: row["city"] for row in kept}["bananas"] == "Oslo"
    DedupeJob(**options | {"format": "jsonl"}).run()
    first = json.loads((folder / "out.csv").read_text().splitlines()[0])
    assert len(first["sources"]) == len(first["ids"]) == 2
    DedupeJob(**files, on=["name"], columns="all", groups=True, output=folder / "all.jsonl").run()
    group = json.loads((folder / "all.jsonl").read_text().splitlines()[0])
    assert group["rows"][0]["source"] == "people.csv" and group["rows"][0]["street"] == "7 Mill Lane"
    lines.write_text("name;source\nbananas;Oslo\n")
    with refused(InputError, "lines.csv", "column source"):
        DedupeJob(**options).run()
    lines.write_text("name;city\nbananas;Oslo\nb\n")
    with refused(InputError, "lines.csv", "line 3"):
        DedupeJob(**options).run()
    assert len(DedupeJob(**options, on_error="skip").run().ids) == 7
    lines.write_text("city\nOslo\n")
    watch = Said()
    DedupeJob(**options).run(watch)
    assert_names(" ".join(watch.said), "lines.csv", "no column name")
    for change, field in (
        ({"more_sources": [people]}, "source"),
        ({"unique": "a.txt"}, None),
        ({"labels": [lines]}, "labels"),
    ):
        with refused(InputError, field=field):
            DedupeJob(**options | change)


class Said(JobWatch):
    def __init__(self) -> None:
        self.said: list[str] = []

    def report(self, message: str) -> None:
        self.said.append(message)


def test_columns_are_compared_that_an_index_has_and_others_are_refused(tmp_path: Path) -> None:
    known = [
        {"id": "1", "name": "Acme Corporation", "city": "Berlin"},
        {"id": "3", "name": "Beta Foods Ltd", "city": "Oslo"},
        {"id": "4", "name": "Gamma Hotels", "city": "Rome"},
    ]
    index = gramvec.Index.build(
        tmp_path / "known.index", known, column="name", id="id", model=gramvec.load(MODEL, device="cpu")
    ).path
    new = tmp_path / "new.csv"
    new.write_text("id,name,town\n5,Acme Corporation Inc,Berlin\n8,Beta Foods Ltd,Oslo\n9,,Rome\n")

    def find(*on: str, source: Path = new, threshold: float | None = None) -> dict[str, tuple[str, str]]:
        result = DedupeJob(source=source, on=on, against=index, threshold=threshold).run()
        return {result.ids[row.row]: (row.id, row.text) for row in result.known}

    one = {"5": ("1", "Acme Corporation"), "8": ("3", "Beta Foods Ltd")}
    # What is compared counts here, not how sure: of three rows, "Acme Corporation Inc" has 0.48.
    assert find(threshold=0.4) == find("name", threshold=0.4) == one
    assert find("name", "town=city", threshold=0.4) == {
        "5": ("1", "Acme Corporation | Berlin"),
        "8": ("3", "Beta Foods Ltd | Oslo"),
    }
    lines = tmp_path / "lines.txt"
    lines.write_text("Beta Foods Ltd\n")
    assert find(source=lines) == find("text=name", source=lines) == {"1": ("3", "Beta Foods Ltd")}
    for on, said in (
        (("name", "town"), ("known.index", "no column town", "id, name, city", "town=OTHER")),
        (("town=city",), ("known.index", "name", "NAME=name")),
        (("name", "town=name"), ("name twice",)),
        (("text",), ("no column text", "text=OTHER")),
    ):
        with refused(InputError, *said, field="on"):
            find(*on)


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"model": "x"}, "model"),
        ({"keep": "longest"}, "keep"),
        ({"by": "meaning", "threshold": 0.9, "report": "a.html"}, "report"),
        ({"by": "meaning", "threshold": 0.9, "against": "a.index"}, "against"),
        ({"groups": True, "against": "a.index"}, "groups"),
        ({"groups_file": "a", "against": "a.index"}, "groups_file"),
        ({"groups_file": "a.csv", "output": "a.csv"}, "groups_file"),
        ({"groups_file": "-"}, "groups_file"),
    ],
)
def test_options_that_exclude_each_other_are_named(options: dict[str, object], field: str) -> None:
    with pytest.raises(OptionError) as error:
        DedupeJob(**{"source": "a.txt"} | options)
    assert error.value.field == field


def test_an_option_out_of_its_range_is_named() -> None:
    with refused(InputError, "by", "'letters'", "'meaning'", "sound") as error:
        DedupeJob(source="a.txt", by="sound")
    assert error.value.field == "by"
