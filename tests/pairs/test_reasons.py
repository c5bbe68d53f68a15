"""Why pairs have their scores: contributions as by walking each tree, sums that are the log odds, and what is told."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings

import gramvec
from gramvec.errors import InputError
from gramvec.jobs.duplicates.job import DedupeJob
from gramvec.jobs.matching.job import MatchJob
from gramvec.jobs.pairs.figures import NAMES
from gramvec.jobs.pairs.model import one_table_model, two_table_model
from gramvec.jobs.pairs.reasons import PairReasons
from gramvec.jobs.pairs.trees import Trees
from support.errors import refused
from support.rows import COLUMNS, Rows, tables

pytest.importorskip("sparse_dot_topn", reason="gramvec match needs SciPy: pip install 'gramvec[match]'")

PEOPLE = [
    {"name": "Anna Schmidt", "town": "Berlin", "phone": "030 1234567"},
    {"name": "Ana Schmidt", "town": "Berlin", "phone": "+49 30 1234567"},
    {"name": "Pat O'Neil", "town": "Paris", "phone": "555-0142"},
    {"name": "Pat O'Neil", "town": "Paris", "phone": "555-0199"},
    {"name": "Wei Zhang", "town": "Paris", "phone": ""},
]


def walk(trees: Trees, figures: np.ndarray) -> tuple[float, np.ndarray]:
    """Return what no figure and what each adds, by recursion."""

    def middle(node: int) -> float:
        if trees.feature[node] < 0:
            return float(trees.value[node])
        return (middle(trees.below[node]) + middle(trees.above[node])) / 2

    start, added = trees.base, np.zeros(len(figures))
    for node in trees.starts[:-1].tolist():
        start += middle(node)
        while trees.feature[node] >= 0:
            figure = figures[trees.feature[node]]
            down = trees.missing[node] == 1 if np.isnan(figure) else figure <= trees.cut[node]
            after = int((trees.below if down else trees.above)[node])
            added[trees.feature[node]] += middle(after) - middle(node)
            node = after
    return start, added


def test_a_decision_adds_what_its_branch_is_worth_more_than_the_mean_of_both():
    arrays = [
        [0, -1, 1, -1, -1],
        [0.5, 0, 7, 0, 0],
        [1, 0, 3, 0, 0],
        [2, 0, 4, 0, 0],
        [1, 0, 0, 0, 0],
        [0, -1, 0, 2, 4],
    ]
    types = (np.int32, np.float64, np.int32, np.int32, np.uint8, np.float64)
    trees = Trees(
        0.25, np.array([0, 5], np.int32), *(np.array(one, kind) for one, kind in zip(arrays, types, strict=True))
    )
    # The root is worth (-1 + (2 + 4) / 2) / 2 = 1.
    assert trees.start == 1.25
    figures = np.array([[0.5, 9], [0.6, 7], [0.6, np.nan], [np.nan, 0]], np.float32)
    assert trees.contributions(figures).tolist() == [[-2, 0], [2, -1], [2, 1], [-2, 0]]


@pytest.mark.parametrize("model", [two_table_model, one_table_model])
def test_contributions_are_as_by_walking_each_tree_and_sum_to_the_log_odds(model):
    trees = model().trees
    drawn = np.random.default_rng(3)
    figures = drawn.normal(0.5, 1, (6, len(NAMES))).astype(np.float32)
    figures[drawn.random(figures.shape) < 0.2] = np.nan
    added = trees.contributions(figures)
    np.testing.assert_allclose(trees.start + added.sum(axis=1), trees.sums(figures), atol=1e-9)
    for row, expected in zip(figures, added, strict=True):
        start, slowly = walk(trees, row)
        assert start == pytest.approx(trees.start)
        np.testing.assert_allclose(expected, slowly, atol=1e-9)


def score_of(reasons: PairReasons) -> float:
    return float(1 / (1 + np.exp(-(reasons.start + sum(reason.adds for reason in reasons.reasons)))))


@settings(max_examples=8, deadline=None)
@given(tables, tables)
def test_reasons_sum_to_the_score(left: Rows, right: Rows) -> None:
    found = gramvec.match(left, right, on=COLUMNS, threshold=0.0)
    told = gramvec.explain_pairs(left, right, found, on=COLUMNS)
    assert [score_of(one) for one in told] == pytest.approx(found.scores.tolist(), abs=1e-4)
    pairs = gramvec.dedupe(left, on=COLUMNS, threshold=0.0).pairs
    told = gramvec.explain_pairs(left, left, pairs, on=COLUMNS)
    # Equal rows have 1 there, and at least 0.99 by the model.
    assert [score_of(one) for one in told] == pytest.approx(pairs.scores.tolist(), abs=0.0101)
    for one in told:
        for reason in one.reasons:
            if reason.about in COLUMNS and reason.says in ("equal", "nearly equal"):
                assert reason.adds > 0
            if reason.about in COLUMNS and reason.says == "contradicts":
                assert reason.adds < 0


def test_what_counts_is_told_by_column():
    alike, differ = gramvec.explain_pairs(PEOPLE, PEOPLE, [(0, 1), (3, 2)], on=["name", "town", "phone"])
    assert "phone: equal" in alike.tell(against=False) and "phone" not in alike.tell(against=True)
    assert "phone: contradicts" in differ.tell(against=True) or "phone: different" in differ.tell(against=True)
    assert "name: equal" in differ.tell(against=False)
    longer, shorter = ["the hobbit an unexpected journey extended", "dune"], ["the hobbit part two", "dune"]
    (lacking,) = gramvec.explain_pairs(longer, shorter, [(0, 0)])
    assert "words: only one row has an unexpected journey extended" in lacking.tell(against=True)


def test_equal_rows_and_pairs_that_were_not_compared():
    names = ["Acme Ltd", "acme, ltd.", "", "Beta Inc"]
    equal, empty, both = gramvec.explain_pairs(names, names, [(0, 1), (2, 3), (0, 0)])
    assert [reason.about for reason in equal.reasons] == [reason.about for reason in both.reasons] == ["equal rows"]
    assert not empty.reasons and not empty.tell(against=False)
    assert gramvec.explain_pairs(names, names, []) == []
    with refused(InputError, "0 to 3", field="pairs"):
        gramvec.explain_pairs(names, names, [(0, 4)])


def test_lists_and_pages_tell_what_counted(tmp_path: Path) -> None:
    with (tmp_path / "people.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, ["name", "town", "phone"])
        writer.writeheader()
        writer.writerows(PEOPLE)
    people, on = tmp_path / "people.csv", ["name", "town", "phone"]
    shown = {"on": on, "threshold": 0.01, "explain": True}
    DedupeJob(source=people, output=tmp_path / "pairs.jsonl", report=tmp_path / "d.html", **shown).run()
    told = {tuple(row["lines"]): row for row in map(json.loads, (tmp_path / "pairs.jsonl").read_text().splitlines())}
    assert "phone: equal" in told[2, 3]["counts_for"] and "phone" in told[4, 5]["counts_against"]
    assert "Against: " in (tmp_path / "d.html").read_text()
    MatchJob(
        left=people, right=people, output=tmp_path / "m.csv", unmatched=True, report=tmp_path / "m.html", **shown
    ).run()
    rows = list(csv.DictReader((tmp_path / "m.csv").read_text().splitlines()))
    assert [*rows[0]][-2:] == ["counts_for", "counts_against"]
    assert all(bool(row["counts_for"]) == bool(row["score"]) for row in rows)
    assert "For: " in (tmp_path / "m.html").read_text()
    for options in ({"groups": True}, {"by": "meaning", "threshold": 0.8}, {"against": people}, {"output": None}):
        with refused(InputError, "explain", field="explain"):
            DedupeJob(**{"source": people, "output": tmp_path / "x.csv", "explain": True} | options)
