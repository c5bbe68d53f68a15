"""The commands head and label: a user's own labeled texts and scored pairs over a bundle or a run."""

from __future__ import annotations

import math
import os
import re
import shlex
import shutil
import signal
from pathlib import Path

import numpy as np
import orjson
import pytest
import torch
from click.testing import Result

from conftest import ROOT
from gramvec.features.spec import FeatureSpec
from gramvec_research.answers import ScoreAnswers, Scored, likelihood
from gramvec_research.heads import HeadObjective, parts_of
from gramvec_training.data.vocabulary import build_vocabulary
from gramvec_training.objectives.base import Examples
from support.errors import assert_names
from support.training import call as train
from support.training import export_table, sentence
from support.training import research as call

pytestmark = pytest.mark.slow

COLORS, ANIMALS = ("red", "green", "blue"), ("cat", "dog", "cow")
FILLERS = ("a", "the", "one", "my")


def rows(number: int, *, pairs: bool = False) -> list[str]:
    """Texts that name a color or an animal; pairs that name the same kind or not."""
    rng = np.random.default_rng(1)
    found = []
    for _ in range(number):
        kinds = rng.integers(0, 2, 2)
        one, other = (" ".join([str(rng.choice(FILLERS)), str(rng.choice((COLORS, ANIMALS)[kind]))]) for kind in kinds)
        same = "same" if kinds[0] == kinds[1] else "other"
        found.append(f"{same}\t{one}\t{other}" if pairs else f"{('color', 'animal')[kinds[0]]}\t{one}")
    return found


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("heads")
    spec = FeatureSpec(orders=(), words=True)
    vocabulary = build_vocabulary([" ".join((*COLORS, *ANIMALS, *FILLERS))], spec)
    table = np.random.default_rng(2).normal(size=(len(vocabulary), 8)).astype(np.float32)
    export_table(
        path / "b", name="b", kind="sif", spec=spec, vocabulary=vocabulary, table=table, pooling="mean",
        provenance={}, card="",
    )  # fmt: skip
    (path / "texts.tsv").write_text("\n".join(rows(120)) + "\n")
    (path / "pairs.tsv").write_text("\n".join(rows(200, pairs=True)) + "\n")
    scores = [f"{5 * line.startswith('same')}\t{line.split(chr(9), 1)[1]}" for line in rows(200, pairs=True)]
    (path / "scores.tsv").write_text("\n".join(scores) + "\n")
    (path / "new.txt").write_text("the red\n\nmy cow\n")
    return path


def accuracy(stdout: str) -> float:
    return float(stdout.split()[1])


@pytest.mark.parametrize("learned", [(), ("--learn-model",)])
def test_labels_are_learned_and_given(folder: Path, tmp_path: Path, learned: tuple[str, ...]) -> None:
    given = ["--labeled", folder / "texts.tsv", "--out", tmp_path / "h", "--rate", "0.05", "--epochs", "60"]
    done = call("head", folder / "b", *given, *learned)
    assert done.exit_code == 0, done.output
    assert accuracy(done.stdout) == 100
    assert "on 24 held-out rows" in done.stdout
    assert "2 labels, 87 rows learned from, 9 to choose the epoch by" in done.stdout
    said = call("label", tmp_path / "h", "--texts", folder / "new.txt").stdout.splitlines()
    assert [line.split("\t")[::2] for line in said] == [["color", "the red"], ["animal", "my cow"]]
    assert all(0.5 < float(line.split("\t")[1]) <= 1 for line in said)
    assert {path.name for path in (tmp_path / "h").iterdir()} == {"head.json", "head.npz"}
    with np.load(tmp_path / "h" / "head.npz") as arrays:
        assert ("encoder.table" in arrays) == bool(learned)


def test_the_commands_of_the_page(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = (ROOT / "training" / "gramvec_research" / "heads.md").read_text(encoding="utf-8")
    commands = [
        shlex.split(line)[3:]
        for line in page.split("\n")
        if line.startswith(("python -m gramvec_research head", "python -m gramvec_research label"))
    ]
    assert [words[0] for words in commands] == ["head", "label", "head", "label"]
    shutil.copytree(folder / "b", tmp_path / "models" / "gramvec-en")
    (tmp_path / "intents.tsv").write_text((folder / "texts.tsv").read_text())
    shutil.copy(folder / "new.txt", tmp_path / "new.txt")
    shutil.copy(folder / "scores.tsv", tmp_path / "similar.tsv")
    (tmp_path / "new.tsv").write_text("the red\tmy cow\n")
    monkeypatch.chdir(tmp_path)
    done = [call(*words) for words in commands]
    assert [one.exit_code for one in done] == [0, 0, 0, 0]
    assert [line.split("\t")[2] for line in done[1].stdout.splitlines()] == ["the red", "my cow"]
    assert done[3].stdout.split("\t")[1:] == ["the red", "my cow\n"]


def test_a_pair_has_a_label_too(folder: Path, tmp_path: Path) -> None:
    given = ["--labeled", folder / "pairs.tsv", "--out", tmp_path / "h", "--epochs", "60", "--rate", "0.03"]
    done = call("head", folder / "b", *given, "--learn-model")
    assert accuracy(done.stdout) > 90
    (tmp_path / "new.txt").write_text("the red\tmy blue\nthe red\tmy dog\n")
    said = call("label", tmp_path / "h", "--texts", tmp_path / "new.txt").stdout.splitlines()
    assert [line.split("\t")[0] for line in said] == ["same", "other"]
    assert "new.txt line 1: not a pair" in sentence(call("label", tmp_path / "h", "--texts", folder / "new.txt"))


def test_scores_as_five_classes_by_hand() -> None:
    """Of 10 to 18: 15.2 is class 1 + 4 * 5.2 / 8 = 3.6, two fifths of class 3 and three of class 4."""
    scores = ScoreAnswers.of([Scored(value, ("a", "b")) for value in (10, 15.2, 18, *range(11, 18))])
    truth = np.array([15.2, 10.0, 18.0])
    targets = scores.targets(truth)
    np.testing.assert_allclose(targets, [[0, 0, 0.4, 0.6, 0], [1, 0, 0, 0, 0], [0, 0, 0, 0, 1]], atol=1e-6)
    np.testing.assert_allclose(scores.expected(targets), truth, rtol=1e-6)
    said = np.array([[0, 0, 0, 1, 0], [0.5, 0.5, 0, 0, 0], [0, 0, 0, 0, 1]], np.float32)
    assert scores.list_answers(said) == [("16.0000",), ("11.0000",), ("18.0000",)]
    figures = scores.figures(said, truth)
    assert figures["error"] == pytest.approx((0.8 + 1 + 0) / 3)
    assert figures["pearson"] == pytest.approx(100 * np.corrcoef([16, 11, 18], truth)[0, 1])
    assert scores.figures(said[:1], truth[:1])["pearson"] is None
    assert scores.simplest(np.array([12.0, 14.0]), truth)["error of the mean"] == pytest.approx((2.2 + 3 + 5) / 3)
    expected = 0.4 * math.log(0.25) + 0.6 * math.log(0.5)
    of_one = likelihood(np.array([[0, 0, 0.25, 0.5, 0.25]], np.float32), targets[:1])
    assert of_one == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("learned", [(), ("--learn-model",)])
def test_a_pair_has_a_score(folder: Path, tmp_path: Path, learned: tuple[str, ...]) -> None:
    given = ["--scored", folder / "scores.tsv", "--out", tmp_path / "h", "--rate", "0.03", "--epochs", "60"]
    done = call("head", folder / "b", *given, *learned)
    assert done.exit_code == 0, done.output
    form = r"Pearson's r (\S+) on 40 held-out pairs \(the model's cosine (\S+)\); mean error (\S+) "
    form += r"\(the mean score (\S+)\); scores 0 to 5, 144 rows learned from, 16 to choose"
    found = re.match(form, done.stdout)
    assert found is not None, done.stdout
    pearson, cosine, error, of_mean = map(float, found.groups())
    assert pearson > max(cosine, 85) if learned else -100 <= pearson <= 100
    assert error < (of_mean / 2 if learned else 2.5 * of_mean)
    (tmp_path / "new.tsv").write_text("the red\tmy blue\nthe red\tmy dog\n")
    said = call("label", tmp_path / "h", "--texts", tmp_path / "new.tsv").stdout.splitlines()
    assert [line.split("\t")[1:] for line in said] == [["the red", "my blue"], ["the red", "my dog"]]
    near, far = (float(line.split("\t")[0]) for line in said)
    assert 0 <= far < 1.5 < 3.5 < near <= 5 or not learned
    assert "new.txt line 1: not a pair" in sentence(call("label", tmp_path / "h", "--texts", folder / "new.txt"))
    record = orjson.loads((tmp_path / "h" / "head.json").read_bytes())
    (tmp_path / "h" / "head.json").write_bytes(orjson.dumps({**record, "scores": [5, 5]}))
    assert "is damaged" in sentence(call("label", tmp_path / "h", "--texts", tmp_path / "new.tsv"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1\ta\tb\n2\tc\td\n", "2 usable rows"),
        ("3\ta\tb\n" * 12, "the score 3"),
        ("a\tb\n" * 12, "no usable row (12 rows skipped: 12 2 columns"),
    ],
)
def test_what_cannot_be_scored_is_said_first(folder: Path, tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "s.tsv").write_text(text)
    said = sentence(call("head", folder / "b", "--scored", tmp_path / "s.tsv", "--out", tmp_path / "h"))
    assert message in said
    assert not (tmp_path / "h").exists()


def test_one_file_is_learned_from(folder: Path, tmp_path: Path) -> None:
    labeled, scored = ("--labeled", folder / "texts.tsv"), ("--scored", folder / "scores.tsv")
    for given in ((), (*labeled, *scored)):
        done = call("head", folder / "b", *given, "--out", tmp_path / "h")
        assert done.exit_code == 2
        assert "give a file to learn from, as --labeled or as --scored" in done.stderr


def test_a_pair_whose_order_counts(folder: Path, tmp_path: Path) -> None:
    """Which of the two names the animal: products and distances cannot tell, vectors side by side can."""
    rng = np.random.default_rng(3)
    sides = [(str(rng.choice(COLORS)), str(rng.choice(ANIMALS))) for _ in range(200)]
    lines = [
        f"{'first' if at % 2 else 'second'}\t" + "\t".join(one[:: -1 if at % 2 else 1]) for at, one in enumerate(sides)
    ]
    (tmp_path / "pairs.tsv").write_text("\n".join(lines) + "\n")
    given = ["--labeled", tmp_path / "pairs.tsv", "--rate", "0.01"]
    for pair, expected in (("compared", False), ("joined", True)):
        done = call("head", folder / "b", *given, "--pair", pair, "--out", tmp_path / pair)
        assert done.exit_code == 0, done.output
        assert (accuracy(done.stdout) == 100) is expected
    (tmp_path / "new.tsv").write_text("cow\tred\nred\tcow\n")
    said = call("label", tmp_path / "joined", "--texts", tmp_path / "new.tsv").stdout.splitlines()
    assert [line.split("\t")[0] for line in said] == ["first", "second"]
    single = ["--labeled", folder / "texts.tsv", "--pair", "joined", "--out", tmp_path / "single"]
    assert "for pairs of texts" in sentence(call("head", folder / "b", *single))


def test_the_same_command_learns_the_same_bytes(folder: Path, tmp_path: Path) -> None:
    for name in ("one", "two"):
        given = ["--labeled", folder / "texts.tsv", "--out", tmp_path / name, "--epochs", "2"]
        assert call("head", folder / "b", *given).exit_code == 0
    assert (tmp_path / "one" / "head.npz").read_bytes() == (tmp_path / "two" / "head.npz").read_bytes()
    given[3:] = [tmp_path / "three", "--epochs", "2", "--seed", "2"]
    call("head", folder / "b", *given)
    assert (tmp_path / "one" / "head.npz").read_bytes() != (tmp_path / "three" / "head.npz").read_bytes()


def test_a_stopped_head_goes_on_to_the_same_bytes(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usual = HeadObjective.loss

    def stopped(objective: HeadObjective, vectors: torch.Tensor, examples: Examples) -> torch.Tensor:
        if examples.step == 5:
            os.kill(os.getpid(), signal.SIGTERM)
        return usual(objective, vectors, examples)

    def learn(out: str) -> Result:
        given = ["--labeled", folder / "texts.tsv", "--learn-model", "--epochs", "4"]
        return call("head", folder / "b", *given, "--out", tmp_path / out)

    monkeypatch.setattr(HeadObjective, "loss", stopped)
    first = learn("stopped")
    monkeypatch.undo()
    assert first.exit_code == 128 + signal.SIGTERM
    assert "the same command continues" in first.stderr
    assert {path.name for path in (tmp_path / "stopped").iterdir()} == {"checkpoint.pt"}
    assert learn("stopped").stdout == learn("whole").stdout
    assert (tmp_path / "stopped" / "head.npz").read_bytes() == (tmp_path / "whole" / "head.npz").read_bytes()


def test_over_a_run_of_another_kind(folder: Path, tmp_path: Path) -> None:
    """An LSTM, which no bundle gives back."""
    (tmp_path / "p.tsv").write_text(
        "".join(f"{one} {word}\t{one}\n" for one in FILLERS for word in (*COLORS, *ANIMALS))
    )
    config = '[model]\nname = "m"\nkind = "lstm"\ndimension = 6\n[features]\norders = []\nwords = true\n'
    config += '[encoder]\nkind = "lstm"\n[training]\nsteps = 2\nbatch = 4\n[[data]]\npath = "p.tsv"\n'
    (tmp_path / "c.toml").write_text(config)
    assert train("fit", tmp_path / "c.toml", "--data", tmp_path, "--out", tmp_path / "run").exit_code == 0
    given = ["--labeled", folder / "texts.tsv", "--learn-model", "--epochs", "60", "--rate", "0.05"]
    done = call("head", tmp_path / "run", *given, "--out", tmp_path / "h")
    assert done.exit_code == 0, done.output
    assert accuracy(done.stdout) > 90
    assert call("label", tmp_path / "h", "--texts", folder / "new.txt").exit_code == 0


def test_no_row_is_in_two_parts() -> None:
    for number in (10, 11, 57, 200):
        parts = parts_of(number, 0.2, 1)
        assert len(parts.scored) == round(0.2 * number)
        assert sorted(np.concatenate([parts.learned, parts.chosen_by, parts.scored]).tolist()) == list(range(number))
        assert min(map(len, (parts.learned, parts.chosen_by, parts.scored))) >= 1
    assert len(parts_of(10, 0.9, 1).learned) == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a\tx\n" * 3 + "b\ty\n", "4 usable rows"),
        ("a\tx\n" * 12, "the label 'a'"),
        ("".join(f"label{n}\ttext\n" for n in range(12)), "there are 12 labels in 12 rows, too many to learn"),
        ("".join(f"{n}.5\tone\tother\n" for n in range(12)), "if they are scores, give the file as --scored"),
        ("no tab\n" * 12, "no usable row"),
    ],
)
def test_what_cannot_be_learned_is_said_first(folder: Path, tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "l.tsv").write_text(text)
    said = sentence(call("head", folder / "b", "--labeled", tmp_path / "l.tsv", "--out", tmp_path / "h"))
    assert message in said
    assert not (tmp_path / "h" / "head.json").exists()


def test_a_folder_with_other_files_or_a_head_is_left_alone(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("x")
    given = ["--labeled", folder / "texts.tsv", "--epochs", "1"]
    assert "holds other files than a head" in sentence(call("head", folder / "b", *given, "--out", tmp_path))
    assert "not a folder but a file" in sentence(call("head", folder / "b", *given, "--out", tmp_path / "thesis.txt"))
    assert call("head", folder / "b", *given, "--out", tmp_path / "h").exit_code == 0
    assert "holds a head already" in sentence(call("head", folder / "b", *given, "--out", tmp_path / "h"))
    assert call("head", folder / "b", *given, "--out", tmp_path / "h", "--overwrite").exit_code == 0


def test_a_model_that_changed_and_a_damaged_head_are_said(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder / "b", tmp_path / "b")
    given = ["--labeled", folder / "texts.tsv", "--epochs", "1", "--out", tmp_path / "h"]
    assert call("head", tmp_path / "b", *given).exit_code == 0
    label = ["label", tmp_path / "h", "--texts", folder / "new.txt"]
    record = orjson.loads((tmp_path / "h" / "head.json").read_bytes())
    (tmp_path / "h" / "head.json").write_bytes(orjson.dumps({**record, "digest": "0" * 64}))
    assert "has changed since the head was learned" in sentence(call(*label))
    (tmp_path / "h" / "head.json").write_text("{}")
    assert "is damaged" in sentence(call(*label))
    (tmp_path / "h" / "head.json").unlink()
    assert "no head here" in sentence(call(*label))
    (tmp_path / "h" / "checkpoint.pt").write_bytes(b"x")
    (tmp_path / "h" / "head.npz").unlink()
    assert_names(sentence(call("head", tmp_path / "b", *given)), "damaged", "--overwrite")
    assert call("head", tmp_path / "b", *given, "--overwrite").exit_code == 0
