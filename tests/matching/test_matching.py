"""`gramvec match`: the nearest rows, exactly; columns, blocks, one-to-one; files and what is wrong with them."""

from __future__ import annotations

import csv
import json
import random
import re
import subprocess
import sys
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_docs import blocks, shell

import gramvec
from conftest import ROOT, KeptProgress
from gramvec import lexical
from gramvec.errors import InputError
from gramvec.jobs.matching import nearest as cosines
from gramvec.jobs.matching.features import TablePair
from gramvec.jobs.matching.fields import Field, NgramSettings, ngram_vectors
from gramvec.jobs.matching.match_rows import shared_words, with_unmatched
from gramvec.jobs.matching.nearest import Matches
from support.bulk import gramvec_command
from support.errors import refused

pytestmark = pytest.mark.slow

pytest.importorskip("sparse_dot_topn", reason="gramvec match needs SciPy: pip install 'gramvec[match]'")

PAGE = (ROOT / "docs" / "matching.md").read_text(encoding="utf-8")
LEFT = "id,name,brand,city\na1,canon powershot sd1100,canon,Rome\na2,nikon coolpix s8100,nikon, rome\na3,,,\n"
RIGHT = (
    "id,title,brand,city\nb1,nikon s8100 coolpix camera,nikon,Oslo\nb2,canon sd1100 powershot,canon,ROME\nb3,sd1100,,\n"
)


def vectors_of(left: list[str], right: list[str]) -> tuple[lexical.SparseVectors, lexical.SparseVectors]:
    (sides,) = ngram_vectors([Field(left, right, 1.0)], NgramSettings())
    return sides


def brute_force(left: lexical.SparseVectors, right: lexical.SparseVectors, k: int, threshold: float) -> list[tuple]:
    found = []
    for row in range(len(left)):
        others = np.arange(len(right))
        scores = left.dots(np.full(len(right), row), right, others)
        ranked = sorted((-score, other) for score, other in zip(scores.tolist(), others.tolist(), strict=True))
        found += [(row, other, -score) for score, other in ranked[:k] if -score >= np.float32(threshold) and score < 0]
    return found


def as_list(found: gramvec.jobs.matching.Matches) -> list[tuple]:
    return list(zip(found.left.tolist(), found.right.tolist(), found.scores.tolist(), strict=True))


@pytest.mark.parametrize("threshold", [0.0, 0.3, 0.8])
@pytest.mark.parametrize(("k", "threads"), [(1, 1), (3, 2), (200, 1)])
def test_as_by_brute_force(
    threshold: float, k: int, threads: int, real_texts: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cosines, "BLOCK_ROWS", 50)
    monkeypatch.setattr(cosines, "TRANSPOSED_ROWS", 30)
    monkeypatch.setattr(cosines, "TIED_PRODUCTS", 1000)
    texts = [one[:60] for one in real_texts[:160]]
    others = [*(one[:9] + one[10:] for one in texts[::2]), "", *texts[:9], *texts[:9], "the of a", *real_texts[200:240]]
    left, right = vectors_of([*texts, "", "the", *texts[:3]], others)
    progress = KeptProgress()
    found = cosines.nearest(left, right, k, threshold, threads=threads, progress=progress)
    assert as_list(found) == brute_force(left, right, k, threshold)
    assert sum(progress.steps) == len(left) and len(found.left) > 40


def test_ties_of_different_texts_go_to_the_first_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    right = [" ".join(words) for words in permutations(["canon", "nikon", "sony", "leica"])]
    left, right = vectors_of(["sony leica", "canon"], right)
    assert as_list(cosines.nearest(left, right, 2, 0.0)) == brute_force(left, right, 2, 0.0)
    monkeypatch.setattr(cosines, "MAX_TIED", 2)
    assert as_list(cosines.nearest(left, right, 2, 0.0))[2:] == brute_force(left, right, 2, 0.0)[2:]


def test_within_a_small_budget_the_nearest_is_nearly_always_found(
    real_texts: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = [one[:60] for one in real_texts[:400]]
    vectors = vectors_of(texts, [one[:9] + one[10:] for one in texts])
    exact = as_list(cosines.nearest(*vectors, 1, 0.0))
    monkeypatch.setattr(cosines, "PRODUCTS", 0)
    monkeypatch.setattr(cosines, "ROW_PRODUCTS", 30)
    found = as_list(cosines.nearest(*vectors, 1, 0.0))
    assert 0.97 * len(exact) < len(set(found) & set(exact)) < len(exact) + 1
    # The rarest n-gram of a row counts whatever its postings are, and a score is the same from all features.
    monkeypatch.setattr(cosines, "ROW_PRODUCTS", 0)
    rarest = as_list(cosines.nearest(*vectors, 1, 0.0))
    assert len(rarest) == len(exact) and len(set(rarest) & set(exact)) > len(exact) / 2


def test_accents_are_no_difference() -> None:
    names, plain = ["Café Łódź", "München"], ["cafe lodz", "munchen"]
    pairs = TablePair([Field(names, plain, 1.0)]).features(np.arange(2), np.arange(2))
    assert np.array_equal(pairs, TablePair([Field(plain, plain, 1.0)]).features(np.arange(2), np.arange(2)))


def test_heavy_columns_may_be_empty(recwarn: pytest.WarningsRecorder) -> None:
    table = {"a": ["x y", ""], "b": ["z", ""]}
    assert len(gramvec.match(table, dict(table), on=["a", "b"]).left) == 1
    assert not recwarn.list


@pytest.mark.parametrize(
    "named",
    [
        {"on": "name=customer"},
        {"on": ["name=customer", "name=customer"]},
        {"on": [("name", "customer")]},
        {"on": {"name=customer": 2}},
        {"left_on": "name", "right_on": "customer"},
        {"left_on": ["name"], "right_on": ["customer"]},
    ],
)
def test_columns_may_have_another_name_in_the_right_table(named: dict[str, Any]) -> None:
    left = [{"name": "canon sd1100", "city": "Rome"}, {"name": "nikon s8100", "city": "Oslo"}]
    right = {"customer": ["Nikon S-8100", "powershot sd1100"], "town": ["oslo", "rome"]}
    found = gramvec.match(left, right, block="city=town", threshold=0.01, **named)
    assert found.left.tolist() == [0, 1] and found.right.tolist() == [1, 0]
    assert gramvec.pair_scores(left, {"customer": right["customer"][::-1]}, **named).tolist() == found.scores.tolist()


@pytest.mark.parametrize(
    ("named", "field", "names"),
    [
        ({"on": "a", "left_on": "a"}, "on", ["left_on", "right_on"]),
        ({"left_on": ["a", "b"], "right_on": "c"}, "right_on", ["1 of 2"]),
        ({"right_on": "c"}, "left_on", ["0 of 1"]),
        ({"on": {"a": 0}}, "on", ["weight", "above 0"]),
        ({"on": {"a": float("nan")}}, "on", ["weight", "above 0"]),
        ({"on": {"a": "much"}}, "on", ["weight", "much"]),
        ({"on": 3}, "on", ["int"]),
        ({"on": [("a",)]}, "on", ["(left, right)"]),
        ({"on": [("a", 2)]}, "on", ["(left, right)"]),
        ({"on": "a=:2"}, "on", ["COLUMN=OTHER"]),
        ({"on": "a", "block": "a="}, "block", ["COLUMN=OTHER"]),
    ],
)
def test_columns_that_are_not_named_well_are_refused(named: dict[str, Any], field: str, names: list[str]) -> None:
    with refused(InputError, *names, field=field):
        gramvec.match({"a": ["x"]}, {"a": ["x"]}, **named)


def test_rows_without_ids_are_named_by_their_lines_as_dedupe_does(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("text\ncanon sd1100\n\nnikon s8100\n")
    (tmp_path / "b.csv").write_text("text\nnikon s8100\nnikon s8100\n")
    matched = gramvec_command("match", tmp_path / "a.csv", tmp_path / "b.csv").stdout.splitlines()[1:]
    assert [line.split(b",")[:2] for line in matched] == [[b"4", b"2"], [b"4", b"3"]]
    assert gramvec_command("dedupe", tmp_path / "b.csv").stdout.splitlines()[1].split(b"\t")[:2] == [b"2", b"3"]


def test_all_are_written_that_are_above_the_threshold(tmp_path: Path) -> None:
    texts = [*["canon sd1100"] * 15, "nikon s8100"]
    assert len(gramvec.match(texts[:1], texts, top=10**30, threshold=0.3).left) == 15
    assert len(gramvec.match(texts[:1], texts, top="all", threshold=0.3).left) == 15
    assert len(gramvec.match(texts[:1], texts, threshold=0.3).left) == 15
    assert len(gramvec.match(texts[:1], texts, threshold=0.3, top=1).left) == 1
    with refused(InputError, "top", "1", "'all'"):
        gramvec.match(texts, texts, top="every")  # type: ignore[arg-type]
    left, right = tmp_path / "a.txt", tmp_path / "b.txt"
    left.write_text("canon sd1100\n")
    right.write_text("".join(f"{text}\n" for text in texts))
    done = gramvec_command("match", left, right, "--top", "all", "--threshold", "0.3")
    assert done.stdout.count(b"\n") == 16 and b"15 pairs at the threshold 0.300, of which 97 to 100% are" in done.stderr
    done = gramvec_command("match", left, right, "--threshold", "0.3", "--top", "1")
    assert done.stdout.splitlines()[1].startswith(b"1,1,0.99")  # without a column of ids they are the lines' numbers
    assert done.stdout.count(b"\n") == 2 and b"14 more pairs above it are left out (--top)" in done.stderr
    assert gramvec_command("match", left, right, "--top", "all", "--one-to-one").returncode == 2


def test_a_delimiter_and_an_encoding_of_both_or_of_each_may_be_given(tmp_path: Path) -> None:
    left, right = tmp_path / "a.csv", tmp_path / "b.csv"
    left.write_text("id;text\n1;bananas\n")
    right.write_bytes(left.read_bytes())
    assert gramvec_command("match", left, right).stdout.splitlines()[1].startswith(b"1,1,")  # it is recognized
    right.write_text("id!text\n7!caf\u00e9 noir\n", encoding="latin-1")
    for encoding, option in (("latin-1", "latin-1"), ("utf-8", "utf-8=latin-1")):
        left.write_text("id!text\n1!caf\u00e9 noir\n", encoding=encoding)
        done = gramvec_command("match", left, right, "--delimiter", "!", "--encoding", option)
        line = done.stdout.decode().splitlines()[1]
        assert line.startswith("1,7,") and line.endswith(",caf\u00e9 noir,caf\u00e9 noir")


def test_a_bad_line_is_skipped_where_that_is_asked_for(tmp_path: Path) -> None:
    left, right = tmp_path / "a.csv", tmp_path / "b.csv"
    left.write_text("id,text\n1,canon sd1100\n2,x,y\n")
    right.write_text("id,text\n1,canon sd1100\n")
    assert gramvec_command("match", left, right).returncode == 1
    done = gramvec_command("match", left, right, "--on-error", "skip")
    assert done.returncode == 0 and b"1 of 1 rows" in done.stderr


def test_one_to_one_is_greedy_from_the_highest_score() -> None:
    left, right = ["canon sd1100 camera", "canon sd1100", "zzz"], ["canon sd1100", "canon sd1100 camera black"]
    found = gramvec.match(left, right, one_to_one=True, threshold=0)
    assert as_list(found)[1][:2] == (1, 0) and as_list(found)[0][:2] == (0, 1) and len(found.left) == 2
    assert (found.scores >= 0.5).all()


def test_a_block_is_all_that_is_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(1)
    texts = ["".join(rng.choices("abcd ", k=12)) for _ in range(80)]
    keys = [rng.choice(["x", " X", "y", ""]) for _ in texts]
    table = {"name": texts, "key": keys}
    few = gramvec.match(table, dict(table), on="name", block="key", top=3, threshold=0)
    monkeypatch.setattr("gramvec.jobs.matching.fields.FEW_PAIRS", 0)
    assert as_list(gramvec.match(table, dict(table), on="name", block="key", top=3, threshold=0)) == as_list(few)
    names = [" ".join(key.split()).lower() for key in keys]
    assert len(few.left) > 20
    assert all(names[a] == names[b] != "" for a, b, _ in as_list(few))


def test_tables_are_read_by_their_columns() -> None:
    left = {"name": np.array(["abc", None, float("nan"), 5], object)}
    assert as_list(gramvec.match(left, {"name": ["5", "abc"]}, on=["name"]))[0][:2] == (0, 1)
    assert as_list(gramvec.match(["abc"], ["abc"], threshold=0.99))[0][:2] == (0, 0)
    assert as_list(gramvec.match([], ["abc"])) == as_list(gramvec.match(["", " "], [])) == []


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"on": "title"}, "'title'"),
        ({"on": {"name": 0}}, "above 0"),
        ({"on": {"name": 1, "other": 0.5}}, r"weights.*labels"),
        ({"on": []}, "0 columns"),
        ({"on": ["name", "short"]}, "different lengths"),
        ({"on": "name", "block": "short"}, "different lengths"),
        ({"on": "name", "top": 0}, "at least 1"),
        ({"on": "name", "threshold": 2}, "from 0 to 1"),
        ({"on": "long"}, r"row 2 of the left table.* 70,000"),
        ({"on": ["name", "long"]}, r"row 2 of the left table.* 70,000"),
    ],
)
def test_what_cannot_be_matched_is_one_sentence(options: dict[str, object], said: str) -> None:
    table = {"name": ["a", "b"], "other": ["c", "d"], "short": ["a"], "long": ["a", "b" * 70_000]}
    with pytest.raises(InputError, match=said):
        gramvec.match(table, table, **options)
    with refused(InputError, "block"):
        gramvec.match(["a"], ["a"], block="name")


def test_what_is_shared_and_what_differs() -> None:
    parts = shared_words("Denon DVD3800BDCI player player", "denon dvd-3800bdci black")
    assert parts.shared == ["denon", "dvd3800bdci"]
    assert parts.only_left == ["player"] and parts.only_right == ["black"]
    assert shared_words("", "x y") == ([], [], ["x", "y"])


def test_without_scipy_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "scipy.sparse", None)
    with refused(InputError, "gramvec[match]"):
        gramvec.match(["a"], ["a"])
    with refused(InputError, "gramvec[match]"):
        lexical.fit(["a"]).embed(["a"]).to_scipy()


@pytest.fixture
def tables(tmp_path: Path) -> tuple[Path, Path]:
    left, right = tmp_path / "left.csv", tmp_path / "right.csv"
    left.write_text(LEFT)
    right.write_text(RIGHT)
    return left, right


def test_the_command_writes_ids_texts_and_scores(tables: tuple[Path, Path], tmp_path: Path) -> None:
    output = tmp_path / "matches.csv"
    done = gramvec_command(
        "match", *tables, "--on", "name=title", "--on", "brand", "--top", "1", "--explain", "-o", output
    )
    assert done.returncode == 0, done.stderr
    assert b"2 of 3 rows" in done.stderr and done.stdout == b""
    rows = list(csv.DictReader(output.read_text().splitlines()))
    assert [(row["left_id"], row["right_id"]) for row in rows] == [("a1", "b2"), ("a2", "b1")]
    assert rows[0]["left"] == "canon powershot sd1100 | canon" and 0.5 < float(rows[0]["score"]) <= 1
    assert rows[0]["shared"] == "canon | powershot | sd1100" and rows[1]["only_right"] == "camera"


def test_other_forms_are_read_and_written(tables: tuple[Path, Path], tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    rows = [{**row, "title": row["title"] or None} for row in csv.DictReader(RIGHT.splitlines())]
    pytest.importorskip("pyarrow.parquet").write_table(pa.Table.from_pylist(rows), tmp_path / "right.parquet")
    options = ("--on", "name=title", "--one-to-one", "--block", "city", "--threshold", "0", "--format")
    found = gramvec_command("match", tables[0], tmp_path / "right.parquet", *options, "jsonl")
    (line,) = found.stdout.splitlines()
    assert (json.loads(line)["left_id"], json.loads(line)["right_id"]) == ("a1", "b2")
    assert found.stdout == gramvec_command("match", *tables, *options, "jsonl").stdout
    tabbed = gramvec_command("match", *tables, *options, "tsv").stdout.decode().splitlines()
    assert tabbed[0].split("\t") == ["left_id", "right_id", "score", "left", "right"] and len(tabbed) == 2


def test_the_examples_of_the_page_run(tmp_path: Path) -> None:
    lines = shell(blocks("sh", PAGE)[0], tmp_path).splitlines()
    assert [line.split(",")[:2] for line in lines[1:3]] == [["a1", "b2"], ["a2", "b1"]]
    shared = [json.loads(line)["shared"] for line in lines[3:]]
    assert shared == [["vienna", "of", "technology"], ["university", "graz"]]
    script = blocks("python", PAGE)[0]
    done = subprocess.run([sys.executable, "-W", "error", "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == re.findall(r"\)  # (.*)$", script, re.MULTILINE)


@pytest.mark.parametrize(("empty", "data"), [("new.csv", "id,name\n"), ("new.jsonl", "")])
def test_a_table_without_rows_is_matched(empty: str, data: str, tables: tuple[Path, Path], tmp_path: Path) -> None:
    path = tmp_path / empty
    path.write_text(data)
    options = ("--on", "name", "--unmatched", "--report", tmp_path / "report.html", "--overwrite")
    for sides, rows in (((path, tables[0]), 3), ((tables[0], path), 3), ((path, path), 0)):
        done = gramvec_command("match", *sides, *options)
        assert done.returncode == 0, done
        lines = done.stdout.decode().splitlines()
        assert lines[0] == "left_id,right_id,score,left,right" and len(lines) == 1 + rows
        assert f"{path} has no rows" in done.stderr.decode()


@pytest.mark.parametrize(
    ("left", "options", "said"),
    [
        ("", (), "is empty"),
        ("id,other\n1,a\n", (), "'name'"),
        ("id,name\n1,a\n", ("--on", "brand"), "'brand'"),
        ("id,name\n1,a\n1,b\n", (), "same id '1'"),
        ("id,name\n,a\n", (), "line 2: has no id"),
        ("id,name\n1," + "b" * 70_000 + "\n", (), "row 1 of the left table"),
    ],
)
def test_what_is_wrong_with_a_table_is_one_sentence(
    left: str, options: tuple[str, ...], said: str, tables: tuple[Path, Path], tmp_path: Path
) -> None:
    path, output = tmp_path / "other.csv", tmp_path / "matches.csv"
    path.write_bytes(left.encode("latin-1"))
    done = gramvec_command("match", path, tables[0], "--on", "name", *options, "-o", output)
    assert done.returncode == 1, done
    assert said in done.stderr.decode() and done.stderr.count(b"\n") == 1
    assert not output.exists()


def test_weights_without_labels_are_refused_and_not_ignored(tables: tuple[Path, Path]) -> None:
    done = gramvec_command("match", *tables, "--on", "name=title", "--on", "brand:0.5")
    assert done.returncode == 1 and b"labels" in done.stderr and not done.stdout
    with refused(InputError, "labels"):
        gramvec.pair_scores({"a": ["x"], "b": ["y"]}, {"a": ["x"], "b": ["y"]}, on={"a": 1, "b": 2})


def test_a_wrong_option_is_a_wrong_call(tables: tuple[Path, Path]) -> None:
    for wrong in ("=title", "name=", "name:0", "name:inf", "name:-1"):
        assert gramvec_command("match", *tables, "--on", wrong).returncode == 2
    assert gramvec_command("match", *tables, "--on", "name", "--on", "name").returncode == 2
    assert gramvec_command("match", tables[0], "missing.csv").returncode == 2


def test_a_match_takes_memory_of_its_texts_and_not_of_all_columns() -> None:
    import tracemalloc

    numbers = random.Random(1)
    texts = ["".join(numbers.choices("abcdefghijklmnopqrstuvwxyz0123456789 ", k=240)) for _ in range(400)]
    gramvec.match(texts[:2], texts[2:4])
    tracemalloc.start()
    try:
        gramvec.match(texts[:200], texts[200:], top=10, threshold=0)
        assert tracemalloc.get_traced_memory()[1] < 75 << 20
    finally:
        tracemalloc.stop()


def test_all_columns_and_rows_without_a_match(tmp_path: Path) -> None:
    left, right = tmp_path / "left.csv", tmp_path / "right.csv"
    left.write_text("id,name,score\n1,canon powershot sd1100,5\n2,sony bravia,6\n")
    right.write_text("id,name,color\n7,bananas,\n8,Canon Powershot SD1100,red\n")
    options = (left, right, "--on", "name", "--threshold", "0.05")
    lines = gramvec_command("match", *options, "--unmatched", "--explain").stdout.decode().splitlines()
    assert [line.split(",")[:2] for line in lines[1:]] == [["1", "8"], ["2", ""], ["", "7"]]
    assert lines[2] == "2,,,sony bravia,,,,,,"
    done = gramvec_command("match", *options, "--unmatched", "--columns", "all", "--format", "jsonl")
    found = [json.loads(line) for line in done.stdout.splitlines()]
    names = ["left_id", "right_id", "score", "left_name", "left_score", "right_name"]
    assert list(found[0]) == [*names, "color"]
    assert [(row["left_name"], row["left_score"], row["color"]) for row in found] == [
        ("canon powershot sd1100", "5", "red"), ("sony bravia", "6", None), (None, None, ""),
    ]  # fmt: skip
    assert found[2]["left_id"] is None and found[2]["right_id"] == "7" and found[1]["score"] is None
    done = gramvec_command("match", *options, "--columns", "all", "--id", "none")
    header = done.stdout.decode().splitlines()[0].split(",")
    assert header[3:] == ["left_left_id", "left_name", "left_score", "right_right_id", "right_name", "color"]
    done = gramvec_command("match", left, left, "--on", "name", "--unmatched", "--columns", "all")
    assert [line[:3] for line in done.stdout.splitlines()[1:]] == [b"1,,", b"2,,"]
    done = gramvec_command("match", "-", right, "--left-format", "csv", "--columns", "all", stdin=left.read_bytes())
    assert done.returncode == 2 and b"standard input" in done.stderr


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), max_size=6, unique=True), st.booleans())
def test_each_row_without_a_match_is_written_once(pairs: list[tuple[int, int]], same: bool) -> None:
    pairs = sorted(pair for pair in pairs if not same or pair[0] != pair[1])
    left, right = np.array(pairs, np.int64).reshape(-1, 2).T
    found = with_unmatched(Matches(left, right, np.ones(len(pairs), np.float32)), (5, 5), same=same)
    both = list(zip(found.left.tolist(), found.right.tolist(), strict=True))
    assert [pair for pair in both if -1 not in pair] == pairs
    used = [{pair[side] for pair in pairs} for side in (0, 1)]
    alone = set(range(5)) - used[0] - (used[1] if same else set())
    others = [] if same else [(-1, row) for row in range(5) if row not in used[1]]
    assert [pair for pair in both if -1 in pair] == [*((row, -1) for row in sorted(alone)), *others]
    assert np.isnan(found.scores).tolist() == [-1 in pair for pair in both]
    lefts = [pair[0] for pair in both if pair[0] >= 0]
    assert lefts == sorted(lefts)
