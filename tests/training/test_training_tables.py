"""Files that people have: CSV, headers, scores, endless lines, UTF-16 and binary, as pairs and as labeled texts."""

from __future__ import annotations

import csv
import gzip
import io
import json
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gramvec.errors import InputError
from gramvec_research.answers import read_scored
from gramvec_training.readers.labels import Labeled, read_labeled
from gramvec_training.readers.lines import number_lines
from gramvec_training.readers.pairs import read_groups, read_pairs, read_ppdb
from gramvec_training.sections import TableFormat

PAIRS = [("cars", "vehicles"), ("buy", "purchase")]


def write(path: Path, text: str | bytes) -> Path:
    data = text.encode() if isinstance(text, str) else text
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


def write_table(path: Path) -> Path:
    """Write PAIRS in the form of the file's ending, between other columns."""
    table = pa.table({"n": [1, 2], "text1": ["cars", "buy"], "text2": ["vehicles", "purchase"]})
    plain = path.name.removesuffix(".gz").removesuffix(".zst")
    rows = table.to_pylist()
    if plain.endswith(".parquet"):
        pq.write_table(table, path)
        return path
    if plain.endswith(".jsonl"):
        text = "".join(f"{json.dumps(row)}\n" for row in rows)
    elif plain.endswith(".json"):
        text = json.dumps(rows)
    else:
        separator = {"a.tsv": "\t", "semicolons.csv": ";"}.get(plain, ",")
        text = "".join(
            f"{separator.join(map(str, row))}\n" for row in (table.column_names, *(row.values() for row in rows))
        )
    if path.suffix == ".zst":
        path.write_bytes(pa.Codec("zstd").compress(text.encode(), asbytes=True))
        return path
    return write(path, text)


@pytest.mark.parametrize(
    "name",
    ["a.tsv", "a.csv", "semicolons.csv", "a.jsonl", "a.json", "a.parquet", "a.csv.gz", "a.tsv.zst", "a.jsonl.zst"],
)
def test_every_form_of_a_table_is_read(tmp_path: Path, name: str) -> None:
    assert read_pairs(write_table(tmp_path / name))[0] == PAIRS


def test_a_format_is_given_where_the_ending_says_another(tmp_path: Path) -> None:
    path = write(tmp_path / "a.train", "text1|text2\ncafé|coffee house\n".encode("cp1252"))
    given = TableFormat(form="csv", delimiter="|", encoding="cp1252")
    assert read_pairs(path, given=given)[0] == [("café", "coffee house")]
    with pytest.raises(InputError, match=r"a\.train.*\.train"):
        read_pairs(path)
    path = write(tmp_path / "b.csv", "café\tcoffee house\n".encode("latin-1"))
    assert read_pairs(path, given=TableFormat(form="txt", encoding="latin-1"))[0] == [("café", "coffee house")]
    assert read_ppdb(path, given=TableFormat(encoding="latin-1"))[1].lines == {"fewer than three fields": [1]}


def test_bad_rows_of_parquet_are_rows(tmp_path: Path) -> None:
    pq.write_table(pa.table({"text1": ["cars", None], "text2": ["vehicles", "x"]}), tmp_path / "a.parquet")
    assert "1 row skipped: 1 an empty side (row 2)" in read_pairs(tmp_path / "a.parquet")[1].summary()
    with pytest.raises(InputError, match=r"a\.parquet row 2: an empty side"):
        read_pairs(tmp_path / "a.parquet", on_bad="refuse")


@pytest.mark.parametrize("name", ["a.tsv", "a.tsv.gz"])
@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be"])
def test_utf_16_is_read_where_it_has_a_byte_order_mark(tmp_path: Path, name: str, encoding: str) -> None:
    path = write(tmp_path / name, ("cars\tvehicles\n" * 9).encode(encoding))
    if encoding == "utf-16":
        assert read_pairs(path)[0] == PAIRS[:1] * 9
    else:
        with pytest.raises(InputError, match=f"UTF-16 without a byte order mark.*{encoding}"):
            read_pairs(path)


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (b"PK\x03\x04\x14\x00\x06\x00", "zip"),
        (b"PAR1\x15\x04\x15\x00", "Parquet"),
        (b"\x7fELF\x02\xff\x01\x00", "not UTF-8"),
    ],
)
def test_a_binary_file_is_refused(tmp_path: Path, data: bytes, kind: str) -> None:
    with pytest.raises(InputError, match=rf"a\.tsv.*{kind}"):
        list(number_lines(write(tmp_path / "a.tsv", data)))


def test_a_line_of_more_than_16_mib_is_skipped_or_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "a.tsv.gz", b"cars\tvehicles\n" + b"x" * (17 << 20) + b"\ty\nbuy\tpurchase\n")
    groups, bad = read_pairs(path)
    assert groups == PAIRS
    assert bad.lines == {"longer than 16 MiB": [2]}
    assert read_ppdb(path)[1].lines["longer than 16 MiB"] == [2]
    with pytest.raises(InputError, match="line 2: longer than 16 MiB"):
        read_groups(path, on_bad="refuse")
    with pytest.raises(InputError, match=r"line 2: longer than 16 MiB"):
        list(number_lines(path))


def test_a_file_without_a_line_feed_takes_little_memory(tmp_path: Path) -> None:
    path = tmp_path / "one.tsv"
    with path.open("wb") as handle:
        for _ in range(300):
            handle.write(b"x" * (1 << 20))
    program = (
        "import sys; from pathlib import Path; from gramvec_training.readers.pairs import read_pairs\n"
        "peak = lambda: next(int(line.split()[1]) for line in open('/proc/self/status') if line.startswith('VmHWM'))\n"
        "before = peak()\n"
        "assert read_pairs(Path(sys.argv[1]))[1].count == 1\n"
        "print((peak() - before) >> 10)"
    )
    done = subprocess.run([sys.executable, "-c", program, str(path)], capture_output=True, text=True, check=True)
    assert int(done.stdout) < 100  # MiB


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("a.csv", "id,text1,text2\n1,cars,vehicles\n2,buy,purchase\n", "the texts are 'text1' and 'text2'"),
        ("a.csv", 'Query,Title\ncars,vehicles\n"buy",purchase\n', "the texts are 'Query' and 'Title'"),
        ("a.csv", "eins,zwei\ncars,vehicles\nbuy,purchase\n", "the texts are 'eins' and 'zwei'"),
        ("a.csv.gz", "n,eins,zwei\n1,cars,vehicles\n2,buy,purchase\n", "the texts are 'eins' and 'zwei'"),
        ("a.csv", "right,left\nvehicles,cars\npurchase,buy\n", "the texts are 'left' and 'right'"),
        ("a.tsv", "sentence1\tsentence2\ncars\tvehicles\nbuy\tpurchase\n", "line 1 is a header"),
        ("a.tsv", "4.5\tcars\tvehicles\n3\tbuy\tpurchase\n", "column 1 holds numbers and is taken for a score, which"),
        ("a.tsv", "cars\tvehicles\t4.5\nbuy\tpurchase\t3\n", "column 3 holds numbers and is taken for a score, which"),
        ("a.tsv", "cars\tvehicles\t1\nno\tyes\t0\nbuy\tpurchase\t1\n", "1 row with a score of 0 left out"),
        (
            "a.csv",
            "question1,question2,is_duplicate\ncars,vehicles,1\nno,yes,0\nbuy,purchase,1\n",
            "the score is 'is_duplicate', so rows with 0 are left out",
        ),
    ],
)
def test_headers_and_scores_are_recognized_and_said(tmp_path: Path, name: str, text: str, said: str) -> None:
    groups, bad = read_pairs(write(tmp_path / name, text))
    assert groups == PAIRS
    assert any(said in line for line in bad.sentences()), bad.sentences()


def test_a_plain_file_has_nothing_said_of_it(tmp_path: Path) -> None:
    _, bad = read_pairs(write(tmp_path / "a.tsv", "cars\tvehicles\nbuy\tpurchase\n"))
    assert bad.sentences() == []


def test_bad_rows_of_a_csv_file_keep_their_lines(tmp_path: Path) -> None:
    text = b'text1,text2\n"a\nb",c\none\n\xff,x\nd,e\n,f\n'
    groups, bad = read_pairs(write(tmp_path / "a.csv", text))
    assert groups == [("a\nb", "c"), ("d", "e")]
    assert bad.lines == {
        "1 fields, the header has 2": [4],
        "not UTF-8": [5],
        "an empty side": [7],
    }


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (b"a b\nc d\n", r"a\.csv: one column, 'a b'"),
        (b'"a\n', "line 1: unexpected end of data"),
        (b"\xff,a\nc,d\n", "line 1: not UTF-8"),
        (b"", "no usable row"),
        (b"label,text\n", "no usable row"),
    ],
)
def test_a_csv_file_without_columns_is_refused(tmp_path: Path, text: bytes, reason: str) -> None:
    with pytest.raises(InputError, match=reason):
        read_labeled(write(tmp_path / "a.csv", text))


def test_a_column_that_is_named_twice_is_reported(tmp_path: Path) -> None:
    found, bad = read_pairs(write(tmp_path / "a.csv", "a,a\nc,d\n"))
    assert found == [("c", "d")]
    assert "the header names a 2 times" in bad.sentences()[0]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.tsv", "label\ttext\n1\tcars\n2\tbuy\n"),
        ("a.csv", "label,text\n1,cars\n2,buy\n"),
        ("a.csv", "id,utterance,intent\n7,cars,1\n8,buy,2\n"),
        ("a.csv", "klasse,wortlaut\n1,cars\n2,buy\n"),
        ("a.tsv", "1\tcars\n2\tbuy\n"),
    ],
)
def test_labels_and_texts_are_found_by_name(tmp_path: Path, name: str, text: str) -> None:
    assert read_labeled(write(tmp_path / name, text))[0] == [Labeled("1", ("cars",)), Labeled("2", ("buy",))]


def test_the_wordings_of_a_csv_file_are_below_its_header(tmp_path: Path) -> None:
    groups, bad = read_groups(write(tmp_path / "a.csv", "a,b,c\none,two,three\nx,y,\n"))
    assert groups == [("one", "two", "three"), ("x", "y")]
    assert bad.sentences() == [f"{tmp_path / 'a.csv'}: line 1 is a header; every column is a wording"]


TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=12)


@given(rows=st.lists(st.tuples(TEXT, TEXT), max_size=8))
def test_what_a_csv_writer_writes_is_read_back(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[str, str]]
) -> None:
    out = io.StringIO(newline="")
    csv.writer(out, quoting=csv.QUOTE_ALL, lineterminator="\n").writerows([("text1", "text2"), *rows])
    path = write(tmp_path_factory.mktemp("csv") / "a.csv", out.getvalue())
    stripped = [(left.strip(), right.strip()) for left, right in rows]
    assert read_pairs(path)[0] == [(left, right) for left, right in stripped if left and right and left != right]


@given(data=st.binary(max_size=200), name=st.sampled_from(["a.tsv", "a.csv", "a.groups.tsv", "a.csv.gz"]))
def test_any_bytes_are_read_or_refused(tmp_path_factory: pytest.TempPathFactory, data: bytes, name: str) -> None:
    path = write(tmp_path_factory.mktemp("any") / name, data)
    for reader in (read_pairs, read_groups, read_ppdb, read_labeled, read_scored):
        try:
            found, bad = reader(path)
        except InputError as error:
            assert "\n" not in str(error)
        else:
            assert bad.count + len(found) <= data.count(b"\n") + data.count(b"\r") + 1
