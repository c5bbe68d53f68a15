"""Put the figures of benchmarks/results into the README: python -m benchmarks.readme [--check]

Each block stands between <!-- name --> and <!-- /name -->; nothing else in the README is touched.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from typing import Any

import orjson

from benchmarks.measure import ROOT

README = ROOT / "README.md"
RESULTS = ROOT / "benchmarks" / "results"
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
    lines = ["| per CPU second, one thread | | ratio |", "| --- | --- | --- |"]
    for part, unit in (("features", "texts"), ("runtime", "texts"), ("http_1", "requests of 1 text"),
                       ("http_32", "requests of 32 texts"), ("training", "pairs")):  # fmt: skip
        lines += [
            f"| {part.split('_')[0]}: {row['name']} | {row['per_cpu_second']:,.0f} {unit} | {row['ratio']:.2f} |"
            for row in results[part]
        ]
    note = f"{where['processor']}; Python {where['python']}; {where['packages']}; commit {where['commit']}."
    return "\n".join([*lines, "", f"Ratios are to the first row of each group, in the same run. {note}"])


def _json(path: Any) -> Any:
    return orjson.loads(path.read_bytes())


BLOCKS: dict[str, Callable[[], str]] = {"models": models, "scores": scores, "speed": speed}


def filled(text: str) -> str:
    """The README's text with its blocks made anew."""
    for name, make in BLOCKS.items():
        pattern = re.compile(rf"(<!-- {name} -->\n).*?(<!-- /{name} -->)", re.DOTALL)
        block = make()
        text, found = pattern.subn(lambda match, block=block: f"{match[1]}{block}\n{match[2]}", text)  # type: ignore[misc]
        if found != 1:
            raise SystemExit(f"README.md must have one <!-- {name} --> block")
    return text


if __name__ == "__main__":
    before = README.read_text(encoding="utf-8")
    after = filled(before)
    if "--check" in sys.argv:
        sys.exit("README.md is not up to date: run python -m benchmarks.readme" if before != after else 0)
    README.write_text(after, encoding="utf-8")
