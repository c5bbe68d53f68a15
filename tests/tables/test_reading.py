"""Files as spreadsheets, editors and data frames write them: read, or named for what they are."""

from __future__ import annotations

import io
import json
import os
import zipfile
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gramvec.errors import InputError
from gramvec.jobs.common.columns import read_columns
from gramvec.jobs.tables.batches import Block, ColumnNames
from gramvec.jobs.tables.columns import TableRows
from gramvec.jobs.tables.inputs import FileFormat, Source, form_of
from gramvec.jobs.tables.json_elements import JsonElements
from gramvec.jobs.tables.readers import open_reader
from support.bulk import MODEL, gramvec_command
from support.errors import assert_names, refused
from support.spreadsheet import ErrorCell, write_ods, write_xlsx


def file(folder: Path, name: str, data: str | bytes) -> Path:
    path = folder / name
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    return path


def blocks(path: Path, column: str | None = "text", *, keep: bool = False) -> list[Block]:
    with closing(Source(path)) as source:
        return list(open_reader(source, form_of(path), column, keep=keep).blocks())


def texts(path: Path, column: str = "text", **options: Any) -> list[str]:
    return read_columns(path, [column], **options).values[column]


@pytest.mark.parametrize(
    ("name", "data", "numbers"),
    [
        ("a.csv", "\n\nid,text\n1,a\n\n2,b\n \n\r\n", [4, 6]),
        ("a.csv", "text\na\n\nb\n\n", [2, 4]),
        ("a.tsv", "id\ttext\n1\ta\n\n2\tb\n", [2, 4]),
        ("a.jsonl", '{"text": "a"}\n\n{"text": "b"}\n  \n', [1, 3]),
        ("b.tsv", "x\ta\n\ny\tb\n\n", [1, 3]),
    ],
)
def test_blank_lines_are_skipped_and_counted(name: str, data: str, numbers: list[int], tmp_path: Path) -> None:
    path = file(tmp_path, name, data)
    found = read_columns(path, ["label", "text"] if name == "b.tsv" else ["text"], positional=name == "b.tsv")
    assert (found.values["text"], found.numbers) == (["a", "b"], numbers)
    assert found.bad.count == 0
    assert next(one for one in found.bad.report(2) if "blank" in one).endswith("skipped")


def test_a_line_of_text_may_be_empty_and_so_may_a_field(tmp_path: Path) -> None:
    (block,) = blocks(file(tmp_path, "a.txt", "a\n\nb\n"))
    assert block.texts == ["a", "", "b"]
    assert texts(file(tmp_path, "a.csv", 'text\n""\n')) == [""]
    assert texts(file(tmp_path, "a.tsv", "a\ttext\n\t\n")) == [""]


def test_names_that_are_empty_or_twice_stop_only_who_asks_for_them(tmp_path: Path) -> None:
    path = file(tmp_path, "a.csv", "id,color,,color,text\n1,red,,blue,Acme\n")
    found = read_columns(path, ["text", "color_2"])
    assert found.values == {"text": ["Acme"], "color_2": ["blue"]}
    assert list(found.bad.report(1)) == [
        "the header names color 2 times, columns 2, 4; called here the later color_2",
        "the header has no name for column 3; called here column_3",
    ]
    for name, said in {
        "color": "names the column color 2 times (columns 2, 4); rename",
        "": "has no column ''",
    }.items():
        with pytest.raises(InputError) as raised:
            read_columns(path, [name])
        assert said in str(raised.value)
    with refused(InputError, "column color", "2"):
        blocks(path, "color")


@given(st.lists(st.sampled_from(["a", "a_2", "a_3", "", "column_1", "b"]), max_size=9))
def test_columns_have_names_of_their_own(given_names: list[str]) -> None:
    names = ColumnNames(given_names).names
    assert len(set(names)) == len(names) == len(given_names)
    assert all(names)
    for at, name in enumerate(given_names):
        if name and name not in given_names[:at]:
            assert names[at] == name


@pytest.mark.parametrize(
    ("data", "options"),
    [
        (b"sep=;\nid;text\n1;a,b\n", {}),
        (b'\xef\xbb\xbf"sep=|"\r\nid|text\r\n1|a,b\r\n', {}),
        (b"id,text\r1,\"a,b\"\r", {}),
        ('id,text\n1,"a,b"\n'.encode("utf-16"), {}),
        ('id,text\r\n1,"a,b"\r\n'.encode("utf-16-be"), {"format": FileFormat("csv", None, "utf-16-be")}),
    ],
    ids=["sep=", "quoted sep=", "CR only", "UTF-16", "UTF-16 without a mark"],
)  # fmt: skip
def test_what_spreadsheets_write_is_read(data: bytes, options: dict[str, Any], tmp_path: Path) -> None:
    assert texts(file(tmp_path, "a.csv", data), **options) == ["a,b"]


def test_quoted_tsv_is_read_or_named(tmp_path: Path) -> None:
    assert texts(file(tmp_path, "a.tsv", '"id"\t"text"\n1\t"a ""b""\tc"\n')) == ['a "b"\tc']
    assert texts(file(tmp_path, "a.tsv", 'id\ttext\n1\t"a" b\n')) == ['"a" b']
    with refused(InputError, "3 fields", "2", "input_format"):
        texts(file(tmp_path, "a.tsv", 'id\ttext\n1\t"a\tb"\n'))


def test_bytes_that_are_no_text_here_are_named_for_what_they_are(tmp_path: Path) -> None:
    for name, data, said in [
        ("a.csv", "id,text\n1,5 € a\n".encode("cp1252"), r'like Latin-1 .*: give `encoding="cp1252"`'),
        ("a.csv", "id,text\n1,日本\n".encode("shift-jis"), "`encoding"),
        ("a.csv", "id,text\n1,aaaa\n".encode("utf-16-le"), "encoding=\"utf-16-le\""),
        ("a.txt", b"PK\x03\x04\x00\x00", ".xlsx and .ods"),
        ("a.txt", b"PAR1\x00\x00", "Parquet"),
        ("a.csv", b"text\na\rb\n", "carriage return"),
        ("a.json", '{\n "rows": []\n}', "one JSON object"),
        ("a.json", "3", "JSON array"),
        ("a.json", '[{"text": "a"}', r"row 1: .*\]"),
        ("a.json", '[{"text": "a"} {"text": "b"}]', "row 1: .*comma"),
        ("a.json", '[{"text": "a"}] x', "row 1: .*after the array"),
        ("a.json", '[{"text": "a}', "row 1: .*JSON"),
        ("a.json", "[" * 5000, "row 1: nested deeper than 1,000 levels"),
        ("a.jsonl", '{"id": 1, "title": "a"}\n', "'text' is missing; there is id, title: choose one with `column`"),
    ]:  # fmt: skip
        path = file(tmp_path, name, data)
        with pytest.raises(InputError, match=said):
            for block in blocks(path, keep=True):
                if block.bad:
                    raise InputError(block.bad[0])


def test_an_ending_that_no_reader_has_is_a_sentence() -> None:
    with refused(InputError, "x.docx", ".docx", ".txt", 'as="txt"'):
        form_of(Path("x.docx"), "as")
    for name, form in {
        "x": "txt",
        "-": "txt",
        "x.text": "txt",
        "x.JSON.gz": "json",
        ".x": "txt",
        "x.pq": "parquet",
    }.items():
        assert form_of(Path(name)) == form


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(st.characters(codec="utf-8"), max_size=4),
    lambda one: st.lists(one, max_size=3) | st.dictionaries(st.sampled_from(['a"', "]\\", "text"]), one, max_size=3),
    max_leaves=9,
)


@given(values=st.lists(VALUES, max_size=5), indent=st.sampled_from([None, 1]), after=st.integers(0, 5))
def test_elements_are_those_that_a_parser_finds(values: list[Any], indent: int | None, after: int) -> None:
    data = json.dumps(values, indent=indent, ensure_ascii=False).encode()
    elements = JsonElements(io.BytesIO(data), "x")
    found, places = [], [(0, 1)]
    while line := elements.read():
        found.append(json.loads(line))
        places.append((elements.offset, elements.number))
    assert found == values
    assert elements.read() == b""
    if after < len(places):
        offset, number = places[after]
        stream = io.BytesIO(data)
        stream.seek(offset)
        elements = JsonElements(stream, "x", offset, number)
        assert [json.loads(line) for line in iter(elements.read, b"")] == values[after:]


def test_a_json_array_is_rows(tmp_path: Path) -> None:
    path = file(tmp_path, "a.json", '\ufeff [{"id": 1, "text": "a"},\n "b", {"text": 3}]')
    found = read_columns(path, ["text"])
    assert (found.values, found.unit, found.numbers) == ({"text": ["a", "b", "3"]}, "row", [1, 2, 3])
    assert texts(file(tmp_path, "b.json", '{"text": "a"}\n{"text": "b"}\n')) == ["a", "b"]
    assert texts(file(tmp_path, "c.json", "[]")) == texts(file(tmp_path, "d.json", "")) == []
    big = '[{"text": "' + "x" * (17 << 20) + '"}]'
    with refused(InputError, "row 1", "16 MiB"):
        texts(file(tmp_path, "e.json", big))


def test_a_path_with_dots_leads_into_objects_and_structs(tmp_path: Path) -> None:
    path = file(tmp_path, "a.jsonl", '{"doc": {"title": "x"}, "a.b": "y"}\n{"doc": {}, "a.b": "z"}\n')
    found = read_columns(path, ["doc.title", "a.b"])
    assert found.values == {"doc.title": ["x", ""], "a.b": ["y", "z"]}
    with refused(InputError, "'doc.name'", "doc, a.b"):
        read_columns(path, ["doc.name"])
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    records = [{"title": "x", "n": 1}, {"title": None, "n": 2}, None]
    pq.write_table(pa.table({"doc": records, "a.b": ["y", "z", ""]}), tmp_path / "a.parquet")
    assert texts(tmp_path / "a.parquet", "doc.title") == ["x", "", ""]
    with refused(InputError, "'doc.name'", "doc, a.b"):
        texts(tmp_path / "a.parquet", "doc.name")
    (block,) = blocks(tmp_path / "a.parquet", "doc.title")
    assert (block.texts, block.bad.keys()) == (["x", "", ""], {1, 2})


def test_columns_are_shown_in_the_order_of_the_file_and_in_their_own_letters(tmp_path: Path) -> None:
    for name, data in {"a.csv": "größe,id,名\n1,2,3\n", "a.jsonl": '{"größe": 1, "id": 2, "名": 3}\n'}.items():
        with refused(InputError, "größe, id, 名", "`column`"):
            read_columns(file(tmp_path, name, data), ["text"])


ROWS = [["id", "text", None], [1, "cheap flights", 2.5], [], [2, 404, None], [3, None, 1]]


@pytest.mark.parametrize("form", ["xlsx", "ods"])
def test_a_spreadsheet_is_rows(form: str, tmp_path: Path) -> None:
    pytest.importorskip("python_calamine", reason="python-calamine is not installed: pip install '.[sheets]'")
    path = tmp_path / f"a.{form}"
    (write_xlsx if form == "xlsx" else write_ods)(path, {"one": ROWS, "two": [["a"], ["b"]], "none": []})
    found = read_columns(path, ["text", "id"])
    assert found.values == {"text": ["cheap flights", "404", ""], "id": ["1", "2", "3"]}
    assert (found.unit, found.numbers) == ("row", [2, 4, 5])
    assert found.bad.notes == ["the header has no name for column 3; called here column_3"]
    assert texts(path, "a", format=FileFormat(form_of(path), sheet="two")) == ["b"]
    assert texts(path, "a", format=FileFormat(form_of(path), sheet="none")) == []
    with refused(InputError, f"a.{form}", "sheet three", "one, two, none"):
        texts(path, format=FileFormat(form_of(path), sheet="three"))
    with refused(InputError, "'title'", "id, text"):
        texts(path, "title")
    done = gramvec_command("embed", path, "--model", MODEL, "--dimensions", "1")
    records = [json.loads(line) for line in done.stdout.splitlines()]
    assert [(one["text"], one["column_3"]) for one in records] == [("cheap flights", 2.5), (404, None), (None, 1)]


def test_a_hostile_spreadsheet_takes_neither_memory_nor_time(tmp_path: Path) -> None:
    pytest.importorskip("python_calamine", reason="python-calamine is not installed: pip install '.[sheets]'")
    whole = write_xlsx(tmp_path / "a.xlsx", {"one": ROWS})
    part = "xl/worksheets/sheet1.xml"
    with zipfile.ZipFile(whole) as zipped:
        parts = {name: zipped.read(name) for name in zipped.namelist()}

    def changed(name: str, *pieces: bytes) -> Path:
        with zipfile.ZipFile(tmp_path / name, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as zipped:
            for one in parts:
                with zipped.open(one, "w") as file:
                    file.writelines(pieces if one == part else [parts[one]])
        return tmp_path / name

    far = [parts[part].replace(b'r="A2"', b'r="XFD1048576"')]
    before, _, after = parts[part].partition(b"cheap flights")
    bomb = [before, *[b"x" * (1 << 20)] * (1 << 10), after]
    for path in (changed("far.xlsx", *far), changed("bomb.xlsx", *bomb)):
        with pytest.raises(InputError, match="2 GiB|cannot be read|damaged"):
            texts(path)
    for data in (b"", b"no zip", whole.read_bytes()[:-30]):
        with pytest.raises(InputError, match="cannot be read|damaged"):
            texts(file(tmp_path, "b.xlsx", data))


def test_hidden_sheets_and_cells_with_an_error_are_told(tmp_path: Path) -> None:
    pytest.importorskip("python_calamine", reason="python-calamine is not installed")
    secret = [["id", "name"], [1, "a"], [2, ErrorCell("#REF!")], [ErrorCell("#DIV/0!"), "b"]]
    sheets = {"secret": secret, "open": [["id", "name"], [1, "c"]]}
    path = write_xlsx(tmp_path / "book.xlsx", sheets, hidden={"secret": "veryHidden"})
    with TableRows(path) as rows:
        assert [row.record["name"] for row in rows] == ["a", None, "b"]
        hidden, errors = rows.reader.notes
    assert_names(hidden, "secret", "hidden", "`sheet`", "open")
    assert_names(errors, "2 cells", "#REF!", "B3")
    with TableRows(path, FileFormat("xlsx", sheet="open")) as rows:
        assert [row.record["name"] for row in rows] == ["c"] and rows.reader.notes == []


def test_errors_of_a_sheet_of_ods_are_told(tmp_path: Path) -> None:
    pytest.importorskip("python_calamine", reason="python-calamine is not installed")
    wrong = [["id", "name"], [1, "#REF!"], [2, ErrorCell("#REF!")], [ErrorCell("Err:502"), "b"]]
    path = write_ods(tmp_path / "book.ods", {"a & b": wrong, "whole": [["id", "name"], [1, "c"]]})
    with TableRows(path) as rows:
        assert [row.record["name"] for row in rows] == ["#REF!", None, "b"]  # a text that a person wrote is no error
        (note,) = rows.reader.notes
    assert_names(note, "2 cells", "#REF!", "formula")
    with TableRows(path, FileFormat("ods", sheet="whole")) as rows:
        assert [row.record["name"] for row in rows] == ["c"] and rows.reader.notes == []


def test_an_error_beside_a_value_in_repeated_cells_is_told(tmp_path: Path) -> None:
    pytest.importorskip("python_calamine", reason="python-calamine is not installed")
    path = write_ods(tmp_path / "plain.ods", {"one": [["id", "name"], [7, 7]]})
    cell = b'<table:table-cell office:value-type="float" office:value="7"/>'
    error = b'<table:table-cell table:formula="of:=1/0" table:number-columns-repeated="2"' + cell[17:-2]
    with zipfile.ZipFile(path) as plain, zipfile.ZipFile(tmp_path / "old.ods", "w") as zipped:
        for name in plain.namelist():
            data = plain.read(name).replace(2 * cell, error + b"><text:p>#DIV/0!</text:p></table:table-cell>")
            zipped.writestr(name, data)
    with TableRows(tmp_path / "old.ods") as rows:
        assert [row.record for row in rows] == [{"id": 7, "name": 7}]
        assert_names(rows.reader.notes[0], "2 cells", "#DIV/0!")


@pytest.mark.parametrize("name", ["pipe.xlsx", "pipe.parquet"])
def test_a_pipe_is_no_spreadsheet_and_nobody_waits_for_its_writer(name: str, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / name)
    with refused(InputError, name, "plain file"), TableRows(tmp_path / name):
        pass


@pytest.mark.parametrize(
    "orient", ["columns", "index", "split", "table", "records", "lines"], ids=lambda orient: f"orient={orient}"
)
def test_only_rows_of_a_frame_are_read_as_rows(orient: str, tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    frame = pandas.DataFrame({"text": ["a", "b"], "n": [1, 2]})
    path = tmp_path / "frame.json"
    frame.to_json(path, orient="records" if orient == "lines" else orient, lines=orient == "lines")
    if orient in ("records", "lines"):
        assert texts(path) == ["a", "b"]
    else:
        with refused(InputError, "frame.json", "orient='records'"):
            texts(path)


@pytest.mark.parametrize(
    "row", [{"title": {"en": "a", "de": "b"}, "text": {"en": "c", "de": "d"}}, {"schema": "a", "data": ["b"]}, {"0": 1}]
)
def test_a_row_with_objects_in_its_cells_is_a_row(row: dict[str, Any], tmp_path: Path) -> None:
    path = file(tmp_path, "rows.jsonl", json.dumps(row))
    assert [block.records for block in blocks(path, None, keep=True)] == [[row]]
