"""Spreadsheets and byte order marks that are written: every job's list, read again by another library."""

from __future__ import annotations

import hashlib
import io
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gramvec.errors import InputError
from gramvec.jobs import DedupeJob, FitJob, MatchJob, PairsJob, PredictJob
from gramvec.jobs.tables import xlsx
from gramvec.jobs.tables.outputs import write_table
from gramvec.jobs.tables.xlsx import MAX_CELL, MAX_SHEET_COLUMNS, write_xlsx
from support.bulk import MODEL
from support.errors import refused

calamine = pytest.importorskip("python_calamine", reason="it is not installed: pip install '.[sheets]'")
pytest.importorskip("xlsxwriter", reason="it is not installed: pip install '.[sheets]'")

MARK = b"\xef\xbb\xbf"


def cells_of(file: Path | io.BytesIO) -> list[list[Any]]:
    return calamine.CalamineWorkbook.from_object(file).get_sheet_by_index(0).to_python()


def written(names: list[str], *rows: dict[str, Any]) -> io.BytesIO:
    file = io.BytesIO()
    write_xlsx(file, names, rows)
    file.seek(0)
    return file


def test_cells_are_what_they_were() -> None:
    row = {
        "=name": "=1+1", "number": 1.5, "whole": 3, "long": 10**17, "yes": True, "nothing": None, "list": ["a", "b"],
        "object": {"a": 1}, "link": "https://a.b/c", "digits": "007", "array": np.float32(0.5), "nan": float("nan"),
    }  # fmt: skip
    names, values = cells_of(written([*row], row))
    assert names == [*row]
    assert values == ["=1+1", 1.5, 3, str(10**17), True, "", "a | b", '{"a":1}', "https://a.b/c", "007", 0.5, "nan"]
    assert b"<f>" not in written([*row], row).getvalue()


@settings(max_examples=50)
@given(st.lists(st.text(st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="\ufffe\uffff")), min_size=1))
def test_a_text_is_read_as_it_was(texts: list[str]) -> None:
    found = cells_of(written(["text", "end"], *({"text": text, "end": "."} for text in texts)))
    assert [row[0] for row in found[1:]] == texts


@given(st.lists(st.text(), max_size=5))
def test_any_text_is_a_sheet_that_is_read(texts: list[str]) -> None:
    assert len(cells_of(written(["text", "end"], *({"text": text, "end": "."} for text in texts)))) == len(texts) + 1


def test_the_same_rows_are_the_same_bytes() -> None:
    digests = {hashlib.sha256(written(["a"], {"a": "b"}).getvalue()).hexdigest() for _ in range(2)}
    assert len(digests) == 1


def test_what_a_sheet_does_not_hold_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.xlsx"
    with refused(InputError, "row 2", "'text'", "32,768", "32,767", ".csv"):
        write_table(path, "xlsx", ["text"], [{"text": "a" * MAX_CELL}, {"text": "a" * (MAX_CELL + 1)}])
    with refused(InputError, "columns", "16,384"):
        write_table(path, "xlsx", [f"c{at}" for at in range(MAX_SHEET_COLUMNS + 1)], [])
    monkeypatch.setattr(xlsx, "MAX_SHEET_ROWS", 3)
    write_table(path, "xlsx", ["text"], [{"text": "a"}] * 2)
    before = path.read_bytes()
    with refused(InputError, "2 rows", ".csv"):
        write_table(path, "xlsx", ["text"], [{"text": "a"}] * 3)
    assert path.read_bytes() == before and [one.name for one in tmp_path.iterdir()] == ["a.xlsx"]
    monkeypatch.setitem(sys.modules, "xlsxwriter", None)
    with refused(InputError, "xlsxwriter", "gramvec[sheets]"):
        write_table(path, "xlsx", ["text"], [])


@pytest.fixture
def people(tmp_path: Path) -> Path:
    pytest.importorskip("sparse_dot_topn", reason="it is not installed: pip install 'gramvec[match]'")
    path = tmp_path / "people.csv"
    path.write_text("id,name\n1,Jürgen Groß\n2,=SUM(A1)\n3,Juergen Gross\n4,Jürgen Groß\n")
    return path


def test_lists_of_jobs_are_spreadsheets(people: Path, tmp_path: Path) -> None:
    MatchJob(left=people, right=people, on="name", output=tmp_path / "m.xlsx", threshold=0.9).run()
    assert cells_of(tmp_path / "m.xlsx")[0] == ["left_id", "right_id", "score", "left", "right"]
    DedupeJob(source=people, on=["name"], output=tmp_path / "d.xlsx", map=tmp_path / "map.xlsx", threshold=0.9,
              unique=tmp_path / "kept.xlsx").run()  # fmt: skip
    assert cells_of(tmp_path / "map.xlsx")[0] == ["id", "kept_id", "line", "kept_line", "score"]
    kept = cells_of(tmp_path / "kept.xlsx")
    assert kept[:3] == [["id", "name"], ["1", "Jürgen Groß"], ["2", "=SUM(A1)"]]
    # What was a spreadsheet stays one.
    DedupeJob(source=tmp_path / "kept.xlsx", on=["name"], unique=tmp_path / "again.xlsx", threshold=0.9).run()
    assert cells_of(tmp_path / "again.xlsx") == kept
    pairs = tmp_path / "pairs.csv"
    pairs.write_text("a,b\nx,x\n")
    PairsJob(source=pairs, left="a", right="b", output=tmp_path / "p.xlsx").run()
    assert cells_of(tmp_path / "p.xlsx")[1][2:] == ["x", "x"]


def test_labels_are_a_spreadsheet_or_begin_with_a_mark(tmp_path: Path) -> None:
    pytest.importorskip("sklearn", reason="it is not installed: pip install 'gramvec[classify]'")
    path = tmp_path / "labeled.tsv"
    path.write_text("".join(f"fruit\tripe bananas {n}\nschool\tMill Lane School {n * 7}\n" for n in range(9)))
    FitJob(labeled=path, output=tmp_path / "a.head", model=MODEL, device="cpu").run()
    source = tmp_path / "new.csv"
    source.write_text("id,text\n7,ripe bananas\n8,=1+1\n")
    options = {"head": tmp_path / "a.head", "source": source, "model": MODEL, "device": "cpu"}
    PredictJob(output=tmp_path / "b.xlsx", **options).run()
    names, first, second = cells_of(tmp_path / "b.xlsx")
    assert names == ["id", "text", "label", "score", "known"] and first[:3] == ["7", "ripe bananas", "fruit"]
    assert isinstance(first[3], float) and isinstance(first[4], bool) and second[1] == "=1+1"
    PredictJob(output=tmp_path / "b.csv", bom=True, **options).run()
    assert (tmp_path / "b.csv").read_bytes().startswith(MARK + b"id,text,label")


def test_a_mark_begins_what_excel_opens(people: Path, tmp_path: Path) -> None:
    DedupeJob(source=people, on=["name"], output=tmp_path / "d.csv", bom=True).run()
    MatchJob(left=people, right=people, on="name", output=tmp_path / "m.tsv", bom=True).run()
    for name, begin in (("d.csv", b"id,other_id"), ("m.tsv", b"left_id\t")):
        assert (tmp_path / name).read_bytes().startswith(MARK + begin)
    # It is read again as if it were not there.
    DedupeJob(source=tmp_path / "d.csv", on=["name"], output=tmp_path / "e.csv").run()
    for output in ("a.jsonl", "a.parquet", "a.xlsx"):
        with refused(InputError, "bom", output.partition(".")[2], field="bom"):
            DedupeJob(source=people, output=output, bom=True)
