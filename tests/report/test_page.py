from __future__ import annotations

import base64
import hashlib
import json
import os
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from gramvec.jobs.report import Calibration, Confusion, ScoreHistogram, render_page, write_page
from gramvec.jobs.report.page import to_json
from gramvec.jobs.report.records import BINS, count_groups
from support.reports import HOSTILE, large_report, whole_report


def test_scores_are_counted_by_thousandths():
    histogram = ScoreHistogram.from_scores([0.0, 0.0004, 0.001, 0.9995, 1.0, np.nan, 1.2, -3], 0.5)
    assert sum(histogram.counts) == 8
    assert (histogram.counts[0], histogram.counts[1], histogram.counts[BINS - 1]) == (4, 1, 3)
    assert sum(ScoreHistogram.from_scores([], 0.5).counts) == 0


def test_a_score_at_the_threshold_is_counted_with_those_above():
    """The float32 nearest to 0.35 lies below the float64, so its thousandth, cut off, would be 0.349."""
    for threshold in np.arange(1, BINS) / BINS:
        scores = np.float32([threshold, np.nextafter(np.float32(threshold), np.float32(0))])
        histogram = ScoreHistogram.from_scores(scores, threshold)
        assert histogram.above == sum(histogram.counts[round(threshold * BINS) :]) == 1
    within = ScoreHistogram.from_scores(np.float32([0.4696, 0.4698, 0.4699]), 0.4698)
    assert (within.above, within.counts[469]) == (2, 3)


def test_calibration_by_hand():
    found = Calibration.from_answers([0.9, 0.9, 0.2, 0.2], [True, True, False, True])
    assert [(one.score, one.right, one.count) for one in found.bins] == [(0.2, 0.5, 2), (0.9, 1.0, 2)]
    assert found.error == pytest.approx((0.3 * 2 + 0.1 * 2) / 4)


def test_confusion_has_the_labels_that_are_confused_most():
    found = Confusion.from_answers(["t1", "t2", "t3", "t4"], ["a", "a", "b", "c"], ["a", "b", "b", "c"], [1, 0.5, 1, 1])
    assert (found.labels, found.counts) == (["a", "b"], [[1, 1], [0, 1]])
    assert [(one.text, one.label, one.answer) for one in found.examples] == [("t2", "a", "b")]
    assert count_groups([2, 3, 2]) == [(2, 2), (3, 1)]


def test_texts_stay_texts():
    page = render_page(whole_report())
    data = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
    assert data is not None
    assert "\u2028" not in data[1]
    assert json.loads(data[1])["groups"]["largest"][0]["others"][1] == HOSTILE
    assert "<img" not in page


def test_the_policy_names_every_script():
    page = render_page(whole_report())
    scripts = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
    assert len(scripts) == 4
    for script in scripts:
        assert base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() in page[:2000]
    assert "http://" not in re.sub(r"http://www\.w3\.org/\S+", "", page)


def test_a_page_replaces_the_file_in_one_step(tmp_path: Path):
    path = tmp_path / "report.html"
    path.write_text("before")
    write_page(whole_report(), path)
    assert path.read_text().startswith("<!doctype html>")
    assert [one.name for one in tmp_path.iterdir()] == ["report.html"]


def test_a_page_of_a_large_job_is_small():
    assert len(render_page(large_report(100_000)).encode()) < 3_000_000


def test_a_name_that_is_not_utf_8_is_quoted():
    name = os.fsdecode(b"caf\xe9.csv")
    report = replace(whole_report(), title=name, summary=f"{name} \ud800", facts=[("rows", name)])
    page = render_page(report)
    assert "<title>caf\\xe9.csv</title>" in page
    data = json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)[1])
    assert data["facts"] == [["rows", "caf\\xe9.csv"]] and data["summary"] == "caf\\xe9.csv \\ud800"
    assert data["groups"] == json.loads(to_json(whole_report()))["groups"]
