"""python -m benchmarks.plot: scaling and quality over speed, from benchmarks/results into docs/images."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib
import orjson

from benchmarks.measure import ROOT

matplotlib.use("Agg")

from matplotlib import pyplot

FOLDER = ROOT / "benchmarks" / "results"
RESULTS = FOLDER / "cpu.json"
IMAGE = ROOT / "docs" / "images" / "scaling.png"
TRADEOFF = ROOT / "docs" / "images" / "quality.png"
OURS = ("gramvec-en", "charagram-phrase", "paragram-phrase", "sif")
TASKS = ("sts12", "sts16", "sick")
MISSPELT = "50"  # per cent of the words
BELOW = ("charagram-phrase", "sif")  # where their names have room
AXES = {
    "scaling_length": "characters a text",
    "scaling_batch": "texts a call",
    "scaling_vocabulary": "rows of the table",
    "scaling_dimension": "columns of the table",
}


def draw(results: dict[str, Any], path: Path) -> None:
    """Four panels over logarithmic axes: CPU microseconds a text, logarithmic too for the length.

    Raises SystemExit if the results have no scaling.
    """
    groups = results["parts"].get("scaling", {"groups": {}})["groups"]
    if set(groups) != set(AXES):
        raise SystemExit("the results have no scaling: run python -m benchmarks --only scaling --json FILE first")
    figure, panels = pyplot.subplots(1, 4, figsize=(14, 3.4), layout="constrained")
    for panel, (name, label) in zip(panels, AXES.items(), strict=True):
        rows = groups[name]["rows"]
        panel.plot([row["x"] for row in rows], [row["us_per_text"] for row in rows], marker="o")
        panel.set_xscale("log")
        if name == "scaling_length":
            panel.set_yscale("log")
        else:
            panel.set_ylim(bottom=0)
        panel.set_xlabel(label)
        panel.grid(visible=True, which="both", alpha=0.3)
    panels[0].set_ylabel("CPU microseconds a text")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110, metadata={"Software": None})  # the same results, the same bytes
    pyplot.close(figure)


def tradeoff(quality: dict[str, Any], speed: dict[str, Any]) -> dict[str, tuple[float, float, float]]:
    """System -> texts a CPU second, and Pearson x 100, the mean over three tasks, clean and misspelt."""
    rows = speed["parts"]["tradeoff"]["groups"]["tradeoff"]["rows"]
    rates = {row["name"]: row["per_cpu_second"] for row in rows}
    found = {}
    for name, report in quality["reports"].items():
        if name in rates:
            kinds = (report["tasks"], report["typos"][MISSPELT])
            clean, misspelt = (sum(kind[task]["mean"]["pearson"] for task in TASKS) / len(TASKS) for kind in kinds)
            found[name] = (rates[name], clean, misspelt)
    return found


def draw_tradeoff(points: dict[str, tuple[float, float, float]], path: Path) -> None:
    """Quality over speed: a filled point for clean text, an open one for misspelt text, for each system."""
    figure, panel = pyplot.subplots(figsize=(8, 4), layout="constrained")
    for name, (rate, clean, misspelt) in points.items():
        colour = "tab:blue" if name in OURS else "tab:orange"
        panel.plot([rate, rate], [clean, misspelt], color=colour, alpha=0.4)
        panel.plot(rate, clean, marker="o", color=colour, linestyle="none")
        panel.plot(rate, misspelt, marker="o", color=colour, linestyle="none", fillstyle="none")
        place = (-4, -12) if name in BELOW else (-4, 5)
        panel.annotate(name, (rate, clean), xytext=place, textcoords="offset points", fontsize=8, ha="right")
    panel.set_xscale("log")
    panel.margins(0.12)
    panel.set_xlabel("texts a CPU second, one thread")
    panel.set_ylabel("Pearson x 100: sts12, sts16, SICK")
    panel.set_title("filled: as it is; open: half of the words misspelt", fontsize=9)
    panel.grid(visible=True, which="both", alpha=0.3)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110, metadata={"Software": None})
    pyplot.close(figure)


if __name__ == "__main__":
    draw(orjson.loads(RESULTS.read_bytes()), IMAGE)
    read = {name: orjson.loads((FOLDER / f"{name}.json").read_bytes()) for name in ("quality", "tradeoff")}
    draw_tradeoff(tradeoff(read["quality"], read["tradeoff"]), TRADEOFF)
