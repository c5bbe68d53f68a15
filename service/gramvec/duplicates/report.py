"""Reports of dedupe: all candidates' scores, the pairs to look at, and the groups with the row that stays of each."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gramvec.duplicates.likely import LikelyPairs, Stays
from gramvec.duplicates.rows import DedupeResult
from gramvec.matching.fields import Field
from gramvec.matching.nearest import Matches
from gramvec.matching.report import EQUAL_ROWS, list_pairs
from gramvec.report import DuplicateGroup, GroupSizes, JobReport, ScoreHistogram, count_groups

MAX_GROUPS = 30
# Rows of a group that are shown, and characters of each.
MAX_ROWS, MAX_CHARACTERS = 20, 300


def dedupe_report(
    result: DedupeResult,
    likely: LikelyPairs,
    stays: Stays,
    *,
    title: str,
    column: str,
    facts: Sequence[tuple[str, str]],
) -> JobReport:
    """Return the report of a deduplication.

    Args:
        result: the rows with their pairs.
        likely: those pairs with all candidates.
        stays: which row of a group stays.
        title: the heading.
        column: the name of the compared column.
        facts: what was done and with what.
    """
    found = result.found
    roots = result.staying(stays)
    left_out = int(np.count_nonzero(roots != np.arange(len(roots))))
    rows, first = np.unique(np.asarray(found.of_row), return_index=True)
    first_row = dict(zip(rows.tolist(), first.tolist(), strict=True))

    def name_text(text: int) -> str:
        return f"{found.unit} {found.numbers[first_row[text]]}"

    number = len(likely.pairs.left)
    summary = (
        f"{left_out:,} of {len(roots):,} {found.unit}s repeat one that stays; {number:,} pair{'s' * (number != 1)} of "
        f"different {found.unit}s at the threshold {likely.threshold:.3f}"
    )
    if number:
        summary += f", of which {likely.precision:.0%} are expected to be right"
    fields = [Field(found.different, found.different, 1.0)]
    return JobReport(
        title, summary, [*facts],
        scores=ScoreHistogram.from_scores(likely.candidates.scores, likely.threshold, unit="candidate pairs",
                                          note=EQUAL_ROWS),
        pairs=list_pairs(Matches(*likely.candidates), Matches(*likely.pairs), likely.threshold, fields,
                         [(column, column)], (name_text, name_text)),
        groups=_groups(result, roots),
    )  # fmt: skip


def _groups(result: DedupeResult, roots: np.ndarray[tuple[int], np.dtype[np.int64]]) -> GroupSizes:
    found = result.found
    sizes = np.bincount(roots, minlength=len(roots))
    several = np.flatnonzero(sizes > 1)
    largest = several[np.argsort(-sizes[several], kind="stable")[:MAX_GROUPS]]
    order = np.argsort(roots, kind="stable")
    starts = np.cumsum(sizes) - sizes

    def text(row: int) -> str:
        whole = found.different[found.of_row[row]]
        cut = whole if len(whole) <= MAX_CHARACTERS else whole[:MAX_CHARACTERS] + "…"
        return f"{found.unit} {found.numbers[row]}: {cut}"

    shown = []
    for root in largest.tolist():
        members = order[starts[root] : starts[root] + min(sizes[root], MAX_ROWS + 1)].tolist()
        others = [row for row in members if row != root][:MAX_ROWS]
        shown.append(DuplicateGroup(text(root), [text(row) for row in others], int(sizes[root])))
    return GroupSizes(count_groups(sizes[several].tolist()), shown)
