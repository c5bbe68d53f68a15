"""training/make_first_models.py: a cut is fetched or brought, and each paper's model is trained, scored and served."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from test_fetching_data import COMMIT, Mirror, mirror, recipe, recipes

from conftest import ROOT

sys.path.insert(0, str(ROOT / "training"))
first = import_module("make_first_models")
sys.path.pop(0)

mirror = mirror
WORDS = ("red", "blue", "old", "new", "fast", "slow", "small", "big")
THINGS = ("car", "boat", "house", "tree")
GROUPS = "".join(f"the {word} {thing}\ta {thing} that is {word}\n" for word in WORDS for thing in THINGS)
CONFIG = """[model]
name = "{name}"
kind = "{name}"
dimension = 8
{model}
[features]
{features}
{learns}
[dev]
sets = ["../dev/sts16"]
"""
TRAINING = '[training]\nbatch = 8\nsteps = 20\n[[data]]\npath = "a.groups.tsv.gz"\n'
WORDS_ONLY = 'orders = []\nwords = true\nunknown_words = "skip"'
MEAN = 'pooling = "mean"\nactivation = "linear"\nbias = false'


@pytest.fixture
def configs(tmp_path: Path) -> Path:
    folder = tmp_path / "configs"
    folder.mkdir()
    sif = '[sif]\nrun = "paragram-phrase"\nfrequencies = "freq/w.txt.gz"\n'
    sif += '[[texts]]\npath = "a.groups.tsv.gz"\nlayout = "columns"'
    for name, model, features, learns in (
        ("charagram-phrase", "", "orders = [2, 3]", TRAINING),
        ("paragram-phrase", MEAN, WORDS_ONLY, TRAINING),
        ("sif", MEAN, WORDS_ONLY, sif),
    ):
        (folder / f"{name}.toml").write_text(CONFIG.format(name=name, model=model, features=features, learns=learns))
    return folder


def texts() -> dict[str, tuple[str, bytes]]:
    words = {word for line in GROUPS.splitlines() for word in line.split()}
    scores = "5\tthe red car\ta car that is red\n0\tan old tree\tthe new boat\n3\tthe red car\tthe blue car\n"
    return {
        "train/a.groups.tsv.gz": ("sides", GROUPS.encode()),
        "train/freq/w.txt.gz": ("lines", "".join(f"{word} 7\n" for word in sorted(words)).encode()),
        "dev/sts16/one.tsv": ("similarity", scores.encode()),
    }


def run(*arguments: str | Path) -> Any:
    return CliRunner().invoke(first.main, list(map(str, arguments)))


def check(result: Any, out: Path) -> None:
    assert result.exit_code == 0, result.output
    for name in first.NAMES:
        assert (out / "models" / name / "manifest.json").is_file()
        assert f"{name}: asked for 'a red car', it answers {{" in result.stdout
    assert "sts16 mean" in result.stdout


@pytest.mark.slow
def test_a_fresh_folder_is_fetched_trained_scored_and_served_and_again_offline(
    mirror: Mirror, configs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mirror.files = {file: text for file, (_, text) in texts().items()}
    made = [recipe(reader, {file: text}, text, file=file) for file, (reader, text) in texts().items()]
    monkeypatch.setattr(first, "read_table", lambda: recipes.Table(made, []))
    monkeypatch.setattr(first, "MODELS", tmp_path / "none")
    arguments = [tmp_path / "data", "--configs", configs, "--mirror", mirror.url]
    check(run(*arguments, "--out", tmp_path / "out"), tmp_path / "out")
    assert sorted(name for name, _ in mirror.asked) == sorted(f"{COMMIT}/{file}" for file in texts())

    mirror.asked = []
    check(run(*arguments, "--out", tmp_path / "again"), tmp_path / "again")
    assert not mirror.asked
    for name in first.NAMES:
        both = [(tmp_path / out / "models" / name / "model.onnx.data").read_bytes() for out in ("out", "again")]
        assert both[0] == both[1]


def test_without_a_network_one_sentence_says_what_to_bring(configs: Path, tmp_path: Path) -> None:
    (tmp_path / "data/dev/sts16").mkdir(parents=True)
    arguments = [tmp_path / "data", "--configs", ROOT / "training/configs/small", "--mirror", "http://127.0.0.1:9"]
    result = run(*arguments, "--out", tmp_path / "out")
    said = result.stderr.strip().splitlines()
    assert result.exit_code == 1 and not (tmp_path / "out").exists()
    assert "check the network" in said[-1] and "lacking: train/ppdb_xl_lexical.pairs.tsv.gz, " in said[-1]


def test_the_cut_is_what_the_configs_read_and_has_recipes() -> None:
    files = first.list_files([first.CONFIGS / "small" / f"{name}.toml" for name in first.NAMES])
    table = recipes.read_table().select([file.split(".", 1)[0] for file in files])
    assert {one.file for one in table.recipes} >= {file for file in files if file.startswith("train/")}
    assert not table.missing and sum(one.size for one in table.recipes) < 30e6
    assert not any(source.archive for one in table.recipes for source in one.sources)
