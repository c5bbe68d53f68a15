"""Tables, Parquet files and heads with changed bytes: each can be read and used, or ends in one sentence."""

from __future__ import annotations

import gzip
import json
import random
import zipfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from fuzz import mutate
from gramvec.errors import InputError
from gramvec.jobs.classify.head import ARRAYS, VERSION, Head
from gramvec.jobs.common.columns import read_columns
from gramvec.jobs.tables.batches import START
from gramvec.jobs.tables.columns import TableRows
from gramvec.jobs.tables.inputs import FileFormat, Form, Source
from gramvec.jobs.tables.readers import open_reader
from gramvec.text.array_file import pack_arrays
from support.spreadsheet import write_ods, write_xlsx

TEXT_FORMS: tuple[Form, ...] = ("txt", "jsonl", "csv", "tsv", "json")
PIECES = [
    b'"', b"\n", b"\r\n", b",", b";", b"\t", b"|", b"\\", b"{", b"}", b"[" * 33, b"]" * 33, b"\xff", b"\xc3", b"\x00",
    b"\xef\xbb\xbf", b"\xff\xfe", b"null", b"1e999", b'"text":', "\u00fc".encode(), b"\xed\xa0\x80", b"\\ud800", b" ",
    b"\n\n", b"\r", b"sep=;\n", b"PK\x03\x04\x00", b"[", b"]", b"a,a,,\n",
]  # fmt: skip
ROWS = {
    "txt": b"cheap flights\nlow-cost air fares\n\nx\n",
    "jsonl": b'{"text": "a", "n": [1, {"b": null}]}\n{"text": "b", "n": "\\u00fc"}\n',
    "csv": b'text,n\n"a, ""b""\nc",1\nd,2\n',
    "tsv": b"text\tn\na\t1\nb\t2\n",
    "json": b'[{"text": "a", "n": [1, {"b": "]\\""}]}, "b",\n {"text": "c"}]',
}


def prepare(bases: Path) -> None:
    """Write a head and two Parquet files to start from."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    bases.mkdir(parents=True, exist_ok=True)
    table = pa.table({"text": [f"text {row}" for row in range(500)], "n": [[row, None] for row in range(500)]})
    pq.write_table(table, bases / "a.parquet", row_group_size=200)
    pq.write_table(table, bases / "b.parquet", compression="none", use_dictionary=False)
    rows = [["text", "n"], *([f"text {row}", row] for row in range(20))]
    write_xlsx(bases / "a.xlsx", {"one": rows, "two": []})
    write_ods(bases / "a.ods", {"one": rows})


def one_round(numbers: random.Random, bases: Path, folder: Path) -> None:
    """Change one file and read it."""
    # Spreadsheets are rare: each is read by another process, which takes a tenth of a second to start.
    rounds = [_text_round, _text_round, _parquet_round, _head_round] * 8 + [_sheet_round]
    numbers.choice(rounds)(numbers, bases, folder)


def _sentence(work: Callable[[], object], path: Path) -> bool:
    """Whether the work ends well; asserts that an InputError is one short printable line that names the file."""
    try:
        work()
    except InputError as error:
        mutate.check_sentence(error, path)
        return False
    return True


def _changed(numbers: random.Random, data: bytes) -> bytes:
    made = bytearray(data)
    for _ in range(numbers.choice([1, 1, 2, 5])):
        at = numbers.randrange(len(made) + 1)
        kind = numbers.randrange(4)
        if kind == 0:
            made[at:at] = numbers.choice(PIECES) * numbers.choice([1, 1, 3])
        elif kind == 1:
            del made[at : at + numbers.choice([1, 1, 8, 100])]
        elif kind == 2 and at < len(made):
            made[at] ^= 1 << numbers.randrange(8)
        else:
            other = numbers.randrange(len(made) + 1)
            made[at:at] = made[other : other + numbers.randrange(40)]
    return bytes(made)


def _text_round(numbers: random.Random, bases: Path, folder: Path) -> None:
    form = numbers.choice(TEXT_FORMS)
    data = _changed(numbers, ROWS[form] * (1 if form == "json" else numbers.choice([1, 3, 40])))
    suffix = ""
    if numbers.random() < 0.2:
        data = data.replace(b"\r", b"").replace(b"\n", b"\r")
    if numbers.random() < 0.2:
        data = _changed(numbers, data.decode("utf-8", "replace").encode(numbers.choice(["utf-16", "utf-16-be"])))
    if numbers.random() < 0.2:
        data, suffix = gzip.compress(data, 1), ".gz"
        data = _changed(numbers, data) if numbers.random() < 0.5 else data
    path = folder / f"in.{form}{suffix}"
    path.write_bytes(data)
    delimiter, encoding = (
        numbers.choice([None, None, ";", "|", "tab"]),
        numbers.choice(["utf-8", "utf-8", "cp1252", "utf-16"]),
    )
    given = FileFormat(form, delimiter, encoding)
    _sentence(lambda: read_columns(path, ["text"], format=given, on_error="stop", positional=True), path)
    skipped = _sentence(lambda: read_columns(path, ["text"], format=given, on_error="skip", filled=["text"]), path)
    if not skipped:
        return
    rows = numbers.choice([1, 2, 7])

    def read(*start: Any) -> list[Any]:
        source = Source(path)
        try:
            return list(open_reader(source, given, None, keep=True, rows=rows).blocks(*start or [START]))
        finally:
            source.close()

    with suppress(InputError):
        blocks = read()
        at = numbers.randrange(len(blocks) + 1)
        assert read(blocks[at - 1].position if at else START) == blocks[at:]
        for block in blocks:
            for row, record in enumerate(block.records or []):
                assert row in block.bad or json.dumps(record) is not None


def _sheet_round(numbers: random.Random, bases: Path, folder: Path) -> None:
    form = numbers.choice(["xlsx", "ods"])
    path = folder / f"in.{form}"
    made = folder / "made.zip"
    data = (bases / f"a.{form}").read_bytes()
    if numbers.random() < 0.7:  # the parts are changed, and the zip file is whole
        with zipfile.ZipFile(bases / f"a.{form}") as base, zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as zipped:
            changed = numbers.choice(base.namelist())
            for name in base.namelist():
                part = base.read(name)
                zipped.writestr(name, _changed(numbers, part) if name == changed else part)
        data = made.read_bytes()
    else:
        data = _changed(numbers, data)
    path.write_bytes(data)
    _sentence(lambda: read_columns(path, ["text"], on_error="skip"), path)


def _parquet_round(numbers: random.Random, bases: Path, folder: Path) -> None:
    path = folder / "in.parquet"
    data = (bases / numbers.choice(["a.parquet", "b.parquet"])).read_bytes()
    path.write_bytes(_changed(numbers, data))

    def work() -> None:
        with TableRows(path) as rows:
            for row in rows:
                assert row.why is not None or row.record is not None

    _sentence(work, path)
    _sentence(lambda: read_columns(path, ["text"], optional=["n"], on_error="skip"), path)


def _head_round(numbers: random.Random, bases: Path, folder: Path) -> None:
    path = folder / "in.head"
    labels, d, k = numbers.choice([2, 3]), numbers.choice([1, 4]), numbers.choice([0, 1, 5])
    arrays: dict[str, Any] = {
        "labels": np.frombuffer(json.dumps([f"l{one}" for one in range(labels)]).encode(), np.uint8),
        "intercepts": np.zeros(labels, "<f4"),
        "vector_weights": np.ones((labels, d), "<i2"),
        "ngram_keys": np.arange(k, dtype="<i4"),
        "ngram_idf": np.ones(k, "<f4"),
        "ngram_units": np.ones(k, "<f4"),
        "ngram_weights": np.ones((k, labels), "|i1"),
    }
    values: dict[str, Any] = {
        "model": "m", "digest": "ab" * 32, "unit": 0.1, "threshold": 0.5, "thresholds": {"l0": 0.25}, "none": -1.0,
        "novelty": 4.0, "unseen": 3.0, "several": numbers.random() < 0.3,
    }  # fmt: skip
    name = numbers.choice([*ARRAYS, "values", "values"])
    if name == "values":
        key = numbers.choice([*values, "more"])
        values[key] = numbers.choice([0, -1, 1e-40, 1e300, 1e-320, None, "", "x" * 999, [[]], True, 2, "\u20ac\n"])
    elif numbers.random() < 0.5 and arrays[name].size:
        flat = arrays[name].reshape(-1)
        odd = [0, 1, -1, 7, 127, 255] if flat.dtype.kind in "iu" else [np.nan, np.inf, -1.0, 1e38, 1e-45, 0.0]
        flat = flat.copy()
        flat[numbers.randrange(len(flat))] = np.array(numbers.choice(odd)).astype(flat.dtype)
        arrays[name] = flat.reshape(arrays[name].shape)
    else:
        arrays[name] = np.resize(arrays[name], numbers.choice([(0,), (1,), (3, 2), (2, 3), (70_000,)]))
    packed = pack_arrays("head", VERSION, arrays, values={"head": json.dumps(values)}, checksum=True)
    path.write_bytes(packed if numbers.random() < 0.8 else _changed(numbers, packed))
    loaded: list[Head] = []
    if not _sentence(lambda: loaded.append(Head.load(path)), path):
        return
    (head,) = loaded
    texts = ["cheap flights", "", "x" * 300]
    scores = head.predict(texts, np.eye(3, head.dimensions, dtype=np.float32))
    assert np.isfinite(scores).all()
    assert head.several or scores.sum(axis=1).max() < 1.001
    head.answers(scores)
    head.save(folder / "again.head")
    assert Head.load(folder / "again.head").predict(texts, np.eye(3, head.dimensions, dtype=np.float32)).tobytes() == (
        scores.tobytes()
    )
