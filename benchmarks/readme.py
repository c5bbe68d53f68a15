"""Writes the figures of benchmarks/results into pages: python -m benchmarks.readme [--check].

README.md and docs/deploy.md have blocks between <!-- name --> and <!-- /name -->; benchmarks/results/README.md is
written whole.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import orjson

from benchmarks import quality
from benchmarks.measure import ROOT
from benchmarks.results import number

README = ROOT / "README.md"
DEPLOY = ROOT / "docs" / "deploy.md"
RESULTS = ROOT / "benchmarks" / "results"
ALL = RESULTS / "README.md"
# The README's rows of speed: a description, and a row of a group, which stands beside another row of that group.
SHOWN = (
    ("texts embedded a CPU second", "embedder", "gramvec-en, native", "model2vec"),
    ("one text alone", "latency", "gramvec-en, native", "model2vec"),
    ("pairs learned a CPU second", "training", "lazy Adam (gramvec-train)", "dense Adam (torch)"),
)
MODELS = ("gramvec-en", "gramvec-multi", "charagram-phrase", "paragram-phrase", "sif")
DESCRIPTIONS = {
    "gramvec-en": "n-grams of 2 to 5 characters and whole words in one table, summed; the default",
    "gramvec-multi": "words of 42 languages, and n-grams of 1 to 4 characters for words that are not listed",
    "charagram-phrase": "n-grams of 2 to 4 characters, summed, tanh (CHARAGRAM-PHRASE)",
    "paragram-phrase": "word vectors, averaged (PARAGRAM-PHRASE)",
    "sif": "the same word vectors weighted by a / (a + p(w)), common component removed (SIF)",
}


def models() -> str:
    lines = ["| name | what it is | rows | size |", "| --- | --- | --- | --- |"]
    for name in MODELS:
        manifest = _json(ROOT / "models" / name / "manifest.json")
        size = sum(record["bytes"] for record in manifest["files"].values()) / 1e6
        lines.append(f"| `{name}` | {DESCRIPTIONS[name]} | {manifest['rows']:,} | {size:.0f} MB |")
    return "\n".join(lines)


def newest_groups() -> tuple[dict[str, Any], str]:
    """Return the groups of cpu.json with those of a later run of the service, and where both were measured."""
    results = _json(RESULTS / "cpu.json")
    groups, where = _groups(results), _where(results)
    later = RESULTS / "service.json"
    if later.exists():
        found = _json(later)
        groups |= _groups(found)
        where += f" HTTP, memory and the start were measured later: {_where(found)}"
    return groups, where


def speed() -> str:
    groups, _ = newest_groups()
    lines = ["| | gramvec | beside it, in the same run | ratio |", "| --- | --- | --- | --- |"]
    for what, name, ours, beside in SHOWN:
        if name not in groups:
            continue
        rows = {row["name"]: row for row in groups[name]["rows"]}
        other = rows[beside or groups[name]["against"]]
        ratio = rows[ours]["ratio"] / other["ratio"]
        lines.append(f"| {what} | {_figure(rows[ours])} | {_figure(other)}: {other['name']} | {ratio:.2f} |")
    return "\n".join(lines)


def capacity() -> str:
    """Return what one core does and what a replica weighs, for planning."""
    groups, where = newest_groups()
    lines = ["| one core | texts a second |", "| --- | --- |"]
    lines.append(f"| `embed` of the library, 512 texts a call | {_row(groups, 'embedder', MODELS[0])} |")
    for texts in (1, 32, 256):
        row = next(row for row in groups[f"http_{texts}"]["rows"] if row["name"] == "gramvec serve")
        lines.append(f"| HTTP, {texts} text{'s' * (texts > 1)} a request | {texts * row['per_cpu_second']:,.0f} |")
    memory = {row["name"]: row for row in groups["memory"]["rows"]}
    one, two = (memory[f"gramvec serve, native: {name}"] for name in ("1 worker", "2 workers"))
    start = next(row for row in groups["startup"]["rows"] if row["name"] == "gramvec serve, native")
    note = (
        f"One worker has {one['rss_mb']:.0f} MB resident, two have {two['pss_mb']:.0f} MB together; a new replica is "
        f"ready after {start['seconds']:.1f} s. Vectors as JSON, by the server's CPU time. {where}"
    )
    return "\n".join([*lines, "", note])


def everything() -> str:
    """Return benchmarks/results/README.md: each group of the results as a table, and the scores of the models."""
    text = [
        "# All figures",
        "Made by `python -m benchmarks.readme`; [docs/benchmarks.md](../../docs/benchmarks.md) has the method.",
        "## Speed",
    ]
    for path in runs():
        text += _run(_json(path))
    text += ["## Quality", "By `make quality`; [docs/choosing.md](../../docs/choosing.md) says what was scored."]
    return "\n\n".join([*text, quality.tables()]) + "\n"


def runs() -> list[Path]:
    """Return the files of runs whose tables are shown; `make figures` writes all parts to the first."""
    files = (RESULTS / f"{name}.json" for name in ("cpu", "service", "static", "protocol"))
    return [path for path in files if path.exists()]


def _run(results: Any) -> list[str]:
    """Return where a run was made, its groups as tables, and its notes."""
    settings = results["settings"]
    text = [
        f"{settings['texts']:,} texts of {settings['characters'] / settings['texts']:.0f} characters, "
        f"{settings['rounds']} rounds. {_where(results)}"
    ]
    for name, group in _groups(results).items():
        columns = [column for column in group["rows"][0] if column not in ("name", "x")]
        lines = [f"| {name} | " + " | ".join(columns) + " |", "| --- " * (len(columns) + 1) + "|"]
        for row in group["rows"]:
            lines.append(f"| {row['name']} | " + " | ".join(number(row[column]) for column in columns) + " |")
        text += [f"{group['title']}; {group['unit']}.", "\n".join(lines)]
    return text + [note for part in results["parts"].values() for note in part["notes"]]


def _where(results: Any) -> str:
    where = results["machine"]
    return f"{where['processor']}; Python {where['python']}; {where['packages']}; commit {where['commit']}."


def _groups(results: Any) -> dict[str, Any]:
    return {name: group for part in results["parts"].values() for name, group in part["groups"].items()}


def _row(groups: dict[str, Any], group: str, model: str) -> str:
    return _figure(next(row for row in groups[group]["rows"] if row["name"] == f"{model}, native"))


def _figure(row: Any) -> str:
    if "p50_us" in row:
        return f"{row['p50_us']:,.0f} us"
    if "pss_mb" in row:
        return f"{row['pss_mb']:,.0f} MB"
    return f"{row['per_cpu_second']:,.0f}"


def _json(path: Any) -> Any:
    return orjson.loads(path.read_bytes())


BLOCKS: dict[str, Callable[[], str]] = {"models": models, "speed": speed}
PAGES: dict[Path, Mapping[str, Callable[[], str]]] = {README: BLOCKS, DEPLOY: {"capacity": capacity}}


def filled(text: str, blocks: Mapping[str, Callable[[], str]] = BLOCKS) -> str:
    """Return a page's text with its blocks rewritten."""
    for name, make in blocks.items():
        pattern = re.compile(rf"(<!-- {name} -->\n).*?(<!-- /{name} -->)", re.DOTALL)
        block = make()
        text, found = pattern.subn(lambda match, block=block: f"{match[1]}{block}\n{match[2]}", text)  # type: ignore[misc]
        if found != 1:
            raise SystemExit(f"the page must have one <!-- {name} --> block")
    return text


def pages() -> dict[Path, str]:
    """Return every page with its text as it should be."""
    made = {page: filled(page.read_text(encoding="utf-8"), blocks) for page, blocks in PAGES.items()}
    return {**made, ALL: everything()}


if __name__ == "__main__":
    stale = {page: text for page, text in pages().items() if not page.exists() or page.read_text("utf-8") != text}
    if "--check" in sys.argv and stale:
        sys.exit(f"{', '.join(page.name for page in stale)}: not up to date; run python -m benchmarks.readme")
    for page, text in stale.items():
        page.write_text(text, encoding="utf-8")
