"""Indexes whose text is in several columns: built, changed, rebuilt, searched, and compared with a table."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import gramvec
from gramvec.cli.main import cli
from gramvec.errors import InputError
from gramvec.jobs import AddJob, BuildJob, RebuildJob
from support.bulk import MODEL
from support.errors import refused

pytest.importorskip("tantivy", reason="tantivy is not installed: pip install '.[search]'")

ROWS: list[dict[str, Any]] = [
    {"title": "cheap flights", "body": "low-cost air fares", "price": 9},
    {"title": "bananas", "body": "yellow fruit", "price": 1},
    {"title": "bearing", "body": 6205},
    {"body": "only a body"},
]
CSV = "nr,title,body\nx1,cheap flights,low-cost air fares\nx2,bananas,\nx3,,only a body\n"


def ids(index: gramvec.Index, query: str, **options: Any) -> list[str]:
    return [hit.id for hit in index.search(query, **options)[0]]


def test_a_text_of_several_columns_is_that_of_them_joined(tmp_path: Path, small: gramvec.Embedder) -> None:
    several = gramvec.Index.build(tmp_path / "several.index", ROWS, model=small, column=["title", "body"])
    joined = ["\n".join(str(row[name]) for name in ("title", "body") if name in row) for row in ROWS]
    one = gramvec.Index.build(tmp_path / "one.index", joined, model=small)
    for query in ("yelow fruit", "bananas fruit", "6205", "cheap air fares", "only", "flights -yellow"):
        assert [hit[:2] for hit in several.search(query)[0]] == [hit[:2] for hit in one.search(query)[0]]
    assert several.columns == ["title", "body", "price"]
    assert several.get(["2", "4"]) == [ROWS[1], ROWS[3]]


def test_a_phrase_is_in_one_of_the_columns(tmp_path: Path, small: gramvec.Embedder) -> None:
    index = gramvec.Index.build(tmp_path / "t.index", ROWS, model=small, column=["title", "body"])
    assert ids(index, '"low-cost air" fares') == ["1"]
    assert ids(index, '"cheap flights" "air fares"') == ["1"]
    assert ids(index, '"flights low-cost"') == []


def test_an_index_of_several_columns_is_changed_and_rebuilt(tmp_path: Path, small: gramvec.Embedder) -> None:
    path = tmp_path / "t.index"
    index = gramvec.Index.build(path, ROWS, model=small, column=["title", "body"])
    index.add([{"title": "new", "body": "blue balloons"}])
    assert ids(index, "blue balloons", k=1) == ["5"]
    index.remove(["1"])
    before = [hit[:2] for hit in index.search("yellow body of a balloon")[0]]
    RebuildJob(index=path, model=str(MODEL)).run()
    assert {hit.id for hit in gramvec.Index(path, model=small).search("yellow body of a balloon")[0]} == {
        name for name, _ in before
    }
    with refused(InputError, "record 0", "'title' or 'body'", "x"):
        index.add([{"x": 1}])
    with refused(InputError, "record 1", "'title' or 'body'", "missing"):
        index.add([{"title": "a"}, {"title": None, "body": float("nan")}])
    with refused(InputError, "'title'", "list"):
        index.add([{"title": ["a"]}])
    with refused(InputError, "record 0", "str"):
        index.add(["a text alone"])


def test_files_and_commands(tmp_path: Path) -> None:
    source, path = tmp_path / "t.csv", tmp_path / "t.index"
    source.write_text(CSV)
    command = ["index", "build", str(source), "--column", "title", "--column", "body", "--id", "nr", "-m", str(MODEL)]
    done = CliRunner().invoke(cli, [*command, "-o", str(path)])
    assert done.exit_code == 0, done.output
    told = json.loads(CliRunner().invoke(cli, ["index", "info", str(path), "--json"]).stdout)
    assert (told["text_columns"], told["columns"]) == (["title", "body"], ["title", "body", "nr"])
    found = CliRunner().invoke(cli, ["search", str(path), "low-cost fares", "-k", "1", "-m", str(MODEL)])
    assert found.stdout.split("\t")[1:] == ["x1", "cheap flights", "low-cost air fares", "x1\n"]
    more = tmp_path / "more.csv"
    more.write_text("nr,title\nx4,balloons\n")
    with refused(InputError, "'body'", "nr, title"):
        AddJob(index=path, source=more, model=str(MODEL)).run()
    more.write_text("body,title,nr\nblue,balloons,x4\n")
    assert AddJob(index=path, source=more, model=str(MODEL)).run().rows == 1
    assert ids(gramvec.Index(path, model=str(MODEL)), "blue", k=1) == ["x4"]


def test_rows_without_a_text_in_any_column_are_bad(tmp_path: Path) -> None:
    source, path = tmp_path / "t.jsonl", tmp_path / "t.index"
    source.write_text('{"title":"a"}\n{"other":1}\n{"title":{"en":"b"},"body":"c"}\n{"title":null,"body":"d"}\n')
    build: dict[str, Any] = {"source": source, "output": path, "column": ["title", "body"], "model": str(MODEL)}
    with refused(InputError, "line 2", "title, body", "other"):
        BuildJob(**build).run()
    done = BuildJob(**build, on_error="skip").run()
    assert (done.rows, done.bad.count) == (4, 2)
    assert len(gramvec.Index(path)) == 2


@pytest.mark.parametrize(
    ("column", "words"),
    [([], "1 to 16"), (["a", "a"], "different"), ([f"c{n}" for n in range(17)], "17"), ([""], "empty")],
)
def test_columns_that_cannot_be_the_text(
    column: list[str], words: str, tmp_path: Path, small: gramvec.Embedder
) -> None:
    with refused(InputError, words):
        gramvec.Index.build(tmp_path / "t.index", ROWS, model=small, column=column)
    assert not (tmp_path / "t.index").exists()


def test_lines_of_text_have_one_column(tmp_path: Path) -> None:
    source = tmp_path / "t.txt"
    source.write_text("a\n")
    with refused(InputError, "t.txt", "`column`"):
        BuildJob(source=source, output=tmp_path / "t.index", column=("a", "b"), model=str(MODEL)).run()
