"""Put the figures of benchmarks/results into README.md and three pages of docs: python -m benchmarks.readme [--check]

Each block stands between <!-- name --> and <!-- /name -->; nothing else of a page is touched.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import orjson

from benchmarks import capacity, quality
from benchmarks.measure import ROOT
from benchmarks.results import number

README = ROOT / "README.md"
DOCUMENT = ROOT / "docs" / "benchmarks.md"
SCALING = ROOT / "docs" / "scaling.md"
EVALUATION = ROOT / "docs" / "evaluation.md"
IMAGE = ROOT / "docs" / "images" / "scaling.png"
RESULTS = ROOT / "benchmarks" / "results"
# The README's rows of speed: what is done, by which row of which group, beside the first row of that group.
SHOWN = (
    ("vectors a CPU second", "embedder", "gramvec-en (int8, shipped), native"),
    ("one text alone", "latency", "gramvec, native"),
    ("HTTP requests of one text a CPU second", "http_infinity_1", "gramvec serve"),
    ("memory of two workers, shared pages once", "memory", "gramvec serve, native: 2 workers"),
    ("pairs learned a CPU second", "training", "lazy Adam (gramvec-train)"),
)
MODELS = ("gramvec-en", "charagram-phrase", "paragram-phrase", "sif")
DESCRIPTIONS = {
    "gramvec-en": "n-grams of 2 to 5 and whole words in one table, summed; the default",
    "charagram-phrase": "n-grams of 2 to 4, summed, tanh (CHARAGRAM-PHRASE)",
    "paragram-phrase": "word vectors, averaged (PARAGRAM-PHRASE)",
    "sif": "the same word vectors weighted by a / (a + p(w)), the common component removed (SIF)",
}


def models() -> str:
    lines = ["| name | what it is | rows | size |", "| --- | --- | --- | --- |"]
    for name in MODELS:
        manifest = _json(ROOT / "models" / name / "manifest.json")
        size = sum(record["bytes"] for record in manifest["files"].values()) / 1e6
        lines.append(f"| `{name}` | {DESCRIPTIONS[name]} | {manifest['rows']:,} | {size:.0f} MB |")
    return "\n".join(lines)


def scores() -> str:
    reports = list(_json(RESULTS / "scores.json").values())
    tasks = list(reports[0]["tasks"])
    lines = ["| | " + " | ".join(tasks) + " |", "| --- " * (len(tasks) + 1) + "|"]
    for report in reports:
        cells = [f"{report['tasks'][task]['mean']['pearson']:.1f}" for task in tasks]
        lines.append(f"| `{report['name']}` | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def speed() -> str:
    results = _json(RESULTS / "cpu.json")
    where = results["machine"]
    groups = {name: group for name, (_, group) in _groups(results).items()}
    lines = ["| | gramvec | beside it, in the same run | ratio |", "| --- | --- | --- | --- |"]
    for what, name, row_name in SHOWN:
        group = groups[name]
        (row,) = (one for one in group["rows"] if one["name"] == row_name)
        beside = group["rows"][0]
        lines.append(f"| {what} | {_figure(row)} | {_figure(beside)}: {beside['name']} | {row['ratio']:.2f} |")
    note = f"{where['processor']}; Python {where['python']}; {where['packages']}; commit {where['commit']}."
    return "\n".join([*lines, "", f"One thread. {note}"])


def figures() -> str:
    """Every group of the results, a table each, the notes of what was left out, and the picture if there is one."""
    results = _json(RESULTS / "cpu.json")
    where, settings = results["machine"], results["settings"]
    text = [
        f"{settings['texts']:,} texts of {settings['characters'] / settings['texts']:.0f} characters, "
        f"{settings['rounds']} rounds. {where['processor']}; Python {where['python']}; {where['packages']}; "
        f"commit {where['commit']}."
    ]
    for name, (part, group) in _groups(results).items():
        if part == "sequences":  # which has a block of its own
            continue
        columns = [column for column in group["rows"][0] if column not in ("name", "x")]
        lines = [f"| {name} | " + " | ".join(columns) + " |", "| --- " * (len(columns) + 1) + "|"]
        for row in group["rows"]:
            lines.append(f"| {row['name']} | " + " | ".join(number(row[column]) for column in columns) + " |")
        text += [f"{group['title']}; {group['unit']}.", "\n".join(lines)]
    text += [note for part in results["parts"].values() for note in part["notes"]]
    if IMAGE.exists():
        text.append(f"![How time grows]({IMAGE.relative_to(IMAGE.parents[1])})")
    return "\n\n".join(text)


def encoders() -> str:
    """The encoders of the papers: parameters, parity with torch, and rates."""
    results = _json(RESULTS / "encoders.json")
    where, group = results["machine"], results["parts"]["sequences"]["groups"]["encoders"]
    lines = [
        "| encoder | rows a text | parameters | difference | torch | the whole graph | served | served over torch |",
        "| --- " * 8 + "|",
    ]
    for row in group["rows"]:
        columns = ("rows_a_text", "parameters", "torch", "whole_graph", "served", "ratio")
        cells = [number(row[column]) for column in columns]
        cells.insert(2, f"{row['difference']:.0e}")
        lines.append(f"| {row['name']} | " + " | ".join(cells) + " |")
    note = f"{where['processor']}; {where['packages']}; commit {where['commit']}."
    return "\n".join([*lines, "", f"{group['title']}; {group['unit']}. {note}"])


def _groups(results: Any) -> dict[str, tuple[str, Any]]:
    parts = results["parts"].items()
    return {name: (part, group) for part, found in parts for name, group in found["groups"].items()}


def _figure(row: Any) -> str:
    if "p50_us" in row:
        return f"{row['p50_us']:,.0f} us"
    if "pss_mb" in row:
        return f"{row['pss_mb']:,.0f} MB"
    return f"{row['per_cpu_second']:,.0f}"


def _json(path: Any) -> Any:
    return orjson.loads(path.read_bytes())


BLOCKS: dict[str, Callable[[], str]] = {"models": models, "scores": scores, "speed": speed}
PAGES: dict[Path, dict[str, Callable[[], str]]] = {
    README: BLOCKS,
    DOCUMENT: {"figures": figures, "encoders": encoders},
    SCALING: capacity.blocks(),
    EVALUATION: {"quality": quality.tables},
}


def filled(text: str, blocks: Mapping[str, Callable[[], str]] = BLOCKS) -> str:
    """A page's text (the README's) with its blocks made anew."""
    for name, make in blocks.items():
        pattern = re.compile(rf"(<!-- {name} -->\n).*?(<!-- /{name} -->)", re.DOTALL)
        block = make()
        text, found = pattern.subn(lambda match, block=block: f"{match[1]}{block}\n{match[2]}", text)  # type: ignore[misc]
        if found != 1:
            raise SystemExit(f"the page must have one <!-- {name} --> block")
    return text


if __name__ == "__main__":
    stale = []
    for page, blocks in PAGES.items():
        before = page.read_text(encoding="utf-8")
        after = filled(before, blocks)
        if before != after:
            stale.append(page.name)
            if "--check" not in sys.argv:
                page.write_text(after, encoding="utf-8")
    if "--check" in sys.argv and stale:
        sys.exit(f"{', '.join(stale)}: not up to date; run python -m benchmarks.readme")
