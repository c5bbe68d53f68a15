"""Which row stays for each that goes: in Python, in a file, with the score of both."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

import gramvec
from gramvec.errors import InputError
from gramvec.jobs import DedupeJob
from gramvec.jobs.common.file_job import OptionError
from support.errors import refused

pytest.importorskip("sparse_dot_topn", reason="gramvec dedupe needs SciPy: pip install 'gramvec[match]'")

NAMES = ["Oaks Nursery", "bananas", "Oak Nursery", "bananas", "", "Oaks  Nursery", "Oaks Nurserys", "pears"]
PEOPLE = "id,name\n" + "".join(f"p{row},{name}\n" for row, name in enumerate(NAMES))


@pytest.mark.parametrize("keep", ["first", "longest", "frequent"])
def test_each_row_that_goes_has_the_row_that_stays_and_their_score(keep: str) -> None:
    found = gramvec.dedupe(NAMES, keep=keep, threshold=0.3)  # type: ignore[arg-type]
    pairs = zip(*(part.tolist() for part in found.pairs), strict=True)
    scores = {(left, right): score for left, right, score in pairs}
    assert found.map.rows.tolist() == found.dropped.tolist() and len(found.map.rows) >= 3
    for row, kept, score in zip(
        found.map.rows.tolist(), found.map.kept.tolist(), found.map.scores.tolist(), strict=True
    ):
        assert kept in found.kept.tolist() and found.stays[row] == kept
        assert scores[min(row, kept), max(row, kept)] == score
    frame = found.map.to_pandas()
    assert list(frame.columns) == ["row", "kept_row", "score"] and frame["kept_row"].tolist() == found.map.kept.tolist()


def test_rows_without_duplicates_have_an_empty_map() -> None:
    for rows in ([], ["a"], ["", ""]):
        assert len(gramvec.dedupe(rows).map.rows) == 0


def test_the_map_is_written(tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    path.write_text(PEOPLE)
    result = DedupeJob(source=path, on=["name"], map=tmp_path / "map.csv", keep="longest", threshold=0.3).run()
    assert result.duplicates is not None
    found = result.duplicates.map
    with (tmp_path / "map.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [(row["id"], row["kept_id"]) for row in rows] == [
        (f"p{row}", f"p{kept}") for row, kept in zip(found.rows.tolist(), found.kept.tolist(), strict=True)
    ]
    assert [(row["line"], row["kept_line"]) for row in rows] == [
        (str(row + 2), str(kept + 2)) for row, kept in zip(found.rows.tolist(), found.kept.tolist(), strict=True)
    ]
    assert [float(row["score"]) for row in rows] == [round(score, 4) for score in found.scores.tolist()]
    assert found.to_polars()["kept_id"].to_list() == [row["kept_id"] for row in rows]
    lines = tmp_path / "lines.txt"
    lines.write_text("bananas\npears\nbananas\n")
    DedupeJob(source=lines, map=tmp_path / "map.jsonl").run()
    assert (tmp_path / "map.jsonl").read_text() == '{"line":3,"kept_line":1,"score":1.0}\n'


def test_what_cannot_be_is_refused(tmp_path: Path) -> None:
    with refused(OptionError, "map", "against", field="map"):
        DedupeJob(source="a.txt", map="a.csv", against=tmp_path)
    with refused(InputError, "a.txt", ".csv"):
        DedupeJob(source="a.csv", map="a.txt")
    source = tmp_path / "a.csv"
    source.write_text("text\na\n")
    with refused(InputError, "two outputs"):
        DedupeJob(source=source, map=tmp_path / "m.csv", unique=tmp_path / "m.csv").run()
