"""Heads: learned from labelled texts, stored without code, read by whoever trusts no file, and applied."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pytest
from click.testing import CliRunner, Result
from hypothesis import given
from hypothesis import strategies as st

from conftest import MODELS
from gramvec.classify.fit import fit_head
from gramvec.classify.head import MAGIC, MOST_LABELS, Head
from gramvec.classify.reader import read_labelled
from gramvec.cli import cli
from gramvec.embed.loading import load
from gramvec.errors import InputError

DIGEST = "ab" * 32
MODEL = str(MODELS / "charagram-phrase")
INTENTS = {
    "card": ["my card is lost", "i lost the card", "the card was stolen", "where is my new card", "block the card"],
    "rate": ["what is the exchange rate", "how much is a euro", "the rate of the dollar", "is the rate good", "rates"],
    "close": ["close my account", "i want to leave", "delete the account", "end the contract", "please cancel it all"],
}
ROWS = [(label, f"{who}{text}") for who in ("", "hello, ") for label, texts in INTENTS.items() for text in texts]


def call(*arguments: str | Path, given: bytes | None = None) -> Result:
    return CliRunner().invoke(cli, ["classify", *map(str, arguments)], input=given)


def head(labels: int = 3, d: int = 4, **changes: Any) -> Head:
    rng = np.random.default_rng(1)
    values: dict[str, Any] = {
        "coefficients": rng.normal(size=(labels, d)).astype(np.float32),
        "intercepts": rng.normal(size=labels).astype(np.float32),
        "labels": tuple(f"label {one}" for one in range(labels)),
        "temperature": 0.5,
        "threshold": 0.6,
        "model": "m",
        "digest": DIGEST,
    }
    return Head(**values | changes)


def file_of(header: bytes, body: bytes) -> bytes:
    rest = len(header).to_bytes(8, "little") + header + body
    return MAGIC + hashlib.sha256(rest).digest() + rest


@pytest.fixture(scope="module")
def learned(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("heads")
    (folder / "my.tsv").write_text("\n".join(f"{label}\t{text}" for label, text in ROWS))
    done = call("fit", folder / "my.tsv", "-o", folder / "my.head", "-m", MODEL)
    assert done.exit_code == 0, done.output
    lines = done.output.splitlines()
    assert lines[0] == "30 held-out texts of 3 labels"
    assert [line[:12] for line in lines[1:5]] == ["right label,", "calibration ", "unknown, sco", "right label "]
    assert lines[5].startswith(f"{folder / 'my.head'}: 3 labels of charagram-phrase, ")
    return folder / "my.head"


def test_scores_by_hand() -> None:
    one = head(
        coefficients=np.array([[1, 0], [0, 1], [0, 0]], np.float32), intercepts=np.array([0, 0, 0.5], np.float32)
    )
    scores = one.predict(np.array([[1, 0], [0, 0]], np.float32))
    logits = np.array([[1, 0, 0.5], [0, 0, 0.5]]) / 0.5
    assert scores == pytest.approx(np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True), abs=1e-6)
    assert one.answers(scores) == ["label 0", None]  # 0.665 and 0.576
    assert one.predict(np.zeros((0, 2), np.float32)).shape == (0, 3)
    with pytest.raises(InputError, match="vectors of 2 columns"):
        one.predict(np.zeros((1, 3), np.float32))


def test_a_vector_has_its_scores_in_any_company() -> None:
    rng = np.random.default_rng(2)
    for labels, d in ((2, 300), (77, 300), (5000, 300)):
        one = head(labels, d)
        vectors = rng.normal(size=(40, d)).astype(np.float32)
        scores = one.predict(vectors)
        assert scores.dtype == np.float32
        assert scores.sum(axis=1) == pytest.approx(1, abs=1e-4)
        for row in (0, 17, 39):
            assert one.predict(vectors[row : row + 1]).tobytes() == scores[row].tobytes()
        assert one.predict(np.asfortranarray(vectors)).tobytes() == scores.tobytes()


def test_what_is_written_is_read(tmp_path: Path) -> None:
    one = replace(head(), labels=("x", "ü\n", "z" * 1024))
    one.save(tmp_path / "h")
    found = Head.load(tmp_path / "h")
    assert (found.labels, found.temperature, found.threshold, found.model, found.digest) == (
        one.labels, 0.5, 0.6, "m", DIGEST,
    )  # fmt: skip
    assert found.coefficients.tobytes() == one.coefficients.tobytes()
    assert found.intercepts.tobytes() == one.intercepts.tobytes()
    first = (tmp_path / "h").read_bytes()
    found.save(tmp_path / "h")
    assert (tmp_path / "h").read_bytes() == first
    assert [path.name for path in tmp_path.iterdir()] == ["h"]
    with pytest.raises(InputError, match=r"from another model \(m, digest abababababab\)"):
        found.check_bundle("cd" * 32)
    found.check_bundle(DIGEST)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"labels": ("a", "a", "b")}, "two of its labels are the same"),
        ({"labels": ("a", "b")}, "not of the shape"),
        ({"temperature": 0.0}, "temperature"),
        ({"threshold": float("nan")}, "threshold"),
        ({"intercepts": np.array([0, np.nan, 0], np.float32)}, "not finite"),
        ({"coefficients": np.full((3, 4), np.inf, np.float32)}, "not finite"),
        ({"digest": "x"}, "digest"),
        ({"labels": ("a", "", "b")}, "labels"),
    ],
)
def test_what_could_not_be_read_is_not_written(tmp_path: Path, changes: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        replace(head(), **changes).save(tmp_path / "h")
    assert not (tmp_path / "h").exists()


HEADER = {
    "version": 1, "model": "m", "digest": DIGEST, "dimensions": 2, "temperature": 1.0, "threshold": 0.5,
    "labels": ["a", "b"],
}  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "body", "said"),
    [
        ({}, bytes(20), "its size is not what its header says"),
        ({}, bytes(28), "its size is not what its header says"),
        ({"dimensions": 65_536, "labels": [str(one) for one in range(5000)]}, b"", "its size"),
        ({"dimensions": 65_537}, b"", "dimensions"),
        ({"dimensions": 0}, b"", "dimensions"),
        ({"dimensions": -1}, b"", "dimensions"),
        ({"dimensions": True}, bytes(16), "dimensions"),
        ({"labels": ["a"]}, bytes(12), "labels"),
        ({"labels": ["a", "a"]}, bytes(24), "two of its labels are the same"),
        ({"labels": ["a", 1]}, bytes(24), "labels"),
        ({"labels": ["a", "b" * 1025]}, bytes(24), "labels"),
        ({"labels": [str(one) for one in range(MOST_LABELS + 1)]}, b"", "labels"),
        ({"temperature": 0.0}, bytes(24), "temperature"),
        ({"temperature": 1e300}, bytes(24), "temperature"),
        ({"threshold": 1.5}, bytes(24), "threshold"),
        ({"version": 2}, bytes(24), "version"),
        ({"digest": "../../x"}, bytes(24), "digest"),
        ({"code": "import os"}, bytes(24), "code"),
        ({}, np.array([np.nan] * 6, "<f4").tobytes(), "not finite"),
        ({}, np.array([1e38] * 6, "<f4").tobytes(), "not finite, or too large"),
    ],
)
def test_a_strangers_header_is_checked(tmp_path: Path, changes: dict[str, Any], body: bytes, said: str) -> None:
    (tmp_path / "h").write_bytes(file_of(orjson.dumps(HEADER | changes), body))
    with pytest.raises(InputError, match=said) as error:
        Head.load(tmp_path / "h")
    assert "\n" not in str(error.value)
    assert len(str(error.value)) < 1000


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "is no head"),
        (b"\x80\x04pickle", "is no head"),
        (MAGIC, "is no head"),
        (MAGIC + bytes(32) + (1 << 62).to_bytes(8, "little"), "longer than the file"),
        (MAGIC + bytes(32) + (5).to_bytes(8, "little") + b"{", "longer than the file"),
        (file_of(b"no json", b""), "no JSON"),
        (file_of(b"[" * 100_000, b""), "no JSON"),
        (file_of(b"[]", b""), "damaged"),
    ],
)
def test_what_is_no_head_is_refused(tmp_path: Path, data: bytes, said: str) -> None:
    (tmp_path / "h").write_bytes(data)
    with pytest.raises(InputError, match=said):
        Head.load(tmp_path / "h")


@pytest.mark.parametrize("data", [b"", b"gvhead01" + bytes(39), b"no head" * 10])
def test_the_digest_is_read_without_the_rest(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "x.head"
    replace(head(2), labels=("a", "\u20ac" * 3)).save(path)
    read = Head.load(path)
    assert read.longest_label == 9
    path.write_bytes(path.read_bytes()[:48])
    assert Head.digest_of(path) == read.file_digest
    path.write_bytes(data)
    with pytest.raises(InputError, match="is no head"):
        Head.digest_of(path)


def test_a_missing_head_and_a_folder_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read: No such file"):
        Head.load(tmp_path / "h")
    with pytest.raises(InputError, match="cannot be read: Is a directory"):
        Head.load(tmp_path)


@given(place=st.integers(0, 10_000), change=st.integers(1, 255), cut=st.booleans())
def test_every_damaged_byte_is_found(
    tmp_path_factory: pytest.TempPathFactory, place: int, change: int, cut: bool
) -> None:
    path = tmp_path_factory.mktemp("damaged") / "h"
    head().save(path)
    data = bytearray(path.read_bytes())
    place %= len(data)
    if cut:
        del data[place:]
    else:
        data[place] ^= change
    path.write_bytes(data)
    with pytest.raises(InputError):
        Head.load(path)


def test_a_head_tells_what_it_is_worth() -> None:
    rng = np.random.default_rng(1)
    centres = np.eye(4, dtype=np.float32)
    own = rng.integers(0, 4, 1500)
    vectors = centres[own] + rng.normal(0, 0.45, (1500, 4)).astype(np.float32)
    vectors = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)
    labels = [f"label {one}" for one in own.tolist()]
    found, report = fit_head(vectors, labels, model="m", digest=DIGEST)
    assert (report.texts, report.labels) == (1500, 4)
    assert 0.75 < report.accuracy < 0.95
    assert report.calibration < 0.05
    assert 0.05 < report.unknown < 0.4
    assert report.accuracy_known > report.accuracy
    kept = (1 - report.unknown) * report.accuracy_known / report.accuracy
    assert kept == pytest.approx(0.95, abs=0.02)
    answers = found.answers(found.predict(centres))
    assert answers == ["label 0", "label 1", "label 2", "label 3"]
    again, same = fit_head(vectors, labels, model="m", digest=DIGEST)
    assert again.coefficients.tobytes() == found.coefficients.tobytes()
    assert same == report
    assert fit_head(vectors, labels, model="m", digest=DIGEST, threshold=0)[1].unknown == 0
    assert 0.2 < found.predict(np.zeros((1, 4), np.float32)).max() < found.threshold


def test_two_labels_and_a_label_with_one_text() -> None:
    vectors = np.array([[1, 0], [0.9, 0.1], [0, 1], [0.1, 0.9]], np.float32)
    found, report = fit_head(vectors, ["a", "a", "b", "b"], model="m", digest=DIGEST, threshold=0)
    assert report.texts == 4
    assert found.answers(found.predict(vectors)) == ["a", "a", "b", "b"]
    report = fit_head(vectors, ["a", "a", "b", "c"], model="m", digest=DIGEST)[1]
    assert (report.texts, report.labels) == (2, 3)
    with pytest.raises(InputError, match="same label"):
        fit_head(vectors, ["a"] * 4, model="m", digest=DIGEST)
    with pytest.raises(InputError, match="no label has two texts"):
        fit_head(vectors, list("abcd"), model="m", digest=DIGEST)


def test_a_copy_of_a_text_is_never_asked_beside_it() -> None:
    rng = np.random.default_rng(1)
    vectors = rng.normal(size=(40, 30)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    labels = [f"label {one}" for one in rng.integers(0, 4, 40)]  # there is nothing to be learned
    report = fit_head(np.tile(vectors, (5, 1)), labels * 5, model="m", digest=DIGEST)[1]
    assert report.texts == 200
    assert report.accuracy < 0.5


def test_texts_of_two_labels_leave_none_out() -> None:
    vectors = np.array([[1, 0], [0, 1], [1, 0]], np.float32)
    found, report = fit_head(vectors, ["a", "a", "b"], model="m", digest=DIGEST)
    assert found.labels == ("a", "b")
    assert report.texts == 3


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.tsv", "x\tcars\n1\tbuy\tnow\n"),
        ("a.txt", "label\ttext\nx\tcars\n1\tbuy\tnow\n"),
        ("a.csv", "text,label\ncars,x\nbuy\tnow,1\n"),
        ("a.jsonl", '{"label": "x", "text": "cars"}\n{"label": 1, "text": "buy\\tnow"}\n'),
    ],
)
def test_labelled_files_are_read(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    assert read_labelled(tmp_path / name) == (["cars", "buy\tnow"], ["x", "1"])


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("a.tsv", b"x\tcars\nbuy\n", r"a\.tsv line 2: no label, tab and text"),
        ("a.tsv", b"x\tcars\n\xff\tbuy\n", r"a\.tsv line 2: not UTF-8"),
        ("a.tsv", b"", "has no rows"),
        ("a.tsv", b"label\ttext\n", "has no rows"),
        ("a.jsonl", b'{"text": "cars"}\n', r"line 1: no text, or no 'label'"),
        ("a.jsonl", b'{"text": "cars", "label": [1]}\n', r"line 1: no text, or no 'label'"),
        ("a.csv", b"text,klass\ncars,x\n", r"line 2: no text, or no 'label'"),
    ],
)
def test_bad_labelled_files_are_named(tmp_path: Path, name: str, text: bytes, said: str) -> None:
    (tmp_path / name).write_bytes(text)
    with pytest.raises(InputError, match=said):
        read_labelled(tmp_path / name)


def test_texts_get_the_labels_that_were_learned(learned: Path, tmp_path: Path) -> None:
    done = call("predict", learned, given=b"where is my card\nclose the account\nqqq\n")
    assert done.exit_code == 0, done.output
    rows = [line.split("\t") for line in done.stdout.splitlines()]
    assert [row[0] for row in rows[:2]] == ["card", "close"]
    assert [row[2] for row in rows] == ["where is my card", "close the account", "qqq"]
    assert all(0 < float(row[1]) <= 1 for row in rows)

    (tmp_path / "in.csv").write_text("id,subject\n7,where is my card\n8,close the account\n")
    out = tmp_path / "out.jsonl"
    assert call("predict", learned, tmp_path / "in.csv", "--column", "subject", "-o", out).exit_code == 0
    found = [json.loads(line) for line in out.read_text().splitlines()]
    assert [one["label"] for one in found] == ["card", "close"]
    assert found[0]["record"] == {"id": "7", "subject": "where is my card"}
    assert found[0]["score"] == pytest.approx(float(rows[0][1]), abs=1e-4)
    with closing(load(MODEL)) as embedder:
        scores = Head.load(learned).predict(embedder.embed(["where is my card"]))
    assert found[0]["score"] == round(float(scores.max()), 6)

    none = call("predict", learned, "--threshold", "1", given=b"where is my card\n")
    assert none.stdout.startswith("unknown\t")
    done = call("predict", learned, "--threshold", "1", "--format", "jsonl", given=b"where is my card\n")
    assert (json.loads(done.stdout)["label"], json.loads(done.stdout)["best"]) == (None, "card")


def test_a_bad_line_stops_or_is_told(learned: Path, tmp_path: Path) -> None:
    (tmp_path / "in.txt").write_bytes(b"where is my card\n\xff\n")
    done = call("predict", learned, tmp_path / "in.txt", "-o", tmp_path / "out.tsv")
    assert done.exit_code == 1
    assert "line 2: not UTF-8" in done.output
    assert not (tmp_path / "out.tsv").exists()
    done = call("predict", learned, tmp_path / "in.txt", "-o", tmp_path / "out.tsv", "--on-error", "skip")
    assert done.exit_code == 0
    assert "line 2: not UTF-8" in done.output
    assert (tmp_path / "out.tsv").read_text().splitlines()[1] == "unknown\t\t"


def test_another_model_is_refused(learned: Path, tmp_path: Path) -> None:
    done = call("predict", learned, "-m", MODELS / "sif", given=b"x\n")
    assert (done.exit_code, done.stdout) == (1, "")
    assert "the head was learned from another model (charagram-phrase" in done.stderr
    done = call("fit", learned, "-o", tmp_path / "no" / "h")
    assert "there is no folder" in done.output
    assert call("predict", MODELS / "sif" / "manifest.json", given=b"x\n").output.endswith(
        "gramvec classify fit wrote\n"
    )


def test_applying_a_head_imports_no_scikit_learn(learned: Path) -> None:
    program = (
        "import sys\nfrom gramvec.cli import main\n"
        "try:\n    main()\nfinally:\n    assert not {'sklearn', 'scipy', 'pickle5', 'torch'} & sys.modules.keys()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, "classify", "predict", str(learned)], input=b"where is my card\n",
        capture_output=True, check=False, env={**os.environ, "GRAMVEC_MODELS": str(MODELS)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(b"card\t")
