"""Real sentences to measure with."""

from __future__ import annotations

from pathlib import Path

from benchmarks.measure import ROOT

SHORTEST = 50  # characters; the sentences of the similarity sets that are left have 91 on average


def sentences(data: Path | None, count: int) -> list[str]:
    """`count` different sentences of the similarity sets under `data`, or this repository's own prose.

    Where there are fewer, they are repeated.
    """
    found: list[str] = []
    if data is not None and data.is_dir():
        for file in sorted(data.glob("sts*/*.tsv")):
            for line in file.read_text(encoding="utf-8").split("\n"):
                found += line.split("\t")[1:]
    if not found:
        files = [ROOT / "LICENSE", *sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").glob("*.md"))]
        found = [line.strip() for file in files for line in file.read_text(encoding="utf-8").split("\n")]
    kept = list(dict.fromkeys(text for text in found if len(text) >= SHORTEST))
    return (kept * (count // len(kept) + 1))[:count]
