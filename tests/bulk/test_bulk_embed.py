"""`gramvec embed`: every form in and out, bad lines of each kind, and runs that are killed."""

from __future__ import annotations

import csv
import gzip
import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import gramvec
from gramvec.embed.vectors import quantize
from gramvec.errors import InputError
from gramvec.jobs.bulk.embed_file import OUTPUT_FORMS, Files, Options, embed_file
from gramvec.jobs.tables.batches import START, Block
from gramvec.jobs.tables.inputs import Source
from gramvec.jobs.tables.parquet import DimensionColumns
from gramvec.jobs.tables.readers import open_reader
from gramvec.jobs.tables.staging import partial_of
from gramvec.jobs.tables.writers import RowsForm, VectorRowsForm
from gramvec.progress import Progress
from support.bulk import MODEL, as_csv, as_jsonl, embed, embedded, killed, refusal, rows_kept
from support.errors import assert_names, refused

pytestmark = pytest.mark.slow

pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed: pip install '.[bulk]'")
pq = pytest.importorskip("pyarrow.parquet")

TEXTS = ["cheap flights", "", "über 🙂", 'a "quoted", one', "low-cost\tair", "\x00 nul"]
IDS = list(range(len(TEXTS)))


def written(form: str, folder: Path, texts: list[str] = TEXTS) -> Path:
    """The texts, with a column `id`, in a file of this form."""
    path = folder / f"in.{form}"
    ids = list(range(len(texts)))
    if form.endswith(".gz"):
        path.write_bytes(gzip.compress(written(form.removesuffix(".gz"), folder, texts).read_bytes()))
    elif form.endswith(".zst"):
        with pa.output_stream(str(path), compression="zstd") as file:
            file.write(written(form.removesuffix(".zst"), folder, texts).read_bytes())
    elif form == "txt":
        path.write_text("\n".join(texts), encoding="utf-8")
    elif form == "jsonl":
        path.write_bytes(as_jsonl([{"id": i, "text": text} for i, text in zip(ids, texts, strict=True)]))
    elif form == "csv":
        path.write_bytes(as_csv(list(zip(ids, texts, strict=True)), ["id", "text"]))
    elif form == "tsv":
        path.write_text("id\ttext\n" + "".join(f"{i}\t{text}\n" for i, text in zip(ids, texts, strict=True)))
    else:
        pq.write_table(pa.table({"id": ids, "text": texts}), path, row_group_size=4)
    return path


def vectors_in(path: Path, *, texts: list[str] = TEXTS) -> np.ndarray[Any, Any]:
    """What was written, after a look at the columns beside it."""
    if path.suffix == ".npy":
        return np.load(path)
    if path.suffix == ".jsonl":
        records = [json.loads(line) for line in path.read_bytes().splitlines()]
        assert [record["text"] for record in records] == texts
        return np.array([record["embedding"] for record in records], np.float32)
    if path.suffix in (".csv", ".tsv"):
        with path.open(encoding="utf-8", newline="") as file:
            quoting = csv.QUOTE_MINIMAL if path.suffix == ".csv" else csv.QUOTE_NONE
            names, *rows = csv.reader(file, delimiter="," if path.suffix == ".csv" else "\t", quoting=quoting)
        at = len(names) - 300
        assert names[at:] == [f"embedding_{place}" for place in range(300)]
        column = names.index("text")
        shown = texts if path.suffix == ".csv" else [" ".join(text.split()) for text in texts]
        assert [row[column] for row in rows] == shown
        return np.array([row[at:] for row in rows], np.float32)
    table = pq.read_table(path)
    assert table.column("text").to_pylist() == texts
    assert pa.types.is_fixed_size_list(table.schema.field("embedding").type)
    return np.array(table.column("embedding").to_pylist(), np.float32)


@pytest.mark.parametrize("form", ["txt", "jsonl", "csv", "tsv", "parquet", "jsonl.gz", "csv.gz", "txt.zst"])
@pytest.mark.parametrize("output", OUTPUT_FORMS)
@pytest.mark.parametrize("texts", [TEXTS, []], ids=["texts", "none"])
def test_every_form_in_and_out(
    form: str, output: str, texts: list[str], tmp_path: Path, small: gramvec.Embedder
) -> None:
    texts = [text for text in texts if "\t" not in text] if form == "tsv" else texts
    source = written(form, tmp_path, texts)
    target = tmp_path / f"out.{output}"
    done = embed_file(small, Files(source, target), rows=2)
    assert done.rows == len(texts)
    assert vectors_in(target, texts=texts).tobytes() == small.embed(texts).tobytes()
    assert {path.name for path in tmp_path.iterdir()} == {
        source.name, source.name.removesuffix(".gz").removesuffix(".zst"), target.name
    }  # fmt: skip
    if output == "jsonl" and "txt" not in form:
        ids = [json.loads(line)["id"] for line in target.read_bytes().splitlines()]
        assert list(map(int, ids)) == list(range(len(texts)))
    if output == "parquet":
        schema = pq.read_schema(target)
        assert schema.metadata[b"gramvec.model"] == b"paragram-phrase"
        assert schema.metadata[b"gramvec.digest"] == small.digest.encode()
        ids = pq.read_table(target).to_pydict().get("id", range(len(texts)))
        assert list(map(int, ids)) == list(range(len(texts)))


ANY_TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(texts=st.lists(st.one_of(ANY_TEXT, st.text('"\n\r,\t\x00 🙂a', max_size=8)), max_size=9), rows=st.integers(1, 4))
def test_any_text_goes_through(texts: list[str], rows: int, tmp_path: Path, small: gramvec.Embedder) -> None:
    for form in ("jsonl", "csv", "parquet"):
        source = written(form, tmp_path, texts)
        for target in (tmp_path / ("out.parquet" if form == "jsonl" else "out.jsonl"), tmp_path / "out.csv"):
            embed_file(small, Files(source, target), rows=rows)
            assert vectors_in(target, texts=texts).tobytes() == small.embed(texts).tobytes()


# Not what begins as a compressed file, which would be opened as one.
PLAIN = st.binary(max_size=60).filter(lambda data: not data.startswith(b"\x1f\x8b"))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=PLAIN, form=st.sampled_from(["txt", "jsonl", "csv", "tsv"]), rows=st.integers(1, 3))
def test_reading_may_begin_after_any_block(data: bytes, form: Any, rows: int, tmp_path: Path) -> None:
    file = tmp_path / "in"
    file.write_bytes((b"text,b\n" if form == "csv" else b"text\tb\n" if form == "tsv" else b"") + data)

    def read(*start: Any) -> list[Any]:
        source = Source(file)
        try:
            return list(open_reader(source, form, "text", keep=True, rows=rows).blocks(*start))
        finally:
            source.close()

    blocks = read()
    for index, block in enumerate(blocks):
        assert read(block.position) == blocks[index + 1 :]
    if any(block.blank for block in blocks) or b"\n" not in file.read_bytes():
        return  # blank lines are skipped, and carriage returns alone become line feeds
    header = file.read_bytes().split(b"\n", 1)[0] + b"\n" if form in ("csv", "tsv") else b""
    assert header + b"".join(line for block in blocks for line in block.raw) == file.read_bytes()


BAD = {
    "txt": (b"a\n\xff\nc\n", "line 2: not UTF-8"),
    "jsonl": (b'{"text": "a"}\n{"text": \n{"text": "c"}\n', "line 2: not JSON"),
    "ndjson": (b'{"text": "a"}\n{"id": 3}\n{"text": "c"}\n', "line 2: 'text' is missing"),
    "JSONL": (b'{"text": "a"}\n{"text": 3}\n{"text": "c"}\n', "line 2: 'text' is of type int, not a string"),
    "surrogate.jsonl": (b'{"text": "a"}\n{"text": "\\ud800"}\n{"text": "c"}\n', "line 2: not JSON"),
    "csv": (b'text,n\n"a\nb",1\n"x"y,2\nc,3\n', "line 4: not CSV"),
    "short.csv": (b"n,text\n1,a\n2\n3,c\n", "line 3: 1 fields, the header has 2"),
    "tsv": (b"text\tn\na\t1\nb\t\xff\nc\t3\n", "line 3: not UTF-8"),
    "long.txt": (b"a\n" + b"x" * 99 + b"\nc\n", "line 2: the text has 99 characters, the limit is 20"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_line_stops_or_is_skipped(name: str, tmp_path: Path, small: gramvec.Embedder) -> None:
    data, why = BAD[name]
    source = tmp_path / f"in.{name}"
    source.write_bytes(data)
    embedder = gramvec.Embedder(small.bundle, small._runtime, max_characters=20, threads=1)
    target = tmp_path / "out.jsonl"
    with pytest.raises(InputError, match=f"^{why}".replace("(", r"\(")):
        embed_file(embedder, Files(source, target))
    assert [path.name for path in tmp_path.iterdir()] == [source.name]
    done = embed_file(embedder, Files(source, target), on_error="skip")
    assert (done.rows, done.bad.count) == (3, 1)
    assert next(iter(list(done.bad.report(3))[1:])).startswith(why)
    records = [json.loads(line) for line in target.read_bytes().splitlines()]
    assert [record["embedding"] is None for record in records] == [False, True, False]
    for output in ("out.npy", "out.parquet"):
        embed_file(embedder, Files(source, tmp_path / output), on_error="skip")
    vectors = np.load(tmp_path / "out.npy")
    assert vectors.any(axis=1).tolist() == [True, False, True]
    table = pq.read_table(tmp_path / "out.parquet")
    assert table.schema.field("embedding").type == pa.list_(pa.float32())  # others cannot have null in older pyarrow
    assert table.schema.metadata[b"gramvec.model"] == embedder.name.encode()
    column = table.column("embedding").to_pylist()
    assert [one is None for one in column] == [False, True, False]
    assert np.array(column[2], np.float32).tobytes() == vectors[2].tobytes()


@pytest.mark.parametrize("form", ["csv", "tsv"])
@pytest.mark.parametrize("precision", ["float32", "int8", "ubinary"])
def test_cells_of_vectors_are_those_of_the_writer_of_rows(form: Any, precision: Any) -> None:
    """And a row without a vector has empty cells."""
    vectors = quantize(np.random.default_rng(0).standard_normal((3, 16)).astype(np.float32) * 1e-3, precision)
    columns = DimensionColumns("v", vectors.dtype, vectors.shape[1])
    block = Block(START, [2, 3, 5], ["a", "b", "c"], records=[{"text": "a,b"}, {}, {"text": "c"}])
    missing = np.array([False, True, False])
    rows = []
    for kind in (RowsForm, VectorRowsForm):
        writer = kind(form, "text", columns)
        data = writer.begin(block, None, ["text"]) + writer.encode(block, vectors, missing)
        rows.append(list(csv.reader(data.decode().splitlines(), delimiter="," if form == "csv" else "\t")))
    assert rows[0][0] == rows[1][0] == ["text", *(f"v_{place}" for place in range(vectors.shape[1]))]
    for slow, fast in zip(rows[0][1:], rows[1][1:], strict=True):
        assert slow[0] == fast[0]
        assert [one and float(one) for one in slow[1:]] == [one and float(one) for one in fast[1:]]
    assert not any(rows[1][2])


def test_a_null_in_parquet_is_a_bad_row(tmp_path: Path, small: gramvec.Embedder) -> None:
    source = tmp_path / "in.parquet"
    pq.write_table(pa.table({"text": pa.array(["a", None]).dictionary_encode(), "n": [1.5, None]}), source)
    with pytest.raises(InputError, match="^row 2: null"):
        embed_file(small, Files(source, tmp_path / "out.parquet"))
    assert embed_file(small, Files(source, tmp_path / "out.parquet"), on_error="skip").bad.count == 1
    found = pq.read_table(tmp_path / "out.parquet")
    assert found.column("n").to_pylist() == [1.5, None]
    assert found.column("text").to_pylist() == ["a", None]


def test_all_numbers_of_bad_lines_are_reported(tmp_path: Path) -> None:
    source = tmp_path / "in.txt"
    source.write_bytes(b"\xff\n" * 30 + b"good\n\xff\n")
    done = embed(source, "-o", tmp_path / "out.npy", "--on-error", "skip")
    assert done.returncode == 0
    lines = done.stderr.decode().splitlines()
    assert lines[0] == "31 of 32 could not be embedded and got no vector:"
    assert lines[20].startswith("line 20: not UTF-8")
    assert lines[21] == "lines 21-30, 32"


MANY = 40_000


def many(form: str, folder: Path) -> Path:
    texts = [f"{i} low-cost air fares to {i % 97}" for i in range(MANY)]
    source = written(form, folder, texts)
    if form == "txt":
        source.write_bytes(source.read_bytes().replace(b"\n30001 ", b"\n\xff ").replace(b"\n11 ", b"\n\xff "))
    return source


@pytest.mark.parametrize(
    ("form", "output", "number"),
    [
        ("txt", "npy", signal.SIGKILL),
        ("csv", "jsonl", signal.SIGTERM),
        ("jsonl.gz", "parquet", signal.SIGKILL),
        ("parquet", "parquet", signal.SIGINT),
        ("csv", "csv", signal.SIGKILL),
    ],
)
def test_a_killed_run_goes_on(form: str, output: str, number: signal.Signals, tmp_path: Path) -> None:
    """And gives the bytes of one that was left alone, the bad lines of both halves counted."""
    source = many(form, tmp_path)
    target = tmp_path / f"out.{output}"
    options = ("--on-error", "skip")
    whole = embed(source, "-o", target, *options)
    expected = target.read_bytes()
    target.unlink()
    killed(number, source, target, *options)
    begun = partial_of(target).stat().st_ino
    kept = rows_kept(target)
    assert 0 < kept < MANY
    assert "another options" in refusal(source, "-o", target, *options, "--dimensions", "9", "--resume")
    assert rows_kept(target) == kept
    done = embed(source, "-o", target, *options, "--resume")
    assert done.returncode == 0
    assert target.read_bytes() == expected
    assert done.stderr.rpartition(b" in ")[0] == whole.stderr.rpartition(b" in ")[0]  # but for the seconds
    assert f"rows put into {target} in ".encode() in done.stderr
    assert output == "parquet" or target.stat().st_ino == begun
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]


def test_a_changed_input_is_not_gone_on_with(tmp_path: Path) -> None:
    source = many("txt", tmp_path)
    target = tmp_path / "out.npy"
    killed(signal.SIGKILL, source, target, "--on-error", "skip")
    source.write_bytes(source.read_bytes() + b"\nmore\n")
    assert "another input" in refusal(source, "-o", target, "--on-error", "skip", "--resume")
    embedded(source, "-o", target, "--on-error", "skip")
    assert np.load(target).shape == (MANY + 1, 300)


def test_two_runs_do_not_write_one_output(tmp_path: Path, small: gramvec.Embedder) -> None:
    source = written("txt", tmp_path)
    target = tmp_path / "out.npy"
    seen = []

    class Meanwhile(Progress):
        def start(self, *_: object) -> None:
            with refused(InputError, "another run"):
                embed_file(small, Files(source, target))
            seen.append(1)

    embed_file(small, Files(source, target), progress=Meanwhile())
    assert seen
    assert np.load(target).shape == (len(TEXTS), 300)


# VmHWM: ru_maxrss of a process begins at its parent's peak.
PEAK = """
import sys
from pathlib import Path
import gramvec
from gramvec.jobs.bulk.embed_file import Files, embed_file
embedder = gramvec.load(sys.argv[1], device="cpu", threads=1)
embed_file(embedder, Files(Path(sys.argv[2]), Path(sys.argv[3])), threads=2)
print(next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM")))
"""


@pytest.mark.parametrize("output", ["npy", "parquet"])
def test_memory_does_not_grow_with_the_file(output: str, tmp_path: Path) -> None:
    peaks = []
    for lines in (40_000, 200_000):
        source = tmp_path / "in.txt"
        source.write_text("".join(f"{i} low-cost air fares to {i % 97}\n" for i in range(lines)))
        command = [sys.executable, "-c", PEAK, MODEL, str(source), str(tmp_path / f"out.{output}")]
        peaks.append(int(subprocess.run(command, capture_output=True, check=True).stdout))
    assert peaks[1] - peaks[0] < 30_000, peaks  # KB; the vectors alone are 192,000 more


@pytest.mark.parametrize("precision", ["int8", "uint8", "binary", "ubinary"])
def test_precisions(precision: Any, tmp_path: Path, small: gramvec.Embedder) -> None:
    source = written("txt", tmp_path)
    expected = quantize(small.embed(TEXTS, dimensions=20), precision)
    for output in ("npy", "jsonl", "parquet"):
        target = tmp_path / f"out.{output}"
        embed_file(small, Files(source, target), Options(dimensions=20, precision=precision))
        found = vectors_in(target)
        assert np.array_equal(found, expected)
        assert output != "npy" or found.dtype == expected.dtype


def test_pipes() -> None:
    line = embedded("--input-format", "csv", "--column", "b", stdin=b"a,b\n1,two\n")
    assert json.loads(line)["a"] == "1"
    assert len(json.loads(line)["embedding"]) == 300
    assert_names(refusal("--input-format", "parquet", "-", stdin=b"x"), "Parquet", "plain file")
    assert "pipe" in refusal("-o", "x.npy", "--resume", stdin=b"x")


def refused_file(name: str, data: bytes, folder: Path, *options: str) -> str:
    (folder / name).write_bytes(data)
    return refusal(folder / name, "-o", folder / "out.jsonl", *options)


def test_what_is_wrong_with_a_file_is_one_sentence(tmp_path: Path) -> None:
    assert_names(refused_file("x.csv", b"a,b\n1,2\n", tmp_path), "a, b", "--column")
    assert_names(refused_file("x.parquet", b"PAR1", tmp_path), "x.parquet", "not a whole")
    assert_names(refused_file("x.txt.gz", gzip.compress(b"a\n" * 9999)[:-9], tmp_path), "x.txt.gz", "cut off")
    assert_names(refused_file("y.txt.gz", b"no gzip", tmp_path), "y.txt.gz", "damaged")
    assert_names(refused_file("y.txt.zst", b"no zstd at all", tmp_path), "y.txt.zst", "damaged")
    for name, data, said in (
        ("a.txt", b"a\n", "lines of text"),
        ("a.csv", b"a,b\n1,2\n", "it has a, b: choose one with --column\n"),
        ("b.csv", b"a-b\n1-2\n", "--delimiter"),
        ("a.jsonl", b'{"name": 1}\n', "line 1: 'name' is of type int"),
    ):
        (tmp_path / name).write_bytes(data)
        assert said in refusal(tmp_path / name, "--column", "name")
    assert "--embedding-column" in refused_file("x.jsonl", b'{"text": "a", "embedding": 1}\n', tmp_path)
    embedded(tmp_path / "x.jsonl", "-o", tmp_path / "out.jsonl", "--embedding-column", "vector")
    (tmp_path / "x.csv").write_bytes(b"text,embedding_7\na,1\n")
    assert "'embedding_7'" in refusal(tmp_path / "x.csv", "-o", tmp_path / "out.csv")
    pq.write_table(pa.table({"text": [1]}), tmp_path / "n.parquet")
    assert "int64" in refusal(tmp_path / "n.parquet", "-o", tmp_path / "out.npy")
    rows = [{"text": "a", "n": 1}] * 2048 + [{"text": "a", "n": "x"}]
    (tmp_path / "types.jsonl").write_bytes(as_jsonl(rows))
    assert_names(refusal(
        tmp_path / "types.jsonl", "-o", tmp_path / "out.parquet"
    ), "line 2049", "type")  # fmt: skip


def test_without_pyarrow_there_is_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = written("txt", tmp_path)
    hidden = tmp_path / "hidden"
    hidden.mkdir()
    (hidden / "pyarrow.py").write_text("raise ModuleNotFoundError('no pyarrow here', name='pyarrow')")
    monkeypatch.setenv("PYTHONPATH", str(hidden))
    assert "pip install 'gramvec[bulk]'" in refusal(source, "-o", tmp_path / "out.parquet")
    embedded(source, "-o", tmp_path / "out.npy")
