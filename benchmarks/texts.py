"""Real sentences to measure with."""

from __future__ import annotations

from pathlib import Path

from benchmarks.measure import ROOT


def sentences(data: Path | None, count: int) -> list[str]:
    """The first `count` sentences of the similarity sets under `data`, or this repository's own prose, repeated."""
    found: list[str] = []
    if data is not None and data.is_dir():
        for file in sorted(data.glob("sts*/*.tsv")):
            for line in file.read_text(encoding="utf-8").split("\n"):
                found += line.split("\t")[1:]
    if not found:
        files = [ROOT / "LICENSE", *sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").glob("*.md"))]
        found = [
            line.strip() for file in files for line in file.read_text(encoding="utf-8").split("\n") if line.strip()
        ]
    return (found * (count // len(found) + 1))[:count]
