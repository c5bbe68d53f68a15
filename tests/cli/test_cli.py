from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import gramvec
from hostile.bundles.craft import manifest
from support.bulk import gramvec_command as run
from support.errors import assert_failed

pytestmark = pytest.mark.slow


def test_embed_from_stdin_to_jsonl(embedder: gramvec.Embedder) -> None:
    done = run("embed", stdin="cheap flights\r\n\nüber 🙂".encode())
    assert done.returncode == 0, done.stderr
    records = [json.loads(line) for line in done.stdout.splitlines()]
    texts = ["cheap flights", "", "über 🙂"]
    assert [record["text"] for record in records] == texts
    found = np.array([record["embedding"] for record in records], np.float32)
    assert found.tobytes() == embedder.embed(texts).tobytes()
    assert done.stderr == b""


def test_embed_a_file_to_npy(embedder: gramvec.Embedder, tmp_path: Path) -> None:
    lines = [f"line {i}" for i in range(1500)]
    (tmp_path / "in.txt").write_text("\n".join(lines) + "\n")
    done = run("embed", str(tmp_path / "in.txt"), "-o", str(tmp_path / "out.npy"), "--dimensions", "8")
    assert done.returncode == 0, done.stderr
    found = np.load(tmp_path / "out.npy")
    assert found.tobytes() == embedder.embed(lines, dimensions=8).tobytes()
    assert found.shape == (1500, 8)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.txt", "out.npy"]


def test_embed_nothing(tmp_path: Path) -> None:
    assert run("embed").stdout == b""
    assert run("embed", "-o", str(tmp_path / "out.npy")).returncode == 0
    assert np.load(tmp_path / "out.npy").shape == (0, 300)


def test_a_failure_leaves_the_old_output_and_names_the_line(tmp_path: Path) -> None:
    out = tmp_path / "out.npy"
    out.write_bytes(b"old")
    write = ["embed", "-o", str(out), "--overwrite"]
    assert_failed(run(*write, stdin=b"a\nb\n\xff\n"), "line 3", "UTF-8")
    long = b"short\n" + b"x" * 30 + b"\n"
    assert_failed(run(*write, "--max-characters", "9", stdin=long), "line 2", "30")
    assert out.read_bytes() == b"old"
    assert [path.name for path in tmp_path.iterdir()] == ["out.npy"]
    assert run(*write, "--max-characters", "9", "--truncate", stdin=long).returncode == 0
    assert np.load(out).shape == (2, 300)


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["embed", "--format", "npy"], 1, "name one as --output"),
        (["embed", "no-such-file"], 2, "No such file"),
        (["embed", "--dimensions", "0"], 2, "--dimensions"),
        (["embed", "--dimensions", "301"], 1, "from 1 to 300"),
        (["embed", "-o", "no-such-folder/out.npy"], 1, "folder"),
        (["embed", "--model", "nonesuch"], 1, "'nonesuch'"),
        (["similarity", "alone"], 2, "SENTENCES"),
        (["inspect", "nonesuch"], 1, "'nonesuch'"),
        (["nonesuch"], 2, "No such command"),
        (["serv"], 2, "'serv'"),
        (
            ["embed", "-o", "x.pdf"],
            1,
            ".pdf",
        ),
    ],
)
def test_a_bad_call_says_what_to_do(arguments: list[str], code: int, message: str) -> None:
    assert_failed(run(*arguments, stdin=b"a\n"), message, code=code)


def test_similarity(embedder: gramvec.Embedder) -> None:
    done = run("similarity", "vehicals", "vehicles", "cars", "bananas")
    assert done.returncode == 0, done.stderr
    rows = [line.split("\t") for line in done.stdout.decode().splitlines()]
    assert [text for _, text in rows] == ["vehicles", "cars", "bananas"]
    scores = embedder.similarity(["vehicals"], ["vehicles", "cars", "bananas"])[0]
    assert [float(score) for score, _ in rows] == pytest.approx(scores.tolist(), abs=5e-5)
    assert scores[0] > scores[1] > scores[2]


def test_similarity_goes_by_the_space_that_is_named() -> None:
    texts = "canon sd1100", "canon sd1100 is"
    found = [float(run("similarity", *texts, "--space", one).stdout.split()[0]) for one in ("lexical", "semantic")]
    wanted = [gramvec.load(space=one).similarity(texts[:1], texts[1:])[0, 0] for one in ("lexical", "semantic")]
    assert found == pytest.approx(wanted, abs=1e-4)
    assert found[0] != found[1]


def test_inspect_prints_the_vocabulary(embedder: gramvec.Embedder) -> None:
    lines = run("inspect", "--vocabulary").stdout.decode().splitlines()
    first = embedder.bundle.vocabulary.entries()[0]
    assert len(lines) == embedder.manifest.rows
    assert lines[0] == f"{first.kind}\t{first.text!r}\t{first.count}"


def test_inspect(embedder: gramvec.Embedder) -> None:
    done = run("inspect")
    assert embedder.digest in done.stdout.decode()
    values = json.loads(run("inspect", "--json").stdout)
    assert values["digest"] == embedder.digest
    assert values["dimension"] == 300
    assert "golden" not in values


def test_verify(bundle_copy: Path) -> None:
    done = run("verify", str(bundle_copy), "paragram-phrase")
    assert done.returncode == 0
    for line, name in zip(done.stdout.decode().splitlines(), ("charagram-phrase", "paragram-phrase"), strict=True):
        found, digest, golden, compared, ok = line.split("\t")
        assert (found, len(digest), ok) == (name, 12, "ok")
        assert golden.endswith(" golden texts on cpu")
        # The only part of a vector that the two may round differently is a tanh.
        most = "1e-06" if name == "charagram-phrase" else "0"
        said = re.fullmatch(r"native on cpu and onnx on cpu differ by at most (\S+) on 2,000 texts", compared)
        assert said is not None
        assert float(said[1]) <= float(most)
    (bundle_copy / "vocabulary.safetensors").write_bytes(b"")
    assert_failed(run("verify", str(bundle_copy)), "vocabulary.safetensors", "0 bytes")


def test_verify_on_texts_of_ones_own(tmp_path: Path) -> None:
    file = tmp_path / "texts.txt"
    file.write_text("a fast car\n\n" + "ripe bananas\n" * 600, encoding="utf-8")
    done = run("verify", "sif", "--texts", str(file))
    assert "differ by at most 0.0e+00 on 602 texts\tok" in done.stdout.decode(), done.stderr
    with file.open("a", encoding="utf-8") as lines:
        lines.write("x" * 70_000 + "\n")
    done = run("verify", "sif", "--texts", str(file))
    assert_failed(done, str(file), "line 603", "70000", "65536")
    file.write_bytes(b"\xff\n")
    assert_failed(run("verify", "sif", "--texts", str(file)), "line 1", "UTF-8")
    file.write_bytes(b"")
    assert "on 0 texts" in run("verify", "sif", "--texts", str(file)).stdout.decode()
    assert_failed(run("verify", "sif", "--texts", "nowhere.txt"), "nowhere.txt", code=2)


def test_verify_tells_a_graph_that_cannot_be_loaded_or_gives_other_vectors(bundle_copy: Path) -> None:
    """What serves, runtime native, does not run the graphs."""
    graph = bundle_copy / "model.cpu.onnx"
    sound = graph.read_bytes()
    for data, said in (
        (b"no graph", "model.cpu.onnx"),
        (sound.replace(b"Tanh", b"Sign"), "native on cpu and onnx on cpu differ by "),
    ):
        graph.write_bytes(data)
        with manifest(bundle_copy):
            pass
        assert_failed(run("verify", str(bundle_copy)), said)
    assert run("similarity", "a", "b", "--model", str(bundle_copy)).returncode == 0


def test_help_names_every_command() -> None:
    text = run("--help").stdout.decode()
    for name in ("serve", "embed", "similarity", "explain", "neighbors", "inspect", "verify"):
        assert f"  {name} " in text
        shown = run(name, "--help")
        assert shown.returncode == 0
        assert len(shown.stdout) > 200
        assert b"\\b" not in shown.stdout
    assert run("--version").stdout.decode().strip().endswith(gramvec.__version__)


def test_a_closed_pipe_is_no_traceback() -> None:
    reader, writer = os.pipe()
    command = [sys.executable, "-m", "gramvec.cli", "embed"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=writer, stderr=subprocess.PIPE) as process:
        os.close(writer)
        os.close(reader)
        _, errors = process.communicate(b"text\n" * 2000)
    assert process.returncode != 0
    assert b"Traceback" not in errors
