"""gramvec-train as people call it: from a file of pairs to a scored bundle, and every bad call."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pytest

import gramvec
from gramvec_training.config import load_config
from gramvec_training.runs.run_dir import load_run
from support.training import call, sentence

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
CONFIGS = sorted((ROOT / "training" / "configs").glob("[!c]*/*.toml"))  # not corpora/
SUBJECTS = ["a man", "the young woman", "my neighbor", "two children", "the old teacher"]
VERBS = [("buys", "purchases"), ("repairs", "fixes"), ("begins", "starts"), ("sees", "notices")]
OBJECTS = [("a car", "an automobile"), ("a bike", "a bicycle"), ("the film", "the movie")]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Sixty pairs of paraphrases, a set to score on, configs of a word and a SIF model, and frequencies."""
    folder = tmp_path_factory.mktemp("training")
    pairs = [
        f"{who} {verb[0]} {what[0]}\t{who} {verb[1]} {what[1]}"
        for who in SUBJECTS
        for verb in VERBS
        for what in OBJECTS
    ]
    (folder / "pairs.tsv").write_text("\n".join([*pairs, "no second column", ""]), encoding="utf-8")
    (folder / "tiny").mkdir()
    (folder / "tiny/set.tsv").write_text(
        "5\tbuys a car\tpurchases an automobile\n1\tbuys a car\tsees the film\n3\ta bike\ta car\n"
    )
    (folder / "freq.txt").write_text("the 500\na 400\ncar 20\nman 10\n")
    (folder / "texts.txt").write_text("\n".join(side for pair in pairs for side in pair.split("\t")))
    (folder / "words.toml").write_text(
        """
        [model]
        name = "words"
        kind = "paragram-phrase"
        dimension = 16
        pooling = "mean"
        activation = "linear"
        bias = false
        [features]
        orders = []
        words = true
        unknown_words = "row"
        [training]
        steps = 20
        batch = 20
        [[data]]
        path = "pairs.tsv"
        license = "ours"
        [dev]
        sets = ["tiny"]
        every = 10
        """
    )
    (folder / "sif.toml").write_text(
        """
        [model]
        name = "sif"
        kind = "sif"
        dimension = 16
        pooling = "mean"
        activation = "linear"
        bias = false
        [features]
        orders = []
        words = true
        [sif]
        run = "words"
        frequencies = "freq.txt"
        [[texts]]
        path = "texts.txt"
        cap = 50
        [dev]
        sets = ["tiny"]
        """
    )
    return folder


@pytest.fixture(scope="module")
def words_run(folder: Path) -> Path:
    result = call("fit", folder / "words.toml", "--data", folder, "--out", folder / "words")
    assert result.exit_code == 0, result.output
    return folder / "words"


def test_from_a_file_of_pairs_to_a_scored_bundle(folder: Path) -> None:
    run, bundle = folder / "quick", folder / "bundles" / "quick"
    result = call("fit-pairs", folder / "pairs.tsv", "--epochs", "3", "--out", run)
    assert result.exit_code == 0, result.output
    assert "1 row skipped: 1 one column (line 61)" in result.stderr
    record = orjson.loads((run / "run.json").read_bytes())
    assert (record["steps"], record["pairs"], record["held_out"]["pairs"]) == (3, 3 * 54, 6)
    assert record["command"] == "gramvec-train fit-pairs pairs.tsv --epochs 3"
    assert str(folder) not in (run / "run.json").read_text()

    result = call("export", run, "-o", bundle, "--precision", "float16")
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith(f"{bundle}: ")

    with_table = call("evaluate", bundle, bundle, "--sets", folder / "tiny")
    assert with_table.exit_code == 0, with_table.output
    assert "tiny/set" in with_table.stdout
    scores = call("evaluate", bundle, "--sets", folder, "--json", folder / "scores.json")
    report = orjson.loads((folder / "scores.json").read_bytes())[str(bundle)]
    assert "pairs.tsv is left out" in scores.stderr
    assert report["tasks"]["tiny"]["sets"]["set"]["pairs"] == 3
    assert report["digest"] == gramvec.load(bundle, device="cpu").digest
    piped = call("evaluate", bundle, "--sets", folder / "tiny", "--json", "-")
    assert orjson.loads(piped.stdout)[str(bundle)]["tasks"] == report["tasks"]


def test_a_run_and_its_bundle_agree(folder: Path, words_run: Path) -> None:
    bundle = folder / "bundles" / "words"
    assert call("export", words_run, "-o", bundle).exit_code == 0
    run, embedder = load_run(words_run), gramvec.load(bundle, device="cpu")
    entries = {entry.text: row for row, entry in enumerate(run.vocabulary.entries()) if entry.kind == "word"}
    expected = (run.encoder.arrays()["table"][entries["a"]] + run.encoder.arrays()["table"][entries["car"]]) / 2
    np.testing.assert_allclose(embedder.embed(["a car"], normalize=False)[0], expected, rtol=1e-5)
    np.testing.assert_allclose(
        embedder.embed(["zzz"], normalize=False)[0],
        run.encoder.arrays()["table"][run.vocabulary.unknown_row],
        rtol=1e-6,
    )
    provenance = embedder.manifest.provenance
    assert provenance["data"] == [
        {
            "name": "pairs",
            "license": "ours",
            "groups": 60,
            "pairs_per_epoch": 60,
            "rows_skipped": {"one column": 1},
            "groups_without_known_features": 0,
        }
    ]
    card = (bundle / "README.md").read_text()
    for part in ("| pairs | ours | 60 | 60 |", "margin 0.4, MAX", "20 steps", "bad at", "| tiny | 1 |", "in float32"):
        assert part in card
    assert str(folder) not in card + (bundle / "manifest.json").read_text()


def test_sif_from_a_run_by_config_and_by_options_is_the_same(folder: Path, words_run: Path) -> None:
    by_config = call("fit", folder / "sif.toml", "--data", folder, "--out", folder / "sif")
    assert by_config.exit_code == 0, by_config.output
    options = ["--vectors", words_run, "--freq", folder / "freq.txt", "--texts", folder / "texts.txt"]
    by_options = call("sif", *options, "--sample", "120", "--out", folder / "sif2")
    assert by_options.exit_code == 0, by_options.output

    run, words = load_run(folder / "sif"), load_run(words_run)
    u = run.encoder.arrays()["components"]
    assert u is not None
    assert u.shape == (1, 16)
    rows = {entry.text: row for row, entry in enumerate(run.vocabulary.entries())}
    before = {entry.text: row for row, entry in enumerate(words.vocabulary.entries()) if entry.kind == "word"}
    weight = 1e-3 / (1e-3 + 20 / 930)
    np.testing.assert_allclose(
        run.encoder.arrays()["table"][rows["car"]], weight * words.encoder.arrays()["table"][before["car"]], rtol=1e-5
    )
    assert "" not in rows  # the unknown word's row stays behind
    np.testing.assert_array_equal(run.encoder.arrays()["table"], load_run(folder / "sif2").encoder.arrays()["table"])

    bundle = folder / "bundles" / "sif"
    assert call("export", folder / "sif", "-o", bundle).exit_code == 0
    embedder = gramvec.load(bundle, device="cpu")
    vectors = embedder.embed(["a man fixes the car", "zzz", "zzz man"], normalize=False)
    np.testing.assert_allclose(vectors @ u[0], 0, atol=1e-6)
    assert not vectors[1].any()
    np.testing.assert_allclose(vectors[2], embedder.embed(["man"], normalize=False)[0], rtol=1e-6)


def test_sif_without_weights_or_without_removal(folder: Path, words_run: Path) -> None:
    sources = ["--vectors", words_run, "--freq", folder / "freq.txt"]
    assert call("sif", *sources, "--components", "0", "--weights", "none", "--out", folder / "plain").exit_code == 0
    plain, words = load_run(folder / "plain"), load_run(words_run)
    assert "components" not in plain.encoder.arrays()
    assert (
        np.sort(plain.encoder.arrays()["table"].ravel()).tobytes()
        == np.sort(words.encoder.arrays()["table"][:-1].ravel()).tobytes()
    )
    missing = call("sif", *sources, "--out", folder / "no-texts")
    assert missing.exit_code == 2
    assert "--texts" in missing.stderr


def test_a_killed_run_resumes_to_the_same_bytes(folder: Path) -> None:
    options = [folder / "pairs.tsv", "--epochs", "200", "--save-every", "0.2"]
    whole, killed = folder / "whole", folder / "killed"
    assert call("fit-pairs", *options, "--out", whole).exit_code == 0

    command = [sys.executable, "-m", "gramvec_training.cli", "fit-pairs", *options, "--out", killed]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        deadline = time.monotonic() + 60
        while not (killed / "checkpoint.pt").exists() and time.monotonic() < deadline:
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert f"continue with: gramvec-train fit --out {killed} --resume" in said
    assert "not finished" in sentence(call("export", killed, "-o", folder / "x"))
    assert "not empty" in sentence(call("fit-pairs", *options, "--out", killed))

    assert call("fit", "--out", killed, "--resume").exit_code == 0
    first, second = load_run(whole), load_run(killed)
    assert first.encoder.arrays()["table"].tobytes() == second.encoder.arrays()["table"].tobytes()
    assert first.encoder.arrays()["bias"].tobytes() == second.encoder.arrays()["bias"].tobytes()
    assert first.record["loss"] == second.record["loss"]
    assert first.record["command"] == second.record["command"]


def test_resuming_a_finished_run_says_so(folder: Path, words_run: Path) -> None:
    result = call("fit", "--out", words_run, "--resume")
    assert result.exit_code == 0
    assert "is finished already" in result.stderr
    other = call("fit", folder / "sif.toml", "--out", words_run, "--resume")
    assert "has another config" in sentence(other)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["fit"], "give a CONFIG"),
        (["fit", "--resume"], "needs the run's folder"),
        (
            ["fit", "--pairs", "b.tsv"],
            "--pairs is a command of its own: gramvec-train fit-pairs FILE, or fit-weights FILE",
        ),
        (["fit", "--labeled=b.tsv"], "--labeled is a command of its own: gramvec-train fit-labels FILE"),
        (["fit", "--learn", "weights"], "gramvec-train fit-weights FILE"),
        (["fit", "a.toml", "--epochs", "2"], "No such option"),
        (["fit-pairs", "b.tsv", "--held-out", "0.6"], "--held-out"),
        (["fit", "a.toml", "--resume", "--overwrite"], "not both"),
        (["fit", "a.toml", "--threads", "0"], "--threads"),
        (["sif", "--out", "x"], "--vectors"),
        (["export", "x"], "--out"),
        (["export", "x", "-o", "y", "--precision", "int2"], "--precision"),
        (["evaluate", "--sets", "x"], "MODELS"),
        (["evaluate", "x"], "name what to score on: --sets, --matching"),
        (["evaluate", "x", "--sets", "y", "--misspellings", "z"], "belongs to --typos"),
        (["evaluate", "x", "--sets", "y", "--json", "-", "--markdown", "-"], "different places"),
        (["evaluate", "--matching", "y"], "name MODELS, or a rival with --peer"),
        (["evaluate", "x", "--spelling", "y"], "--spelling and --words belong together"),
        (["evaluate", "x", "--words", "y", "--matching", "z"], "--spelling and --words belong together"),
        (["evaluate", "x", "--sets", "y", "--columns", "a=b"], "--columns belongs to --matching"),
        (["evaluate", "x", "--matching", "y", "--plot", "z.png"], "--plot draws the scores of --sets"),
        (["card", "x"], "--sets"),
        (["report"], "RUN"),
        (["report", "x", "--no-plot", "-o", "y"], "not both"),
        (["fit-labels", "x.tsv", "--layout", "groups"], "No such option"),
        (["fit-labels"], "FILE"),
        (["train"], "No such command"),
    ],
)
def test_bad_calls_exit_with_2(arguments: list[str], message: str) -> None:
    result = call(*arguments)
    assert result.exit_code == 2
    assert message in result.stderr
    assert result.stdout == ""


def test_failures_exit_with_1_and_one_sentence(folder: Path, words_run: Path) -> None:
    nowhere = folder / "nowhere"
    assert "no such config" in sentence(call("fit", nowhere))
    moved = ROOT / "training/configs/sif.toml"
    assert f"there is {moved.parent}/shipped/sif.toml and {moved.parent}/small/sif.toml" in sentence(call("fit", moved))
    assert "no such file" in sentence(call("fit-pairs", nowhere, "--out", folder / "f1"))
    assert "not empty" in sentence(call("fit", folder / "words.toml", "--data", folder, "--out", words_run))
    assert "not a folder but a file" in sentence(call("fit-pairs", folder / "pairs.tsv", "--out", folder / "pairs.tsv"))
    assert "line 61: one column" in sentence(
        call("fit-pairs", folder / "pairs.tsv", "--bad-rows", "refuse", "--out", folder / "f2")
    )
    assert "no run here" in sentence(call("export", nowhere, "-o", folder / "x"))
    assert "no run here" in sentence(call("fit", "--out", nowhere, "--resume"))
    assert "no model" in sentence(call("evaluate", nowhere, "--sets", folder / "tiny"))
    assert "no such folder" in sentence(call("evaluate", nowhere, "--sets", nowhere))
    # A call that failed before it learned anything leaves the way free.
    again = call("fit-pairs", folder / "pairs.tsv", "--epochs", "1", "--out", folder / "f2")
    assert again.exit_code == 0, again.output


@pytest.mark.parametrize(
    "command",
    [
        [],
        *(
            [one]
            for one in ["fit", "fit-pairs", "fit-labels", "fit-weights", "sif", "export", "evaluate", "report", "card"]
        ),
    ],
)
def test_help_has_an_example(command: list[str]) -> None:
    result = call(*command, "--help")
    assert result.exit_code == 0
    assert f"\n  gramvec-train {' '.join(command)}" in result.stdout


def test_help_does_not_wait_for_torch() -> None:
    code = "import gramvec_training.cli, sys; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_shipped_configs_are_read_and_say_how_they_are_run(path: Path) -> None:
    config = load_config(path)
    assert config.model.name == path.stem
    header = path.read_text(encoding="utf-8").split("[model]")[0]
    command = "distill" if config.distillation is not None else "fit"
    assert f"#   gramvec-train {command} training/configs/{path.parent.name}/{path.name}" in header
    assert all(one.license != "not stated" for one in (*config.data, *config.texts))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"training": {"steps": 5, "stepz": 6}}, "the key training.stepz is not known here"),
        ({"training": {"steps": 5, "epochs": 6}}, "training: give either steps or epochs"),
        ({"training": {"steps": 0}}, r"training.steps: input should be greater than or equal to 1, got 0"),
        ({"model": {"kind": "sif"}}, "the key model.name is missing"),
        ({"data": []}, "needs at least one"),
        ({"sif": {"run": "x", "frequencies": "f"}}, r"give one of \[training\]"),
        ({"training": None}, r"give one of \[training\]"),
    ],
)
def test_bad_configs_name_file_and_key(change: dict[str, Any], message: str) -> None:
    from gramvec.errors import InputError
    from gramvec_training.config import parse_config

    good = {
        "model": {"name": "m", "kind": "charagram-phrase"},
        "training": {"steps": 5},
        "data": [{"path": "x.tsv"}],
    }
    parse_config(good, source="my.toml")
    with pytest.raises(InputError, match=f"my.toml: .*{message}"):
        parse_config({**good, **change}, source="my.toml")


def test_a_config_without_a_folder_of_data_is_refused(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("GRAMVEC_DATA", raising=False)
    refused = call("fit", folder / "words.toml", "--out", tmp_path / "run")
    assert (refused.exit_code, refused.stderr.count("give --data FOLDER")) == (2, 1)
    assert "GRAMVEC_DATA" in refused.stderr
    (tmp_path / "train").symlink_to(folder)
    monkeypatch.setenv("GRAMVEC_DATA", str(tmp_path))
    assert call("fit", folder / "words.toml", "--out", tmp_path / "run").exit_code == 0
