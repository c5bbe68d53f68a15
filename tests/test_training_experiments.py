"""The papers' experiments, over vectors and sets that are small enough to know the answer."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from gramvec.features import FeatureSpec
from gramvec_training.data import build_vocabulary
from gramvec_training.experiments import EXPERIMENTS, Inputs, experiment_named
from training_support import call, export_table, sentence

SUBJECTS = ("cat", "dog", "car", "tree", "river", "house")
FILLERS = ("the", "of", "and", "to")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Words that mean something on axes of their own, and frequent ones that share a long one and mean nothing."""
    path = tmp_path_factory.mktemp("experiments")
    rng = np.random.default_rng(1)
    rows = {word: np.eye(10)[index] for index, word in enumerate(SUBJECTS)}
    rows |= {word: 2 * np.eye(10)[7] + rng.normal(0, 0.3, 10) for word in FILLERS}
    lines = [f"{word} {' '.join(f'{one:.4f}' for one in row)}\n" for word, row in rows.items()]
    (path / "v.txt").write_text("".join(lines))
    counts = {**dict.fromkeys(FILLERS, 100_000), **dict.fromkeys(SUBJECTS, 10)}
    (path / "f.txt").write_text("".join(f"{word} {count}\n" for word, count in counts.items()))
    (path / "g.txt").write_text("".join(f"{word} {count + 5}\n" for word, count in counts.items()))
    for task in ("one", "two"):
        (path / task).mkdir()
        pairs = []
        for _ in range(80):
            left, right = rng.choice(SUBJECTS, 2), rng.choice(SUBJECTS, 2)
            score = len(set(left) & set(right))
            a, b = (" ".join([*side, *rng.choice(FILLERS, rng.integers(1, 6))]) for side in (left, right))
            pairs.append(f"{score}\t{a}\t{b}\n")
        (path / task / "set.tsv").write_text("".join(pairs))
    return path


def inputs(folder: Path) -> Inputs:
    sets = (folder / "one", folder / "two")
    return Inputs(folder / "v.txt", (folder / "f.txt", folder / "g.txt"), sets, folder / "v.txt")


@pytest.mark.parametrize("name", [one.name for one in EXPERIMENTS])
def test_each_gives_rows_of_the_same_columns_and_says_what_holds(folder: Path, name: str) -> None:
    outcome = experiment_named(name).run(inputs(folder))
    assert outcome.rows
    assert len({tuple(row) for row in outcome.rows}) == 1
    assert outcome.findings
    assert all(one.claim and one.seen for one in outcome.findings)
    assert outcome == experiment_named(name).run(inputs(folder))


def test_weights_help_where_frequent_words_mean_nothing(folder: Path) -> None:
    outcome = experiment_named("sif-table-6").run(inputs(folder))
    found = {(row["task"], row["system"]): float(row["pearson"] or 0) for row in outcome.rows}
    for task in ("one", "two"):
        assert found[task, "W"] > found[task, "avg"] + 10
        assert found[task, "WR"] > found[task, "avg"] + 10
    assert outcome.findings[0].claim.startswith("avg < W < WR")


def test_subsampling_by_hand(folder: Path) -> None:
    """At p = 1e-3: sqrt(1e-5 / 1e-3) = 0.1, and 1e-4 / (1e-4 + 1e-3) = 1 / 11."""
    rows = experiment_named("sif-figure-1").run(inputs(folder)).rows
    (row,) = [row for row in rows if row["p"] == pytest.approx(1e-3)]
    assert (row["word2vec"], row["SIF, a = 1e-4"]) == (0.1, 0.0909)


def test_the_common_component_is_that_of_the_fillers(folder: Path) -> None:
    """With words weighted alike: they are all that the sentences share."""
    (folder / "flat.txt").write_text("".join(f"{word} 1\n" for word in (*FILLERS, *SUBJECTS)))
    given = Inputs(folder / "v.txt", (folder / "flat.txt",), (folder / "one",))
    (row,) = experiment_named("sif-common-words").run(given).rows
    assert set(str(row["words"]).split(", ")[: len(FILLERS)]) == set(FILLERS)


def test_vectors_of_a_bundle_and_of_a_run(folder: Path, tmp_path: Path) -> None:
    spec = FeatureSpec(orders=(), words=True)
    vocabulary = build_vocabulary([" ".join((*SUBJECTS, *FILLERS))], spec)
    lines = dict(line.split(" ", 1) for line in (folder / "v.txt").read_text().splitlines())
    table = np.array([lines[one.text].split() for one in vocabulary.entries()], np.float32)
    export_table(
        tmp_path / "b", name="b", kind="sif", spec=spec, vocabulary=vocabulary, table=table, pooling="mean",
        provenance={}, card="",
    )  # fmt: skip
    options = ["--vectors", folder / "v.txt", "--freq", folder / "f.txt", "--components", "0", "--weights", "none"]
    assert call("sif", *options, "--out", tmp_path / "run").exit_code == 0
    given = inputs(folder)
    expected = experiment_named("sif-table-6").run(given)
    for vectors in (tmp_path / "b", tmp_path / "run"):
        found = experiment_named("sif-table-6").run(Inputs(vectors, given.frequencies, given.sets))
        assert found == expected


def test_the_commands(folder: Path, tmp_path: Path) -> None:
    listed = call("papers", "list")
    assert listed.exit_code == 0
    for one in EXPERIMENTS:
        assert f"{one.name} " in listed.stdout
        assert one.stands_in in listed.stdout
    options = ["--vectors", folder / "v.txt", "--freq", folder / "f.txt", "--sets", folder / "one"]
    result = call("papers", "run", "sif-table-6", *options, "--json", tmp_path / "out.json")
    assert result.exit_code == 0, result.output
    assert "| one | WR |" in result.stdout
    assert "avg < W < WR on the mean of the tasks (" in result.stdout
    written = json.loads((tmp_path / "out.json").read_text())
    assert written["experiment"] == "sif-table-6"
    assert len(written["rows"]) == 5
    assert "There is no experiment t6; there are sif-table-6" in sentence(call("papers", "run", "t6", *options))
    assert "give --norms-of" in sentence(call("papers", "run", "paragram-norms", *options))
    (tmp_path / "other.txt").write_text("zebra 1 2\n")
    options[1] = tmp_path / "other.txt"
    assert "has a vector for no word" in sentence(call("papers", "run", "sif-table-6", *options))
