"""`gramvec dedupe --report`: the page has all scores, the pairs to look at, and the groups with what stays."""

from __future__ import annotations

from pathlib import Path

import pytest

import gramvec
from support.bulk import MODEL, gramvec_command
from support.reports import report_of

pytest.importorskip("scipy", reason="gramvec dedupe needs SciPy: pip install 'gramvec[match]'")

LINES = ["Kingston SSD 2TB drive", "Kingston SSD 4TB drive", "bananas", "Kingston SSD 2 TB drive", *["bananas"] * 30]


def test_the_page_shows_pairs_and_groups(tmp_path: Path) -> None:
    source, page = tmp_path / "lines.txt", tmp_path / "page.html"
    source.write_text("\n".join(LINES) + "\n")
    done = gramvec_command("dedupe", source, "--keep", "longest", "--unique", tmp_path / "kept.txt", "--report", page)
    assert done.returncode == 0, done.stderr
    report = report_of(page)
    assert report["title"] == "Duplicates in lines.txt"
    assert report["summary"].startswith("31 of 34 lines repeat one that stays; 1 pair of different lines")
    assert dict(report["facts"])["rows"] == f"34 of {source}"
    assert sum(report["scores"]["counts"]) == 2
    assert report["groups"]["sizes"] == [[2, 1], [31, 1]]
    largest, pair = report["groups"]["largest"]
    assert (largest["kept"], largest["rows"], len(largest["others"])) == ("line 3: bananas", 31, 20)
    assert pair == {"kept": "line 4: Kingston SSD 2 TB drive", "others": ["line 1: Kingston SSD 2TB drive"], "rows": 2}
    surest = report["pairs"][2]["pairs"]
    assert [(one["left"], one["right"]) for one in surest] == [("line 1", "line 4")]


def test_a_threshold_leaves_the_candidates_below_it(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    text = "\n".join(LINES).encode()
    done = gramvec_command("dedupe", "--threshold", "1", "--report", page, stdin=text)
    assert done.returncode == 0, done.stderr
    report = report_of(page)
    assert report["title"] == "Duplicates in standard input"
    assert sum(report["scores"]["counts"]) == 2
    assert report["pairs"][2]["pairs"] == []


def test_lines_beside_the_documents_of_an_index(tmp_path: Path) -> None:
    index = gramvec.Index.build(tmp_path / "known.index", LINES[:3], model=gramvec.load(MODEL, device="cpu"))
    page = tmp_path / "page.html"
    text = b"Kingston SSD  2TB drive.\nnew thing\nKingston SSD 8TB drive\n"
    done = gramvec_command("dedupe", "--against", index.path, "--threshold", "0.9", "--report", page, stdin=text)
    assert done.returncode == 0, done.stderr
    report = report_of(page)
    assert report["summary"] == "1 of 3 lines have a document that is probably the same thing, at the threshold 0.900."
    assert report["title"] == f"Lines of standard input in {index.path}"
    around, _, surest = report["pairs"]
    assert [(one["left"], one["right"]) for one in surest["pairs"]] == [("line 1", "document 1")]
    # What is below the threshold is shown, too.
    assert {one["left"] for one in around["pairs"]} >= {"line 1", "line 3"}
    assert sum(report["scores"]["counts"]) == len(around["pairs"])
    listed = gramvec_command("dedupe", "--against", index.path, "--threshold", "0.9", stdin=text)
    assert done.stdout == listed.stdout
