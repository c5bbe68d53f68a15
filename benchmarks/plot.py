"""python -m benchmarks.plot: the scaling of benchmarks/results/cpu.json as docs/images/scaling.png."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib
import orjson

from benchmarks.measure import ROOT

matplotlib.use("Agg")

from matplotlib import pyplot

RESULTS = ROOT / "benchmarks" / "results" / "cpu.json"
IMAGE = ROOT / "docs" / "images" / "scaling.png"
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


if __name__ == "__main__":
    draw(orjson.loads(RESULTS.read_bytes()), IMAGE)
