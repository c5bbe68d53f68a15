"""Near-duplicates among more rows than all pairs of are compared: cells of pivots, and `gramvec dedupe` over them."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from bulk_support import MODEL, gramvec_command
from conftest import ROOT
from gramvec.bulk.dedupe import Pairs
from gramvec.search import cells, duplicates

pytestmark = pytest.mark.slow

pytest.importorskip("numkong", reason="numkong is not installed: pip install '.[search]'")
pytest.importorskip("threadpoolctl", reason="threadpoolctl is not installed: pip install '.[bulk]'")

Found = dict[tuple[int, int], float]


def table_of(seed: int, clusters: int, d: int) -> NDArray[np.int8]:
    """Threes of near vectors, some of them equal, some zeros."""
    numbers = np.random.default_rng(seed)
    vectors = np.repeat(numbers.normal(size=(clusters, d)), 3, axis=0)
    vectors += numbers.normal(size=vectors.shape) * numbers.choice([0.05, 0.2, 0.4], (len(vectors), 1))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    table = np.rint(vectors * 127).astype(np.int8)
    table[3::17] = table[2]
    table[5::29] = 0
    numbers.shuffle(table)
    return table


def brute_force(table: NDArray[np.int8], threshold: float) -> Found:
    """Of equal rows the first alone is compared; the others are joined to it."""
    first: dict[bytes, int] = {}
    found: Found = {}
    for row, vector in enumerate(table):
        if vector.any() and first.setdefault(vector.tobytes(), row) != row:
            found[first[vector.tobytes()], row] = 1.0
    rows = sorted(first.values())
    wide = table[rows].astype(np.float64)
    wide /= np.linalg.norm(wide, axis=1, keepdims=True)
    for a, b in zip(*np.nonzero(np.triu(wide @ wide.T, 1) >= threshold), strict=True):
        found[rows[a], rows[b]] = float(wide[a] @ wide[b])
    return found


def near(table: NDArray[np.int8], threshold: float, threads: int = 2) -> tuple[Found, duplicates.Recall]:
    taken: list[Pairs] = []
    recall = duplicates.near_rows(table, threshold, taken.append, threads=threads)
    found: Found = {}
    for pairs in taken:
        for left, right, score in zip(pairs.left.tolist(), pairs.right.tolist(), pairs.scores.tolist(), strict=True):
            assert left < right
            assert (left, right) not in found
            found[left, right] = score
    return found, recall


@given(seed=st.integers(0, 2**32 - 1), clusters=st.integers(1, 60), d=st.sampled_from([3, 70]))
def test_few_rows_are_all_compared(seed: int, clusters: int, d: int) -> None:
    table = table_of(seed, clusters, d)
    found, recall = near(table, 0.9)
    expected = brute_force(table, 0.9)
    sure = {pair for pair, score in expected.items() if abs(score - 0.9) > 1e-5}
    assert sure <= set(found) <= set(brute_force(table, 0.9 - 1e-5))
    for pair, score in found.items():
        assert score == pytest.approx(expected.get(pair, 0.9), abs=1e-5)
    assert recall.found == recall.pairs


@pytest.mark.parametrize("threshold", [0.9, 0.8, 0.6])
def test_of_many_rows_nearly_all_pairs_are_found_and_the_share_is_said(
    threshold: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = table_of(1, 2_000, 96)
    expected = brute_force(table, threshold)
    monkeypatch.setattr(duplicates, "COMPARED_ROWS", 300)
    found, recall = near(table, threshold)
    assert set(found) <= set(brute_force(table, threshold - 1e-5))
    share = len(found.keys() & expected.keys()) / len(expected)
    assert share >= 0.98
    assert recall.rows == 1_000
    assert recall.found / recall.pairs == pytest.approx(share, abs=0.02)
    assert near(table, threshold, threads=1) == (found, recall)
    for name, size in (("TILE_ROWS", 3), ("STORED_ROWS", 7), ("ASKING_ROWS", 11), ("ASSIGNED_ROWS", 2)):
        monkeypatch.setattr(cells, name, size)
    assert near(table, threshold)[0] == found


def test_as_many_cells_are_asked_as_a_sample_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    table = table_of(1, 2_000, 96)
    monkeypatch.setattr(duplicates, "COMPARED_ROWS", 300)
    asked, nearest = [], cells.Cells._nearest

    def watched(self: cells.Cells, which: NDArray[np.int64], packed: object, number: int, watch: cells.Watch) -> object:
        asked.append(number)
        return nearest(self, which, packed, number, watch)

    monkeypatch.setattr(cells.Cells, "_nearest", watched)
    near(table, 0.95)
    few = asked[-1]
    near(table, 0.5)
    assert few < asked[-1]
    monkeypatch.setattr(cells, "WIDTHS", ((1, 1),))
    monkeypatch.setattr(cells, "MOST_CELLS", 700)
    found, recall = near(table, 0.5)
    # What is not enough is said.
    assert recall.found / recall.pairs < 0.98
    assert recall.found / recall.pairs == pytest.approx(len(found) / len(brute_force(table, 0.5)), abs=0.05)


def test_pairs_are_found_where_nearly_all_rows_are_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    numbers = np.random.default_rng(0)
    # One direction for all: no pivot is much nearer than another.
    vectors = numbers.normal(size=(1_500, 64)) * 0.02
    vectors[:, 0] = 1
    vectors[1_200:, 0] = 0
    vectors[1_200:, 1] = numbers.choice([-1, 1], 300)
    table = np.rint(127 * vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.int8)
    expected = set(brute_force(table, 0.98 - 1e-5))
    monkeypatch.setattr(duplicates, "COMPARED_ROWS", 40)
    found, recall = near(table, 0.98)
    assert set(found) <= expected
    assert recall.found / recall.pairs == pytest.approx(len(found) / len(expected), abs=0.02)
    assert len(found) >= 0.98 * len(expected)


def test_vectors_with_one_hash_are_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    class Ones:
        def integers(self, low: int, high: int, size: int, kind: type) -> NDArray[np.uint64]:
            return np.zeros(size, kind)

    table = np.array([[100, 1], [1, 100], [100, 1], [-100, 50], [0, 0], [0, 0]], np.int8)
    taken: list[Pairs] = []
    with monkeypatch.context() as patch:
        patch.setattr(np.random, "default_rng", lambda seed: Ones())  # every key is the sum of the bytes
        kept = duplicates._without_equal_ones(table, taken.append)
    assert kept.tolist() == [0, 1, 3]
    assert [(int(left), int(right)) for pairs in taken for left, right in zip(*pairs[:2], strict=True)] == [(0, 2)]


TEXTS = ["cheap flights", "bananas", "cheap flihgts", "", "cheap flights", "qqq zzz", "", "bananas", "Bananas "]
LINES = "".join(f"{one}\n" for one in TEXTS)


def run(*arguments: object, text: str = LINES) -> tuple[str, str]:
    done = gramvec_command("dedupe", "--model", MODEL, "--threshold", "0.9", *arguments, stdin=text.encode())
    assert done.returncode == 0, done.stderr
    return done.stdout.decode(), done.stderr.decode()


def test_the_command_goes_on_through_an_index(tmp_path: Path) -> None:
    for options in (["--groups"], ["--groups", "--json"], ["--keep", "-"]):
        exact, _ = run(*options)
        large, said = run(*options, "--max-texts", 3)
        assert large == exact
        assert "more than 3 different texts: those pairs are compared that are likely" in said
        assert "all pairs that" in said
    lines, _ = run("--json", "--max-texts", 3)
    pairs = [json.loads(line) for line in lines.splitlines()]
    assert [pair["lines"] for pair in pairs] == [[1, 5], [2, 8], [2, 9], [4, 7]]
    assert list(pairs[0]) == ["lines", "score", "texts"]
    assert pairs[2]["texts"] == ["bananas", "Bananas "]
    assert [pair["score"] for pair in pairs] == pytest.approx([1, 1, 1, 1], abs=1e-5)


def test_bad_lines_stay_where_they_are(tmp_path: Path) -> None:
    source, kept = tmp_path / "x.jsonl", tmp_path / "kept.jsonl"
    source.write_text('{"text": "a b"}\n{"text": 3}\n{"text": "c d", "n": 1}\n{"text": "a b"}\n{"text": "c d"}\n')
    _, said = run(source, "--keep", kept, "--max-texts", 1, "--on-error", "skip")
    assert kept.read_text() == '{"text": "a b"}\n{"text": 3}\n{"text": "c d", "n": 1}\n'
    assert "3 of 5 lines kept" in said
    assert "line 2" in said


def test_pairs_are_listed_beside_what_is_kept(tmp_path: Path) -> None:
    run("--keep", tmp_path / "kept", "-o", tmp_path / "pairs", "--no-texts", "--max-texts", 3)
    assert len((tmp_path / "kept").read_text().splitlines()) == 5
    assert (tmp_path / "pairs").read_text().startswith("1\t5\t")


def test_what_is_missing_is_said_before_the_work(tmp_path: Path) -> None:
    (tmp_path / "numkong.py").write_text("raise ImportError\n")
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    command = [sys.executable, "-m", "gramvec", "dedupe", "--model", MODEL, "--max-texts", "3"]
    done = subprocess.run(command, input=LINES.encode(), capture_output=True, env=environment, check=False)
    assert done.returncode == 1
    assert "searching needs numkong: pip install 'gramvec[search]'" in done.stderr.decode()
    assert b"Traceback" not in done.stderr


def test_a_full_folder_for_temporary_files_is_named(tmp_path: Path) -> None:
    limited = (
        "import resource, signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN);"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (5000, 5000)); from gramvec.cli import main; main()"
    )
    (tmp_path / "lines.txt").write_text("".join(f"a line with number {n}\n" for n in range(100)))
    command = [sys.executable, "-c", limited, "dedupe", tmp_path / "lines.txt", "--model", MODEL, "--max-texts", "3"]
    command += ["--keep", tmp_path / "kept"]
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=ROOT, check=False)
    assert done.returncode == 1
    last = done.stderr.splitlines()[-1]
    assert re.search(rf"no index could be made in {tmp_path}/\S+ \(.+\); name a folder with room in TMPDIR", last)
    assert [one.name for one in tmp_path.iterdir()] == ["lines.txt"]


def test_new_lines_are_compared_with_an_index(tmp_path: Path) -> None:
    index, kept = tmp_path / "x.gvi", tmp_path / "kept"
    done = gramvec_command("index", "build", "-", "-o", index, "-m", MODEL, stdin=b"cheap flights\nbananas\n")
    assert done.returncode == 0, done.stderr
    new = "Bananas \nplums\n\ncheap flights\nplums\nbananas\n"
    lines, _ = run("--against", index, text=new)
    assert [line.split("\t")[:2] for line in lines.splitlines()] == [["1", "2"], ["4", "1"], ["6", "2"]]
    assert lines.splitlines()[0].split("\t")[3:] == ["Bananas", "bananas"]
    records, _ = run("--against", index, "--json", text=new)
    assert json.loads(records.splitlines()[1]) == {
        "line": 4, "id": "1", "score": pytest.approx(1, abs=2e-3), "texts": ["cheap flights"] * 2,
    }  # fmt: skip
    _, said = run("--against", index, "--keep", kept, text=new)
    assert kept.read_text() == "plums\n\nplums\n"
    assert "3 of 6 lines kept" in said
    assert run("--against", index, text="")[0] == ""
    for options, code, sentence in (
        (["--against", index, "--groups"], 2, "no groups"),
        (["--against", index, "--max-texts", 2], 1, "more than 2 different texts; compare it with the index in parts"),
        (["--against", index, "-m", MODEL.replace("paragram-phrase", "sif")], 1, "was made with"),
        (["--against", kept], 1, "no index of gramvec"),
    ):
        model = [] if "-m" in options else ["-m", MODEL]
        refused = gramvec_command("dedupe", *options, *model, stdin=new.encode())
        assert (refused.returncode, sentence in refused.stderr.decode()) == (code, True), refused.stderr
