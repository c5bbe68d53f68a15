"""Outputs: the form that an ending names, what may be replaced, and rows in every form."""

from __future__ import annotations

import csv
import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from conftest import MODELS
from gramvec.cli.main import cli
from gramvec.embed.embedder import Embedder
from gramvec.errors import InputError
from gramvec.jobs.bulk.embed_file import Files, embed_file
from gramvec.jobs.bulk.job import EmbedJob
from gramvec.jobs.common.account import Account
from gramvec.jobs.common.stage import open_stage
from gramvec.jobs.tables.batches import START, Block
from gramvec.jobs.tables.outputs import TABLE_FORMS, form_to_write, write_table
from gramvec.jobs.tables.ownership import mark_of
from gramvec.jobs.tables.parquet import DimensionColumns
from gramvec.jobs.tables.staging import check_outputs, partial_of, whole
from gramvec.jobs.tables.writers import VectorRowsForm, safe_cell
from support.bulk import MODEL, gramvec_command
from support.errors import assert_names, refused


def written(path: Path, data: bytes = b"new") -> Path:
    with whole(path) as file:
        file.write(data)
    return path


def made(path: Path, data: str = "precious\n") -> Path:
    path.write_text(data)
    return path


@pytest.fixture(scope="module", autouse=True)
def _with_attributes(tmp_path_factory: pytest.TempPathFactory) -> None:
    try:
        os.setxattr(tmp_path_factory.mktemp("attributes"), "user.gramvec", b"1")
    except OSError:
        pytest.skip("the file system has no extended attributes: every existing output needs --overwrite")


def test_a_form_is_what_the_ending_says_or_a_refusal() -> None:
    assert form_to_write(Path("a.CSV"), TABLE_FORMS) == "csv"
    assert form_to_write(Path("a.pq"), TABLE_FORMS) == "parquet"
    assert form_to_write(Path("a.ndjson"), TABLE_FORMS) == "jsonl"
    assert form_to_write(Path("a.xlsx"), TABLE_FORMS, "tsv") == "tsv"
    assert form_to_write(Path("a.xlsx"), TABLE_FORMS) == "xlsx"
    assert form_to_write(None, TABLE_FORMS) == form_to_write(Path("-"), TABLE_FORMS) == "csv"
    assert form_to_write(Path("/dev/null"), TABLE_FORMS, default="jsonl") == "jsonl"
    for name, wrong in {"a.pdf": ".pdf", "a": "ending", "a.csv.gz": ".gz"}.items():
        with refused(InputError, name, wrong, ".csv, .tsv, .jsonl, .parquet, .xlsx", "`format`"):
            form_to_write(Path(name), TABLE_FORMS)
    with refused(InputError, "format", "parquet", "`output`"):
        form_to_write(None, TABLE_FORMS, "parquet")


def test_only_what_gramvec_wrote_is_replaced_unasked(tmp_path: Path) -> None:
    own, other = written(tmp_path / "own"), made(tmp_path / "other")
    check_outputs(own, tmp_path / "nothing", made(tmp_path / "empty", ""))
    with refused(InputError, "other", "did not write", "overwrite=True"):
        check_outputs(other)
    check_outputs(other, overwrite=True)
    (tmp_path / "link").symlink_to(other)
    with refused(InputError, "link", "did not write"):
        check_outputs(tmp_path / "link")
    with own.open("a") as file:  # labels that somebody added, say
        file.write("by hand\n")
    assert mark_of(own) is None
    with refused(InputError, "changed"):
        check_outputs(own)


def test_an_output_is_no_input_no_model_and_not_two_outputs(tmp_path: Path) -> None:
    source = written(tmp_path / "in")
    (tmp_path / "hard").hardlink_to(source)
    for output in (source, tmp_path / "hard", tmp_path / "x" / ".." / "in"):
        (tmp_path / "x").mkdir(exist_ok=True)
        with pytest.raises(InputError, match="read"):
            check_outputs(output, inputs=[source], overwrite=True)
    with refused(InputError, ".out.partial", "read"):
        check_outputs(tmp_path / "out", inputs=[written(partial_of(tmp_path / "out"))])
    with pytest.raises(InputError, match="two outputs"):
        check_outputs(tmp_path / "a", tmp_path / "a")
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "manifest.json").write_bytes((MODELS / "sif" / "manifest.json").read_bytes())
    with refused(InputError, "folder of a model"):
        check_outputs(tmp_path / "model" / "out.npy")
    (tmp_path / "app").mkdir()
    made(tmp_path / "app" / "manifest.json", '{"name": "a web app"}')
    check_outputs(tmp_path / "app" / "out.npy")


ROWS = [
    {"id": 1, "name": 'a, "b"\tc', "words": ["x", "y"], "score": 0.5},
    {"id": 2, "name": "über\n\x1b[31m", "words": [], "score": None},
    {"id": 3, "name": "\r", "words": [], "score": None},
]


def test_rows_in_every_form(tmp_path: Path) -> None:
    names = list(ROWS[0])
    for form in TABLE_FORMS:
        if form != "parquet":
            write_table(tmp_path / f"a.{form}", form, names, iter(ROWS))
    assert [json.loads(line) for line in (tmp_path / "a.jsonl").read_text().splitlines()] == ROWS
    with (tmp_path / "a.csv").open(newline="") as file:
        assert list(csv.reader(file)) == [
            names, ["1", 'a, "b"\tc', "x | y", "0.5"], ["2", "über\n\x1b[31m", "", ""], ["3", "\r", "", ""],
        ]  # fmt: skip
    lines = ["id\tname\twords\tscore", '1\ta, "b" c\tx | y\t0.5', "2\tüber \x1b[31m\t\t", "3\t\t\t"]
    assert (tmp_path / "a.tsv").read_text() == "".join(f"{line}\n" for line in lines)
    pq = pytest.importorskip("pyarrow.parquet")
    write_table(tmp_path / "a.parquet", "parquet", names, iter(ROWS))
    assert pq.read_table(tmp_path / "a.parquet").to_pylist() == ROWS
    write_table(tmp_path / "none.parquet", "parquet", names, [])
    assert pq.read_table(tmp_path / "none.parquet").column_names == names
    with refused(InputError, "column 'id'", "type"):
        write_table(tmp_path / "b.parquet", "parquet", ["id"], [{"id": 1}, {"id": "x"}])
    assert not (tmp_path / "b.parquet").exists()


@pytest.mark.slow
def test_every_command_keeps_what_it_reads_and_what_it_did_not_write(tmp_path: Path) -> None:
    texts = made(tmp_path / "t.txt", "acme\nbeta\n")
    table = made(tmp_path / "t.csv", "name\nacme\n")
    labels = made(tmp_path / "labels.tsv", "a\thello\na\thi\nb\tbye\nb\tciao\n")
    other = made(tmp_path / "notes.jsonl")
    for command in (
        ("embed", texts, "--model", MODEL),
        ("match", table, table, "--on", "name"),
        ("dedupe", texts),
        ("classify", "fit", labels),
    ):
        for output in (command[-1] if command[0] == "classify" else command[1], other):
            before = output.read_bytes()
            done = gramvec_command(*command, "-o", output, *(() if command[1] == "fit" else FORM.get(command[0], ())))
            assert done.returncode == 1, (command, done)
            assert b"read by" in done.stderr or b"did not write" in done.stderr
            assert output.read_bytes() == before
    done = gramvec_command("dedupe", texts, "--unique", texts)
    assert b"read by" in done.stderr
    done = gramvec_command("match", table, table, "--on", "name", "--review", table)
    assert done.returncode == 1


FORM = {"embed": ("--format", "jsonl"), "match": ("--format", "csv"), "dedupe": ("--format", "jsonl")}


@pytest.mark.slow
def test_a_list_of_duplicates_has_the_form_of_its_ending(tmp_path: Path) -> None:
    pytest.importorskip("scipy", reason="scipy is not installed: pip install '.[search]'")
    texts = made(tmp_path / "t.txt", "acme\nbeta\nacme\n")
    for options, table in (
        ((), [["line", "other_line", "score", "text", "other_text"], ["1", "3", "1.0", "acme", "acme"]]),
        (("--columns", "none"), [["line", "other_line", "score"], ["1", "3", "1.0"]]),
        (("--groups",), [["group", "line", "text"], ["1", "1", "acme"], ["1", "3", "acme"]]),
    ):
        done = gramvec_command("dedupe", texts, "-o", tmp_path / "list.csv", *options)
        assert done.returncode == 0, done.stderr
        with (tmp_path / "list.csv").open(newline="") as file:
            assert list(csv.reader(file)) == table
    gramvec_command("dedupe", texts, "-o", tmp_path / "list.jsonl")
    assert json.loads((tmp_path / "list.jsonl").read_text())["lines"] == [1, 3]
    done = gramvec_command("dedupe", texts, "-o", tmp_path / "list.docx")
    assert_names(done.stderr.decode(), "written", ".docx", ".csv, .tsv")


# What else has --output: a file of another kind, a folder, and what the page writes at its end.
NO_TABLE = {"classify fit", "index build", "review pairs", "review labels"}
MAKES_TABLES: dict[str, tuple[str, ...]] = {
    "classify predict": ("intents.head", "t.csv"),
    "dedupe": ("t.csv",),
    "embed": ("t.csv", "--model", MODEL),
    "match": ("t.csv", "t.csv", "--on", "text", "--threshold", "0", "--columns", "all"),
    "pairs": ("t.csv", "--left", "text", "--right", "other", "--columns", "all"),
    "search": ("t.index", "hello"),
}
ADDED = {
    "classify predict": {"label", "score", "known"},
    "embed": {f"embedding_{place}" for place in range(300)},
    "pairs": {"line", "score"},
}


def with_output(command: click.Command, name: str = "") -> Iterator[str]:
    """The commands below this one that have --output."""
    if isinstance(command, click.Group):
        for below in command.list_commands(click.Context(command)):
            found = command.get_command(click.Context(command), below)
            assert found is not None
            yield from with_output(found, f"{name} {below}".strip())
    elif any(one.name == "output" for one in command.params):
        yield name


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with what the commands that make tables read."""
    for package in ("pyarrow", "scipy", "tantivy"):
        pytest.importorskip(package)
    folder = tmp_path_factory.mktemp("tables")
    made(folder / "t.csv", "nr,text,other\n7,hello,hallo\n8,bye,\n9,hello,hello\n")
    made(folder / "labels.tsv", "a\thello\na\thi\nb\tbye\nb\tciao\n")
    for command in (
        ("classify", "fit", folder / "labels.tsv", "-o", folder / "intents.head", "--model", MODEL),
        ("index", "build", folder / "t.csv", "-o", folder / "t.index", "--model", MODEL),
    ):
        done = gramvec_command(*command)
        assert done.returncode == 0, done.stderr
    return folder


def columns_of(path: Path) -> tuple[list[str], int]:
    """The columns of a table, and the number of its rows."""
    if path.suffix == ".parquet":
        import pyarrow.parquet as pq

        table = pq.read_table(path)
        return table.column_names, table.num_rows
    if path.suffix == ".xlsx":
        calamine = pytest.importorskip("python_calamine")
        names, *rows = calamine.CalamineWorkbook.from_path(path).get_sheet_by_index(0).to_python()
        return names, len(rows)
    if path.suffix == ".jsonl":
        records = [json.loads(line) for line in path.read_text().splitlines()]
        return list(dict.fromkeys(name for record in records for name in record)), len(records)
    with path.open(newline="") as file:
        names, *rows = csv.reader(file, delimiter="," if path.suffix == ".csv" else "\t")
    assert all(len(row) == len(names) for row in rows)
    return names, len(rows)


@pytest.mark.slow
@pytest.mark.parametrize("command", sorted(set(with_output(cli)) - NO_TABLE))
def test_every_command_that_makes_a_table_writes_every_form(command: str, tables: Path, tmp_path: Path) -> None:
    found = {}
    arguments = [tables / one if (tables / one).exists() else one for one in MAKES_TABLES[command]]
    for form in TABLE_FORMS:
        if (command, form) == ("embed", "xlsx"):
            continue  # vectors are not for people
        output = tmp_path / f"out.{form}"
        done = gramvec_command(*command.split(), *arguments, "-o", output)
        assert done.returncode == 0, done.stderr
        found[form] = columns_of(output)
        names, rows = found[form]
        assert rows
        if command in ADDED:  # a row for each of the input's, with its columns
            added = {"embedding"} if command == "embed" and form in ("jsonl", "parquet") else ADDED[command]
            assert rows == 3
            assert [name for name in names if name not in added] == ["nr", "text", "other"]
            assert set(names) > added
    assert found["csv"] == found["tsv"]
    if command != "dedupe":  # the JSON lines of which are groups
        assert found["jsonl"][1] == found["csv"][1]
    if command != "embed":
        assert found["parquet"] == found["csv"] == found["xlsx"]
    done = gramvec_command(*command.split(), *arguments, "-o", tmp_path / "out.html")
    assert done.returncode == 1
    assert b".html" in done.stderr


@pytest.mark.slow
def test_resume_of_a_finished_output_says_so_and_a_stopped_run_is_mentioned(tmp_path: Path) -> None:
    texts, output = made(tmp_path / "t.txt", "acme\nbeta\n"), tmp_path / "t.npy"
    command = ("embed", texts, "-o", output, "--model", MODEL)
    assert gramvec_command(*command).returncode == 0
    before = output.stat()
    done = gramvec_command(*command, "--resume")
    assert done.stderr.decode() == f"{output}: is complete, 2 rows; nothing was left to do\n"
    assert output.stat() == before
    assert b"rows put into" in gramvec_command(*command, "--resume", "--dimensions", "9").stderr
    stage = open_stage(output, {}, Account(), resume=False)
    stage.append(b"x" * 9)
    stage.account.rows = 7
    stage._checkpoint()
    stage.close()
    done = gramvec_command(*command)
    assert_names(done.stderr.decode(), "first 7 rows", "--resume")


def test_a_library_call_does_not_replace_its_input(tmp_path: Path, small: Embedder) -> None:
    texts = made(tmp_path / "t.jsonl", '{"text": "a"}\n')
    with refused(InputError, "read by"):
        embed_file(small, Files(texts, texts))
    assert texts.read_text() == '{"text": "a"}\n'


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("=1+1", "'=1+1"), ("@SUM(A1)", "'@SUM(A1)"), ("+cmd|' /C calc'!A0", "'+cmd|' /C calc'!A0"), ("-x", "'-x"),
        ("\t=1", "'\t=1"), ("-5", "-5"), ("+4.5e-3", "+4.5e-3"), ("-1,5", "-1,5"), ("a=b", "a=b"), ("", ""),
    ],
)  # fmt: skip
def test_a_cell_that_begins_a_formula_is_written_as_a_text(text: str, written: str) -> None:
    assert safe_cell(text) == written


@given(st.text())
def test_no_safe_cell_begins_a_formula_and_none_loses_a_character(text: str) -> None:
    found = safe_cell(text)
    assert found in (text, f"'{text}")
    assert not found.startswith(("=", "@", "\t", "\r", "\n")) and (found[:1] not in ("+", "-") or found[1:2].isdigit())


@pytest.mark.parametrize("form", ["csv", "tsv"])
def test_safe_cells_are_those_of_names_too(form: Any, tmp_path: Path) -> None:
    path = tmp_path / f"table.{form}"
    rows = [{" =name": " =1", "n": -5}, {" =name": "@a", "n": 1}]
    write_table(path, form, [" =name", "n"], rows, safe_cells=True)
    name, first = (" =name", " =1") if form == "csv" else ("'=name", "'=1")
    assert re.split("[,\t\n]", path.read_text()) == [name, "n", first, "-5", "'@a", "1", ""]


@pytest.mark.parametrize("form", ["csv", "tsv"])
def test_vectors_beside_safe_cells_go_on_where_a_run_was_stopped(form: Any, tmp_path: Path) -> None:
    block = Block(START, [2], ["@a"], records=[{"=the  name": "@a", 'a "b"': '+1 "or" 2', "text": "=1"}])
    vectors, missing = np.array([[0.5, -0.25]], np.float32), np.zeros(1, np.bool_)

    def written_by() -> VectorRowsForm:
        return VectorRowsForm(form, "text", DimensionColumns("v", vectors.dtype, 2), safe_cells=True)

    begun, resumed, path = written_by(), written_by(), tmp_path / "stage"
    path.write_bytes(begun.begin(block, None))
    resumed.resume(path)
    line = begun.encode(block, vectors, missing)
    assert resumed.encode(block, vectors, missing) == line
    cells = line.decode().rstrip("\n").split("\t") if form == "tsv" else next(csv.reader([line.decode()]))
    assert cells == ["'@a", '\'+1 "or" 2', "'=1", "0.5", "-0.25"]
    assert path.read_text().startswith("'=the  name," if form == "csv" else '\'=the name\ta "b"\t')


def test_embed_writes_safe_cells(tmp_path: Path) -> None:
    source, output = made(tmp_path / "t.csv", "id,text\n=1,@cheap flights\n"), tmp_path / "v.csv"
    job = EmbedJob(source=source, output=output, dimensions=1, safe_cells=True, model=MODEL, device="cpu")
    job.run()
    assert re.fullmatch(r"id,text,embedding_0\n'=1,'@cheap flights,-?1.0\n", output.read_text())
    done = CliRunner().invoke(cli, ["embed", str(source), "--dimensions", "1", "-m", MODEL, "--format", "tsv"])
    assert "=1\t@cheap flights" in done.stdout and "'=1" not in done.stdout
