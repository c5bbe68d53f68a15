"""Tables: delimiters, encodings, columns by name or by place, bounds on untrusted files, and staged output."""

from __future__ import annotations

import gzip
import json
import os
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gramvec.errors import InputError
from gramvec.jobs.common.account import Account
from gramvec.jobs.common.bad_rows import BadRows
from gramvec.jobs.common.columns import read_columns
from gramvec.jobs.common.stage import open_stage
from gramvec.jobs.tables.batches import Position
from gramvec.jobs.tables.columns import TableRows
from gramvec.jobs.tables.inputs import FileFormat, Source, form_of
from gramvec.jobs.tables.readers import open_reader
from gramvec.jobs.tables.staging import check_outputs, journal_of, new_of, output_file, partial_of, whole
from gramvec.text import json_bounds
from support.bulk import gramvec_command
from support.errors import assert_names, refused


def file(folder: Path, name: str, data: str | bytes) -> Path:
    path = folder / name
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    return path


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_a_delimiter_is_recognized_by_the_header(delimiter: str, tmp_path: Path) -> None:
    rows = [["id", "text"], ["1", "a,b;c|d"], ["2", "e"]]
    path = file(tmp_path, "a.csv", "\n".join(delimiter.join(f'"{one}"' for one in row) for row in rows))
    assert read_columns(path, ["text"]).values == {"text": ["a,b;c|d", "e"]}


def test_a_delimiter_may_be_said(tmp_path: Path) -> None:
    path = file(tmp_path, "a.csv", "text;price, EUR\na;1,50\n")
    assert read_columns(path, ["price, EUR"], format=FileFormat("csv", ";")).values == {"price, EUR": ["1,50"]}
    assert read_columns(path, ["text;price"], format=FileFormat("csv", ",")).values == {"text;price": ["a;1"]}
    tabs = file(tmp_path, "b.csv", "text\tb\nx\ty\n")
    assert read_columns(tabs, ["b"], format=FileFormat("csv", "tab")).values == {"b": ["y"]}
    for wrong in ("", "ab", '"', "\n", "ü"):
        with refused(InputError, "one ASCII character"):
            FileFormat("csv", wrong)


def test_latin_1_is_named_and_read_when_said(tmp_path: Path) -> None:
    path = file(tmp_path, "a.csv", "text,b\ncafé,1\n".encode("cp1252"))
    with refused(InputError, "a.csv", "line 2", "not UTF-8", "Latin-1 ('café,1')", 'encoding="cp1252"'):
        read_columns(path, ["text"])
    assert read_columns(path, ["text"], format=FileFormat("csv", None, "latin-1")).values == {"text": ["café"]}
    lines = file(tmp_path, "a.jsonl", '{"text": "café"}\n'.encode("latin-1"))
    assert read_columns(lines, ["text"], format=FileFormat("jsonl", None, "cp1252")).values == {"text": ["café"]}
    for wrong in ("utf-32", "klingon", "utf-7", "rot13", "hex", "x\0"):
        with refused(InputError, "unknown", "ASCII"):
            FileFormat("csv", None, wrong)


def test_excel_files(tmp_path: Path) -> None:
    assert read_columns(file(tmp_path, "a.csv", "\ufefftext;n\r\na;1\r\n"), ["text"]).values == {"text": ["a"]}
    assert read_columns(file(tmp_path, "b.csv", "text\nä\n".encode("utf-16")), ["text"]).values == {"text": ["ä"]}


@pytest.mark.parametrize("name", ["a.csv", "a.tsv", "a.txt", "a.jsonl", "b.csv.gz", "b.txt.gz"])
def test_a_byte_order_mark_of_utf_8_says_the_encoding_whatever_is_given(name: str, tmp_path: Path) -> None:
    lines = ['{"text": "é"}', '{"text": "à"}'] if "json" in name else ["text", "é", "à"]
    data = "\n".join(lines).encode("utf-8-sig")
    path = file(tmp_path, name, gzip.compress(data) if name.endswith("gz") else data)
    given = FileFormat(form_of(path), None, "cp1252")
    assert read_columns(path, ["text"], format=given, positional=True).values == {"text": ["é", "à"]}
    # A resumed job does not read the first line.
    reader = open_reader(Source(path), given, "text", keep=False)
    end = len(data) - len(lines[-1].encode())
    assert [text for block in reader.blocks(Position(end, len(lines))) for text in block.texts] == ["à"]
    reader.source.close()


@pytest.mark.parametrize("encoding", ["utf-8", "cp1252"])
@pytest.mark.parametrize("name", ["a.csv", "a.jsonl"])
def test_a_marked_file_that_is_not_utf_8_gets_no_advice_that_does_not_help(
    encoding: str, name: str, tmp_path: Path
) -> None:
    lines = '{"text": "a"}\n{"text": "\xe9"}' if "json" in name else "text\n\xe9"
    path = file(tmp_path, name, b"\xef\xbb\xbf" + lines.encode("latin-1"))
    with pytest.raises(InputError, match='line 2: not UTF-8 .*byte order mark.*on_error="skip"` [^;]*$'):
        read_columns(path, ["text"], format=FileFormat(form_of(path), None, encoding))


def test_the_command_takes_delimiter_and_encoding(tmp_path: Path) -> None:
    path = file(tmp_path, "a.csv", "n;text\n1;café\n".encode("cp1252"))
    done = gramvec_command("embed", path, "--encoding", "cp1252", "--delimiter", ";", "--dimensions", "2")
    assert json.loads(done.stdout)["text"] == "café", done.stderr
    done = gramvec_command("embed", path, "--encoding", "utf-32")
    assert done.stderr.startswith(b"Error: encoding: utf-32"), done.stderr


@pytest.mark.parametrize(
    ("name", "data", "values"),
    [
        ("a.tsv", "x\thi\ny\tho\tmore\n", {"label": ["x", "y"], "text": ["hi", "ho\tmore"]}),
        ("a.txt", "label\ttext\nx\thi\n", {"label": ["x"], "text": ["hi"]}),
        ("a.tsv", "text\tn\tlabel\nhi\t1\tx\n", {"label": ["x"], "text": ["hi"]}),
        ("a.jsonl", '{"text": "hi", "label": 3}\n', {"label": ["3"], "text": ["hi"]}),
    ],
)
def test_columns_by_name_or_by_place(name: str, data: str, values: dict[str, list[str]], tmp_path: Path) -> None:
    assert read_columns(file(tmp_path, name, data), ["label", "text"], positional=True).values == values


def test_a_missing_column_is_named_with_its_option(tmp_path: Path) -> None:
    path = file(tmp_path, "a.csv", "a,b\n1,2\n")
    with refused(InputError, "a.csv", "'c'", "a, b", "`on`"):
        read_columns(path, ["a", "c"], options={"c": "on"})
    assert read_columns(path, ["a"], optional=["c"]).values == {"a": ["1"], "c": [""]}
    lines = file(tmp_path, "a.jsonl", '{"a": 1}\n{"b": 2}\n')
    assert read_columns(lines, ["a", "b"]).values == {"a": ["1", ""], "b": ["", "2"]}


def test_bad_rows_stop_or_are_counted(tmp_path: Path) -> None:
    path = file(tmp_path, "a.csv", b"a,b\n1,2\n3\n\xff,5\n,7\n8,9\n")
    with refused(InputError, "line 3", "1 fields", "2"):
        read_columns(path, ["a"])
    table = read_columns(path, ["a"], on_error="skip", filled=["a"])
    assert (table.values, table.numbers) == ({"a": ["1", "8"]}, [2, 6])
    assert [number for number, _ in table.bad.reasons] == [3, 4, 5]
    with TableRows(path) as rows:
        assert [one.number for one in rows if one.why is None] == [2, 5, 6]
    with refused(InputError, "more than 1 rows"):
        read_columns(path, ["a"], on_error="skip", max_rows=1)


def naive_depth(value: Any) -> int:
    if not isinstance(value, list | dict):
        return 0
    return 1 + max(map(naive_depth, value.values() if isinstance(value, dict) else value), default=0)


JSON = st.recursive(
    st.none() | st.text(max_size=4) | st.sampled_from(['[{"', "]\\", '\\"[']),
    lambda one: st.lists(one, max_size=3) | st.dictionaries(st.text(max_size=2), one, max_size=3),
    max_leaves=40,
)


@given(value=JSON, nested=st.integers(0, 60))
@example(value='"' * 9 + "[" * 200_000, nested=0)
def test_depth_is_counted_as_a_recursion_counts_it(value: Any, nested: int) -> None:
    for _ in range(nested):
        value = [value]
    data = json.dumps(value).encode()
    if naive_depth(value) > json_bounds.MAX_DEPTH:
        with pytest.raises(json_bounds.TooLarge, match="deeper than 32"):
            json_bounds.parse(data)
    else:
        assert json_bounds.parse(data) == value


LARGE = """
import sys
from pathlib import Path
from gramvec.errors import InputError
from gramvec.jobs.common.columns import read_columns
try:
    read_columns(Path(sys.argv[1]), ["text"])
except InputError as error:
    print(error)
print(next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM")))
"""


LINES = "x" * (1 << 20) + "\n"
OPEN_QUOTE = " MiB, maybe a quote is never closed"


@pytest.mark.parametrize("name", ["values.jsonl", "columns.csv", "fields.csv", "header.csv", "row.csv", "parts.csv"])
def test_a_small_file_does_not_become_many_objects(name: str, tmp_path: Path) -> None:
    data, said = {
        "values.jsonl": ('{"text":"a","x":[' + ",".join(["[]"] * 5_500_000) + "]}\n", "more than 100,000 values"),
        "columns.csv": ("text," + ",".join(map(str, range(1_000_000))) + "\n", "more than 10,000 columns"),
        "fields.csv": ("text,b\n" + "ab," * 5_000_000 + "\n", "more than 1,000,000 fields, the header has 2"),
        "header.csv": ('"text\n' + "a\n" * 5_000_000, f"header.csv: line 1: longer than 1{OPEN_QUOTE}; its first line"),
        "row.csv": ("text\n" + ('"' + LINES * 9 + '",') * 2, f"row.csv: line 2: not CSV (longer than 16{OPEN_QUOTE})"),
        "parts.csv": ("text,b\n" + ('"\n",' + "ab," * 990_000) * 5, "more than 1,000,000 fields, the header has 2"),
    }[name]
    command = [sys.executable, "-c", LARGE, str(file(tmp_path, name, data))]
    sentence, peak = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    assert said in sentence
    assert int(peak) < 250_000  # kB


def test_a_row_of_csv_that_is_too_long_does_not_hide_those_below(tmp_path: Path) -> None:
    path = file(tmp_path, "a.csv", 'text\na\n"' + LINES * 16 + 'x"\nb\n')
    found = read_columns(path, ["text"], on_error="skip")
    assert (found.values, found.numbers) == ({"text": ["a", 'x"', "b"]}, [2, 19, 20])


def test_a_deep_line_is_skipped(tmp_path: Path) -> None:
    rows = '{"text": "a"}\n{"text": "b", "x": ' + "[" * 254 + "]" * 254 + "}\n"
    path = file(tmp_path, "a.jsonl", rows)
    for output in ("o.jsonl", "o.npy"):
        done = gramvec_command("embed", path, "-o", tmp_path / output, "--on-error", "skip")
        assert done.returncode == 0, done.stderr
        assert_names(done.stderr.decode(), "line 2", "deeper", "32 levels")


def test_parquet_that_is_not_utf_8_or_damaged(tmp_path: Path) -> None:
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    offsets = pa.py_buffer(struct.pack("<4i", 0, 2, 4, 6))
    wrong = pa.Array.from_buffers(pa.utf8(), 3, [None, offsets, pa.py_buffer(b"ab\xff\xfecd")])
    pq.write_table(pa.table({"text": ["x", "y", "z"], "n": wrong}), tmp_path / "a.parquet")
    with refused(InputError, "a.parquet", "row 2", "'n'", "UTF-8"):
        read_columns(tmp_path / "a.parquet", ["text"])
    for output in ("o.jsonl", "o.parquet", "o.npy"):
        done = gramvec_command("embed", tmp_path / "a.parquet", "-o", tmp_path / output, "--on-error", "skip")
        assert done.returncode == 0, done.stderr
    records = [json.loads(line) for line in (tmp_path / "o.jsonl").read_bytes().splitlines()]
    assert [one["embedding"] is None for one in records] == [False, True, False]
    assert [one["n"] for one in records] == ["ab", None, "cd"]
    deep = pa.array([1], pa.int8())
    for _ in range(40):
        deep = pa.ListArray.from_arrays([0, len(deep)], deep)
    pq.write_table(pa.table({"text": ["x"], "deep": deep}), tmp_path / "deep.parquet")
    with refused(InputError, "deeper", "32"):
        read_columns(tmp_path / "deep.parquet", ["text"])
    pq.write_table(pa.table({"text": [str(one) for one in range(5_000)]}), tmp_path / "b.parquet", compression="none")
    data = bytearray((tmp_path / "b.parquet").read_bytes())
    data[4:40] = bytes(36)  # the first page's header
    (tmp_path / "b.parquet").write_bytes(data)
    with refused(InputError, "b.parquet", "row group 1 of 1", "damaged"):
        read_columns(tmp_path / "b.parquet", ["text"])


@pytest.mark.parametrize("kind", ["symlink", "hard link", "fifo", "folder"])
def test_planted_files_are_not_written_through(kind: str, tmp_path: Path) -> None:
    victim, output = file(tmp_path, "victim", "precious"), tmp_path / "out"

    def plant(path: Path) -> None:
        if kind == "fifo":
            os.mkfifo(path)
        elif kind == "folder":
            path.mkdir()
        elif kind == "symlink":
            path.symlink_to(victim)
        else:
            path.hardlink_to(victim)

    def remove(path: Path) -> None:
        path.rmdir() if kind == "folder" else path.unlink()

    plant(partial_of(output))
    with refused(InputError, ".out.partial", "link"):
        open_stage(output, None, Account(), resume=False)
    remove(partial_of(output))
    for name in (journal_of(output), new_of(journal_of(output)), new_of(output)):
        plant(name)
        with refused(InputError, name.name, "link"):
            open_stage(output, {}, Account(), resume=name == journal_of(output))
        if name != new_of(output):
            remove(name)
    for check in (lambda: whole(output).__enter__(), lambda: check_outputs(output)):
        with refused(InputError, ".out.new", "link"):
            check()
    assert not output.exists()
    assert victim.read_bytes() == b"precious"


def test_a_file_is_written_by_one_and_takes_the_place_of_files_only(tmp_path: Path) -> None:
    output = tmp_path / "out"
    new_of(output).write_bytes(b"left by a run that was killed, and longer")
    with whole(output) as stage:
        stage.write(b"good")
        with refused(InputError, "another run"), whole(output):
            pass
    assert output.read_bytes() == b"good"
    assert not new_of(output).exists()
    with pytest.raises(ValueError, match="half"), whole(output) as stage:
        stage.write(b"half")
        raise ValueError("half")
    assert output.read_bytes() == b"good"
    assert not new_of(output).exists()
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    for name, said in {"folder": "not a regular", "pipe": "not a regular", "no/out": "there is no folder"}.items():
        with pytest.raises(InputError, match=said), whole(tmp_path / name):
            pass
    assert (tmp_path / "pipe").is_fifo()
    assert sorted(one.name for one in tmp_path.iterdir()) == ["folder", "out", "pipe"]


def test_an_output_may_be_a_pipe_or_a_device(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    check_outputs(pipe)
    with output_file(pipe) as file:
        file.write(b"good")
    assert os.read(reader, 9) == b"good"
    os.close(reader)
    assert pipe.is_fifo()


JOURNAL: dict[str, Any] = {
    "version": 1, "job": {}, "rows": 0, "bytes": 0, "position": [0, 1], "bad": BadRows().as_json(),
}  # fmt: skip
FORGED = [
    {}, [], {"rows": -1}, {"rows": "x"}, {"rows": 1.5}, {"rows": True}, {"rows": 10**30}, {"bytes": -9},
    {"bytes": None}, {"position": ["a", 1]}, {"position": [0, -1]}, {"position": [0]}, {"position": 7},
    {"job": 5}, {"bad": {}},
    {"bad": 5}, *({"bad": BadRows().as_json() | bad} for bad in (
        {"add": 1}, {"count": "x"}, {"count": -1}, {"blank": 0.5}, {"unnamed": None}, {"notes": 5}, {"notes": "x"},
        {"reasons": [5]}, {"reasons": [[1]]}, {"reasons": [["x", "y"]]}, {"reasons": [[1, "y"]] * 21},
        {"ranges": [[[[]]]]}, {"ranges": [[1, 2]] * 1_001}, {"ranges": {"a": 1}},
    )),
]  # fmt: skip


def test_a_true_journal_is_not_refused(tmp_path: Path) -> None:
    bad = BadRows()
    for number in (3, *range(7, 30), 40):
        bad.add(number, "no text")
    journal_of(tmp_path / "out").write_text(json.dumps(JOURNAL | {"bad": bad.as_json()}))
    partial_of(tmp_path / "out").touch()
    stage = open_stage(tmp_path / "out", {}, Account(), resume=True)
    assert vars(stage.account.bad) == vars(bad)
    stage.close()


def test_a_checkpoint_of_bad_rows_stays_as_it_is() -> None:
    bad = BadRows()
    for number in (*range(1, 22), 30):
        bad.add(number, "no text")
    before = bad.as_json()
    kept = json.dumps(before)
    for number in (31, 40):
        bad.add(number, "no text")
    assert json.dumps(before) == kept != json.dumps(bad.as_json())


@pytest.mark.parametrize("forged", FORGED, ids=str)
def test_a_forged_journal_is_refused(forged: Any, tmp_path: Path) -> None:
    text = json.dumps(JOURNAL | forged if forged else forged)
    journal_of(tmp_path / "out").write_text(text)
    with refused(InputError, "damaged", "`resume`"):
        open_stage(tmp_path / "out", {}, Account(), resume=True)
