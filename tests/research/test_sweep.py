"""The command sweep: a run for each setting, the results as tables and JSON, and a stop in between."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import orjson
import pytest

from gramvec_research.sweep import FIGURE_2A, TABLE_5_ORDERS, TABLE_5_SIZES, list_ngram_cells, make_tables
from gramvec_training.config import parse_config
from gramvec_training.fitting.sif import weigh_words
from gramvec_training.runs.run_dir import load_run
from support.training import call as train
from support.training import research as call

pytestmark = pytest.mark.slow

NOUNS = ["car", "film", "bike", "house", "dog", "tree", "road", "song"]
NGRAMS = """
[model]
name = "small"
kind = "charagram-phrase"
dimension = 8
[training]
epochs = {epochs}
batch = 8
[[data]]
path = "pairs.tsv"
[dev]
sets = ["tiny"]
"""
SIF = """
[model]
name = "sif"
kind = "sif"
dimension = 2
pooling = "mean"
activation = "linear"
bias = false
[features]
orders = []
words = true
[sif]
{source}
frequencies = "freq.txt"
components = 0
[dev]
sets = ["tiny"]
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    pairs = [f"the {a} and the {b}\tthe {b} with a {a}" for a in NOUNS for b in NOUNS if a != b]
    (tmp_path / "pairs.tsv").write_text("\n".join(pairs))
    (tmp_path / "tiny").mkdir()
    (tmp_path / "tiny/one.tsv").write_text("5\ta car\tthe car\n1\ta car\tthe film\n3\tthe dog\ta tree\n")
    (tmp_path / "tiny/two.tsv").write_text("4\ta song\tthe song\n1\ta road\tthe house\n2\tthe bike\ta tree\n")
    (tmp_path / "freq.txt").write_text("the 500\na 400\ncar 20\ndog 10\n")
    (tmp_path / "v.txt").write_text("the 1 0\na 1 0.2\ncar 0 1\nfilm -1 0.5\ndog 0.5 -1\ntree -0.5 -1\n")
    (tmp_path / "ngrams.toml").write_text(NGRAMS.format(epochs=2))
    (tmp_path / "long.toml").write_text(NGRAMS.format(epochs=150))
    (tmp_path / "sif.toml").write_text(SIF.format(source='vectors = "v.txt"'))
    return tmp_path


def test_table_5_from_one_command(folder: Path) -> None:
    out = folder / "out"
    options = ["--orders", "2", "--orders", "2,3", "--sizes", "5,20", "--data", folder, "--out", out]
    result = call("sweep", folder / "ngrams.toml", *options)
    assert result.exit_code == 0, result.output
    results = orjson.loads((out / "sweep.json").read_bytes())["results"]
    assert [(one["row"], one["column"], one["rows"]) for one in results] == [
        ("5", "2", 5),
        ("5", "2,3", 10),
        ("20", "2", 20),
        ("20", "2,3", 40),
    ]
    run = load_run(out / "orders-2-3_each-5")
    assert sorted(len(entry.text) for entry in run.vocabulary.entries()) == [2] * 5 + [3] * 5
    mean = run.record["scores"]["tasks"]["tiny"]["mean"]
    assert results[1]["tasks"]["tiny"] == results[1]["mean"] == mean
    shown = result.stdout.split("\n\n")
    assert [table.split()[:3] for table in shown] == [["tiny", "2", "2,3"], ["all", "2", "2,3"]]
    assert f"{mean['pearson']:.1f}/{mean['spearman']:.1f}" == shown[0].split("\n")[1].split()[2]

    again = call("sweep", folder / "ngrams.toml", *options)
    assert (again.exit_code, "holds runs of this sweep already" in again.stderr) == (1, True)
    before = (out / "orders-2_each-5/run.json").stat().st_mtime_ns
    resumed = call("sweep", folder / "ngrams.toml", *options, "--resume", "--json", "-")
    assert orjson.loads(resumed.stdout)["results"] == results
    assert (out / "orders-2_each-5/run.json").stat().st_mtime_ns == before
    other = call("sweep", folder / "long.toml", *options, "--resume")
    assert (other.exit_code, "has another config" in other.stderr) == (1, True)
    anew = call("sweep", folder / "ngrams.toml", *options, "--overwrite", "--json", folder / "copy.json")
    assert anew.exit_code == 0, anew.output
    scores = [one["tasks"] for one in orjson.loads((folder / "copy.json").read_bytes())["results"]]
    assert scores == [one["tasks"] for one in results]


def test_a_stopped_sweep_continues_where_it_was(folder: Path) -> None:
    options = ["--orders", "2", "--orders", "2,3", "--sizes", "20", "--data", folder, "--save-every", "0.1"]
    whole = call("sweep", folder / "long.toml", *options, "--out", folder / "whole")
    assert whole.exit_code == 0, whole.output
    stopped = folder / "stopped"
    command = [sys.executable, "-m", "gramvec_research", "sweep", folder / "long.toml", *options, "--out", stopped]
    with subprocess.Popen([str(one) for one in command], stderr=subprocess.PIPE, text=True) as process:
        deadline = time.monotonic() + 60
        while not (stopped / "orders-2_each-20/checkpoint.pt").exists() and time.monotonic() < deadline:
            time.sleep(0.01)
        process.send_signal(signal.SIGTERM)
        _, said = process.communicate(timeout=60)
    assert process.returncode == 143
    assert "continue with the same command and --resume" in said
    assert call("sweep", folder / "long.toml", *options, "--out", stopped, "--resume").exit_code == 0
    for cell in ("orders-2_each-20", "orders-2-3_each-20"):
        tables = [load_run(folder / run / cell).encoder.arrays()["table"].tobytes() for run in ("whole", "stopped")]
        assert tables[0] == tables[1]


def test_a_of_sif_from_one_command(folder: Path) -> None:
    out = folder / "out"
    result = call("sweep", folder / "sif.toml", "--data", folder, "--out", out)
    assert result.exit_code == 0, result.output
    results = orjson.loads((out / "sweep.json").read_bytes())["results"]
    assert [one["a"] for one in results] == list(FIGURE_2A)
    lines = result.stdout.rstrip().split("\n")
    assert lines[0].split() == ["a", "tiny", "all"]
    assert [line.split()[0] for line in lines[1:]] == [f"{a:g}" for a in FIGURE_2A]
    for a in (0.3, 1e-5):
        run = load_run(out / f"a-{a:g}")
        entries = [entry.text for entry in run.vocabulary.entries()]
        weight = weigh_words(["car"], {"car": 20 / 930}, a)[0]
        assert run.encoder.arrays()["table"][entries.index("car")].tolist() == pytest.approx([0, weight], rel=1e-5)


def test_a_run_that_sif_names_is_beside_the_sweep(folder: Path) -> None:
    made = train("sif", "--vectors", folder / "v.txt", "--freq", folder / "freq.txt", "--components", "0",
                "--weights", "none", "--out", folder / "words")  # fmt: skip
    assert made.exit_code == 0, made.output
    (folder / "beside.toml").write_text(SIF.format(source='run = "words"'))
    result = call("sweep", folder / "beside.toml", "-a", "1e-3", "--data", folder, "--out", folder / "out")
    assert result.exit_code == 0, result.output
    assert (folder / "out/a-0.001/run.json").is_file()


def test_the_papers_grids() -> None:
    assert pytest.approx([0.3, 0.1, 0.03, 0.01, 0.003, 0.001, 3e-4, 1e-4, 3e-5, 1e-5]) == FIGURE_2A
    config = parse_config(
        {
            "model": {"name": "m", "kind": "charagram-phrase"},
            "training": {"steps": 1, "l2": 1e-6},
            "data": [{"path": "x.tsv"}],
            "dev": {"sets": ["d"]},
        },
        source="test",
    )
    cells = list_ngram_cells(config, TABLE_5_ORDERS, TABLE_5_SIZES)
    assert len({cell.folder for cell in cells}) == 15
    assert (cells[-1].row, cells[-1].column) == ("50,000", "2,3,4,5,6")
    assert cells[-1].config.features.orders == (2, 3, 4, 5, 6)
    assert cells[-1].config.training == config.training


def test_tables_line_up() -> None:
    def cell(row: str, column: str, score: float) -> dict[str, Any]:
        value = {"pearson": score, "spearman": -score}
        return {"row": row, "column": column, "tasks": {"sts": value}, "mean": value, "mean_of": ["sts"]}

    text = make_tables([cell("100", "2", 1), cell("100", "2,3", 10), cell("5,000", "2", 100), cell("5,000", "2,3", 0)])
    assert text.split("\n\n")[0] == (
        "sts               2         2,3\n"
        "100        1.0/-1.0  10.0/-10.0\n"
        "5,000  100.0/-100.0     0.0/0.0"
    )  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["ngrams.toml", "--orders", "2,x"], 2, "'2,x' is not a list of positive numbers such as 2,3,4"),
        (["ngrams.toml", "--sizes", "0"], 2, "is not a list of positive numbers"),
        (["sif.toml", "-a", "nan"], 2, "is not a list of positive numbers"),
        (["sif.toml", "-a", "1", "--sizes", "5"], 2, "-a belongs to a [sif] config"),
        (["sif.toml", "--resume", "--overwrite"], 2, "not both"),
        (["sif.toml", "--sizes", "5"], 1, "[sif] varies a"),
        (["ngrams.toml", "-a", "1"], 1, "[training] varies its n-grams"),
        (["ngrams.toml", "--mean-of", "sts99"], 1, "sts99"),
        (["none.toml"], 1, "no such config"),
        (["no-dev.toml"], 1, "names no development sets"),
        (["ngrams.toml", "--out", "freq.txt"], 1, "--out"),
    ],
)
def test_bad_calls(
    folder: Path, arguments: list[str], code: int, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    (folder / "no-dev.toml").write_text(NGRAMS.format(epochs=1).split("[dev]")[0])
    result = call("sweep", *arguments, "--data", ".")
    assert (result.exit_code, result.stdout) == (code, "")
    assert message in result.stderr


def test_help_has_an_example() -> None:
    result = call("sweep", "--help")
    assert result.exit_code == 0
    assert "\n  python -m gramvec_research sweep training/configs/" in result.stdout
