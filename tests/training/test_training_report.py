"""The report of a run, and figures."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import orjson
import pytest

from gramvec.errors import InputError
from gramvec_training.evaluation.report import plot_run, plot_scores, summarize_run
from support.errors import assert_names
from support.training import call


def scores(pearson: float) -> dict[str, Any]:
    found = {"pearson": pearson, "spearman": pearson - 1}
    return {"mean": found, "sets": {"one": found}}


RECORD: dict[str, Any] = {
    "name": "mine",
    "rows": 42_000,
    "steps": 300,
    "pairs": 3000,
    "seconds": 61.4,
    "loss": [[100, 0.5], [200, 0.25], [300, 0.3]],
    "dev": [[150, {"sts": scores(60.04), "sick": scores(70.0)}], [300, {"sts": scores(59.0), "sick": scores(71.0)}]],
    "scores": {"tasks": {"sts": {"mean": {"pearson": 59.0}}}, "notes": []},
}


@pytest.fixture
def run(tmp_path: Path) -> Path:
    (tmp_path / "run").mkdir()
    (tmp_path / "run/run.json").write_bytes(orjson.dumps(RECORD))
    return tmp_path / "run"


def width_and_height(png: bytes) -> tuple[int, int]:
    assert png.startswith(b"\x89PNG\r\n")
    return int.from_bytes(png[16:20], "big"), int.from_bytes(png[20:24], "big")


def test_the_summary_by_hand() -> None:
    assert summarize_run(RECORD).split("\n") == [
        "mine: 42,000 rows, 300 steps, 3,000 pairs, 61 s",
        "loss: 0.5000 at step 100, 0.3000 at 300; lowest 0.2500 at 200",
        "sts: best 60.0 at step 150, 59.0 at 300",
        "sick: best 71.0 at step 300, 71.0 at 300",
    ]
    built = {key: value for key, value in RECORD.items() if key not in ("loss", "dev", "steps", "pairs")}
    assert summarize_run(built).split("\n") == ["mine: 42,000 rows, 61 s", "sts: 59.0 at the end"]


def test_without_a_plot_nothing_is_drawn(run: Path) -> None:
    result = call("report", run, "--no-plot")
    assert (result.exit_code, result.stdout.rstrip()) == (0, summarize_run(RECORD))
    assert [path.name for path in run.iterdir()] == ["run.json"]


def test_failures_are_one_sentence(run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "no finished run here" in call("report", tmp_path / "nowhere").stderr
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad/run.json").write_text("[1, ")
    damaged = call("report", tmp_path / "bad")
    assert (damaged.exit_code, len(damaged.stderr.splitlines())) == (1, 1)
    assert "damaged" in damaged.stderr
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    missing = call("report", run)
    assert (missing.exit_code, missing.stdout) == (1, "")
    assert_names(missing.stderr, "matplotlib", "pip install 'gramvec[train]'")


def test_the_curves_are_drawn(run: Path, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="matplotlib of the extra `train` is not installed")
    result = call("report", run)
    assert (result.exit_code, result.stdout.rstrip()) == (0, summarize_run(RECORD)), result.output
    both = (run / "report.png").read_bytes()
    plot_run({**RECORD, "dev": []}, tmp_path / "loss.png")
    plot_run({**RECORD, "loss": []}, tmp_path / "dev.png")
    heights = [width_and_height((tmp_path / name).read_bytes())[1] for name in ("loss.png", "dev.png")]
    assert heights[0] == heights[1]
    assert width_and_height(both)[1] == 2 * heights[0]
    plot_run(RECORD, tmp_path / "again.png")
    assert (tmp_path / "again.png").read_bytes() == both
    with pytest.raises(InputError, match="it was built, not trained"):
        plot_run({"name": "sif"}, tmp_path / "none.png")
    assert "cannot be written" in call("report", run, "-o", tmp_path / "no/such.png").stderr


def test_several_runs_are_drawn_in_one_figure(run: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "run.json").write_bytes(orjson.dumps({**RECORD, "name": "yours"}))
    result = call("report", run, other, "--out", tmp_path / "both.png")
    assert (result.exit_code, result.stdout.count("best 60.0 at step 150")) == (0, 2)
    assert result.stdout.startswith("mine: ")
    assert "\n\nyours: " in result.stdout
    alone = call("report", run, "--out", tmp_path / "one.png")
    assert alone.exit_code == 0
    assert width_and_height((tmp_path / "both.png").read_bytes()) == (960, 432)  # one panel, as curves have
    assert [path.name for path in other.iterdir()] == ["run.json"]
    without = call("report", run, other)
    assert without.exit_code == 2
    assert "give --out, the file for the figure of several runs" in without.stderr
    (other / "run.json").write_bytes(orjson.dumps({**RECORD, "dev": []}))
    assert "other: no scores over steps to draw" in call("report", run, other, "--out", tmp_path / "n.png").stderr
    assert call("report", run, other, "--no-plot").exit_code == 0


def test_scores_of_several_models_are_drawn(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="matplotlib of the extra `train` is not installed")
    tasks = {"sts": {"mean": {"pearson": 60.0}}, "words": {"mean": {"pearson": 50.0}}}
    clean = {"models/a": {"tasks": tasks}, "models/b": {"tasks": tasks}}
    noisy = {"sts": {"mean": {"pearson": 40.0}}}
    plot_scores(clean, tmp_path / "clean.png")
    plot_scores({key: {**one, "typos": {"50": noisy}} for key, one in clean.items()}, tmp_path / "noisy.png")
    sizes = [width_and_height((tmp_path / name).read_bytes()) for name in ("clean.png", "noisy.png")]
    assert sizes[1] == (sizes[0][0], 2 * sizes[0][1])
