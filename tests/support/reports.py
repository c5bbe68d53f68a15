"""A report with every section, of made-up data, and what a page holds."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from gramvec.jobs.report import (
    Calibration,
    ComparedValue,
    Confusion,
    DuplicateGroup,
    GroupSizes,
    JobReport,
    LabeledText,
    LearningPoint,
    Pair,
    PairList,
    ScoreComparison,
    ScoreHistogram,
    Table,
    TextList,
    ValuePair,
)

HOSTILE = "</script><img src=x onerror=\"document.title='owned'\">\u2028"


def report_of(page: Path) -> dict[str, Any]:
    """Return what the page of a report has as JSON."""
    data = page.read_text(encoding="utf-8").split('<script type="application/json" id="data">')[1]
    found: dict[str, Any] = json.loads(data.split("</script>")[0])
    return found


def whole_report() -> JobReport:
    columns = [ValuePair.mark("name", "Acme Ltd 12", "ACME 13"), ValuePair.mark("city", "", HOSTILE)]
    pairs = [Pair(0.52, "row 1", "id 7", columns)]
    scores = [0.9] * 60 + [0.4] * 40 + [0.05] * 900
    return JobReport(
        "Matches of left.csv and right.csv", "Of 1,000 rows 60 have a match.",
        [("command", "gramvec match left.csv right.csv --report report.html"), ("time", "1.2 s")],
        comparisons=[ScoreComparison("Scores", [ComparedValue("set", "one", 81.2), ComparedValue("set", "two", 79.0)],
                                Table("Scores", ["", "one", "two"], [["set", "81.2/80.1", "79.0/-"]]))],
        scores=ScoreHistogram.from_scores(scores, 0.5),
        pairs=[PairList("Around the threshold", "The pairs nearest to it.", pairs), PairList("Wrong", "None.", [])],
        groups=GroupSizes([(2, 3), (5, 1)], [DuplicateGroup("Acme", ["ACME", HOSTILE], 5)]),
        calibration=Calibration.from_answers([0.9, 0.9, 0.2, 0.2], [True, True, False, True]),
        confusion=Confusion.from_answers(["a", "b", HOSTILE], ["x", "x", "y"], ["x", "y", "y"], [0.9, 0.4, 0.8]),
        learning=[LearningPoint(10, 0.5), LearningPoint(100, 0.75)],
        texts=[TextList("Below the threshold", "They are unknown.", [LabeledText("a text", "x", "y", 0.2)])],
        tables=[Table("Sizes", ["name", "rows"], [["left", "1,000"]])],
    )  # fmt: skip


def large_report(rows: int) -> JobReport:
    scores = np.random.default_rng(1).random(rows)
    pairs = [Pair(float(score), f"row {at}", f"row {at + 1}", [ValuePair.mark("name", "x" * 900, "y" * 900)])
             for at, score in enumerate(scores[:90])]  # fmt: skip
    return JobReport(
        "Large", "Much.", [], scores=ScoreHistogram.from_scores(scores, 0.5), pairs=[PairList("Pairs", "", pairs)]
    )
