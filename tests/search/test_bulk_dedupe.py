"""`gramvec dedupe`: all pairs, exactly; groups; what is kept."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gramvec
from bulk_support import MODEL, gramvec_command
from gramvec.bulk import dedupe
from gramvec.errors import InputError

TEXTS = ["cheap flights", "cheap flihgts", "bananas", "cheap flights", "", "qqq zzz", "", "bananas!"]


@pytest.fixture(scope="module")
def lines(real_texts: list[str]) -> list[str]:
    """Real lines, some of them again with a letter less."""
    short = [one for one in real_texts if 20 < len(one) < 200][:900]
    return [*short, *(one[:7] + one[8:] for one in short[::2]), *short[:9]]


@pytest.fixture(scope="module")
def small() -> Iterator[gramvec.Embedder]:
    opened = gramvec.load("charagram-phrase", device="cpu")
    yield opened
    opened.close()


def brute_force(units: np.ndarray, threshold: float) -> list[tuple[int, int, float]]:
    found = []
    for row in range(len(units)):
        scores = np.minimum(np.add.reduce(units[row + 1 :] * units[row], axis=1), 1)
        found += [(row, row + 1 + int(at), float(scores[at])) for at in np.flatnonzero(scores >= np.float32(threshold))]
    return found


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("threshold", [0.3, 0.9, 1.0])
def test_all_pairs_as_by_brute_force(
    threads: int, threshold: float, lines: list[str], small: gramvec.Embedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dedupe, "TILE_ROWS", 100)
    monkeypatch.setattr(dedupe, "TILE_COLUMNS", 170)
    units = small.embed(lines)
    compared: list[int] = []
    found = dedupe.near_pairs(units, threshold, threads=threads, watch=compared.append)
    expected = brute_force(units, threshold)
    assert list(zip(found.left.tolist(), found.right.tolist(), found.scores.tolist(), strict=True)) == expected
    assert len(expected) > (0 if threshold == 1 else 300)
    assert sum(compared) == len(units) * (len(units) - 1) // 2


@given(seed=st.integers(0, 2**32 - 1), n=st.integers(0, 90), d=st.integers(1, 80), threshold=st.floats(0.05, 1))
def test_any_vectors_as_by_brute_force(seed: int, n: int, d: int, threshold: float) -> None:
    units = np.random.default_rng(seed).normal(size=(n, d)).astype(np.float32)
    units[: n // 3] = units[n // 3 : n // 3 * 2] + np.float32(0.05)
    units /= np.linalg.norm(units, axis=1, keepdims=True)
    units[::7] = 0
    found = dedupe.near_pairs(units, threshold)
    assert list(zip(found.left.tolist(), found.right.tolist(), found.scores.tolist(), strict=True)) == brute_force(
        units, threshold
    )


def test_more_pairs_than_wanted_are_refused() -> None:
    units = np.ones((3000, 1), np.float32)
    with pytest.raises(InputError, match="more than 1,000 pairs; raise --threshold"):
        dedupe.near_pairs(units, 0.9, most=1000)
    with pytest.raises(InputError, match="threshold must be above 0"):
        dedupe.near_pairs(units, 0)


@given(pairs=st.lists(st.tuples(st.integers(0, 19), st.integers(0, 19)), max_size=30))
def test_groups_are_what_a_chain_of_pairs_joins(pairs: list[tuple[int, int]]) -> None:
    left, right = (np.array([pair[side] for pair in pairs], np.int64) for side in (0, 1))
    expected = list(range(20))
    for _ in range(20):
        for a, b in pairs:
            expected[a] = expected[b] = min(expected[a], expected[b])
    assert dedupe.groups(20, left, right).tolist() == expected


def run(*arguments: object, text: str = "") -> str:
    done = gramvec_command("dedupe", "--model", MODEL, *arguments, stdin=text.encode())
    assert done.returncode == 0, done.stderr
    return done.stdout.decode()


def test_the_command(tmp_path: Path) -> None:
    text = "".join(f"{one}\n" for one in TEXTS)
    rows = [line.split("\t") for line in run("--threshold", "0.9", text=text).splitlines()]
    assert [row[:2] for row in rows] == [["1", "4"], ["3", "8"], ["5", "7"]]
    assert rows[0][2:] == ["1.0000", "cheap flights", "cheap flights"]
    assert run("--threshold", "0.9", "--no-texts", text=text).splitlines()[0] == "1\t4\t1.0000"
    records = [json.loads(line) for line in run("--threshold", "0.9", "--json", text=text).splitlines()]
    assert records[0] == {"lines": [1, 4], "score": 1.0, "texts": ["cheap flights"] * 2}
    assert run("--threshold", "0.9", "--groups", "--no-texts", text=text) == "1\t1\n1\t4\n2\t3\n2\t8\n3\t5\n3\t7\n"
    groups = [
        json.loads(line)["lines"] for line in run("--threshold", "0.9", "--groups", "--json", text=text).splitlines()
    ]
    assert groups == [[1, 4], [3, 8], [5, 7]]
    assert run("--threshold", "0.9", "--keep", "-", text=text) == "cheap flights\ncheap flihgts\nbananas\n\nqqq zzz\n"
    assert run(text="") == ""


def test_what_is_kept_has_its_own_bytes(tmp_path: Path) -> None:
    source, kept = tmp_path / "in.csv", tmp_path / "kept.csv"
    source.write_bytes(
        b'\xef\xbb\xbfid,text\r\n1,"cheap\nflights"\r\n2,bananas\r\n3, "cheap flights"\r\n4,"cheap\nflights"'
    )
    run(source, "--keep", kept, "--on-error", "skip")
    assert kept.read_bytes() == source.read_bytes().split(b"3, ")[0]
    run(source, "--keep", source, "-o", tmp_path / "pairs.tsv")
    assert source.read_bytes() == kept.read_bytes()
    assert (tmp_path / "pairs.tsv").read_text().splitlines()[1] == "2\t6\t1.0000\tcheap flights\tcheap flights"


def test_what_is_kept_of_parquet(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    pq = pytest.importorskip("pyarrow.parquet")
    source, kept = tmp_path / "in.parquet", tmp_path / "kept.parquet"
    pq.write_table(pa.table({"n": range(len(TEXTS)), "text": TEXTS}), source, row_group_size=3)
    run(source, "--keep", kept)
    assert pq.read_table(kept).to_pydict() == {"n": [0, 1, 2, 4, 5], "text": [TEXTS[i] for i in (0, 1, 2, 4, 5)]}


@pytest.mark.parametrize(
    ("arguments", "text", "message"),
    [
        (["--max-texts", "1", "--max-pairs", "2"], "a\nb\n" + "a\n" * 4, "more than 2 pairs; take --groups or --keep"),
        (["--max-pairs", "2"], "a\n" * 4, "6 pairs of lines, with equal ones; take --groups or --keep"),
        (["--max-characters", "2"], "a\nbcd\n", "line 2: the text has 3 characters, the limit is 2"),
        ([], "a\n\udcff\n", "line 2: not UTF-8"),
        (["-o", "no-such-folder/x.tsv"], "a\na\n", "No such file or directory"),
    ],
)
def test_a_bad_call_says_what_to_do(arguments: list[str], text: str, message: str) -> None:
    done = gramvec_command(
        "dedupe", "--model", MODEL, *arguments, stdin=text.encode(errors="surrogateescape")
    )  # fmt: skip
    assert done.returncode == 1
    assert message in done.stderr.decode()
    assert b"Traceback" not in done.stderr


def test_ngrams_are_weighed_by_the_lines(tmp_path: Path) -> None:
    """What all lines share says nothing; with the model's weights it makes them alike."""
    path = tmp_path / "cameras.txt"
    path.write_text(
        "".join(f"canon powershot sd{37 * row} digital camera\n" for row in range(150)) + "sd1110 powershot\n"
    )

    def listed(*arguments: str) -> list[list[int]]:
        done = gramvec_command("dedupe", path, "--threshold", "0.75", "--json", *arguments)
        assert done.returncode == 0, done.stderr
        return [json.loads(line)["lines"] for line in done.stdout.splitlines()]

    own = listed("--space", "lexical")
    theirs = listed("--space", "lexical", "--weights", "model")
    assert len(own) < len(theirs)
    assert len(listed("--space", "lexical", "--max-texts", "1")) < len(theirs)
    assert listed("--weights", "model") == listed()
