"""`gramvec index`, `gramvec search` and `gramvec.Index`: what is found, what is kept, what is refused."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gramvec
from bulk_support import MODEL, PATIENCE, SLOW_EMBED, as_csv, gramvec_command, killed, rows_kept
from conftest import MODELS, ROOT
from gramvec.errors import InputError
from gramvec.search import filters, scan
from gramvec.search.layout import HEADER_BYTES, JSON_BEGIN, MAGIC, IndexHeader, Layout

pytest.importorskip("numkong", reason="numkong is not installed: pip install '.[search]'")

TEXTS = ["cheap flights", "reset my password", "bananas", "track a parcel", "where is my order", "caf\u00e9 \U0001f642"]


@pytest.fixture(scope="module")
def small() -> Iterator[gramvec.Embedder]:
    opened = gramvec.load(MODEL, device="cpu")
    yield opened
    opened.close()


@pytest.fixture
def path(tmp_path: Path, small: gramvec.Embedder) -> Path:
    gramvec.Index.build(tmp_path / "things.gvi", TEXTS, model=small)
    return tmp_path / "things.gvi"


def index_command(*arguments: object, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    done = gramvec_command(*arguments, stdin=stdin)
    assert b"Traceback" not in done.stderr, done.stderr
    return done


def refused(*arguments: object) -> str:
    done = index_command(*arguments)
    assert done.returncode == 1, done
    assert done.stderr.count(b"\n") == 1, done.stderr
    return done.stderr.decode()


@given(
    seed=st.integers(0, 2**32 - 1), n=st.integers(1, 400), d=st.integers(1, 70), k=st.integers(1, 30),
    threads=st.integers(1, 3), tile=st.integers(1, 90),
)  # fmt: skip
def test_the_nearest_rows_are_those_of_brute_force(seed: int, n: int, d: int, k: int, threads: int, tile: int) -> None:
    numbers = np.random.default_rng(seed)
    units = numbers.normal(size=(n + 3, d)).astype(np.float32)
    units /= np.linalg.norm(units, axis=1, keepdims=True)
    table, queries = np.rint(units[:n] * 127).astype(np.int8), units[n:]
    table[::11] = 0
    table[n // 2 :: 7] = table[0]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scan, "TILE_ROWS", tile)
        patch.setattr(scan, "THREAD_ROWS", 50)
        patch.setattr(scan, "SPARE", 500)
        rows, scores = scan.nearest(queries, table, k, threads=threads)
    wide = table.astype(np.float64)
    wide /= np.maximum(np.linalg.norm(wide, axis=1, keepdims=True), 1e-9)
    expected = queries.astype(np.float64) @ wide.T
    np.testing.assert_allclose(scores, -np.sort(-expected, axis=1)[:, :k], atol=2e-6)
    np.testing.assert_allclose(scores, np.take_along_axis(expected, rows, 1), atol=2e-6)
    for some, cosines in zip(rows.tolist(), scores.tolist(), strict=True):
        assert len(set(some)) == len(some) == min(k, n)
        assert sorted(zip([-one for one in cosines], some, strict=True)) == [
            (-one, row) for one, row in zip(cosines, some, strict=True)
        ]


@given(seed=st.integers(0, 2**32 - 1), tiles=st.lists(st.integers(1, 300), min_size=2, max_size=2))
def test_candidates_do_not_depend_on_tiles_or_threads(seed: int, tiles: list[int]) -> None:
    numbers = np.random.default_rng(seed)
    table = numbers.integers(-3, 4, (900, 4), np.int8)  # small numbers: most products are equal to others
    queries = numbers.normal(size=(2, 4)).astype(np.float32)
    found = []
    for threads, tile in enumerate(tiles, start=1):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(scan, "TILE_ROWS", tile)
            patch.setattr(scan, "THREAD_ROWS", 100)
            found.append(scan._candidates(queries, table, 70, threads))
    for one, other in zip(*found, strict=True):
        assert one.tolist() == other.tolist()


def test_texts_are_found_with_the_scores_of_the_model(path: Path, small: gramvec.Embedder) -> None:
    index = gramvec.Index.open(path, model=small)
    assert len(index) == 6
    assert index.header.column == "text"
    for text, hits in zip(TEXTS, index.search(TEXTS, k=6), strict=True):
        assert (hits[0].record, hits[0].id) == ({"text": text}, str(TEXTS.index(text) + 1))
        expected = small.similarity([text], [hit.record["text"] for hit in hits])[0]
        assert [hit.score for hit in hits] == pytest.approx(expected.tolist(), abs=1e-4)
    assert index.search("cheap flihgts", k=1)[0][0].id == "1"
    assert index.search([]) == []
    assert [hit.score for hit in index.search("")[0]] == [0] * 6
    for k in (0, 10_001, True, 1.5):
        with pytest.raises(InputError, match="k must be a whole number"):
            index.search("x", k=k)  # type: ignore[arg-type]
    with pytest.raises(InputError):
        index.search([3])  # type: ignore[list-item]


def test_rows_without_remainders_are_smaller_and_scored_nearly(tmp_path: Path, small: gramvec.Embedder) -> None:
    fine = gramvec.Index.build(tmp_path / "fine.gvi", TEXTS, model=small)
    coarse = gramvec.Index.build(tmp_path / "coarse.gvi", TEXTS, model=small, fine=False)
    assert (fine.header.fine, coarse.header.fine) == (True, False)
    assert fine.path.stat().st_size - coarse.path.stat().st_size == 6 * small.dimension
    expected = small.similarity(["cheap"], TEXTS)[0]
    for index, error in ((fine, 1e-4), (coarse, 0.01)):
        assert index.add(["plums"]) == 7
        assert index.remove(["7"]) == 6
        found = {hit.id: hit.score for hit in index.search("cheap")[0]}
        assert [found[str(row)] for row in range(1, 7)] == pytest.approx(expected.tolist(), abs=error)
    command = ["index", "build", "-", "-m", MODEL, "--coarse", "-o", tmp_path / "piped.gvi"]
    assert index_command(*command, stdin="".join(f"{one}\n" for one in TEXTS).encode()).returncode == 0
    assert json.loads(index_command("index", "info", tmp_path / "piped.gvi", "--json").stdout)["fine"] is False


def test_adding_and_removing_are_as_building_anew(path: Path, small: gramvec.Embedder, tmp_path: Path) -> None:
    index = gramvec.Index(path, model=small)
    assert index.add({"text": text, "n": place} for place, text in enumerate(("oranges", "lemons"))) == 8
    assert [index._layout.id(row) for row in (6, 7)] == ["7", "8"]
    assert index.remove(["1", "3", "8"]) == 5
    assert index.add(["limes"]) == 6
    assert list(index._layout.every_id()) == ["2", "4", "5", "6", "7", "9"]  # no number is given twice
    kept = [TEXTS[1], TEXTS[3], TEXTS[4], TEXTS[5], "oranges", "limes"]
    anew = gramvec.Index.build(tmp_path / "anew.gvi", kept, model=small)
    np.testing.assert_array_equal(index._layout.vectors, anew._layout.vectors)
    assert index.search("orange", k=1)[0][0].record == {"text": "oranges", "n": 0}
    before = path.read_bytes()
    with pytest.raises(InputError, match="1 ids are not there"):
        index.remove(["2", "none"])
    with pytest.raises(InputError, match="no row would be left"):
        index.remove(["2", "4", "5", "6", "7", "9"])
    with pytest.raises(InputError, match="record 1 has no form in JSON"):
        index.add(["x", {"text": object()}])
    with pytest.raises(InputError, match="line 2: 'text' is missing"):
        index.add([{"text": "x"}, {"texts": "y"}])
    with pytest.raises(InputError, match="at least one"):
        index.add([])
    assert path.read_bytes() == before
    assert sorted(one.name for one in tmp_path.iterdir()) == ["anew.gvi", "things.gvi"]


def test_the_commands_on_a_file_with_columns(tmp_path: Path) -> None:
    rows = [(7, "forgot my pasword", "web"), (9, "track a\nparcel", "post"), (11, 'reset, "password"', "web")]
    source, path = tmp_path / "t.csv", tmp_path / "t.gvi"
    source.write_bytes(as_csv(rows, ["number", "subject", "team"]))
    build = ["index", "build", source, "-o", path, "--model", MODEL, "--column", "subject", "--id", "number"]
    assert index_command(*build).returncode == 0
    told = json.loads(index_command("index", "info", path, "--json").stdout)
    assert (told["rows"], told["text_column"], told["id_column"]) == (3, "subject", "number")
    assert told["columns"] == ["subject", "number", "team"]
    assert b"paragram-phrase" in index_command("index", "info", path).stdout
    ask = ["search", path, "--model", MODEL]
    lines = index_command(*ask, "parcel", "-k", 2).stdout.decode().splitlines()
    assert lines[0].split("\t")[1:] == ["9", "track a parcel", "9", "post"]
    assert len(lines) == 2
    queries = tmp_path / "q.txt"
    queries.write_text("password\nparcel\n")
    printed = index_command(*ask, "--file", queries, "-k", 1, "--format", "csv").stdout.decode()
    table = list(csv.DictReader(io.StringIO(printed)))
    assert [(one["query"], one["rank"], one["subject"]) for one in table][1] == ("parcel", "1", "track a\nparcel")
    found = json.loads(index_command(*ask, "parcel", "-k", 1, "--format", "json").stdout)
    assert found["record"] == {"number": "9", "subject": "track a\nparcel", "team": "post"}
    assert index_command(*ask).returncode == index_command(*ask, "x", "--file", queries).returncode == 2
    # Adding, twice, and taking out again.
    more = tmp_path / "more.jsonl"
    more.write_bytes(b'{"number": 12, "subject": "app crashes", "new": [1]}\n')
    add = ["index", "add", path, more, "--model", MODEL]
    assert index_command(*add).returncode == 0
    assert "two rows have the id 12" in refused(*add)
    more.write_bytes(b'{"subject": "app crashes"}\n')
    assert "line 1: no 'number' to take the id from" in refused(*add)
    assert index_command("index", "remove", path, "--ids", _file(tmp_path, "7\n9\n")).returncode == 0
    assert "1 ids are not there (7)" in refused("index", "remove", path, 7)
    found = json.loads(index_command(*ask, "crash", "-k", 1, "--format", "json").stdout)
    assert found["record"]["new"] == [1]


def _file(folder: Path, text: str) -> Path:
    (folder / "ids.txt").write_text(text)
    return folder / "ids.txt"


def test_bad_input_is_one_sentence_and_leaves_what_was_there(tmp_path: Path) -> None:
    source, path = tmp_path / "t.csv", tmp_path / "t.gvi"
    path.write_bytes(b"as it was")
    build = ["index", "build", source, "-o", path, "--model", MODEL]
    for text, options, said in (
        ("", [], "there is no text in the input"),
        ("text\n", [], "there is no text in the input"),
        ("subject\nx\n", [], "has no column 'text'"),
        ("text,id\nx,1\ny,1\n", ["--id", "id"], "two rows have the id 1"),
        ("text,id\nx,\n", ["--id", "id"], "line 2: 'id' is no id"),
        ("text,id\nx\n", [], "line 2: 1 fields, the header has 2"),
        ("text\nx\n", ["--id", "key"], "line 2: no 'key' to take the id from"),
        ("text\nx\n", ["--column", "text", "--id", "k" * 300], "200"),
    ):
        source.write_text(text)
        assert said in refused(*build, *options), text
    assert path.read_bytes() == b"as it was"
    assert "no index of gramvec" in refused("search", path, "x")
    assert sorted(one.name for one in tmp_path.iterdir()) == ["t.csv", "t.gvi"]
    source.write_text("text\nx\ny,z\nw\n")
    done = index_command(*build, "--on-error", "skip")
    assert done.returncode == 0
    assert b"2 rows put into" in done.stderr
    assert list(Layout(path).every_id()) == ["2", "4"]


def test_another_model_is_refused(path: Path) -> None:
    said = refused("search", path, "x", "--model", MODELS / "sif")
    assert "was made with paragram-phrase" in said
    assert "not with sif" in said


def test_a_full_disk_leaves_the_index_as_it_was(path: Path) -> None:
    before = path.read_bytes()
    limited = (
        "import resource, signal, sys; signal.signal(signal.SIGXFSZ, signal.SIG_IGN);"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (5000, 5000)); from gramvec.cli import main; main()"
    )
    command = [sys.executable, "-c", limited, "index", "add", str(path), "--model", MODEL]
    done = subprocess.run(command, input=b"one more\n" * 40, capture_output=True, cwd=ROOT, check=False)
    assert done.returncode == 1
    assert b"Traceback" not in done.stderr
    assert b"File too large" in done.stderr
    assert path.read_bytes() == before
    assert [one.name for one in path.parent.iterdir()] == [path.name]


def test_a_killed_run_goes_on(tmp_path: Path, real_texts: list[str]) -> None:
    source, whole, resumed = (tmp_path / name for name in ("t.txt", "whole.gvi", "resumed.gvi"))
    source.write_text("".join(f"{text}\n" for text in (real_texts * 9)[:9000] if "\n" not in text))
    assert index_command("index", "build", source, "-o", whole, "--model", MODEL).returncode == 0
    killed(signal.SIGKILL, source, resumed, command=("index", "build"))
    assert rows_kept(resumed) > 0
    again = ["index", "build", source, "-o", resumed, "--model", MODEL, "--resume"]
    assert "another id" in refused(*again, "--id", "text")
    assert index_command(*again).returncode == 0
    assert resumed.read_bytes() == whole.read_bytes()


def test_a_killed_addition_leaves_the_index_and_goes_on(tmp_path: Path, real_texts: list[str]) -> None:
    lines = [text for text in (real_texts * 9)[:9000] if "\n" not in text]
    source, path, whole = (tmp_path / name for name in ("t.txt", "x.gvi", "whole.gvi"))
    source.write_text("".join(f"{text}\n" for text in lines))
    first = "".join(f"{text}\n" for text in TEXTS).encode()
    for one in (path, whole):
        assert index_command("index", "build", "-", "-o", one, "--model", MODEL, stdin=first).returncode == 0
    before = path.read_bytes()
    command = [sys.executable, "-c", SLOW_EMBED, "index", "add", str(path), str(source), "--model", MODEL]
    with subprocess.Popen(command, cwd=ROOT, stderr=subprocess.DEVNULL) as process:
        deadline = time.monotonic() + PATIENCE
        while rows_kept(path) == 0 and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.001)
        process.kill()
    assert rows_kept(path) > 0
    assert path.read_bytes() == before
    assert len(gramvec.Index(path).search(TEXTS[0], 1)[0]) == 1
    for one, options in ((path, ["--resume"]), (whole, [])):
        assert index_command("index", "add", one, source, "--model", MODEL, *options).returncode == 0
    assert path.read_bytes() == whole.read_bytes()
    assert sorted(one.name for one in tmp_path.iterdir()) == ["t.txt", "whole.gvi", "x.gvi"]


def test_without_numkong_it_says_what_to_install(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "numkong", None)
    with pytest.raises(InputError, match=r"pip install 'gramvec\[search\]'"):
        gramvec.Index(path).search("x")


def test_the_file_is_laid_out_as_its_page_says(path: Path, small: gramvec.Embedder) -> None:
    data = path.read_bytes()
    assert data[:8] == MAGIC
    assert data[8:40] == hashlib.sha256(data[40:4096]).digest()
    header = json.loads(data[40:4096])
    assert header["body"] == hashlib.sha256(data[4096:]).hexdigest()
    d, at = header["dimensions"], 4096
    vectors = np.frombuffer(data, np.int8, 6 * d, at).reshape(6, d)
    np.testing.assert_array_equal(vectors, Layout(path).vectors)
    at += -(-6 * d // 8) * 8
    remainders = np.frombuffer(data, np.int8, 6 * d, at).reshape(6, d)
    np.testing.assert_allclose(vectors / 127 + remainders / (127 * 254), small.embed(TEXTS), atol=1.6e-5)
    at += -(-6 * d // 8) * 8
    assert np.frombuffer(data, "<i8", 7, at).tolist() == [0, 1, 2, 3, 4, 5, 6]
    assert data[at + 56 : at + 64] == b"123456\0\0"
    places = np.frombuffer(data, "<i8", 7, at + 64)
    assert orjson.loads(data[at + 120 :][: places[1]]) == {"text": "cheap flights"}
    assert at + 120 + places[-1] == len(data)


def opened_and_used(path: Path, small: gramvec.Embedder, *, verify: bool) -> bool:
    """Whether it opened and answered; a sentence if not."""
    try:
        index = gramvec.Index(path, model=small, verify=verify)
        for query in ("flights", ""):
            index.search(query, k=7)
            for name in index.filters:
                index.search(query, k=7, where={name: ["a", TEXTS[0]]})
        list(index._layout.parts(np.arange(len(index)) % 2 == 0))
    except InputError as error:
        assert "\n" not in str(error)
        return False
    return True


@given(seed=st.integers(0, 2**32 - 1))
def test_any_changed_byte_is_noticed(seed: int, fuzzed: tuple[bytes, Path, gramvec.Embedder]) -> None:
    sound, target, small = fuzzed
    numbers = random.Random(seed)
    data = bytearray(sound)
    if numbers.random() < 0.3:
        del data[numbers.randrange(len(data)) :]
    elif numbers.random() < 0.2:
        data += bytes(numbers.randrange(1, 99))
    else:
        data[numbers.randrange(len(data))] ^= 1 << numbers.randrange(8)
    target.write_bytes(data)
    assert not opened_and_used(target, small, verify=True)


HEADER_NUMBERS = ["rows", "dimensions", "id_bytes", "record_bytes", "next", "version"]


@given(seed=st.integers(0, 2**32 - 1))
def test_a_file_made_to_harm_does_none(seed: int, fuzzed: tuple[bytes, Path, gramvec.Embedder]) -> None:
    """With digests that are right: numbers, places and records are what remains to be checked."""
    sound, target, small = fuzzed
    numbers = random.Random(seed)
    header, body = json.loads(sound[JSON_BEGIN:HEADER_BYTES]), bytearray(sound[HEADER_BYTES:])
    sizes = {name: header[name] for name in HEADER_NUMBERS}
    for _ in range(numbers.randrange(1, 4)):
        way = numbers.randrange(6)
        if way == 0:
            name = numbers.choice(HEADER_NUMBERS)
            header[name] = numbers.choice([0, -1, 1, 2**31, 2**47, 2**63, sizes[name] + 1, sizes[name] * 2, "7", None])
        elif way == 1:
            header[numbers.choice(list(header))] = numbers.choice(["../../x", "", "x" * 201, [], {}, 1.5])
        elif way == 2:
            at = numbers.randrange(len(body) // 8) * 8
            value = numbers.choice([0, -1, 2**62, len(body), 3])
            body[at : at + 8] = value.to_bytes(8, "little", signed=True)
        elif way == 3 and header["filters"] and isinstance(header["filters"], list):
            one = numbers.choice(header["filters"])
            one[numbers.choice(list(one))] = numbers.choice(["b", 0, -1, 1, 2**20, 2**63, 7, None])
        elif way == 4:
            body[numbers.randrange(len(body))] = numbers.randrange(256)
        else:
            del body[numbers.randrange(1, len(body)) :]
            body += bytes(8)
    header["body"] = hashlib.sha256(body).hexdigest()
    text = json.dumps(header).encode().ljust(HEADER_BYTES - JSON_BEGIN)
    target.write_bytes(MAGIC + hashlib.sha256(text).digest() + text + body)
    opened_and_used(target, small, verify=True)


@pytest.fixture(scope="module")
def fuzzed(tmp_path_factory: pytest.TempPathFactory, small: gramvec.Embedder) -> tuple[bytes, Path, gramvec.Embedder]:
    folder = tmp_path_factory.mktemp("fuzzed")
    gramvec.Index.build(folder / "sound.gvi", [{"text": text, "n": [text], "a": "a", "b": text} for text in TEXTS],
                        model=small, filters=["a", "b"])  # fmt: skip
    return (folder / "sound.gvi").read_bytes(), folder / "mutant.gvi", small


def test_sizes_are_checked_before_memory_is_taken(path: Path) -> None:
    data = path.read_bytes()
    header = IndexHeader.model_validate(orjson.loads(data[JSON_BEGIN:HEADER_BYTES]))
    for numbers in ({"rows": 2**31 - 1}, {"id_bytes": 2**48}, {"dimensions": 65_536, "rows": 2**31 - 1}):
        path.write_bytes(header.model_copy(update=numbers).packed() + data[HEADER_BYTES:])
        with pytest.raises(InputError, match="its size is not what its header says"):
            Layout(path, verify=False)


RECORDS = [
    {"text": "sony tv 40", "brand": "sony", "price": 9},
    {"text": "lg tv 40", "brand": "lg", "price": "9"},
    {"text": "sony camera", "brand": "sony", "price": None},
    {"text": "tv", "sold": True},
]


def test_a_search_is_narrowed_by_columns(tmp_path: Path, small: gramvec.Embedder) -> None:
    index = gramvec.Index.build(tmp_path / "x.gvi", RECORDS, model=small, filters=["brand", "price", "sold"])
    assert index.filters == ["brand", "price", "sold"]

    def found(**where: object) -> list[str]:
        return [hit.id for hit in index.search("tv", where=where)[0]]  # type: ignore[arg-type]

    assert found() == [hit.id for hit in index.search("tv")[0]] == [hit.id for hit in index.search("tv", where={})[0]]
    assert found(brand="sony") == ["1", "3"]
    assert found(price=9) == found(price="9") == ["1", "2"]
    assert found(price=9, brand=["lg", "acer"]) == ["2"]
    assert found(brand="acer") == found(brand=[]) == found(brand="") == found(price=9, brand="acer") == []
    assert found(sold=True) == found(sold="true") == ["4"]
    assert index.add([{"text": "acer tv", "brand": "acer"}]) == 5
    assert found(brand="acer") == ["5"]
    assert index.remove(["4"]) == 4
    assert found(sold=True) == []
    assert index.filters == ["brand", "price", "sold"]
    for where in ({"text": "tv"}, {"brand": None}, {"brand": {}}, {"brand": [None]}, {"brand": ["x"] * 1001}):
        with pytest.raises(InputError, match="brand"):
            index.search("tv", where=where)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="columns with their values"):
        index.search("tv", where=[("brand", "sony")])  # type: ignore[arg-type]
    assert found(price=10**40) == []
    with pytest.raises(InputError, match=r"it can by none: name columns with --filter"):
        gramvec.Index.build(tmp_path / "y.gvi", RECORDS, model=small).search("tv", where={"brand": "lg"})


@given(
    seed=st.integers(0, 2**32 - 1), share=st.floats(0, 1), tile=st.integers(1, 90), k=st.integers(1, 20),
)  # fmt: skip
def test_narrowed_rows_are_searched_as_if_they_were_all(seed: int, share: float, tile: int, k: int) -> None:
    numbers = np.random.default_rng(seed)
    table = numbers.integers(-127, 128, (300, 12), np.int8)
    queries = numbers.normal(size=(3, 12)).astype(np.float32)
    queries /= np.linalg.norm(queries, axis=1, keepdims=True)
    allowed = numbers.random(300) < share
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scan, "TILE_ROWS", tile)
        patch.setattr(scan, "THREAD_ROWS", 70)
        rows, scores = scan.nearest(queries, table, k, threads=2, allowed=allowed)
    among, expected = scan.nearest(queries, table[allowed], k)
    assert rows.tolist() == np.flatnonzero(allowed)[among].tolist()
    assert scores.tolist() == expected.tolist()


@given(values=st.lists(st.text(st.characters(codec="utf-8"), max_size=4) | st.none() | st.integers(-3, 3), min_size=1))
def test_codes_stand_for_the_values(values: list[str | int | None]) -> None:
    lines = [orjson.dumps({"a": one}) for one in values]
    (column,) = filters.collect(["a"], lines, len(lines))
    codes, places, text = column.parts
    mapped = {"a": filters.FilterColumn(codes.view("<i4"), places.view("<i8"), text)}
    for one in {*values, "q", "zz"} - {None}:
        rows = filters.allowed_rows(mapped, filters.narrowing(mapped, {"a": one}), len(values))  # type: ignore[dict-item]
        assert rows.tolist() == [other is not None and str(other) == str(one) for other in values]


def test_columns_that_cannot_narrow_are_refused(tmp_path: Path, small: gramvec.Embedder) -> None:
    path = tmp_path / "x.gvi"
    for records, names, sentence in (
        (RECORDS, ["brandd"], "no row has a value in brandd"),
        (RECORDS, ["brand", "brand"], "named twice"),
        (RECORDS, [f"c{n}" for n in range(17)], "an index takes 16"),
        ([{"text": "x", "a": "y" * 1025}], ["a"], "row 1 has 1,025 bytes in a"),
        (RECORDS, ["b" * 201], "over 200 characters"),
    ):
        with pytest.raises(InputError, match=sentence):
            gramvec.Index.build(path, records, model=small, filters=names)  # type: ignore[arg-type]
        assert not path.exists()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(filters, "MOST_VALUES", 1)
        with pytest.raises(InputError, match="more than 1 different values"):
            gramvec.Index.build(path, RECORDS, model=small, filters=["brand"])


def test_the_commands_narrow_a_search(tmp_path: Path) -> None:
    table, path = tmp_path / "x.csv", tmp_path / "x.gvi"
    table.write_text("text,team,city\nlost parcel,post,Rome\nparcel late,post,Oslo\nparcel app,web,Oslo\n")
    made = index_command("index", "build", table, "-o", path, "--filter", "team", "--filter", "city", "-m", MODEL)
    assert made.returncode == 0, made.stderr
    done = index_command("search", path, "parcel", "--where", "team=post", "--where", "city=Oslo", "-m", MODEL)
    assert [line.split(b"\t")[1] for line in done.stdout.splitlines()] == [b"3"]
    either = index_command("search", path, "parcel", "--where", "city=Rome", "--where", "city=Oslo", "-m", MODEL)
    assert len(either.stdout.splitlines()) == 3
    assert b'"filters":["team","city"]' in index_command("index", "info", path, "--json").stdout
    assert "cannot be narrowed by text" in refused("search", path, "parcel", "--where", "text=x", "-m", MODEL)
    assert index_command("search", path, "parcel", "--where", "team", "-m", MODEL).returncode == 2
