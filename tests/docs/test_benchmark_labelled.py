"""python -m benchmarks.labelled, over tables of a few rows."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from benchmarks import labelled

MAKERS = ("canon", "nikon", "sony", "casio", "fuji", "leica")


def _write(path: Path, rows: list[list[object]]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows(rows)


def test_the_table_has_a_row_a_set_and_width(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "dev" / "matching" / "cameras"
    folder.mkdir(parents=True)
    names = [(maker, 100 + 37 * n) for maker in MAKERS for n in range(4)]
    _write(folder / "left.csv", [["id", "name"], *([n, f"{m} sd{k}"] for n, (m, k) in enumerate(names))])
    _write(folder / "right.csv", [["id", "name"], *([n, f"camera {m} sd-{k} black"] for n, (m, k) in enumerate(names))])
    same = [[n, n, 1] for n in range(len(names))]
    other = [[n, (n + 1) % len(names), 0] for n in range(len(names))]
    for part in ("train", "valid", "test"):
        _write(folder / f"{part}.csv", [["left", "right", "match"], *same, *other])
    monkeypatch.setattr(labelled, "SETS", ("cameras",))
    monkeypatch.setattr(labelled, "COLUMNS", (64, 128))
    monkeypatch.setattr(labelled, "COLUMNS_OF", {"cameras": ("name",)})
    monkeypatch.setattr("sys.argv", ["labelled", "--data", str(tmp_path)])
    labelled.run()
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in capsys.readouterr().out.splitlines()]
    assert [row[:2] for row in rows[2:]] == [["cameras", "64"], ["cameras", "128"]]
    for row in rows[2:]:
        assert float(row[3]) >= 90
        assert all(0 <= float(cell) <= 100 for cell in row[2:5])
