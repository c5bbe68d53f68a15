"""`gramvec match --report`: the page has the run, all scores and the pairs to look at, and is an output like others."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gramvec.jobs.matching.fields import Field
from gramvec.jobs.matching.match_tables import match_fields
from gramvec.jobs.matching.report import match_report
from support.bulk import gramvec_command
from support.errors import assert_names

pytest.importorskip("sparse_dot_topn", reason="gramvec match needs SciPy: pip install 'gramvec[match]'")

NAMES = ["canon powershot sd1100", "nikon coolpix s8100", "sony bravia 40 inch", "bose quiet comfort 15", "dell xps 13"]
OTHERS = ["canon power shot sd1100", "nikon s8100 coolpix", "sony bravia 46 inch", "bose quietcomfort", "asus rog 13"]


@pytest.fixture
def tables(tmp_path: Path) -> tuple[Path, Path]:
    made = tmp_path / "left.csv", tmp_path / "right.csv"
    for path, names in zip(made, (NAMES, OTHERS), strict=True):
        with path.open("w", newline="") as file:
            csv.writer(file).writerows([["id", "name"], *([f"r{at}", name] for at, name in enumerate(names))])
    return made


def match(*arguments: object) -> tuple[int, str, str]:
    done = gramvec_command("match", *arguments)
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def data_of(page: Path) -> dict[str, Any]:
    data = page.read_text(encoding="utf-8").split('<script type="application/json" id="data">')[1]
    found: dict[str, Any] = json.loads(data.split("</script>")[0])
    return found


def test_the_page_shows_the_run_and_the_pairs(tables: tuple[Path, Path], tmp_path: Path) -> None:
    page = tmp_path / "matches.html"
    code, written, messages = match(*tables, "--on", "name", "--report", page)
    assert code == 0
    assert f"{page} shows what was done" in messages
    report = data_of(page)
    facts = dict(report["facts"])
    assert facts["command"] == f"gramvec match {tables[0]} {tables[1]} --on name --report {page}"
    assert facts["model"].startswith("pair model two_tables, SHA-256 ")
    assert facts["rows"] == f"5 of {tables[0]}; 5 of {tables[1]}"
    assert sum(report["scores"]["counts"]) >= len(written.splitlines()) - 1
    assert [one["title"] for one in report["pairs"]] == ["Around the threshold", "Likeliest wrong", "Surest"]
    pair = report["pairs"][2]["pairs"][0]
    assert pair["left"][0] == "r"
    assert [column["name"] for column in pair["columns"]] == ["name"]
    assert "".join(text for text, _ in pair["columns"][0]["left"]) in NAMES
    assert report["summary"] in messages.replace(str(tables[0]), tables[0].name)


def test_a_second_run_replaces_the_page_and_nothing_else(tables: tuple[Path, Path], tmp_path: Path) -> None:
    page = tmp_path / "matches.html"
    for _ in range(2):
        assert match(*tables, "--on", "name", "--report", page)[0] == 0
    page.write_text("mine")
    assert_names(match(*tables, "--on", "name", "--report", page)[2], str(page), "did not write")
    assert page.read_text() == "mine"
    for other in ("matches.pdf", "-"):
        code, written, messages = match(*tables, "--on", "name", "--report", other)
        assert (code, written) == (2, "")
        assert ".html" in messages


def test_pairs_of_one_table_are_shown_once(tables: tuple[Path, Path], tmp_path: Path) -> None:
    page = tmp_path / "matches.html"
    with tables[0].open("a") as file:
        file.write("r9,canon powershot sd1100 camera\n")
    assert match(tables[0], tables[0], "--on", "name", "--threshold", "0", "--report", page)[0] == 0
    report = data_of(page)
    assert dict(report["facts"])["model"].startswith("pair model one_table, ")
    for shown in report["pairs"]:
        pairs = [tuple(sorted([one["left"], one["right"]])) for one in shown["pairs"]]
        assert len(set(pairs)) == len(pairs)
        assert all(left != right for left, right in pairs)


def test_what_speaks_against_a_pair_is_noted() -> None:
    left = ["canon ink 18 black", "canon ink 18 cyan", "a plain text"]
    right = ["canon ink 19 black", "canon ink 18 cyan", "another matter"]
    fields = [Field(left, right, 1.0)]
    matched = match_fields(fields, threshold=0.0)
    report = match_report(
        matched, fields, [("name", "title")], (list("abc"), list("xyz")), title="t", summary="s", facts=[]
    )
    assert report.scores is not None
    assert sum(report.scores.counts) == len(matched.candidates.scores)
    wrong = report.pairs[1].pairs
    notes = {(pair.left, pair.right): pair.note for pair in wrong}
    assert "the numbers differ" in notes["a", "x"]
    assert wrong[0].columns[0].name == "name = title"


def test_without_candidates_the_lists_are_empty() -> None:
    fields = [Field(["", "abc"], ["", "xyz"], 1.0)]
    report = match_report(
        match_fields(fields), fields, [("name", "name")], (list("ab"), list("xy")), title="t", summary="s", facts=[]
    )
    assert [len(one.pairs) for one in report.pairs] == [0, 0, 0]


@pytest.mark.parametrize("same", [False, True])
def test_as_many_rows_as_a_page_may_have_stay_small(same: bool) -> None:
    random = np.random.default_rng(0)
    left, right = ([f"item {number} of {number % 97}" for number in random.integers(0, 9_000, 3_000)] for _ in range(2))
    fields = [Field(left, left if same else right, 1.0)]
    ids = [str(at) for at in range(3_000)]
    report = match_report(
        match_fields(fields, same=same), fields, [("name", "name")], (ids, ids), title="t", summary="s", facts=[],
        same=same,
    )  # fmt: skip
    assert all(len(one.pairs) <= 60 for one in report.pairs)
