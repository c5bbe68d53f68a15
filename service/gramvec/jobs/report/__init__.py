"""Reports: one self-contained page of HTML that shows what a job did, and where it may be wrong."""

from gramvec.jobs.report.differences import Segment, mark_differences
from gramvec.jobs.report.page import render_page, write_page
from gramvec.jobs.report.records import (
    Bar,
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
    count_groups,
)

__all__ = [
    "Bar",
    "Calibration",
    "ComparedValue",
    "Confusion",
    "DuplicateGroup",
    "GroupSizes",
    "JobReport",
    "LabeledText",
    "LearningPoint",
    "Pair",
    "PairList",
    "ScoreComparison",
    "ScoreHistogram",
    "Segment",
    "Table",
    "TextList",
    "ValuePair",
    "count_groups",
    "mark_differences",
    "render_page",
    "write_page",
]
